"""Symmetric trees in the JSON of CatBoost, of features that are numbers.

Split k of a tree decides on bit k of the number of the leaf: a document goes right where x > border in single
precision. CatBoost finds borders by the number of a split among those of all features, and repeats feature and border
beside it. A missing value is not greater than any border (AsIs), below all (AsFalse) or above all (AsTrue).
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np

from ranktune.solvers.core.arrays import Array, Floats, Ints, JsonView, Mask
from ranktune.solvers.models.other_libraries.base import (
    MOST_FEATURES,
    LibraryModel,
    SplitColumns,
    UnsupportedModelError,
    demand,
    item_of,
    read_whole,
    vector,
)
from ranktune.solvers.models.trees import ANY_VALUE, Trees, last_below, symmetric_trees

GOES_LEFT = {"AsIs": True, "AsFalse": True, "AsTrue": False}
DEEPEST = 16
LARGEST = 2.0**63
"""CatBoost reads a whole number from here on as another one."""
OTHER_FEATURES = ("categorical_features", "text_features", "embedding_features")

SymmetricTree: TypeAlias = tuple[Ints, Floats, Floats]
"""The columns and thresholds of the levels, the root first, and the values of the leaves."""


class _Features(NamedTuple):
    """The features of a model, and the borders of all of them one after another."""

    names: tuple[str, ...]
    left: Mask
    with_missing: Mask
    owner: Ints
    borders: Array
    thresholds: Floats


def read_catboost(path: Path) -> LibraryModel:
    """Return the model in a JSON file of CatBoost; scores are its raw values (RawFormulaVal).

    Raises ModelFormatError for a file that is damaged, of several classes, or whose features or trees are of other
    kinds.
    """
    return read_whole(path, "CatBoost", _model)


def trees_of(content: bytes, has_missing: bool) -> list[Trees]:
    """Return the trees of a model in JSON, one for each, with sides for missing values if there are.

    Missing values of features without any in training go to the side of 0. Raises DataError where the content is not
    whole.
    """
    whole = json.loads(content)
    features = _features(whole)
    with_missing = features.with_missing if has_missing else None
    return [_sided([tree], features).with_sides_of(with_missing) for tree in _trees(whole, features)]


def _model(content: bytes) -> LibraryModel:
    whole = json.loads(content)
    features = _features(whole)
    n_features, bias = len(features.names), _scale_and_bias(whole)[1]
    numbered = features.names in (("",) * n_features, tuple(map(str, range(n_features))))
    demand(numbered or len({*features.names, ""}) == n_features + 1, "names of features are empty or not distinct")
    trees = _sided(_trees(whole, features), features)
    return LibraryModel(trees, SplitColumns(n_features), None if numbered else features.names, "CatBoost", bias)


def _sided(trees: list[SymmetricTree], features: _Features) -> Trees:
    whole = symmetric_trees(trees)
    return replace(whole, missing_left=features.left[whole.feature])


def _scale_and_bias(content: JsonView) -> tuple[float, float]:
    scale, biases = item_of(content, "scale_and_bias", list)
    demand(isinstance(biases, list), "scale_and_bias has no list")
    if len(biases) > 1:
        raise UnsupportedModelError("has scores for several classes")
    values = vector({"scale_and_bias": [scale, *biases]}, "scale_and_bias", 2, "fiu").astype(np.float64)
    demand((np.abs(values) < LARGEST).all(), "scale_and_bias is not finite or too large")
    return float(values[0]), float(values[1])


def _features(content: JsonView) -> _Features:
    about = item_of(content, "features_info", dict)
    if any(about.get(kind) for kind in OTHER_FEATURES) or content.get("ctr_data"):
        raise UnsupportedModelError("has features that are categories, text or embeddings")
    listed = item_of(about, "float_features", list)
    demand(0 < len(listed) < MOST_FEATURES, "it has no features")
    for number, feature in enumerate(listed):
        places = [_whole(feature, name) for name in ("feature_index", "flat_feature_index")]
        demand(places == [number, number], f"feature {number} does not follow those before it")
    treatments = [item_of(feature, "nan_value_treatment", str) for feature in listed]
    demand(GOES_LEFT.keys() >= set(treatments), "a nan_value_treatment is none of AsIs, AsFalse and AsTrue")
    borders = [_borders(feature) for feature in listed]
    whole = np.concatenate(borders)
    outermost = np.abs(whole) == np.finfo(np.float32).max  # tells missing values from others
    above = np.nextafter(np.where(outermost, 0, whole), np.float32(np.inf))
    return _Features(
        tuple(item_of(feature, "feature_id", str) for feature in listed),
        np.array([GOES_LEFT[treatment] for treatment in treatments]),
        np.array([item_of(feature, "has_nans", bool) for feature in listed]),
        np.repeat(np.arange(len(listed)), list(map(len, borders))),
        whole,
        np.where(outermost, ANY_VALUE * np.sign(whole).astype(np.float64), last_below(above)),
    )


def _borders(feature: JsonView) -> Array:
    with np.errstate(over="ignore"):
        borders = vector(feature, "borders", len(item_of(feature, "borders", list)), "fiu").astype(np.float32)
    demand(np.isfinite(borders).all() and (np.diff(borders) > 0).all(), "borders are not finite, or do not rise")
    return borders


def _trees(content: JsonView, features: _Features) -> list[SymmetricTree]:
    if "trees" in content and "oblivious_trees" not in content:
        raise UnsupportedModelError("has trees that are not symmetric (grow_policy)")
    trees, scale = item_of(content, "oblivious_trees", list), _scale_and_bias(content)[0]
    demand(trees, "it has no trees")
    return [_tree(tree, features, scale) for tree in trees]


def _tree(tree: JsonView, features: _Features, scale: float) -> SymmetricTree:
    demand(isinstance(tree, dict), "a tree is none")
    splits = item_of(tree, "splits", list) if tree.get("splits") else []
    demand(len(splits) <= DEEPEST, f"a tree is deeper than {DEEPEST}")
    if any(item_of(split, "split_type", str) != "FloatFeature" for split in splits):
        raise UnsupportedModelError("has splits that are not by numbers")
    numbers = np.array([_whole(split, "split_index") for split in reversed(splits)], dtype=np.int64)
    demand((numbers < len(features.owner)).all(), "a split has no border")
    columns = [_whole(split, "float_feature_index") for split in reversed(splits)]
    beside = {"border": [split.get("border") for split in reversed(splits)]}
    with np.errstate(over="ignore"):
        agrees = (vector(beside, "border", len(splits), "fiu").astype(np.float32) == features.borders[numbers]).all()
    demand(agrees and features.owner[numbers].tolist() == columns, "splits and borders do not agree")
    n_leaves = 2 ** len(splits)
    if "leaf_weights" in tree:
        demand(np.isfinite(vector(tree, "leaf_weights", n_leaves, "fiu")).all(), "leaf_weights are not finite")
    values = vector(tree, "leaf_values", n_leaves, "fiu").astype(np.float64)
    demand((np.abs(values) < LARGEST).all(), "a leaf_value is not finite or too large")
    return features.owner[numbers], features.thresholds[numbers], scale * values


def _whole(fields: object, name: str) -> int:
    number = item_of(fields, name, int)
    demand(not isinstance(number, bool) and 0 <= number < 2**31, f"{name} is no number from 0")
    return number
