"""Weighted means: the laws of weights, and the error of the mean against the bootstrap."""

import numpy as np
import pytest

from ranktune.solvers import Queries, RidgeRanker, parse_metric
from ranktune.solvers.metrics.means import effective_count, linearised, mean_of, relative

VALUES = np.array([0.5, np.nan, 0.25, 1.0, 0.0, np.nan, 0.75])
WEIGHTS = np.array([1.0, 9.0, 3.0, 2.0, 5.0, 4.0, 1.0])


def test_a_mean_counts_queries_as_often_as_their_weights_say() -> None:
    repeated = np.repeat(VALUES, WEIGHTS.astype(int))
    assert mean_of(VALUES, WEIGHTS) == pytest.approx(np.nanmean(repeated), abs=1e-15)
    assert mean_of(VALUES) == mean_of(VALUES, np.ones(7)) == VALUES[~np.isnan(VALUES)].mean()
    assert np.isnan(mean_of(np.full(3, np.nan), np.ones(3))) and np.isnan(mean_of(np.zeros(0)))


def test_the_scale_of_weights_and_the_weights_of_what_does_not_count_change_nothing() -> None:
    other = np.where(np.isnan(VALUES), 77.0, WEIGHTS)
    for factor in (1.0, 1 / 3, 1e-300, 1e305):
        assert mean_of(VALUES, factor * other) == pytest.approx(mean_of(VALUES, WEIGHTS), rel=1e-14)
        np.testing.assert_allclose(linearised(VALUES, factor * other), linearised(VALUES, WEIGHTS), rtol=1e-12)
        assert effective_count(VALUES > 0.0, factor * WEIGHTS) == pytest.approx(49.0 / 15.0)


def test_linearised_values_have_the_mean_and_its_variance() -> None:
    result = linearised(np.stack([VALUES, VALUES[::-1], np.full(7, np.nan)]), WEIGHTS)
    np.testing.assert_array_equal(np.isnan(result[0]), np.isnan(VALUES))
    np.testing.assert_array_equal(result[1], linearised(VALUES[::-1], WEIGHTS))
    assert np.isnan(result[2]).all()
    known = ~np.isnan(VALUES)
    w, x, values = WEIGHTS[known], VALUES[known], result[0][known]
    mean, n = np.dot(w, x) / w.sum(), len(x)
    assert values.mean() == pytest.approx(mean, abs=1e-15)
    assert values.var(ddof=1) / n == pytest.approx(n / (n - 1) * (w**2 * (x - mean) ** 2).sum() / w.sum() ** 2)
    assert relative(WEIGHTS, VALUES)[known].mean() == pytest.approx(1.0)
    assert linearised(VALUES) is VALUES
    np.testing.assert_allclose(linearised(VALUES, np.full(7, 3.0)), VALUES, rtol=1e-14)


def test_the_effective_number_is_that_of_the_queries_where_weights_are_equal() -> None:
    counted = np.array([True, False, True, True])
    assert effective_count(counted) == effective_count(counted, np.full(4, 0.3)) == pytest.approx(3.0)
    assert effective_count(counted, np.array([1.0, 1.0, 1e9, 1.0])) == pytest.approx(1.0)
    assert effective_count(np.zeros(4, dtype=bool), np.ones(4)) == 0.0


def test_a_metric_and_a_score_are_weighted_by_the_weights_of_queries() -> None:
    generator = np.random.default_rng(1)
    X, y = generator.normal(size=(60, 2)), generator.integers(0, 3, 60)
    plain = Queries.from_arrays(X, y, group=[6] * 10)
    weights = generator.random(10) + 0.1
    metric, ranker = parse_metric("ndcg@3"), RidgeRanker().fit(plain)
    per_query, scores = metric.per_query(ranker.predict(X), plain), ranker.predict(X)
    assert metric.mean(scores, plain) == per_query.mean()
    assert metric.mean(scores, plain.weighted_by(weights)) == pytest.approx(np.average(per_query, weights=weights))
    assert ranker.score(plain.weighted_by(weights), metric="ndcg@3") == pytest.approx(
        np.average(per_query, weights=weights)
    )
