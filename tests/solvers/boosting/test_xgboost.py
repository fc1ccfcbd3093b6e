"""XGBoost's boosted trees: its scores, parts, bags and weights, and what it cannot hold."""

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from ranktune.solvers.boosting import xgboost as xgboost_ranker
from ranktune.solvers.boosting.lightgbm.library import rows_of
from ranktune.solvers.boosting.training_queries import InMemory
from ranktune.solvers.boosting.xgboost import XGBoostRanker
from ranktune.solvers.core.errors import DataError
from ranktune.solvers.data.queries import Queries, concatenate
from ranktune.solvers.models.trees import last_below
from tests.support.tree_samples import assert_mean_of_members, by_xgboost, graded

SMALL: dict[str, Any] = {"trees": 12, "min_weight": 0.1}


@pytest.mark.parametrize("pairs", [1, 3])
def test_drawn_pairs_are_those_of_xgboost(pairs: int) -> None:
    import xgboost

    queries = graded()
    ranker = XGBoostRanker(**SMALL, pair_method="mean", pairs=pairs).fit(queries)
    params = XGBoostRanker(**SMALL)._parameters() | {"seed": next(ranker._seeds())}
    del params["lambdarank_num_pair_per_sample"]  # XGBoost's default is 1
    params |= {"lambdarank_pair_method": "mean"} | ({"lambdarank_num_pair_per_sample": pairs} if pairs > 1 else {})
    data = xgboost.DMatrix(queries.features, label=np.exp2(queries.grades) - 1.0, qid=queries.query_of_document)
    booster = xgboost.train(params, data, num_boost_round=ranker.trees)
    assert np.allclose(ranker.predict(queries), booster.predict(data, output_margin=True), rtol=1e-5, atol=1e-6)
    assert not np.allclose(ranker.predict(queries), XGBoostRanker(**SMALL).fit(queries).predict(queries), atol=1e-2)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
def test_scores_are_those_of_xgboost_itself(layout: Any, dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import xgboost

    monkeypatch.setattr(xgboost_ranker, "BATCH_CELLS", 600)  # sparse rows are written out in several batches
    queries, fresh = graded(dtype=dtype), graded(1, dtype=dtype)
    ranker = XGBoostRanker(**SMALL, depth=6, bins=64).fit(queries.with_features(layout(queries.features)))
    booster = by_xgboost(XGBoostRanker(**SMALL, depth=6, bins=64), queries)
    exact = ranker.trees_.threshold
    limits = np.unique(exact).astype(np.float32)
    ends = [np.nextafter(limits, np.float32(-np.inf)), limits, np.nextafter(limits, np.float32(np.inf))]
    at_splits = np.concatenate([np.repeat(end[:, None], 6, axis=1) for end in ends])
    between = at_splits[1:].astype(np.float64) / 2.0 + at_splits[:-1] / 2.0
    doubles = (
        np.repeat([[exact, np.nextafter(exact, -np.inf), np.nextafter(exact, np.inf)]], 6, axis=0).reshape(6, -1).T
    )
    for X in (queries.features, fresh.features, at_splits, between, doubles, np.zeros((1, 6))):
        expected = booster.predict(xgboost.DMatrix(X), output_margin=True)
        assert np.allclose(ranker.predict(layout(X)), expected, rtol=1e-5, atol=1e-6)
    assert np.ptp(expected if len(expected) > 1 else ranker.predict(queries)) > 0.1


LIMITS = np.array([1.0, -1.0, 0.1, -0.1, 3.4e38, -3.4e38, 1e-45, -1e-45, 0.0, 1.1754944e-38, 16777216.0], np.float32)


def test_the_last_double_below_a_limit_is_the_last() -> None:
    generator = np.random.default_rng(0)
    random = generator.integers(0, 2**32, 20_000, dtype=np.uint32).view(np.float32)
    limits = np.concatenate([LIMITS, random[np.isfinite(random) & (random > -3.4e38)]])
    threshold = last_below(limits)
    assert (threshold.astype(np.float32) < limits).all()
    assert (np.nextafter(threshold, np.inf).astype(np.float32) >= limits).all()


def test_a_bag_is_the_mean_of_its_members() -> None:
    assert_mean_of_members(XGBoostRanker, SMALL, graded(), 2)


def test_a_share_of_queries_is_learnt_from_as_if_there_were_no_others() -> None:
    queries, chosen = graded(), np.array([0, 1, 4, 7, 8, 9, 20, 33])
    part = queries.select(chosen)
    assert np.array_equal(queries.grades[rows_of(queries, chosen)], part.grades)
    growths = (
        XGBoostRanker(**SMALL)._source(InMemory(queries)).part(chosen).growth(3),
        XGBoostRanker(**SMALL)._source(InMemory(part)).growth(3),
    )
    assert all(growth.grow() for growth in growths)
    ours, alone = (growth.trees(0, 1).scores(queries.features) for growth in growths)
    assert ours.tobytes() == alone.tobytes() and np.ptp(ours) > 0.0


@pytest.mark.parametrize("scale", [1.0, 1e-3, 1e6])
def test_a_query_of_weight_two_stands_for_two(scale: float) -> None:
    """At any scale: weights multiply what the penalty and the least weight of a leaf are measured by."""
    queries, chosen = graded(), np.arange(0, 40, 3)
    queries = queries.with_features(np.round(queries.features, 1))  # a bin for each value, whatever the weights
    weights = np.ones(40)
    weights[chosen] = 2.0
    params: dict[str, Any] = {"trees": 12, "row_share": 1.0}
    weighted = XGBoostRanker(**params, l2=1.0 * scale, min_weight=0.5 * scale).fit(queries.weighted_by(weights * scale))
    twice = XGBoostRanker(**params, l2=1.0, min_weight=0.5).fit(concatenate([queries, queries.select(chosen)]))
    even = XGBoostRanker(**params, l2=1.0, min_weight=0.5).fit(queries)
    expected = twice.predict(queries)
    assert np.abs(weighted.predict(queries) - expected).max() < 1e-3 * np.ptp(expected)
    assert np.abs(even.predict(queries) - expected).max() > 1e-2 * np.ptp(expected)


def test_what_xgboost_cannot_hold_is_refused_with_a_way_out() -> None:
    queries = graded()
    with pytest.raises(DataError, match=r"a feature is .*single precision.*Scale"):
        XGBoostRanker().fit(queries.with_features(queries.features * 1e60))
    wide = sparse.csr_array((queries.n_documents, 2**27))
    with pytest.raises(DataError, match=r"would take XGBoost \d+ GB.*LambdaMART"):
        XGBoostRanker().fit(queries.with_features(wide))
    huge = Queries(queries.features, queries.grades * 1e300, queries.starts, queries.query_ids)
    with pytest.raises(DataError, match="single precision"):
        XGBoostRanker().fit(huge)
    for weight in (1e-60, 1e60):
        with pytest.raises(DataError, match=r"min_weight or l2.*single precision"):
            XGBoostRanker().fit(queries.weighted_by(np.full(40, weight)))
