"""Scores by models in the formats of engines, as the sources of the engines say; the files are taken to be well formed.

Solr (LinearModel, MultipleAdditiveTreesModel): a document goes left where its value is at most the threshold plus 1e-6.
Plugins (NaiveAdditiveDecisionTree): left where its value is below split_condition; what is absent goes where "missing"
points, or right in the versions of OpenSearch that do not read that, and is 0 to a linear model. RankLib (CoorAscent,
Ensemble, DataPoint): what is absent or NaN is 0, and weights are in double precision. Else all is in single precision.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeAlias
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray

from ranktune.solvers.core.arrays import Floats, Json, Mask
from ranktune.solvers.export.absent import RIGHT, ZERO

Singles: TypeAlias = NDArray[np.float32]
Columns: TypeAlias = Mapping[str, Floats]
"""Feature -> its values, (n,), NaN where a document does not have it."""
Score: TypeAlias = Callable[[Columns, int], Floats]
"""The scores of n documents."""


class Leaf(NamedTuple):
    """A value in single precision."""

    value: np.float32


class Split(NamedTuple):
    """What goes left: a function of the values of a feature, (n,), NaN for absent."""

    feature: str
    goes_left: Callable[[Singles], Mask]
    left: Leaf | Split
    right: Leaf | Split


def sum_of(trees: list[tuple[np.float32, Leaf | Split]], columns: Columns, n: int) -> Floats:
    """Return the weighted sum of trees, (n,), added in their order in single precision."""
    singles = {name: as_singles(values) for name, values in columns.items()}
    total = np.zeros(n, dtype=np.float32)
    for weight, root in trees:
        values, waiting = np.zeros(n, dtype=np.float32), [(root, np.arange(n))]
        while waiting:
            node, rows = waiting.pop()
            if isinstance(node, Leaf):
                values[rows] = node.value
            elif len(rows):
                left = node.goes_left(singles[node.feature][rows])
                waiting += [(node.left, rows[left]), (node.right, rows[~left])]
        total += weight * values
    return total.astype(np.float64)


def weighted(weights: Mapping[str, np.float32], columns: Columns, n: int) -> Floats:
    """Return the sum of weighted features, (n,), added in their order in single precision; absent ones are 0."""
    total = np.zeros(n, dtype=np.float32)
    for name, weight in weights.items():
        total += weight * np.nan_to_num(as_singles(columns[name]), posinf=np.inf, neginf=-np.inf)
    return total.astype(np.float64)


def as_singles(values: Floats) -> Singles:
    """Return numbers in single precision; those beyond it are infinite."""
    with np.errstate(over="ignore"):
        return values.astype(np.float32)


def single(number: str | float) -> np.float32:
    with np.errstate(over="ignore"):
        return np.float32(float(number))


def zeros(columns: Columns) -> Columns:
    return {name: np.nan_to_num(values) for name, values in columns.items()}


def read_solr(text: str, absent: str) -> Score:
    """What scores documents by a model; absent says what they are for what a document lacks."""
    model: Json = json.loads(text)
    params, names = model["params"], [feature["name"] for feature in model["features"]]
    if "weights" in params:
        weights = {name: single(params["weights"][name]) for name in names}
        return lambda columns, n: weighted(weights, columns, n)
    norms = {f["name"]: single(f["norm"]["params"]["max"]) for f in model["features"] if "norm" in f}
    is_zero = absent == ZERO or params.get("isNullSameAsZero", True)
    trees = [(single(tree["weight"]), of_solr(tree["root"])) for tree in params["trees"]]

    def score(columns: Columns, n: int) -> Floats:
        columns = {k: x / norms.get(k, np.float32(1.0)) for k, x in columns.items()}
        return sum_of(trees, zeros(columns) if is_zero else columns, n)

    return score


def of_solr(node: Json) -> Leaf | Split:
    if "feature" not in node:
        return Leaf(single(node["value"]))
    limit, side = single(node["threshold"]) + np.float32(1e-6), node.get("missing") == "left"
    test = lambda x: np.where(np.isnan(x), side, x <= limit)  # noqa: E731
    return Split(node["feature"], test, of_solr(node["left"]), of_solr(node["right"]))


def read_plugin(text: str, absent: str) -> Score:
    model: Json = json.loads(text)["model"]["model"]
    definition = json.loads(model["definition"])
    if model["type"] == "model/linear":
        weights = {name: single(weight) for name, weight in definition.items()}
        return lambda columns, n: weighted(weights, columns, n)
    is_zero = absent == ZERO
    if isinstance(definition, dict):
        is_zero, definition = is_zero or definition.get("missing_as_zero", False), definition["splits"]
    trees = [(np.float32(1.0), of_plugin(root, absent == RIGHT)) for root in definition]
    return lambda columns, n: sum_of(trees, zeros(columns) if is_zero else columns, n)


def of_plugin(node: Json, always_right: bool) -> Leaf | Split:
    if "leaf" in node:
        return Leaf(single(node["leaf"]))
    limit = single(node["split_condition"])
    side = node.get("missing", node["no"]) == node["yes"] and not always_right
    yes, no = (of_plugin(child, always_right) for child in node["children"])
    return Split(node["split"], lambda x: np.where(np.isnan(x), side, x < limit), yes, no)


def read_ranklib(text: str, absent: str) -> Score:
    """What scores documents, whose features are called by their numbers, from 1."""
    first, _, rest = text.partition("\n")
    body = "".join(line.strip() for line in rest.splitlines() if not line.startswith("#"))
    if first == "## LambdaMART":
        trees = [(single(tree.attrib["weight"]), of_ranklib(tree[0])) for tree in ElementTree.fromstring(body)]
        return lambda columns, n: sum_of(trees, zeros(columns), n)
    weights = {number: float(weight) for number, _, weight in (part.partition(":") for part in body.split())}

    def score(columns: Columns, n: int) -> Floats:
        total, known = np.zeros(n), zeros(columns)
        for number, weight in weights.items():
            total += weight * as_singles(known[number]).astype(np.float64)
        return total

    return score


def of_ranklib(node: ElementTree.Element) -> Leaf | Split:
    if node[0].tag == "output":
        return Leaf(single(str(node[0].text)))
    feature, threshold, left, right = node
    limit = single(str(threshold.text))
    return Split(str(feature.text), lambda x: x <= limit, of_ranklib(left), of_ranklib(right))


READERS: Mapping[str, Callable[[str, str], Score]] = {
    "solr": read_solr,
    "elasticsearch": read_plugin,
    "opensearch": read_plugin,
    "ranklib": read_ranklib,
}
"""Format -> function(text, what an absent feature is in the engine) that returns what scores documents."""
