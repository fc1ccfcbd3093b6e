"""Trees in the JSON and UBJSON of XGBoost.

The nodes of a tree stand in one list: a leaf has no left child, and its value as condition. A split sends a document
left where x < condition in single precision, or where x, without its decimals, is none of its categories.

What XGBoost 3.2 does besides (of its input: ranktune.solvers.models.columns): the predict of an estimator uses the
trees up to best_iteration of early stopping, that of a Booster all trees. From release 3.1 on, categories are
found by their values, which the file holds.

Universal Binary JSON has a marker before each value, and arrays of one type as their bytes. Lengths are compared with
what is left of the file before anything is made of them. Source: https://ubjson.org, draft 12.
"""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path

import numpy as np

from ranktune.solvers.core.arrays import Array, Floats, Ints, Json, JsonView, Mask, Matrix
from ranktune.solvers.core.errors import warn
from ranktune.solvers.models.other_libraries.base import (
    MOST_FEATURES,
    Computed,
    LibraryModel,
    SplitColumns,
    UnsupportedModelError,
    demand,
    item_of,
    levels_of,
    plain,
    read_whole,
    vector,
)
from ranktune.solvers.models.trees import Trees, joined, last_below, one_tree

LEAF = -1
MOST_CATEGORIES = 2**24
"""A larger number is no category to XGBoost."""
LOGISTIC = ("reg:logistic", "binary:logistic", "binary:logitraw")
LOGARITHMIC = ("count:poisson", "reg:gamma", "reg:tweedie", "survival:cox", "survival:aft")
OF_NODES = ("base_weights", "loss_changes", "sum_hessian")


def read_xgboost(path: Path) -> LibraryModel:
    """Return the model in a file of XGBoost; scores are its margins, before the transformation of the objective.

    Raises ModelFormatError for a file that is damaged, of several outputs, or of a linear model.
    """
    return read_whole(path, "XGBoost", model_of)


def trees_of(raw: bytes | bytearray, with_missing: Mask | None) -> Trees:
    """Return the trees in the JSON of a booster of numerical features, with sides for missing values if there are.

    with_missing, (n_features,), are the features of which XGBoost has seen missing values: the side of others is
    arbitrary, so that it becomes that of 0. Raises DataError where a split is by categories.
    """
    columns = SplitColumns(MOST_FEATURES)
    trees = _trees(json.loads(bytes(raw))["learner"]["gradient_booster"], columns)
    demand(not columns.computed, "a split is by categories")
    return trees.with_sides_of(with_missing)


def model_of(content: bytes, last: int | None = None) -> LibraryModel:
    """Return the model in what save_raw gives, by its trees up to the iteration last; by default as its predict."""
    is_json = re.match(rb'\s*{\s*"', content)
    learner = item_of(json.loads(content) if is_json else decoded(content), "learner", dict)
    parameters = item_of(learner, "learner_model_param", dict)
    if not {parameters.get("num_class", "0"), parameters.get("num_target", "1")} <= {"0", "1"}:
        raise UnsupportedModelError("has several scores for each document")
    n_features = _count(parameters, "num_feature", MOST_FEATURES)
    names = tuple(learner.get("feature_names", ()))
    demand(all(isinstance(name, str) for name in names), "feature_names are not names")
    demand(len(set(names)) in ({n_features} if names else {0}), f"{n_features} features have {len(set(names))} names")
    columns = SplitColumns(n_features)
    booster = item_of(learner, "gradient_booster", dict)
    trees = _trees(booster, columns, _best_iteration(learner) if last is None else last)
    objective = item_of(item_of(learner, "objective", dict), "name", str)
    base = _base(item_of(parameters, "base_score", str), objective)
    return LibraryModel(trees, columns, names or None, "XGBoost", base, _levels(booster))


def _best_iteration(learner: JsonView) -> int | None:
    """Return the iteration up to which predict uses the trees, None for all."""
    attributes = learner.get("attributes", {})
    demand(isinstance(attributes, dict), "attributes are none")
    if "best_iteration" not in attributes:
        return None
    best = _count(attributes, "best_iteration")
    if "scikit_learn" in attributes:
        return best
    warn(
        f"the Booster stopped early, with iteration {best} as the best. All of its trees count, as in its predict. To "
        f"leave out the later ones, save booster[:{best + 1}]."
    )
    return None


