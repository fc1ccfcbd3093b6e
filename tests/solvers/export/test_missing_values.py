"""Models that learned from missing values: what a format cannot say of them is refused, the rest is written."""

import json
from functools import lru_cache
from typing import Any

import numpy as np
import pytest

from ranktune.solvers.core.errors import ParameterError
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.export import export
from ranktune.solvers.export.check import agreement
from ranktune.solvers.models.base import Model
from ranktune.solvers.models.blend import blended
from ranktune.solvers.models.linear import LinearModel
from ranktune.solvers.models.tree_model import TreeModel
from ranktune.solvers.models.trees import one_tree
from ranktune.solvers.registry import make

GENERATOR = np.random.default_rng(0)
NAMES = ("price", "bm25(title)", "clicks", "age")
X = np.round(GENERATOR.normal(size=(400, 4)), 2).astype(np.float32)
Y = np.digitize(X[:, 0] + X[:, 1] + 0.3 * GENERATOR.normal(size=400), [-0.5, 1.0]).astype(np.float64)
X[(Y == 0.0) & (GENERATOR.random(400) < 0.6), 0] = np.nan
X[GENERATOR.random(400) < 0.3, 1] = np.nan
X[GENERATOR.random(400) < 0.1, 3] = np.nan
QUERIES = Queries.from_arrays(X, Y, qid=np.arange(400) // 10, feature_names=NAMES)


@lru_cache
def model_of(kind: str) -> Model:
    if kind == "Blend":
        return blended([model_of("RidgeRanker"), model_of("LambdaMART")], [0.7, 0.3], "Blend", {})
    return make(kind, {"trees": 20} if kind == "LambdaMART" else {}, 0).fit(QUERIES).as_model(feature_names=NAMES)


def test_none_is_missing_to_the_function() -> None:
    made: dict[str, Any] = {}
    model = model_of("Blend")
    exec(str(export(model, "python")), made)
    lacking = [{name: None if x != x else x for name, x in zip(NAMES, row, strict=True)} for row in X.tolist()]
    np.testing.assert_allclose([made["score"](document) for document in lacking], model.predict(X), rtol=1e-9)


@pytest.mark.parametrize("format", ["solr", "elasticsearch", "opensearch", "ranklib", "liblinear"])
def test_weights_where_an_engine_takes_missing_values_for_zero_are_refused(format: str) -> None:
    with pytest.raises(ParameterError, match=r"counts as 0, .* a missing 'price' adds.*distil=.*serve=.*python.*zero"):
        export(model_of("RidgeRanker"), format)
    assert export(LinearModel(np.array([1.0, 0.0]), "RidgeRanker", missing=np.zeros(2)), format)


def test_ranklib_refuses_trees_that_know_missing_values() -> None:
    with pytest.raises(ParameterError, match=r"ranklib cannot say where trees send missing values.*solr"):
        export(model_of("LambdaMART"), "ranklib")


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
    assert json.loads(export(known, "solr"))["params"]["isNullSameAsZero"] is False
