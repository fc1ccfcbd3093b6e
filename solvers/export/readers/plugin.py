"""Scores by a model of the learning-to-rank plugins of Elasticsearch and OpenSearch.

Source: docs/models.md of o19s/elasticsearch-learning-to-rank, and XGBoostJsonParser and NaiveAdditiveDecisionTree of
that repository and of opensearch-project/opensearch-learning-to-rank-base. Numbers are in single precision. A document
goes left where its value is below split_condition. What is absent is 0 to a linear model. A tree sends it where
"missing" points, or right in the versions of OpenSearch that do not read that; "missing_as_zero" makes it 0.
"""

from __future__ import annotations

import numpy as np

from ranktune.solvers.core.arrays import Floats, Json
from ranktune.solvers.export.absent import RIGHT, ZERO
from ranktune.solvers.export.readers.trees import (
    Columns,
    Leaf,
    Score,
    Split,
    check_that,
    json_of,
    single,
    sum_of,
    weighted,
)

_NAME = "the plugin"


def read_plugin(text: str, absent: str) -> Score:
    """Return what scores documents by a model; absent says what an engine does with what a document lacks."""
    model: Json = json_of(text)["model"]
    check_that(bool(model["name"]), _NAME, "it needs a name")
    kind, definition = model["model"]["type"], json_of(model["model"]["definition"])
    if kind == "model/linear":
        weights = {name: single(weight) for name, weight in definition.items()}
        return lambda columns, n: weighted(weights, columns, n)
    check_that(kind == "model/xgboost+json", _NAME, "its type is not known")
    is_zero = absent == ZERO
    if isinstance(definition, dict):
        known = {"splits", "objective", "missing_as_zero"}
        check_that(definition.keys() <= known, _NAME, "a definition has splits, an objective and missing_as_zero")
        asks_zero = definition.get("missing_as_zero", False)
        check_that(isinstance(asks_zero, bool), _NAME, "missing_as_zero is a boolean")
        is_zero |= asks_zero
        definition = definition["splits"]
    check_that(bool(definition), _NAME, "it has at least one tree")
    trees = [(np.float32(1.0), _node(root, absent == RIGHT)) for root in definition]

    def score(columns: Columns, n: int) -> Floats:
        return sum_of(trees, {k: np.nan_to_num(x) if is_zero else x for k, x in columns.items()}, n)

    return score


def _node(node: Json, always_right: bool) -> Leaf | Split:
    if "leaf" in node:
        check_that(node.keys() <= {"leaf", "nodeid", "depth"}, _NAME, "a leaf has a number and a depth alone")
        check_that(type(node.get("nodeid")) is int, _NAME, "a leaf has a number")
        return Leaf(single(node["leaf"]))
    needed = {"nodeid", "depth", "split", "split_condition", "yes", "no", "children"}
    check_that(needed <= node.keys() <= {*needed, "missing"}, _NAME, "a split lacks a field or has one too many")
    check_that(type(node["nodeid"]) is type(node["depth"]) is int, _NAME, "a split has a number and a depth")
    check_that(isinstance(node["split"], str), _NAME, "a split has the name of a feature")
    ends = [child["nodeid"] for child in node["children"]]
    missing = node.get("missing", node["no"])
    check_that(ends == [node["yes"], node["no"]] and missing in ends, _NAME, "yes, no and missing are children")
    limit, side = single(node["split_condition"]), missing == node["yes"] and not always_right
    yes, no = (_node(child, always_right) for child in node["children"])
    return Split(node["split"], lambda x: np.where(np.isnan(x), side, x < limit), yes, no)