def _levels(booster: JsonView) -> dict[int, tuple[str, ...]]:
    """Return the values of features that are categories, by place, where a model holds them."""
    model = item_of(booster, "model", dict) if "model" in booster else item_of(booster["gbtree"], "model", dict)
    levels = {}
    for place, column in enumerate(item_of(model.get("cats", {"enc": []}), "enc", list)):
        values, ends = (np.asarray(column.get(name, ())).tolist() for name in ("values", "offsets"))
        demand(isinstance(values, list) and isinstance(ends, list), "categories are none")
        if not values and "type" not in column:
            continue
        if ends:
            demand(all(isinstance(end, int) for end in ends) and ends == sorted(ends), "categories do not follow")
            if not all(0 <= letter < 128 for letter in values):  # it counts letters, and keeps as many bytes
                raise UnsupportedModelError("has categories of which XGBoost saves parts, as they are not ASCII")
            values = [bytes(values[a:b]).decode() for a, b in pairwise(ends)]
        levels[place] = levels_of(values)
    return levels


def _base(text: str, objective: str) -> float:
    """Return the margin of base_score, which is a prediction."""
    base = float(plain(text.strip("[]")))
    if objective in LOGISTIC:
        demand(0.0 < base < 1.0, f"base_score is {base}")
        return float(np.log(base / (1.0 - base)))
    demand(abs(base) < 2.0**63 and (base > 0.0 or objective not in LOGARITHMIC), f"base_score is {base}")
    return float(np.log(base)) if objective in LOGARITHMIC else base


def _trees(booster: Json, columns: SplitColumns, last: int | None = None) -> Trees:
    """Return the trees of a booster, up to those of the iteration last if it is given."""
    name = item_of(booster, "name", str)
    if name not in ("gbtree", "dart"):
        raise UnsupportedModelError(f"is a model of the kind {name[:20]!r}")
    inner = booster if name == "gbtree" else item_of(booster, "gbtree", dict)
    model = item_of(inner, "model", dict)
    listed = item_of(model, "trees", list)
    counts = item_of(model, "gbtree_model_param", dict)
    demand(_count(counts, "num_trees") == len(listed) > 0, "num_trees does not agree")
    together = max(1, _count(counts, "num_parallel_tree"))
    if "iteration_indptr" in model:
        ends = range(0, len(listed) + 1, together)
        demand(vector(model, "iteration_indptr", len(ends), "iu").tolist() == list(ends), "iteration_indptr is wrong")
    demand(not vector(model, "tree_info", len(listed), "iu").any(), "tree_info is not 0")
    trees = [_tree(tree, number, columns) for number, tree in enumerate(listed)]
    if name == "dart":
        weights = vector(booster, "weight_drop", len(listed), "fiu")
        demand(((weights >= 0.0) & (weights <= 1.0)).all(), "a weight of a tree is not from 0 to 1")
        trees = [tree.scaled(float(weight)) for tree, weight in zip(trees, weights, strict=True)]
    used = len(trees) if last is None else (last + 1) * together
    demand(used <= len(trees), "best_iteration is not there")
    return joined(trees[:used])


def _tree(tree: JsonView, position: int, columns: SplitColumns) -> Trees:
    parameters = item_of(tree, "tree_param", dict)
    if parameters.get("size_leaf_vector", "1") not in ("0", "1"):
        raise UnsupportedModelError("has several scores for each document")
    n = _count(parameters, "num_nodes")
    demand(tree.get("id") == position and n > 0, f"tree {position} does not follow those before it")
    whole = ("left_children", "right_children", "parents", "split_indices", "default_left")
    left, right, parents, features, sides = (vector(tree, name, n, "iub").astype(np.int64) for name in whole)
    for name in OF_NODES:
        vector(tree, name, n, "fiu")
    with np.errstate(over="ignore"):  # Trees refuse what is infinite
        conditions = vector(tree, "split_conditions", n, "fiu").astype(np.float32)
    splits = left != LEAF
    children = np.concatenate([left[splits], right[splits]])
    demand(((children > 0) & (children < n)).all(), f"tree {position} has a child that is not there")
    reached = _reached(left, right)
    demand(len(np.unique(reached)) == len(reached), f"tree {position} has a node below itself or below two others")
    demand(n - len(reached) == _count(parameters, "num_deleted"), f"tree {position} does not have all of its nodes")
    inner, leaves = reached[splits[reached]], reached[~splits[reached]]
    demand((parents[[left[inner], right[inner]]] == inner).all(), "parents do not agree")
    demand(np.isin(sides, (0, 1)).all(), "default_left is neither 0 nor 1")
    features = features[inner]
    demand(((features >= 0) & (features < columns.n_features)).all(), "a split compares no feature that is there")
    limits = last_below(conditions[inner])
    sets = _categories(tree, n)
    for k in np.flatnonzero(np.isin(inner, list(sets))).tolist():
        features[k] = columns.number_of(Computed(int(features[k]), _among, sets[int(inner[k])]))
        limits[k] = 0.5
    number = np.empty(n, dtype=np.int64)
    number[inner], number[leaves] = np.arange(len(inner)), ~np.arange(len(leaves))
    value = conditions[leaves].astype(np.float64)
    return one_tree(features, limits, number[left[inner]], number[right[inner]], value, sides[inner] != 0)


