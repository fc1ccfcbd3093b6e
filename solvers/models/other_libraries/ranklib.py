"""Models of RankLib: LambdaMART, MART and random forests (trees in XML), coordinate ascent and linear regression.

RankLib computes in single precision: a document goes left where its value, rounded, is at most the threshold. The XML
is read without document types, so that no entity is defined or fetched, and trees may not be nested without bound.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast
from xml.etree.ElementTree import Element, ParseError, XMLPullParser

import numpy as np

from ranktune.solvers.models.base import Model
from ranktune.solvers.models.linear import LinearModel
from ranktune.solvers.models.other_libraries.base import UnsupportedModelError, read_whole
from ranktune.solvers.models.tree_model import TreeModel
from ranktune.solvers.models.trees import Trees, joined, last_below, one_tree

TREES = ("LambdaMART", "MART", "Random Forests")
WEIGHTS = ("Coordinate Ascent", "Linear Regression")
MAX_DEPTH = 2_000
BLOCK = 1 << 20
"""Characters that are parsed at a time."""
_PAIR = re.compile(r"(\d{1,7}):(\S+)")


def read_ranklib(path: Path) -> Model:
    """Return the model in a file of RankLib, with as many features as the highest number in it.

    Raises ModelFormatError for a file that is damaged, or of another of RankLib's rankers.
    """
    return read_whole(path, "RankLib", _model)


def _model(content: bytes) -> Model:
    text = content.decode()
    kind = text.split("\n", 1)[0].lstrip("# ").strip()
    body = "\n".join(line for line in text.splitlines() if not line.startswith("##")).strip()
    try:
        if kind in TREES:
            return _trees(body, kind)
    except (ParseError, IndexError) as error:
        raise ValueError(str(error)) from None
    if kind in WEIGHTS:
        return _weights(body, kind)
    raise UnsupportedModelError(f"is a model of RankLib's {kind[:40]!r}, and none of {', '.join((*TREES, *WEIGHTS))}")


def _weights(body: str, kind: str) -> Model:
    """Return a linear model; number 0 is the constant of a regression, which changes no order."""
    pairs = [_PAIR.fullmatch(word) for word in body.split()]
    if not pairs or any(pair is None for pair in pairs):
        raise ValueError("its weights are not pairs NUMBER:WEIGHT")
    by_number = {int(pair[1]): float(pair[2]) for pair in pairs if pair is not None}
    by_number.pop(0, None)
    weights = np.zeros(max(by_number))
    for number, weight in by_number.items():
        weights[number - 1] = weight
    if not np.isfinite(weights).all():
        raise ValueError("a weight is not finite")
    return LinearModel(weights, kind)


def _trees(body: str, kind: str) -> Model:
    """Return the sum of the trees, or the mean of the ensembles of a random forest."""
    if "<!" in body.replace("<!--", ""):
        raise ValueError("it declares a document type, which no model of RankLib does")
    ensembles = _ensembles(body)
    trees = joined([tree for ensemble in ensembles for tree in ensemble])
    if len(ensembles) > 1:
        trees = trees.scaled(1.0 / len(ensembles))
    return TreeModel(trees, int(trees.features.max(initial=0)) + 1, kind)


def _ensembles(body: str) -> list[list[Trees]]:
    """Return the trees of each ensemble, each tree multiplied by its weight."""
    parser: XMLPullParser[Element] = XMLPullParser(events=("start", "end"))
    ensembles: list[list[Trees]] = []
    depth = 0
    for part in ("<model>", *(body[first : first + BLOCK] for first in range(0, len(body), BLOCK)), "</model>"):
        parser.feed(part)
        for event, element in cast("Iterator[tuple[str, Element]]", parser.read_events()):
            depth += 1 if event == "start" else -1
            if depth > MAX_DEPTH:
                raise ValueError(f"its tags are nested more than {MAX_DEPTH} deep")
            if event == "end" and element.tag == "tree":
                ensembles[-1].append(_Growing().tree(element))
                element.clear()
            elif event == "start" and element.tag == "ensemble":
                ensembles.append([])
    parser.close()
    if not ensembles or not all(ensembles):
        raise ValueError("it holds no trees")
    return ensembles


@dataclass
class _Growing:
    """The arrays of one tree while it is read; a split precedes its children."""

    feature: list[int] = field(default_factory=list)
    threshold: list[float] = field(default_factory=list)
    children: list[list[int]] = field(default_factory=list)
    value: list[float] = field(default_factory=list)

    def tree(self, element: Element) -> Trees:
        """Return a <tree>."""
        root = element.find("split")
        if root is None:
            raise ValueError("a tree has no split")
        waiting: list[tuple[Element, int, int]] = [(root, -1, 0)]  # node, its parent, its side
        while waiting:
            node, parent, side = waiting.pop()
            number = self._add(node, waiting)
            if parent >= 0:
                self.children[parent][side] = number
        weight = float(element.get("weight", "1"))
        limits = np.array(self.threshold, dtype=np.float32)
        children = np.array(self.children, dtype=np.int64).reshape(-1, 2)
        return one_tree(
            self.feature,
            last_below(np.nextafter(limits, np.float32(np.inf))),
            children[:, 0],
            children[:, 1],
            np.array(self.value) * weight,
        )

    def _add(self, node: Element, waiting: list[tuple[Element, int, int]]) -> int:
        """Add a node and put its children into waiting; return its number, of a leaf the complement."""
        output = node.findtext("output")
        if output is not None:
            self.value.append(float(output))
            return ~(len(self.value) - 1)
        sides = {child.get("pos"): child for child in node.findall("split")}
        number = len(self.feature)
        column = int(node.findtext("feature", "").strip()) - 1
        if column < 0 or set(sides) != {"left", "right"}:
            raise ValueError("a split lacks its feature or a side")
        self.feature.append(column)
        self.threshold.append(float(node.findtext("threshold", "")))
        self.children.append([0, 0])
        waiting += [(sides["right"], number, 1), (sides["left"], number, 0)]
        return number
