"""Models as PMML 4.4: a RegressionModel, or a MiningModel that adds TreeModels and, for a blend, a RegressionModel.

Numbers are in double precision. Field names are the feature names; only characters that XML cannot hold are replaced by
codes (see escaped).
"""

from __future__ import annotations

from xml.etree.ElementTree import Element, SubElement, indent, tostring

import numpy as np

from ranktune.solvers.export.source import Source, check_distinct, escaped
from ranktune.solvers.models.trees import Trees

LEGAL = "[\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
"""Characters that XML 1.0 can hold."""


def pmml(source: Source) -> str:
    """Return a document with one regression table, or with a segment for each tree and, in a blend, for the table."""
    root, fields = _document(source)
    trees, algorithm = source.trees, _legal(source.model.solver)
    kind = "RegressionModel" if trees is None else "MiningModel"
    model = SubElement(root, kind, functionName="regression", algorithmName=algorithm)
    _schema(model, fields)
    output = SubElement(model, "Output")
    SubElement(output, "OutputField", name="score", optype="continuous", dataType="double", feature="predictedValue")
    if trees is None:
        _table(model, source, fields)
        return _text(root)
    segmentation = SubElement(model, "Segmentation", multipleModelMethod="sum")
    if weighted := source.weighted():
        regression = SubElement(_segment(segmentation), "RegressionModel", functionName="regression")
        _schema(regression, [fields[position] for position, _ in weighted])
        _table(regression, source, fields)
    positions = np.split(source.positions(), trees.starts[1:-1])
    for node, own in zip(_nodes(source, trees, fields), positions, strict=True):
        tree = SubElement(
            _segment(segmentation), "TreeModel", functionName="regression", splitCharacteristic="binarySplit"
        )
        _schema(tree, [fields[position] for position in np.unique(own).tolist() or [0]])  # at least one
        node.insert(0, Element("True"))
        tree.append(node)
    return _text(root)


def _nodes(source: Source, trees: Trees, fields: list[str]) -> list[Element]:
    thresholds = trees.threshold.tolist()

    def split(number: int, position: int, left: Element, right: Element) -> Element:
        field, threshold = fields[position], repr(thresholds[number])
        left.insert(0, Element("SimplePredicate", field=field, operator="lessOrEqual", value=threshold))
        right.insert(0, Element("SimplePredicate", field=field, operator="greaterThan", value=threshold))
        node = Element("Node")
        node.extend([left, right])
        return node

    return source.nested(split, lambda value: Element("Node", score=repr(value)))


def _segment(segmentation: Element) -> Element:
    segment = SubElement(segmentation, "Segment", id=str(len(segmentation) + 1))
    SubElement(segment, "True")
    return segment


def _table(model: Element, source: Source, fields: list[str]) -> None:
    table = SubElement(model, "RegressionTable", intercept="0.0")
    for position, weight in source.weighted():
        SubElement(table, "NumericPredictor", name=fields[position], coefficient=repr(weight))


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


def _legal(text: str) -> str:
    return "".join(escaped(character, 0, LEGAL) for character in text)


def _text(root: Element) -> str:
    indent(root, " ")
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(root, encoding="unicode") + "\n"
