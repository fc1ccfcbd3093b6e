"""Scaling within each list: against plain numpy, dense and sparse, and what it must leave alone."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from ranktune.solvers.core.arrays import Floats, dense, stored_values
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.scaling import scaled_by_list
from ranktune.solvers.models.linear import LinearModel


def example(dtype: Any = np.float64) -> tuple[Any, Any]:
    generator = np.random.default_rng(0)
    X = generator.normal(size=(60, 7)) * 10.0 ** np.arange(-3, 4) * (generator.random((60, 7)) < 0.6)
    X[:20, 3] = 5.0
    return X.astype(dtype), np.array([0, 20, 21, 45, 60])


def by_numpy(X: Any, starts: Any) -> Floats:
    parts = []
    for a, b in pairwise(starts):
        spread = np.ptp(X[a:b].astype(np.float64), axis=0)
        parts.append(X[a:b] * np.divide(1.0, spread, out=np.zeros(X.shape[1]), where=spread > 0))
    return np.vstack(parts)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_dense_and_sparse_are_divided_by_their_range_in_the_list(dtype: Any) -> None:
    X, starts = example(dtype)
    scaled, expected = scaled_by_list(X, starts), by_numpy(X, starts)
    assert scaled.dtype == dtype
    np.testing.assert_allclose(scaled, expected, rtol=1e-6 if dtype == np.float32 else 1e-14)
    csr = scaled_by_list(sparse.csr_array(X), starts)
    assert sparse.issparse(csr)
    assert csr.dtype == dtype
    np.testing.assert_array_equal(dense(csr), scaled)


def test_the_caller_keeps_its_arrays() -> None:
    X, starts = example()
    csr = sparse.csr_array(X)
    X.flags.writeable = False
    copy, stored = X.copy(), csr.nnz
    scaled_by_list(X, starts)
    assert stored_values(scaled_by_list(csr, starts)).size == stored
    np.testing.assert_array_equal(X, copy)
    np.testing.assert_array_equal(dense(csr), copy)


def test_ranges_too_small_or_too_large_to_divide_by() -> None:
    X = np.array([[0.0, -1.5e308, 1e-310], [1.0, 1.5e308, 0.0]])
    scaled = scaled_by_list(X, np.array([0, 2]))
    assert np.isfinite(scaled).all()
    np.testing.assert_array_equal(scaled[:, 2], 0.0)


@pytest.mark.parametrize("form", ["dense", "csr"])
def test_scores_are_those_of_the_scaled_features(form: str) -> None:
    generator = np.random.default_rng(1)
    X = generator.normal(size=(10_000, 3)).astype(np.float32)
    queries = Queries.from_arrays(
        sparse.csr_array(X) if form == "csr" else X, np.zeros(len(X)), qid=np.arange(len(X)) // 7
    )
    weights = np.array([1.0, -2.0, 0.5])
    expected = by_numpy(X, queries.starts) @ weights
    np.testing.assert_allclose(LinearModel(weights, "", list_scaling=True).predict(queries), expected, atol=1e-5)
