"""Models as PMML 4.4: a RegressionModel, or a MiningModel that sums up TreeModels and, of a blend, one of those.

Numbers are in double precision. Field names are the feature names. Characters that XML cannot hold, and nothing else,
become codes: see escaped.
"""

from __future__ import annotations

from collections.abc import Mapping
from xml.etree.ElementTree import Element, SubElement, indent, tostring

import numpy as np

from ranktune.solvers.export.source import Source, check_depth, check_distinct, escaped, nested
from ranktune.solvers.models.trees import Trees

LEGAL = "[\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
"""Characters that XML 1.0 can hold."""


def pmml(source: Source) -> str:
    """Return a document with one regression table, or with a segment for it, if there is one, and one a tree."""
    root, fields = _document(source)
    trees, algorithm = source.trees, _legal(source.model.solver)
    if trees is None:
        model = SubElement(root, "RegressionModel", functionName="regression", algorithmName=algorithm)
        _schema(model, fields)
        _output(model)
        _table(model, source, fields)
        return _text(root)
    check_depth(source)
    model = SubElement(root, "MiningModel", functionName="regression", algorithmName=algorithm)
    _schema(model, fields)
    _output(model)
    segmentation = SubElement(model, "Segmentation", multipleModelMethod="sum")
    if weighted := source.weighted():
        regression = SubElement(_segment(segmentation), "RegressionModel", functionName="regression")
        _schema(regression, [fields[place] for place, _ in weighted])
        _table(regression, source, fields)
    own = dict(zip(source.columns.tolist(), fields, strict=True))
    for t in range(trees.n_trees):
        _tree(_segment(segmentation), trees, t, own)
    return _text(root)


def _segment(segmentation: Element) -> Element:
    segment = SubElement(segmentation, "Segment", id=str(len(segmentation) + 1))
    SubElement(segment, "True")
    return segment


def _table(model: Element, source: Source, fields: list[str]) -> None:
    table = SubElement(model, "RegressionTable", intercept="0.0")
    for place, weight in source.weighted():
        SubElement(table, "NumericPredictor", name=fields[place], coefficient=repr(weight))


def _tree(segment: Element, trees: Trees, t: int, fields: Mapping[int, str]) -> None:
    """Write tree t; fields are the names of columns, of which one without splits lists the first."""

    def leaf(value: float) -> Element:
        return Element("Node", score=repr(value))

    def split(number: int, left: Element, right: Element) -> Element:
        field, threshold = fields[int(trees.feature[number])], repr(float(trees.threshold[number]))
        left.insert(0, Element("SimplePredicate", field=field, operator="lessOrEqual", value=threshold))
        right.insert(0, Element("SimplePredicate", field=field, operator="greaterThan", value=threshold))
        node = Element("Node")
        node.extend([left, right])
        return node

    tree = SubElement(segment, "TreeModel", functionName="regression", splitCharacteristic="binarySplit")
    used = np.unique(trees.feature[trees.starts[t] : trees.starts[t + 1]]).tolist() or list(fields)[:1]
    _schema(tree, [fields[column] for column in used])
    node = nested(trees, t, split, leaf)
    node.insert(0, Element("True"))
    tree.append(node)


def _document(source: Source) -> tuple[Element, list[str]]:
    """Return the document up to its model, and the names of the fields."""
    check_distinct(source)
    fields = [escaped(name, k, LEGAL) for name, k in zip(source.names, source.columns.tolist(), strict=True)]
    root = Element("PMML", xmlns="http://www.dmg.org/PMML-4_4", version="4.4")
    header = SubElement(root, "Header", description=_legal(source.title))
    SubElement(header, "Application", name="RankTune")
    dictionary = SubElement(root, "DataDictionary", numberOfFields=str(len(fields)))
    for field in fields:
        SubElement(dictionary, "DataField", name=field, optype="continuous", dataType="double")
    return root, fields


def _schema(model: Element, fields: list[str]) -> None:
    schema = SubElement(model, "MiningSchema")
    for field in fields:
        SubElement(schema, "MiningField", name=field, missingValueReplacement="0.0")


def _output(model: Element) -> None:
    output = SubElement(model, "Output")
    SubElement(output, "OutputField", name="score", optype="continuous", dataType="double", feature="predictedValue")


def _legal(text: str) -> str:
    return "".join(escaped(character, 0, LEGAL) for character in text)


def _text(root: Element) -> str:
    indent(root, " ")
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(root, encoding="unicode") + "\n"
