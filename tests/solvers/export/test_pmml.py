"""PMML documents, as the standard says."""

import warnings
from xml.etree import ElementTree

import numpy as np
import pytest

from ranktune.solvers.export import export
from ranktune.solvers.export.pmml import FIELDS
from ranktune.solvers.models.linear import LinearModel
from tests.support.export_evaluators import by_pmml4s
from tests.support.export_samples import (
    NAMES,
    blend,
    linear,
    trees,
)

DMG = "{http://www.dmg.org/PMML-4_4}"


def test_hostile_names_reach_the_evaluator() -> None:
    names = ("a<b", 'say "so"', "a & b", "größe", "\u202eright", "two\nlines", "tab\t", "'")
    weights = np.arange(1.0, 9.0)
    X = np.random.default_rng(0).normal(size=(5, 8))
    made = export(LinearModel(weights, "RankSVM", feature_names=names), "pmml")
    result = by_pmml4s(str(made), names)([dict(zip(names, row, strict=True)) for row in X.tolist()])
    np.testing.assert_allclose(result, X @ weights, rtol=1e-12)


def test_the_document_is_as_the_standard_says() -> None:
    for model, kind in ((linear(), "RegressionModel"), (trees(), "MiningModel"), (blend(), "MiningModel")):
        root = ElementTree.fromstring(str(export(model, "pmml")))
        assert root.tag == DMG + "PMML" and root.get("version") == "4.4"
        assert [child.tag for child in root] == [DMG + "Header", DMG + "DataDictionary", DMG + kind]
        fields = [field.get("name") for field in root.iter(DMG + "DataField")]
        assert fields == [NAMES[0], *NAMES[2:]]
        for schema in root.iter(DMG + "MiningSchema"):
            used = [field.get("name") for field in schema]
            assert used and set(used) <= set(fields)
        for node in root.iter(DMG + "Node"):
            assert node[0].tag in (DMG + "True", DMG + "SimplePredicate")
            assert len(node) in (1, 3) and (len(node) == 1) == (node.get("score") is not None)


def test_weights_of_a_blend_are_its_first_segment() -> None:
    root = ElementTree.fromstring(str(export(blend(), "pmml")))
    segments = list(root.iter(DMG + "Segment"))
    assert [segment[1].tag for segment in segments] == [DMG + "RegressionModel", *[DMG + "TreeModel"] * 3]
    assert [segment.get("id") for segment in segments] == ["1", "2", "3", "4"]
    used = [field.get("name") for field in segments[0].iter(DMG + "MiningField")]
    assert used == [predictor.get("name") for predictor in segments[0].iter(DMG + "NumericPredictor")]
    assert used == [NAMES[0], NAMES[2], NAMES[4]]


@pytest.mark.parametrize("more", [0, 1])
def test_what_jpmml_evaluator_loads_only_without_its_check_is_warned_of(more: int) -> None:
    model = LinearModel(np.ones(FIELDS + more), "RankSVM")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert str(export(model, "pmml")).count("<DataField") == FIELDS + more
    assert ["checkSchema" in str(each.message) for each in said] == [True] * more
