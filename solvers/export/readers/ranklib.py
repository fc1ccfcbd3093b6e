"""Scores by a model of RankLib: Coordinate Ascent or LambdaMART, whose features are numbers, from 1.

Source: the file format and how-to pages of RankLib, and its CoorAscent, Ensemble, Split and DataPoint. The first line
names the ranker. Features are in single precision, and 0 where they are absent or NaN. The weighted sum is in double
precision. Trees are in single precision, and send left what is at most the threshold.
"""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.export.readers.trees import Columns, Leaf, Score, Split, as_singles, check_that, single, sum_of


def read_ranklib(text: str, absent: str) -> Score:
    """Return what scores documents, whose features are called by their numbers; what is absent is always 0."""
    first, _, rest = text.partition("\n")
    body = "".join(line.strip() for line in rest.splitlines() if not line.startswith("#"))
    if first == "## LambdaMART":
        ensemble = ElementTree.fromstring(body)
        trees = [(single(tree.attrib["weight"], str), _node(tree[0])) for tree in ensemble]
        return lambda columns, n: sum_of(trees, _known(columns), n)
    check_that(first == "## Coordinate Ascent", "RankLib", "its first line names no ranker that is read here")
    pairs = [part.split(":") for part in body.split()]
    weights = {number: float(weight) for number, weight in pairs}

    def score(columns: Columns, n: int) -> Floats:
        total, known = np.zeros(n), _known(columns)
        for number, weight in weights.items():
            total += weight * as_singles(known[number]).astype(np.float64)
        return total

    return score


def _known(columns: Columns) -> Columns:
    return {number: np.nan_to_num(values) for number, values in columns.items()}


def _node(node: ElementTree.Element) -> Leaf | Split:
    if node[0].tag == "output":
        return Leaf(single(node[0].text, str))
    feature, threshold, left, right = node
    check_that((left.get("pos"), right.get("pos")) == ("left", "right"), "RankLib", "a split has a left and a right")
    limit = single(threshold.text, str)
    return Split(str(feature.text), lambda x: x <= limit, _node(left), _node(right))
