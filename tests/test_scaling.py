"""Factors agree with scikit-learn's, for dense and sparse, with and without weights of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.utils.sparsefuncs import mean_variance_axis, min_max_axis

from ranktune.solvers.errors import ParameterError
from ranktune.solvers.scaling import check_scaling, deviations, factors


def features() -> Any:
    """Columns that are half empty, full, constant, zero, negative, and one far from zero."""
    generator = np.random.default_rng(0)
    X = generator.normal(size=(300, 6)) * (generator.random((300, 6)) < 0.5)
    X[:, 1] = generator.random(300) + 0.1
    X[:, 2], X[:, 3] = 0.1, 0.0
    X[:, 4] = -generator.random(300)
    X[:, 5] += 1e6
    return X


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("weighted", [False, True])
def test_deviations_are_those_of_scikit_learn(layout: Any, weighted: bool) -> None:
    X = features()
    by_row = np.random.default_rng(1).random(len(X)) if weighted else None
    _, variance = mean_variance_axis(sparse.csr_matrix(X), axis=0, weights=by_row)
    expected = np.sqrt(variance)
    expected[2:4] = 0.0
    assert np.allclose(deviations(layout(X), by_row), expected, rtol=1e-9, atol=0)


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
def test_ranges_are_those_of_scikit_learn(layout: Any) -> None:
    X = features()
    low, high = min_max_axis(sparse.csr_matrix(X), axis=0)
    expected = np.divide(1.0, high - low, out=np.zeros(6), where=high > low)
    assert np.array_equal(factors(layout(X), "minmax"), expected)
    assert np.array_equal(factors(layout(X), "none"), np.ones(6))


def test_a_weight_of_two_is_a_row_that_stands_twice() -> None:
    X, by_row = features(), np.ones(300)
    by_row[::3] = 2.0
    assert np.allclose(deviations(X, by_row), deviations(np.concatenate([X, X[::3]])), rtol=1e-12, atol=0)


def test_an_unknown_scaling_is_told_the_nearest() -> None:
    with pytest.raises(ParameterError, match="Did you mean 'minmax'"):
        check_scaling("min-max")
