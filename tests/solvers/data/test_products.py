"""X w and X' v against numpy in float64, dense and sparse."""

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from ranktune.solvers.data import products
from ranktune.solvers.data.products import MANY_FEATURES

FORMS = ["dense", "csr"]


def matrix(form: str, dtype: Any, rows: int, columns: int) -> tuple[Any, Any]:
    generator = np.random.default_rng(rows * 100 + columns)
    full = (generator.normal(size=(rows, columns)) * (generator.random((rows, columns)) < 0.6)).astype(dtype)
    return (full if form == "dense" else sparse.csr_array(full)), full.astype(np.float64)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("columns", [1, 7, 8, 31, 32, 33, 75, 136])
def test_both_products_equal_numpy(form: str, dtype: Any, columns: int) -> None:
    X, full = matrix(form, dtype, 23, columns)
    generator = np.random.default_rng(1)
    w, v = generator.normal(size=columns), generator.normal(size=23)
    np.testing.assert_allclose(products.scores(X, w), full @ w, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(products.transposed(X, v), full.T @ v, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(products.squares(X, v), (full**2).T @ v, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("form", FORMS)
def test_sums_of_float32_features_are_made_in_float64(form: str) -> None:
    # float32 sums of these would lose the 1 entirely: 2^25 + 1 - 2^25
    row = np.array([[2.0**25, 1.0, 2.0**25]], dtype=np.float32)
    X = row if form == "dense" else sparse.csr_array(row)
    assert products.scores(X, np.array([1.0, 1.0, -1.0]))[0] == 1.0
    column = row.T.copy()
    X = column if form == "dense" else sparse.csr_array(column)
    assert products.transposed(X, np.array([1.0, 1.0, -1.0]))[0] == 1.0


@pytest.mark.parametrize("form", FORMS)
def test_blocks_of_rows_add_up_to_the_whole(form: str) -> None:
    X, full = matrix(form, np.float64, 20, 9)
    w, v = np.arange(9.0), np.arange(20.0)
    scores, total = np.empty(20), np.ones(9)
    for a, b in ((0, 6), (6, 7), (7, 20)):
        times, add_transposed = products.block(X, a, b)
        times(w, scores[a:b])
        add_transposed(v[a:b], total)
    np.testing.assert_allclose(scores, full @ w, rtol=1e-13)
    np.testing.assert_allclose(total, 1.0 + full.T @ v, rtol=1e-13)


@pytest.mark.parametrize("n_features", [MANY_FEATURES - 1, MANY_FEATURES])
def test_columns_that_are_filled_often_come_first(n_features: int) -> None:
    generator = np.random.default_rng(0)
    columns = np.minimum(generator.zipf(1.5, (500, 20)), n_features) - 1
    columns = generator.permutation(n_features)[columns]
    X = sparse.csr_array((generator.normal(size=10_000), (np.repeat(np.arange(500), 20), columns.ravel())))
    X = sparse.csr_array((X.data, X.indices, X.indptr), shape=(500, n_features))
    result = products.often_first(X)
    if n_features < MANY_FEATURES:
        assert result is None
        return
    assert result is not None
    reordered, order = result
    assert sorted(order) == list(range(n_features))
    np.testing.assert_array_equal(reordered.toarray(), X.toarray()[:, order])
    assert reordered.data is X.data
    counts = np.bincount(reordered.indices, minlength=n_features)
    assert counts[:100].sum() > 0.9 * np.sort(counts)[-100:].sum() > 0.5 * counts.sum()
