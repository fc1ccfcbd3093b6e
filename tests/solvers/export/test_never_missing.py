"""In every format a feature that no training document lacked is 0 where a document has none, left out or NaN."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.distillation.distil import distil
from ranktune.solvers.export.formats import FORMATS, export
from ranktune.solvers.export.two_stage import Stage, Stages, two_stage_files
from ranktune.solvers.models.base import Model
from ranktune.solvers.models.blend import needs_of
from ranktune.solvers.models.linear import LinearModel
from ranktune.solvers.models.tree_model import TreeModel
from ranktune.solvers.models.trees import one_tree
from tests.solvers.export.test_search_engines import plugin, solr
from tests.solvers.export.test_text import liblinear, ranklib, ranklib_trees
from tests.solvers.export.test_vespa import second_phase
from tests.support.export_samples import SAMPLES
from tests.support.missing_samples import NAMES, is_there, lacking, model_of, some_lacking, without

Score = Callable[[Mapping[str, float]], float]
KNOWING = ("LambdaMART", "XGBoostRanker", "CatBoostRanker", "RankBoost", "RidgeRanker", "Blend", "copy", "learnt copy")
"""Models of data whose columns lack values or do not."""
SINGLE = {"solr", "elasticsearch", "opensearch", "onnx", "ranklib"}


def names_of(model: Model) -> tuple[str, ...]:
    assert model.feature_names is not None
    return model.feature_names


def each(score: Score) -> Callable[[list[dict[str, float]], Model], Floats]:
    return lambda documents, _: np.array([score(document) for document in documents], dtype=np.float64)


def python(content: str) -> Any:
    made: dict[str, Any] = {}
    exec(content, made)
    return each(made["score"])


def engine(parse: Callable[[str], Any], content: str) -> Any:
    score = parse(content)
    return each(lambda document: score({name: np.float32(x) for name, x in document.items() if x == x}))


def vespa(content: str) -> Any:
    """An attribute without a value is NaN; a rank feature is 0."""
    score, functions = second_phase(content), [line for line in content.splitlines() if "expression: " in line]
    comments = [json.loads(line.strip()[2:]) for line in content.splitlines() if line.startswith("    # ")]
    inner = [line.split("isNan(")[-1].split(") ==")[0].split("expression: ")[-1] for line in functions]
    meanings = dict(zip(comments, inner, strict=True))

    def one(document: Mapping[str, float]) -> float:
        absent = {what: np.nan if what.startswith("attribute") else 0.0 for what in meanings.values()}
        known = {meanings[name]: x for name, x in document.items() if name in meanings}
        return score(absent | {what: x for what, x in known.items() if x == x or what.startswith("attribute")})

    return each(one)


def rows(documents: list[dict[str, float]], names: tuple[str, ...], absent: float) -> Floats:
    return np.array([[document.get(name, absent) for name in names] for document in documents])


def onnx(content: bytes) -> Any:
    onnxruntime: Any = pytest.importorskip("onnxruntime")
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    names = tuple(json.loads(session.get_modelmeta().custom_metadata_map["feature_names"]))

    def scores(documents: list[dict[str, float]], _: Model) -> Floats:
        X = rows(documents, names, np.nan).astype(np.float32)
        return np.asarray(session.run(None, {"features": X})[0][:, 0], dtype=np.float64)

    return scores


def lightgbm(content: str) -> Any:
    booster = pytest.importorskip("lightgbm").Booster(model_str=content)
    return lambda documents, model: booster.predict(rows(documents, names_of(model), np.nan))


def plain_json(content: str) -> Any:
    made = json.loads(content)

    def one(document: Mapping[str, float]) -> float:
        total, x = 0.0, [document.get(feature["name"], np.nan) for feature in made["features"]]
        for feature, value in zip(made["features"], x, strict=True):
            total += feature.get("missing", 0.0) if np.isnan(value) else feature.get("weight", 0.0) * value
        for tree in made.get("trees", ()):
            node = 0 if tree["feature"] else -1
            while node >= 0:
                value, limit = x[tree["feature"][node]], tree["threshold"][node]
                of_missing = tree["missing_left"][node] if "missing_left" in tree else limit >= 0.0
                node = tree["left" if (of_missing if np.isnan(value) else value <= limit) else "right"][node]
            total += tree["value"][~node]
        return total

    return each(one)


def pmml(content: str) -> Any:
    pypmml: Any = pytest.importorskip("pypmml")
    if shutil.which("java") is None:
        pytest.skip("java is not here: apt install default-jre-headless")
    loaded = pypmml.Model.fromString(content)
    return each(lambda document: loaded.predict({name: x for name, x in document.items() if x == x})["score"])


def by_ranklib(content: str) -> Any:
    """DataPoint.getFeatureValue gives 0 for a feature that is absent or NaN."""
    read = ranklib if content.startswith("## Coordinate") else ranklib_trees
    return lambda documents, model: read(content, np.nan_to_num(rows(documents, names_of(model), np.nan)))


EVALUATORS: dict[str, Callable[[Any], Any]] = {
    "solr": partial(engine, solr),
    "elasticsearch": partial(engine, plugin("its own way")),
    "opensearch": partial(engine, plugin("its own way")),
    "vespa": vespa,
    "onnx": onnx,
    "pmml": pmml,
    "ranklib": by_ranklib,
    "lightgbm": lightgbm,
    "json": plain_json,
    "python": python,
}


def as_documents(X: Floats, names: tuple[str, ...], *, left_out: bool) -> list[dict[str, float]]:
    """Documents, in which what is missing is left out or NaN."""
    found = [dict(zip(names, row, strict=True)) for row in X.tolist()]
    return [{name: x for name, x in one.items() if x == x} for one in found] if left_out else found


def trained(kind: str, seed: int) -> Model:
    if kind not in ("copy", "learnt copy"):
        return model_of(kind, seed)
    return distil(model_of("Blend", seed), some_lacking(seed), trees=20 if kind == "learnt copy" else None)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("kind", KNOWING)
@pytest.mark.parametrize("format", EVALUATORS)
def test_absent_is_0_where_no_training_document_lacked_the_feature(format: str, kind: str, seed: int) -> None:
    if not is_there(kind):
        pytest.skip(f"the library of {kind} is not here")
    model, queries = trained(kind, seed), some_lacking(seed)
    if not FORMATS[format].holds(needs_of(model)):
        pytest.skip(f"{format} does not hold {kind}")
    X, never = np.asarray(queries.features, dtype=np.float32)[:60].astype(np.float64), ~lacking(queries)
    absent, zero = (without(X, never, value) for value in (np.nan, 0.0))
    score, expected = EVALUATORS[format](export(model, format)), model.predict(zero)
    for left_out in (False, True):
        found = score(as_documents(absent, NAMES, left_out=left_out), model)
        np.testing.assert_array_equal(found, score(as_documents(zero, NAMES, left_out=left_out), model))
        tolerance = 1e-5 if format in SINGLE else 1e-12
        assert np.abs(found - expected).max() <= tolerance * max(1.0, np.abs(expected).max())


@pytest.mark.parametrize("kind", SAMPLES)
@pytest.mark.parametrize("format", EVALUATORS)
def test_absent_is_0_to_models_that_know_no_missing_values(format: str, kind: str) -> None:
    model = SAMPLES[kind]()
    if not FORMATS[format].holds(needs_of(model)):
        pytest.skip(f"{format} does not hold {kind}")
    X = np.round(np.random.default_rng(0).normal(size=(60, 5)), 1).astype(np.float32).astype(np.float64)
    every = np.ones(5, dtype=np.bool_)
    absent, zero = (without(X, every, value) for value in (np.nan, 0.0))
    score, expected = EVALUATORS[format](export(model, format)), model.predict(zero)
    for left_out in (False, True):
        found = score(as_documents(absent, names_of(model), left_out=left_out), model)
        tolerance = 1e-5 if format in SINGLE else 1e-12
        assert np.abs(found - expected).max() <= tolerance * np.abs(expected).max()


def test_absent_is_0_to_liblinear(tmp_path: Path) -> None:
    """It has no other way to say 0."""
    model = LinearModel(np.array([1.0, -2.0]), "RankSVM", missing=np.zeros(2))
    given, absent = np.array([[0.0, 1.0], [0.0, 2.0]]), np.array([[np.nan, 1.0], [np.nan, 2.0]])
    assert liblinear(model, given, tmp_path) == pytest.approx(model.predict(absent))


def test_models_whose_missing_values_are_all_0_need_nothing_of_a_format() -> None:
    """Only a feature that the model does not use lacked values in training."""
    tree = TreeModel(one_tree([0], [0.5], [-1], [-2], [1.0, 2.0], [True]), 2, "LambdaMART", feature_names=("a", "b"))
    line = LinearModel(np.array([1.0, 0.0]), "RidgeRanker", feature_names=("a", "b"), missing=np.zeros(2))
    assert tree.takes_missing and line.takes_missing
    for model in (tree, line):
        for format in ("solr", "elasticsearch", "ranklib"):
            assert export(model, format)
    assert "isNullSameAsZero" not in str(export(tree, "solr"))
    known = TreeModel(one_tree([0], [0.5], [-1], [-2], [1.0, 2.0], [False]), 2, "LambdaMART")
    assert "isNullSameAsZero" in str(export(known, "solr"))


def test_the_first_phase_of_vespa_knows_more_than_the_second() -> None:
    """To the trees a missing price is 0, and to the weights it is not."""
    names = ("price", "age")
    tree = one_tree([0, 1], [0.5, 0.5], [1, -1], [-3, -2], [1.0, 2.0, 4.0], [True, True])
    second = TreeModel(tree, 2, "LambdaMART", feature_names=names)
    first = LinearModel(np.array([1.0, 3.0]), "RidgeRanker", feature_names=names, missing=np.array([0.25, 0.0]))
    stages = Stages(Stage(first, 0.0, 1.0), Stage(second, 0.0, 1.0), 10)
    profile = two_stage_files(stages, "vespa")["rank-profile.sd"]
    assert "if (isNan(x_price) == 1, 0.25, 1.0 * x_price)" in profile
    assert "expression: attribute(price)\n" in profile
    assert "x_price <= 0.5 || isNan(x_price) == 1" in profile
    assert "3.0 * x_age" in profile and "if (isNan(attribute(age)) == 1, 0.0, attribute(age))" in profile
