"""Models that were fitted on some features score data with more as if these were not there."""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.errors import ModelFormatError
from ranktune.solvers.core.registrations import REGISTERED, Registration
from ranktune.solvers.core.space import Value
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.models.base import Model, load_model
from ranktune.solvers.models.blend import blended
from ranktune.solvers.registry import add_solver, make
from tests.support.custom_solvers import MeanOfQuery
from tests.support.model_file_samples import rewritten

COLUMNS = np.array([1, 4, 6])


@pytest.fixture
def registered() -> Iterator[str]:
    add_solver(Registration("Centred", MeanOfQuery, MeanOfQuery.space))
    yield "Centred"
    del REGISTERED["Centred"]


def data(*, missing: bool = False) -> Queries:
    generator = np.random.default_rng(0)
    X = generator.normal(size=(120, 8))
    y = np.digitize(X[:, 1] - X[:, 6], [-0.5, 0.5])
    if missing:
        X[generator.random(X.shape) < 0.1] = np.nan
    return Queries.from_arrays(X, y, group=[12] * 10, feature_names=[f"x{k}" for k in range(8)])


def fitted(name: str, queries: Queries, **params: Value) -> Model:
    return make(name, params, 0).fit(queries).as_model(feature_names=queries.feature_names)


def check(model: Model, narrow: Model, queries: Queries) -> None:
    np.testing.assert_allclose(model.predict(queries), narrow.predict(queries.with_columns(COLUMNS)), rtol=1e-12)
    assert (model.n_features, model.feature_names) == (8, queries.feature_names)
    assert model.used_features.tolist() == COLUMNS[narrow.used_features].tolist()


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("name", ["RidgeRanker", "RankBoost"])
def test_scores_are_those_of_the_model_of_some_features(name: str, missing: bool) -> None:
    queries = data(missing=missing)
    narrow = fitted(name, queries.with_columns(COLUMNS))
    check(narrow.on_columns(COLUMNS, 8, queries.feature_names), narrow, queries)


def test_columns_within_queries_stay_those_of_their_features() -> None:
    queries = data(missing=True)
    narrow = fitted("LambdaMART", queries.with_columns(COLUMNS), within_query="all", min_documents=5)
    check(narrow.on_columns(COLUMNS, 8, queries.feature_names), narrow, queries)


def test_blends_and_models_of_the_user_are_saved_with_their_columns(tmp_path: Path, registered: str) -> None:
    queries = data()
    custom, ridge, trees = (
        fitted(name, queries.with_columns(COLUMNS)) for name in (registered, "RidgeRanker", "RankBoost")
    )
    narrow = blended([custom, ridge, trees], [1.0, 0.5, 2.0], "Blend", {})
    wide = [base.on_columns(COLUMNS, 8, queries.feature_names) for base in (custom, narrow)]
    for model, base in zip(wide, (custom, narrow), strict=True):
        check(model, base, queries)
        model.save(tmp_path / "model.json")
        check(load_model(tmp_path / "model.json"), base, queries)
    moved = wide[0].on_columns(np.arange(8) + 2, 10, None)
    assert moved.used_features.tolist() == [3, 6, 8]
    within: Floats = np.concatenate([np.zeros((120, 2)), queries.features], axis=1)
    qid = queries.query_of_document
    np.testing.assert_array_equal(moved.predict(within, qid=qid), wide[0].predict(queries))


@pytest.mark.parametrize("inputs", [[[1, 1]], [[-1]], [[8]], [[]], [["1"]], [[True]], [[4, 1]], [], [[1], [2]], "x"])
def test_damaged_columns_are_refused(tmp_path: Path, registered: str, inputs: object) -> None:
    queries = data()
    narrow = fitted(registered, queries.with_columns(COLUMNS))
    path = tmp_path / "model.json"
    narrow.on_columns(COLUMNS, 8, None).save(path)
    assert json.loads(path.read_text())["inputs"] == [[1, 4, 6]]
    rewritten(path, lambda content: content.update(inputs=inputs))
    with pytest.raises(ModelFormatError, match="inputs must"):
        load_model(path)
