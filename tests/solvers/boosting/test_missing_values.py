"""Missing values go where the library that grew the trees sends them, and a split learns from them."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from ranktune.solvers.boosting.lightgbm.lambda_mart import LambdaMART
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.models.trees import joined, one_tree
from tests.support.tree_samples import by_catboost, by_lightgbm, by_xgboost


def holes(seed: int) -> Queries:
    """Queries of 10 documents; features 0 and 1 are often missing, feature 0 where the document is bad."""
    generator = np.random.default_rng(seed)
    X = np.round(generator.normal(size=(600, 6)), 1)
    y = np.digitize(X[:, 0] + X[:, 1] * X[:, 2] + generator.normal(size=600), [0.0, 1.0]).astype(np.float64)
    X[(y == 0.0) & (generator.random(600) < 0.5), 0] = np.nan
    X[generator.random(600) < 0.3, 1] = np.nan
    return Queries.from_arrays(X, y, group=np.full(60, 10))


@pytest.fixture
def elsewhere() -> Any:
    """Other documents, in which every feature may be missing."""
    X = np.round(np.random.default_rng(1).normal(size=(500, 6)), 1)
    X[np.random.default_rng(2).random(X.shape) < 0.3] = np.nan
    return X


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
def test_as_lightgbm_sends_them(elsewhere: Any, layout: Any) -> None:
    queries = holes(0)
    queries = queries.with_features(layout(queries.features))
    ranker = LambdaMART(20, min_documents=5, feature_share=1.0, query_share=1.0).fit(queries)
    booster = by_lightgbm(ranker, queries)
    assert ranker.trees_.missing_left is not None and len(np.unique(ranker.trees_.missing_left)) == 2
    for X in (np.asarray(holes(3).features), elsewhere):
        expected = booster.predict(X, raw_score=True)
        np.testing.assert_allclose(ranker.predict(layout(X)), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_as_xgboost_sends_them(elsewhere: Any, dtype: Any) -> None:
    import xgboost

    from ranktune.solvers.boosting.xgboost import XGBoostRanker

    queries = holes(0)
    queries = queries.with_features(np.asarray(queries.features).astype(dtype))
    settings: Any = {"trees": 20, "min_weight": 0.1, "feature_share": 1.0, "row_share": 1.0}
    ranker = XGBoostRanker(**settings).fit(queries)
    booster = by_xgboost(ranker, queries)
    for X in (np.asarray(holes(3).features), elsewhere):
        read = np.column_stack([X[:, :2], np.nan_to_num(X[:, 2:])])  # of the others XGBoost has seen no missing value
        expected = booster.predict(xgboost.DMatrix(read), output_margin=True)
        np.testing.assert_allclose(ranker.predict(X), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("loss", ["YetiRank", "QueryRMSE"])
def test_as_catboost_sends_them(elsewhere: Any, loss: str) -> None:
    from ranktune.solvers.boosting.catboost import trees_of

    queries = holes(0)
    model = by_catboost(queries, loss_function=loss, nan_mode="Min", iterations=30, depth=5)
    for X in (np.asarray(holes(3).features), elsewhere):
        read = np.column_stack([X[:, :2], np.nan_to_num(X[:, 2:])])  # of the others CatBoost has seen no missing value
        ours = joined(trees_of(model, has_missing=True)).scores(X)
        np.testing.assert_allclose(ours, model.predict(read), rtol=0.0, atol=1e-12)


def test_missing_values_that_tell_nothing_leave_other_trees_as_they_are() -> None:
    """Trees of data without missing values are the same bits, whether or not missing values are allowed."""
    queries = holes(0)
    whole = queries.with_features(np.nan_to_num(np.asarray(queries.features)))
    plain, allowed = (replace(whole, has_missing=flag) for flag in (False, True))
    ours, other = (LambdaMART(20).fit(data) for data in (plain, allowed))
    np.testing.assert_array_equal(ours.trees_.threshold, other.trees_.threshold)
    np.testing.assert_array_equal(ours.trees_.value, other.trees_.value)
    assert ours.trees_.missing_left is None and other.trees_.missing_left is not None


def test_sides_must_fit_the_splits() -> None:
    with pytest.raises(ValueError, match="sides for missing values"):
        one_tree([0], [0.5], [-1], [-2], [1.0, 2.0], [True, False])