def _reached(left: Ints, right: Ints) -> Ints:
    """Return the nodes that can be reached from the root, parents before children; in a ring some twice."""
    order = [0]
    for node in order:
        if left[node] != LEAF and len(order) <= len(left):
            order += [int(left[node]), int(right[node])]
    return np.array(order)


def _categories(tree: JsonView, n: int) -> dict[int, bytes]:
    """Return node -> the categories that its split sends right, which stand one after another in one array."""
    if "split_type" not in tree:  # before release 1.3
        return {}
    by_categories = vector(tree, "split_type", n, "iu") == 1
    count = int(by_categories.sum())
    names = ("categories_nodes", "categories_segments", "categories_sizes")
    nodes, starts, sizes = (vector(tree, name, count, "iu").astype(np.int64) for name in names)
    demand(set(nodes.tolist()) == set(np.flatnonzero(by_categories).tolist()), "a split has no categories")
    total = int(sizes.sum()) if ((sizes > 0) & (sizes < MOST_CATEGORIES)).all() else -1
    categories = vector(tree, "categories", total, "iu").astype(np.int64) if count else np.empty(0, dtype=np.int64)
    demand(((categories >= 0) & (categories < MOST_CATEGORIES)).all(), "it has a category that is too large or below 0")
    ends = np.cumsum(sizes)
    demand((starts == ends - sizes).all(), "its categories do not follow each other")
    return {int(node): part.tobytes() for node, part in zip(nodes, np.split(categories, ends), strict=False)}


def _among(x: Matrix, categories: bytes) -> Floats:
    x = x.astype(np.float32)
    inside = (x >= 0.0) & np.isin(np.trunc(x), np.frombuffer(categories, np.int64))
    return np.where(np.isnan(x), np.nan, inside)


def _count(fields: JsonView, name: str, high: int = 2**31 - 1) -> int:
    """Return a count, which XGBoost writes as text."""
    text = item_of(fields, name, str)
    demand(text.isascii() and text.isdecimal() and int(text) <= high, f"{name} is {text[:20]!r}")
    return int(text)


NUMBERS = {"i": ">i1", "U": ">u1", "I": ">i2", "l": ">i4", "L": ">i8", "d": ">f4", "D": ">f8"}
CONSTANTS = {"Z": None, "T": True, "F": False}
DEEPEST = 32


def decoded(content: bytes) -> object:
    """Return the value that content holds; arrays of numbers of one type are NumPy arrays.

    Raises DataError where it ends early, or holds what XGBoost does not write.
    """
    reading = _Reading(content)
    value = reading.value(reading.marker(), 0)
    demand(reading.at == len(content), "it goes on after its end")
    return value


class _Reading:
    """A place in content."""

    def __init__(self, content: bytes) -> None:
        self.content, self.at = content, 0

    def marker(self) -> str:
        return self.take(1).decode("latin-1")

    def take(self, count: int) -> bytes:
        demand(count <= len(self.content) - self.at, "it ends early")
        self.at += count
        return self.content[self.at - count : self.at]

    def value(self, marker: str, depth: int) -> object:
        demand(depth < DEEPEST, f"it is nested more than {DEEPEST} deep")
        if marker in NUMBERS:
            number: int | float = self.numbers(marker, 1)[0].item()
            return number
        if marker == "S":
            return self.text()
        if marker == "[":
            return self.array(depth)
        if marker == "{":
            return self.object(depth)
        demand(marker in CONSTANTS, f"it holds the unknown type {marker!r}")
        return CONSTANTS[marker]

    def numbers(self, marker: str, count: int) -> Array:
        demand(marker in NUMBERS, f"it holds an array of the unknown type {marker!r}")
        dtype = np.dtype(NUMBERS[marker])
        return np.frombuffer(self.take(count * dtype.itemsize), dtype).astype(dtype.newbyteorder("="))

    def length(self) -> int:
        marker = self.marker()
        demand(marker in "iUIlL", "a length in it is no whole number")
        length = int(self.numbers(marker, 1)[0])
        demand(length >= 0, "a length in it is below 0")
        return length

    def text(self) -> str:
        return self.take(self.length()).decode()

    def array(self, depth: int) -> object:
        marker = self.marker()
        if marker == "$":
            kind = self.marker()
            demand(self.marker() == "#", "an array in it has no length")
            return self.numbers(kind, self.length())
        demand(marker == "#", "an array in it has no length")
        return [self.value(self.marker(), depth + 1) for _ in range(self.length())]

    def object(self, depth: int) -> dict[str, object]:
        fields: dict[str, object] = {}
        while self.content[self.at : self.at + 1] != b"}":
            name = self.text()
            fields[name] = self.value(self.marker(), depth + 1)
        self.at += 1
        return fields
