"""PMML, scored by PMML4S in a Java virtual machine."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from ranktune.solvers.core.arrays import Features, Floats
from ranktune.solvers.export.check import ranks_alike
from ranktune.solvers.export.formats import export
from ranktune.solvers.models.base import Model
from ranktune.solvers.models.linear import LinearModel
from ranktune.solvers.models.tree_model import TreeModel
from tests.support.export_samples import (
    NAMES,
    SAMPLES,
    blend,
    linear,
    random_blend,
    random_rows,
    random_trees,
    trained,
    trees,
)

Scorer = Callable[[Model, Features, list[str]], Floats]
DMG = "{http://www.dmg.org/PMML-4_4}"


@pytest.fixture(scope="module")
def scored() -> Scorer:
    """The scores of rows under the names of their columns, by PMML4S."""
    pypmml: Any = pytest.importorskip("pypmml")
    if shutil.which("java") is None:
        pytest.skip("java is not here: apt install default-jre-headless")

    def scores(model: Model, X: Features, names: list[str]) -> Floats:
        loaded = pypmml.Model.fromString(str(export(model, "pmml")))
        assert list(loaded.outputNames) == ["score"]
        rows = X[:, [names.index(name) for name in loaded.inputNames]]
        return np.array(loaded.predict(rows.tolist()))[:, 0]

    return scores


@pytest.mark.parametrize("model", [make() for make in SAMPLES.values()], ids=SAMPLES)
def test_scores_are_those_of_the_model(scored: Scorer, model: Model) -> None:
    X = np.round(np.random.default_rng(0).normal(size=(60, 5)), 1)
    X[:3] = [[0.1] * 5, [-1.5] * 5, [1.0 / 3.0] * 5]
    np.testing.assert_allclose(scored(model, X, list(NAMES)), model.predict(X), rtol=1e-12)


@pytest.mark.parametrize(
    "model", [TreeModel(random_trees(0), 6, "LambdaMART"), random_blend(0)], ids=["trees", "blend"]
)
def test_models_of_any_shape(scored: Scorer, model: Model) -> None:
    X = random_rows(1, 60)
    found, expected = scored(model, X, [f"f{k}" for k in range(1, 7)]), model.predict(X)
    assert np.abs(found - expected).max() <= 1e-12 * np.abs(expected).max()
    assert ranks_alike(expected, found)


def test_what_a_document_lacks_is_0(scored: Scorer) -> None:
    pypmml: Any = pytest.importorskip("pypmml")
    for model in (linear(), trees(), blend()):
        loaded = pypmml.Model.fromString(str(export(model, "pmml")))
        for lacking in ({}, {"page rank": 2.0}):
            (expected,) = model.predict(np.array([[0.0, 0.0, lacking.get("page rank", 0.0), 0.0, 0.0]]))
            assert loaded.predict(lacking)["score"] == pytest.approx(expected, rel=1e-14, abs=0.0)


def test_hostile_names_reach_the_evaluator(scored: Scorer) -> None:
    names = ("a<b", 'say "so"', "a & b", "größe", "\u202eright", "two\nlines", "tab\t", "'")
    weights = np.arange(1.0, 9.0)
    X = np.random.default_rng(0).normal(size=(5, 8))
    found = scored(LinearModel(weights, "RankSVM", feature_names=names), X, list(names))
    np.testing.assert_allclose(found, X @ weights, rtol=1e-12)


@pytest.mark.parametrize("solver", ["RankSVM", "LambdaMART", "Blend"])
def test_order_on_real_data(letor_folds: dict[str, Path], scored: Scorer, solver: str) -> None:
    model, queries = trained(letor_folds["MQ2008"], solver)
    count, ours = 20, model.predict(queries)
    names = [f"f{k}" for k in range(1, model.n_features + 1)]
    theirs = scored(model, queries.features[: queries.starts[count]], names)
    pairs = list(zip(queries.starts[:count], queries.starts[1 : count + 1], strict=True))
    assert sum(ranks_alike(ours[a:b], theirs[a:b]) for a, b in pairs) == count


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
    assert used == [one.get("name") for one in segments[0].iter(DMG + "NumericPredictor")]
    assert used == [NAMES[0], NAMES[2], NAMES[4]]
