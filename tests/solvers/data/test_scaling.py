"""Factors against scikit-learn and numpy, overall and within queries, dense and sparse, weighted and not."""

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.utils.sparsefuncs import mean_variance_axis, min_max_axis

from ranktune.solvers.core.arrays import Matrix
from ranktune.solvers.core.arrays import dense as to_dense
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.scaling import factors, query_factors, weighted_means, without_level


def features() -> Any:
    """Columns that are half empty, full, constant, zero, negative, and one far from zero."""
    generator = np.random.default_rng(0)
    X = generator.normal(size=(300, 6)) * (generator.random((300, 6)) < 0.5)
    X[:, 1] = generator.random(300) + 0.1
    X[:, 2], X[:, 3] = 0.1, 0.0
    X[:, 4] = -generator.random(300)
    X[:, 5] += 1e6
    return X


def grouped(layout: Any) -> Queries:
    return Queries.from_arrays(layout(features()), np.arange(300) % 3, group=[10] * 30)


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("weighted", [False, True])
def test_deviations_are_those_of_scikit_learn(layout: Any, weighted: bool) -> None:
    weights = np.random.default_rng(1).random(30) + 0.1
    queries = grouped(layout).weighted_by(weights) if weighted else grouped(layout)
    by_row = np.repeat(weights, 10) if weighted else None
    mean, variance = mean_variance_axis(sparse.csr_matrix(features()), axis=0, weights=by_row)
    expected = np.divide(1.0, np.sqrt(np.maximum(variance, 1e-30)), out=np.zeros(6), where=variance > 1e-20)
    expected[2:4] = 0.0
    assert np.allclose(factors(queries, "standard"), expected, rtol=1e-9, atol=0)
    assert np.allclose(weighted_means(queries), mean, rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
def test_ranges_are_those_of_scikit_learn(layout: Any) -> None:
    low, high = min_max_axis(sparse.csr_matrix(features()), axis=0)
    expected = np.divide(1.0, high - low, out=np.zeros(6), where=high > low)
    assert np.array_equal(factors(grouped(layout).weighted_by(np.arange(1.0, 31.0)), "minmax"), expected)
    assert np.array_equal(factors(grouped(layout), "none"), np.ones(6))


def forms(queries: Queries) -> list[Queries]:
    X = np.where(np.abs(queries.features) < 0.6, 0.0, queries.features)
    X[:, 2], X[:, 3] = 0.1, np.sin(queries.query_of_document)  # constant everywhere; constant within queries
    X[:, 5] = 0.0
    weighted = queries.with_features(X).replaced(query_weights=np.arange(1.0, 1.0 + queries.n_queries))
    plain = [queries.with_features(X), weighted]
    return plain + [q.with_features(sparse.csr_array(X)) for q in plain]


def dense(queries: Queries) -> Matrix:
    return to_dense(queries.features)


def test_deviations_within_queries(hard_queries: Queries) -> None:
    for queries in forms(hard_queries):
        X, rows = dense(queries), np.repeat(queries.weight_of_query, queries.lengths)
        parts = [X[a:b] for a, b in zip(queries.starts[:-1], queries.starts[1:], strict=True)]
        off = np.vstack([part - part.mean(axis=0) for part in parts])
        spread = np.sqrt(np.average(off**2, axis=0, weights=rows))
        result = query_factors(queries, "standard")
        np.testing.assert_allclose(result[[0, 1, 4]], 1 / spread[[0, 1, 4]], rtol=1e-12)
        np.testing.assert_array_equal(result[[2, 3, 5]], 0.0)
        widest = np.max([np.ptp(part, axis=0) for part in parts], axis=0)
        ranges = query_factors(queries, "minmax")
        np.testing.assert_allclose(ranges[[0, 1, 4]], 1 / widest[[0, 1, 4]], rtol=1e-12)
        np.testing.assert_array_equal(ranges[[2, 3, 5]], 0.0)
        np.testing.assert_array_equal(query_factors(queries, "none"), 1.0)


def test_single_precision_is_summed_in_double(hard_queries: Queries) -> None:
    X = (1e4 + hard_queries.features).astype(np.float32)
    for scaling in ("standard", "minmax"):
        single, double = (query_factors(hard_queries.with_features(Z), scaling) for Z in (X, X.astype(np.float64)))
        np.testing.assert_allclose(single, double, rtol=1e-12)


def test_values_without_the_level_of_their_query(hard_queries: Queries) -> None:
    values = np.random.default_rng(0).normal(size=hard_queries.n_documents)
    left = without_level(values, hard_queries)
    np.testing.assert_allclose(np.add.reduceat(left, hard_queries.starts[:-1]), 0.0, atol=1e-13)
    moved = values + np.arange(8.0)[hard_queries.query_of_document]
    np.testing.assert_allclose(without_level(moved, hard_queries), left, atol=1e-13)
