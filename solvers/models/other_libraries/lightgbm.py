"""Trees in the text of LightGBM.

A split sends a document left where x <= threshold, or where x, without its decimals, is one of its categories. What it
does with a missing value is in its decision type: bit 0 for categories, bit 1 for left, and bits 2 and 3 for the values
that count as missing: none, so that a missing value is 0; 0; or NaN.

What LightGBM 4.7 does besides (of its input: ranktune.solvers.models.columns): save_model writes the trees up to
the best iteration alone. Categories of pandas are numbers by their place among the values in
pandas_categorical, of the columns of type category one after another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain, pairwise
from pathlib import Path
from typing import TypeAlias, cast

import numpy as np

from ranktune.solvers.core.arrays import Floats, Ints, Matrix
from ranktune.solvers.data.columns.grammar import json_of
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
)
from ranktune.solvers.models.trees import ANY_VALUE, Trees

BY_CATEGORIES, LEFT = 1, 2
ZERO, NAN = 1, 2
"""What counts as missing, in bits 2 and 3."""
NEAR_ZERO = 1e-35
"""The largest number that is 0 to LightGBM."""
OF_SPLITS = {"split_gain", "internal_value", "internal_weight", "internal_count"}
OF_LEAVES = {"leaf_weight", "leaf_count"}

Fields: TypeAlias = Mapping[str, str]


def read_lightgbm(path: Path) -> LibraryModel:
    """Return the model in a text file of LightGBM; scores are its raw scores, without the objective's transformation.

    Raises ModelFormatError for a file that is damaged, of several classes, or of linear trees.
    """
    return read_whole(path, "LightGBM", lambda content: _model(content.decode().replace("\r\n", "\n")))


def trees_of(text: str, has_missing: bool) -> Trees:
    """Return the trees in the text of a booster of numerical features, with sides for missing values if there are.

    Raises DataError where the text is not whole, or a split is by categories.
    """
    columns = SplitColumns(MOST_FEATURES)
    trees = _trees(_parts(text)[1:], columns)
    demand(not columns.computed, "a split is by categories, or takes 0 for missing")
    return trees if has_missing else trees.with_sides_of(None)


def _model(text: str) -> LibraryModel:
    head, *parts = _parts(text)
    fields = _fields(head)
    if any(_whole([fields], name, [1])[0] != 1 for name in ("num_class", "num_tree_per_iteration")):
        raise UnsupportedModelError("has scores for several classes")
    names = tuple(item_of(fields, "feature_names", str).split(" "))
    n_features = int(_whole([fields], "max_feature_idx", [1], MOST_FEATURES - 1)[0]) + 1
    demand(len(names) == len(set(names)) == n_features, f"{n_features} features have {len(set(names))} names")
    sizes = [len(f"Tree={part}\n") for part in parts]
    demand(_whole([fields], "tree_sizes", [len(parts)]).tolist() == sizes, "tree_sizes are not those of the trees")
    columns = SplitColumns(n_features)
    trees = _trees(parts, columns)
    numbered = names == tuple(f"Column_{number}" for number in range(n_features))
    return LibraryModel(trees, columns, None if numbered else names, "LightGBM", levels=levels_in(text))


def levels_in(text: str) -> dict[int, tuple[str, ...]]:
    """Return the values of columns of pandas' type category, by place; raises UnsupportedModelError if unknown which.

    A file does not say which columns these are: those with categories for infos, and perhaps some without any infos.
    """
    _, _, written = text.rpartition("\npandas_categorical:")
    lists = cast("list[list[object]]", json_of(written.split("\n", 1)[0]) if written else [])
    if not lists:
        return {}
    demand(isinstance(lists, list) and all(isinstance(values, list) for values in lists), "pandas_categorical is none")
    infos = item_of(_fields(_parts(text)[0]), "feature_infos", str).split(" ")
    by_values = [place for place, info in enumerate(infos) if info[:1] != "["]
    used = [place for place in by_values if infos[place] != "none"]
    places = next((found for found in (used, by_values) if len(found) == len(lists)), None)
    if places is None:
        raise UnsupportedModelError("has ordered categories of pandas, and does not say of which columns")
    return {place: levels_of(values) for place, values in zip(places, lists, strict=True)}


def _parts(text: str) -> list[str]:
    """Return what precedes the trees, and the text of each tree from its number on."""
    trees, end, _ = text.partition("\nend of trees\n")
    head, *parts = trees.split("\nTree=")
    demand(end and parts, "its trees do not end")
    for number, part in enumerate(parts):
        demand(part.startswith(f"{number}\n"), f"tree {number} does not follow those before it")
    return [head, *parts]


def _fields(section: str) -> Fields:
    pairs = [line.split("=", 1) for line in section.split("\n") if "=" in line]
    fields: Fields = dict(pairs)
    demand(len(fields) == len(pairs), "it has a line twice")
    return fields


def _trees(parts: Sequence[str], columns: SplitColumns) -> Trees:
    """Return the trees in these texts, which are read together: each by itself would take several times as long."""
    fields = [_fields(part) for part in parts]
    if any(each.get("is_linear", "0") != "0" for each in fields):
        raise UnsupportedModelError("has linear models in its leaves")
    leaves = _whole(fields, "num_leaves", [1] * len(fields), low=1)
    value = _floats(fields, "leaf_value", leaves.tolist())
    starts = np.cumsum([0, *(leaves - 1)])
    split = [each for each, S in zip(fields, leaves, strict=True) if S > 1]
    sizes = leaves[leaves > 1] - 1
    counts: list[int] = sizes.tolist()
    for names, more in ((OF_SPLITS, 0), (OF_LEAVES, 1)):
        for name in names:
            present = [(each, S + more) for each, S in zip(split, counts, strict=True) if name in each]
            _floats([each for each, _ in present], name, [count for _, count in present])
    feature = _whole(split, "split_feature", counts, columns.n_features - 1)
    decision = _whole(split, "decision_type", counts, 11)
    limit = np.clip(_floats(split, "threshold", counts), -ANY_VALUE, ANY_VALUE)  # inf tells missing values from others
    missing = decision >> 2
    sides = np.where(missing == 0, limit >= 0.0, decision & LEFT != 0)  # where none are missing, NaN is 0
    computed = feature.copy()
    by_categories = decision & BY_CATEGORIES != 0
    tree, sets = np.repeat(np.arange(len(split)), sizes), dict[int, list[bytes]]()
    for k in np.flatnonzero(by_categories | (missing == ZERO)).tolist():
        column, number = Computed(int(feature[k]), _zero_missing), int(tree[k])
        if by_categories[k]:
            if number not in sets:
                sets[number] = _categories(split[number])
            demand(limit[k] in range(len(sets[number])), "a split has no categories")
            column, limit[k] = Computed(int(feature[k]), _not_among, sets[number][int(limit[k])]), 0.5
        computed[k] = columns.number_of(column)
    most = int(sizes.max(initial=0))
    children = np.column_stack([_whole(split, name, counts, most, -most - 1) for name in ("left_child", "right_child")])
    first, before = (
        np.repeat(each[:-1][leaves > 1], sizes)[:, None] for each in (starts, starts + np.arange(len(starts)))
    )
    limits = np.repeat(sizes, sizes)[:, None]
    demand(((children < limits) & (children >= -limits - 1)).all(), "a child is outside its tree")
    children = np.where(children >= 0, children + first, children - before)
    arrays = (computed.astype(np.int32), limit, children.astype(np.int32), value, starts)
    return Trees(*arrays, sides)


def _categories(fields: Fields) -> list[bytes]:
    """Return the sets of categories of a tree, which are bits of 32-bit words."""
    count = int(_whole([fields], "num_cat", [1])[0])
    ends = _whole([fields], "cat_boundaries", [count + 1])
    demand(ends[0] == 0 and (np.diff(ends) > 0).all(), "its categories do not agree")
    words = _whole([fields], "cat_threshold", [int(ends[-1])], 2**32 - 1).astype("<u4")
    return [words[a:b].tobytes() for a, b in pairwise(ends.tolist())]


def _not_among(x: Matrix, categories: bytes) -> Floats:
    bits = np.unpackbits(np.frombuffer(categories, np.uint8), bitorder="little")
    outside, number = np.ones(len(x)), np.trunc(x)
    in_bits = (number >= 0) & (number < len(bits))
    outside[in_bits] = 1 - bits[number[in_bits].astype(np.int64)]
    return outside


def _zero_missing(x: Matrix, _: bytes) -> Floats:
    values: Floats = np.where(np.abs(x) > NEAR_ZERO, x, np.nan).astype(np.float64)
    return values


def _numbers(fields: Sequence[Fields], name: str, counts: Sequence[int]) -> list[str]:
    """Return the numbers under a name in the fields of each tree, one tree after the other, so many each."""
    found = [plain(item_of(each, name, str)).split() for each in fields]
    for numbers, count in zip(found, counts, strict=True):
        demand(len(numbers) == count, f"{name} has {len(numbers)} numbers in place of {count}")
    return list(chain.from_iterable(found))


def _whole(fields: Sequence[Fields], name: str, counts: Sequence[int], high: int = 2**31 - 1, low: int = 0) -> Ints:
    numbers = list(map(int, _numbers(fields, name, counts)))
    inside = not numbers or low <= min(numbers) <= max(numbers) <= high
    demand(inside, f"{name} is to hold numbers from {low} to {high}, and holds others")
    return np.array(numbers, dtype=np.int64)


def _floats(fields: Sequence[Fields], name: str, counts: Sequence[int]) -> Floats:
    return np.array(list(map(float, _numbers(fields, name, counts))), dtype=np.float64)
