"""The incumbent on the columns of new data."""

from dataclasses import replace

import numpy as np
import pytest

from ranktune.solvers import LambdaMART, RidgeRanker
from ranktune.solvers.data.columns.encoding import Age, TableEncoding
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.models.base import Model
from ranktune.tuner.retuning.continuing import placed_on

NAMES = ("price", "brand=a", "brand=b", "stock")


def queries_of(X: np.ndarray, names: tuple[str, ...] | None) -> Queries:
    grades = (X[:, 0] + X[:, 1] > 1.0).astype(int)
    return Queries.from_arrays(X, grades, qid=np.repeat(np.arange(len(X) // 8), 8), feature_names=names)


@pytest.mark.parametrize("ranker", [RidgeRanker(), LambdaMART(trees=5), LambdaMART(trees=5, within_query="ranks")])
def test_features_are_found_by_name(ranker: LambdaMART | RidgeRanker) -> None:
    X = np.random.default_rng(0).random((80, 4))
    model = ranker.fit(queries_of(X, NAMES)).as_model().replaced(feature_names=NAMES)
    order = [2, 0, 3, 1]
    wide = queries_of(np.column_stack([X[:, order], X[:, 0]]), (*(NAMES[k] for k in order), "new"))
    placed = placed_on(model, wide)
    assert isinstance(placed, Model)
    assert np.allclose(placed.predict(wide), model.predict(queries_of(X, NAMES)), rtol=1e-12)


@pytest.mark.parametrize("newest", ["2026-01-31", "2026-02-01"])
def test_ages_before_another_date_are_other_numbers(newest: str) -> None:
    X, names = np.random.default_rng(0).random((80, 2)), ("price", "day:age_days")
    queries = replace(queries_of(X, names), encoding=TableEncoding(columns={"day": Age("2026-01-31T00:00:00+00:00")}))
    model = LambdaMART(trees=5).fit(queries).as_model(feature_names=names, encoding=queries.encoding)
    later = replace(queries, encoding=TableEncoding(columns={"day": Age(f"{newest}T00:00:00+00:00")}))
    assert (placed_on(model, later) is None) == (newest != "2026-01-31")


def test_a_model_is_not_placed_where_a_feature_is_missing() -> None:
    X = np.random.default_rng(0).random((80, 4))
    unnamed = RidgeRanker().fit(queries_of(X, None)).as_model()
    named = unnamed.replaced(feature_names=NAMES)
    assert placed_on(named, queries_of(X[:, :3], NAMES[:3])) is None
    assert placed_on(named, queries_of(X, None)) is None and placed_on(unnamed, queries_of(X, NAMES)) is None
    assert placed_on(unnamed, queries_of(X[:, :3], None)) is None and placed_on(unnamed, queries_of(X, None)) is unnamed
