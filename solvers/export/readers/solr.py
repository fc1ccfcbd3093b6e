"""Scores by a model of Solr's model store.

Source: Solr's guide (learning to rank) and its documentation of LinearModel and MultipleAdditiveTreesModel; pull
request 1257 of apache/solr for what is missing. Numbers are in single precision. A document goes left where its value
is at most the threshold plus 1e-6. With "isNullSameAsZero": false a NaN goes where "missing" says, otherwise an absent
feature is 0. Solr gives each parameter to a setter of its name, which takes one type (SolrPluginUtils.invokeSetters):
numbers of trees are text, weights are numbers, and isNullSameAsZero is a boolean.
"""

from __future__ import annotations

import numpy as np

from ranktune.solvers.core.arrays import Floats, Json
from ranktune.solvers.export.absent import ZERO
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

_SLACK = np.float32(1e-6)
_PACKAGE = "org.apache.solr.ltr.model."


def read_solr(text: str, absent: str) -> Score:
    """Return what scores documents by a model; absent says what they are for what a document lacks."""
    model: Json = json_of(text)
    params, names = model["params"], [feature["name"] for feature in model["features"]]
    norms = {f["name"]: single(f["norm"]["params"]["max"], str) for f in model["features"] if "norm" in f}
    check_that(bool(model["name"] and model["store"]), "solr", "it needs a name and a store")
    check_that(0 < len(names) == len(set(names)), "solr", "its features have distinct names, at least one")
    if model["class"] == f"{_PACKAGE}LinearModel":
        check_that(params.keys() == {"weights"}, "solr", "a linear model has weights alone")
        check_that(params["weights"].keys() == set(names), "solr", "each feature has a weight")
        weights = {name: single(params["weights"][name]) for name in names}
        return lambda columns, n: weighted(weights, columns, n)
    check_that(model["class"] == f"{_PACKAGE}MultipleAdditiveTreesModel", "solr", "its class is not known")
    null_is_zero = params.get("isNullSameAsZero", True)
    known = params.keys() <= {"trees", "isNullSameAsZero"} and isinstance(null_is_zero, bool)
    check_that(known, "solr", "a model of trees has trees and the boolean isNullSameAsZero")
    is_zero = absent == ZERO or null_is_zero
    trees = [(single(tree.get("weight"), str), _node(tree["root"], set(names))) for tree in params["trees"]]

    def score(columns: Columns, n: int) -> Floats:
        columns = {k: x / norms.get(k, np.float32(1.0)) for k, x in columns.items()}
        return sum_of(trees, {k: np.nan_to_num(x) if is_zero else x for k, x in columns.items()}, n)

    return score


def _node(node: Json, names: set[str]) -> Leaf | Split:
    if "feature" not in node:
        check_that(node.keys() == {"value"}, "solr", "a leaf has a value alone")
        return Leaf(single(node["value"], str))
    check_that(node["feature"] in names, "solr", f"the feature {node['feature']!r} of a tree is none of the model")
    needed, missing = {"feature", "threshold", "left", "right"}, node.get("missing", "right")
    is_split = needed <= node.keys() <= {*needed, "missing"} and missing in ("left", "right")
    check_that(is_split, "solr", "a split has a threshold, two branches and the side of what is missing")
    threshold, side = single(node["threshold"], str) + _SLACK, missing == "left"
    return Split(
        node["feature"],
        lambda x: np.where(np.isnan(x), side, x <= threshold),
        _node(node["left"], names),
        _node(node["right"], names),
    )
