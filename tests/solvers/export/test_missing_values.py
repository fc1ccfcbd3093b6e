"""Models that learned from missing values: every format scores a missing value as the model does, or is refused."""

from __future__ import annotations

import json
import shutil
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import pytest

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.errors import ParameterError
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.distillation.distil import distil
from ranktune.solvers.export.check import EVALUATORS, agreement
from ranktune.solvers.export.formats import FORMATS, export
from ranktune.solvers.models.base import Model
from ranktune.solvers.models.blend import blended, needs_of
from ranktune.solvers.models.linear import LinearModel
from ranktune.solvers.registry import make
from tests.solvers.export.test_search_engines import plugin, solr
from tests.solvers.export.test_vespa import second_phase

GENERATOR = np.random.default_rng(0)
NAMES = ("price", "bm25(title)", "clicks", "age")
X = np.round(GENERATOR.normal(size=(400, 4)), 2).astype(np.float32)
Y = np.digitize(X[:, 0] + X[:, 1] + 0.3 * GENERATOR.normal(size=400), [-0.5, 1.0]).astype(np.float64)
X[(Y == 0.0) & (GENERATOR.random(400) < 0.6), 0] = np.nan
X[GENERATOR.random(400) < 0.3, 1] = np.nan
X[GENERATOR.random(400) < 0.1, 3] = np.nan
QUERIES = Queries.from_arrays(X, Y, qid=np.arange(400) // 10, feature_names=NAMES)
SOLVERS = ("RidgeRanker", "LambdaMART", "XGBoostRanker", "RankBoost")
KINDS = (*SOLVERS, "Blend")


@lru_cache
def model_of(kind: str) -> Model:
    if kind == "Blend":
        return blended([model_of("RidgeRanker"), model_of("LambdaMART")], [0.7, 0.3], "Blend", {})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        parameters = {"trees": 20} if kind in ("LambdaMART", "XGBoostRanker") else {}
        return make(kind, parameters, 0).fit(QUERIES).as_model(feature_names=NAMES)


def lacking(names: tuple[str, ...]) -> list[dict[str, float]]:
    """The documents, without the features that are missing."""
    columns = [NAMES.index(name) for name in names]
    return [{name: float(x) for name, x in zip(names, row, strict=True) if not np.isnan(x)} for row in X[:, columns]]


def close(found: Any, model: Model, tolerance: float = 1e-6) -> None:
    expected = model.predict(X)
    assert np.abs(np.asarray(found) - expected).max() <= tolerance * np.abs(expected).max()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("format", EVALUATORS)
def test_formats_that_are_checked_agree(format: str, kind: str) -> None:
    if format == "onnx":
        pytest.importorskip("onnxruntime")
    model = model_of(kind)
    if not FORMATS[format].holds(needs_of(model)):
        with pytest.raises(ParameterError):
            export(model, format)
        return
    found = agreement(model, format, export(model, format), QUERIES)
    assert found.difference <= 1e-6


@pytest.mark.parametrize("kind", KINDS)
def test_a_feature_that_is_not_there_or_none_is_missing_to_the_function(kind: str) -> None:
    made: dict[str, Any] = {}
    exec(str(export(model_of(kind), "python")), made)
    close([made["score"](document) for document in lacking(NAMES)], model_of(kind), 1e-12)
    for value in (None, float("nan")):
        close([made["score"](dict.fromkeys(NAMES, value) | own) for own in lacking(NAMES)], model_of(kind), 1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_plain_json(kind: str) -> None:
    content = json.loads(export(model_of(kind), "json"))
    names = [feature["name"] for feature in content["features"]]
    found = []
    for row in X[:, [NAMES.index(name) for name in names]].tolist():
        total = 0.0
        for feature, x in zip(content["features"], row, strict=True):
            if "weight" in feature:
                total += feature.get("missing", 0.0) if x != x else feature["weight"] * x
        for tree in content.get("trees", ()):
            node = 0 if tree["feature"] else -1
            while node >= 0:
                x = row[tree["feature"][node]]
                left = tree["missing_left"][node] if x != x else x <= tree["threshold"][node]
                node = tree["left" if left else "right"][node]
            total += tree["value"][~node]
        found.append(total)
    close(found, model_of(kind), 1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_vespa(kind: str) -> None:
    score = second_phase(str(export(model_of(kind), "vespa")))
    meanings = [name if "(" in name else f"attribute({name})" for name in NAMES]
    close([score(dict(zip(meanings, row, strict=True))) for row in X.tolist()], model_of(kind), 1e-12)


ENGINES = {"solr": solr, "elasticsearch": plugin("its own way"), "opensearch": plugin("its own way")}


def by_engine(model: Model, format: str) -> Floats:
    score: Callable[[Any], Any] = ENGINES[format](export(model, format))
    documents = ({name: np.float32(x) for name, x in own.items()} for own in lacking(NAMES))
    return np.array([score(document) for document in documents], dtype=np.float64)


@pytest.mark.parametrize("kind", ["LambdaMART", "XGBoostRanker", "RankBoost"])
@pytest.mark.parametrize("format", ENGINES)
def test_search_engines_send_what_a_document_lacks_its_own_way(format: str, kind: str) -> None:
    close(by_engine(model_of(kind), format), model_of(kind))


@pytest.mark.parametrize("format", [*ENGINES, "ranklib", "liblinear"])
def test_weights_where_an_engine_takes_missing_values_for_zero_are_refused(format: str) -> None:
    with pytest.raises(ParameterError, match=r"counts as 0, and in this model a missing 'price' adds.*python.*zero"):
        export(model_of("RidgeRanker"), format)
    assert export(LinearModel(np.array([1.0, 0.0]), "RidgeRanker", missing=np.zeros(2)), format)


def test_ranklib_refuses_trees_that_know_missing_values() -> None:
    with pytest.raises(ParameterError, match=r"ranklib cannot say where trees send missing values.*solr"):
        export(model_of("LambdaMART"), "ranklib")


@pytest.mark.parametrize("format", ENGINES)
@pytest.mark.parametrize("kind", ["RidgeRanker", "Blend"])
def test_distilled_into_trees_they_are_served_with_their_missing_values(kind: str, format: str) -> None:
    copy = distil(model_of(kind), QUERIES)
    assert copy.takes_missing
    close(by_engine(copy, format), copy)
    close(copy.predict(X), model_of(kind), 0.02)
    nothing, but_clicks = np.full((1, 4), np.nan), np.array([[np.nan, np.nan, 0.0, np.nan]])  # no document lacks clicks
    assert copy.predict(nothing) == copy.predict(but_clicks)


def test_what_missing_values_add_is_kept_exactly_by_copies() -> None:
    model = model_of("RidgeRanker")
    assert isinstance(model, LinearModel) and model.missing is not None and model.missing[2] == 0.0
    model = replace(model, weights=model.weights * [1.0, 1.0, 0.0, 1.0])  # a copy adds about 0 where clicks are 0
    nothing = np.full((1, 4), np.nan)
    assert distil(model, QUERIES).predict(nothing)[0] == pytest.approx(model.predict(nothing)[0], rel=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_pmml(kind: str) -> None:
    pypmml: Any = pytest.importorskip("pypmml")
    if shutil.which("java") is None:
        pytest.skip("java is not here: apt install default-jre-headless")
    loaded = pypmml.Model.fromString(str(export(model_of(kind), "pmml")))
    close(
        [loaded.predict(document)["score"] for document in lacking(NAMES)[:100] + lacking(NAMES)[100:]],
        model_of(kind),
        1e-12,
    )


def test_pmml_cannot_say_that_only_absence_counts() -> None:
    model = LinearModel(
        np.array([0.0, 1.0]), "RidgeRanker", feature_names=("price", "age"), missing=np.array([0.5, 0.25])
    )
    with pytest.raises(ParameterError, match=r"missing 'price' adds 0\.5"):
        export(model, "pmml")


def test_a_split_on_absence_alone_reaches_every_format() -> None:
    lights = np.where(np.arange(200) % 2 == 0, np.nan, np.float32(3.4e38)).astype(np.float32)[:, None]
    queries = Queries.from_arrays(np.hstack([lights, lights]), np.arange(200) % 2, qid=np.arange(200) // 10)
    model = make("LambdaMART", {"trees": 3, "min_documents": 5}, 0).fit(queries).as_model()
    assert len(np.unique(model.predict(queries))) > 1
    for format in ("python", "lightgbm", "solr", "elasticsearch", "vespa", "json"):
        assert export(model, format)
    for format in ("python", "lightgbm"):
        assert agreement(model, format, export(model, format), queries).difference <= 1e-12
