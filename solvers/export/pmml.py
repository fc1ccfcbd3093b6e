"""Models as PMML 4.4: a RegressionModel, or a MiningModel that adds TreeModels and, for a blend, a RegressionModel.

Numbers are in double precision. A field that is missing counts as 0, unless training documents lacked it: then as the
number that adds as much, and trees send it to their default child. Field names are the feature names; only
characters that XML cannot hold are replaced by codes (see escaped).
"""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree.ElementTree import Element, SubElement, indent, tostring

import numpy as np

from ranktune.solvers.core.errors import ParameterError, warn
from ranktune.solvers.export.source import ExportedModel, check_distinct, escaped
from ranktune.solvers.models.trees import Trees

LEGAL = "[\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
"""Characters that XML 1.0 can hold."""


FIELDS = 1000
"""The most input fields of JPMML-Evaluator as it comes (jpmml-evaluator issue 44)."""


def pmml(source: ExportedModel) -> str:
    """Return a document with one regression table, or with a segment for each tree and, in a blend, for the table."""
    if len(source.names) > FIELDS:
        warn(
            f"the model has {len(source.names)} features, and JPMML-Evaluator loads at most {FIELDS} unless "
            "ModelEvaluatorBuilder.checkSchema is overridden: do that, or use PMML4S."
        )
    root, fields = _document(source)
    trees, algorithm = source.trees, _legal(source.model.solver)
    kind = "RegressionModel" if trees is None else "MiningModel"
    model = SubElement(root, kind, functionName="regression", algorithmName=algorithm)
    if trees is None:
        _schema(model, fields, _replacements(source))
    else:
        _schema(model, fields, None if source.knows_missing else [0.0] * len(fields))
    output = SubElement(model, "Output")
    SubElement(output, "OutputField", name="score", optype="continuous", dataType="double", feature="predictedValue")
    if trees is None:
        _table(model, source, fields)
        return _text(root)
    segmentation = SubElement(model, "Segmentation", multipleModelMethod="sum")
    if weighted := source.weighted():
        regression = SubElement(_segment(segmentation), "RegressionModel", functionName="regression")
        replaced = _replacements(source)
        _schema(regression, *zip(*((fields[k], replaced[k]) for k, _ in weighted), strict=True))
        _table(regression, source, fields)
    positions = np.split(source.positions(), trees.starts[1:-1])
    for node, used in zip(_nodes(source, trees, fields), positions, strict=True):
        tree = SubElement(
            _segment(segmentation), "TreeModel", functionName="regression", splitCharacteristic="binarySplit"
        )
        if source.sides() is not None:
            tree.set("missingValueStrategy", "defaultChild")
        names = [fields[position] for position in np.unique(used).tolist() or [0]]  # at least one
        _schema(tree, names, None if source.sides() is not None else [0.0] * len(names))
        node.insert(0, Element("True"))
        tree.append(node)
    return _text(root)


def _nodes(source: ExportedModel, trees: Trees, fields: list[str]) -> list[Element]:
    thresholds, sides = trees.threshold.tolist(), source.sides()

    def split(number: int, position: int, left: Element, right: Element) -> Element:
        field, threshold = fields[position], repr(thresholds[number])
        left.insert(0, Element("SimplePredicate", field=field, operator="lessOrEqual", value=threshold))
        right.insert(0, Element("SimplePredicate", field=field, operator="greaterThan", value=threshold))
        node = Element("Node")
        if sides is not None:
            left.set("id", f"{number}a")
            right.set("id", f"{number}b")
            node.set("defaultChild", f"{number}a" if sides[number] else f"{number}b")
        node.extend([left, right])
        return node

    return source.nested(split, lambda value: Element("Node", score=repr(value)))


def _segment(segmentation: Element) -> Element:
    segment = SubElement(segmentation, "Segment", id=str(len(segmentation) + 1))
    SubElement(segment, "True")
    return segment


def _table(model: Element, source: ExportedModel, fields: list[str]) -> None:
    table = SubElement(model, "RegressionTable", intercept="0.0")
    for position, weight in source.weighted():
        SubElement(table, "NumericPredictor", name=fields[position], coefficient=repr(weight))


def _document(source: ExportedModel) -> tuple[Element, list[str]]:
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


def _replacements(source: ExportedModel) -> list[float]:
    """Return the number that adds as much as a missing value of each feature does.

    Raises ParameterError where there is none: the value of a feature does not matter, but whether it is missing does.
    """
    weights = np.zeros(len(source.names)) if source.weights is None else source.weights
    added = np.zeros(len(weights)) if source.missing is None else source.missing
    alone = np.flatnonzero((weights == 0.0) & (added != 0.0))
    if len(alone):
        raise ParameterError(
            f"a missing {source.names[alone[0]]!r} adds {added[alone[0]]:.4g} to the score though its value has no "
            "weight, which PMML's table of coefficients cannot say. Export it to onnx, json, python or vespa."
        )
    replacements = np.divide(added, weights, out=np.zeros(len(weights)), where=weights != 0.0)
    return [number + 0.0 for number in replacements.tolist()]  # 0.0 for -0.0


def _schema(model: Element, fields: Sequence[str], replacements: Sequence[float] | None) -> None:
    schema = SubElement(model, "MiningSchema")
    for k, field in enumerate(fields):
        replaced = {} if replacements is None else {"missingValueReplacement": repr(replacements[k])}
        SubElement(schema, "MiningField", {"name": field, **replaced})


def _legal(text: str) -> str:
    return "".join(escaped(character, 0, LEGAL) for character in text)


def _text(root: Element) -> str:
    indent(root, " ")
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(root, encoding="unicode") + "\n"
