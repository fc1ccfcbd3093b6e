"""Features put on a scale of length one within each list: divided by maximum - minimum there, constant ones made 0.

The minimum is not subtracted. That would add a constant to all scores of a list, which no loss over its pairs and no
ranking sees, and it would fill sparse lists. What a sparse list does not store is 0 and counts as a value.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from ranktune.solvers.core.arrays import Features, Floats, Indices, Ints, Matrix, as_ints
from ranktune.solvers.core.compiled import compiled
from ranktune.solvers.data.products import blocks, scores

MIN_RANGE = 1e-300
"""A smaller range counts as zero: dividing by it would overflow."""

BLOCK_ROWS = 4096
"""Rows scored at a time: few enough to stay in cache."""


def scaled_by_list(features: Features, starts: Ints) -> Features:
    """Return features, (n_documents, n_features), each column divided by its range within each list; a new array.

    starts is (n_lists + 1,), the first row of each list and the number of rows. float32 stays float32, CSR stays CSR
    with the same stored places. Cost: two passes over features.
    """
    starts = as_ints(starts)
    if not sparse.issparse(features):
        scaled = np.array(features, order="C")
        _scale_dense(scaled, starts)
        return scaled
    copy = sparse.csr_array(features, copy=True)
    copy.sum_duplicates()
    _scale_sparse(copy.data, copy.indices, copy.indptr, starts, copy.shape[1])
    return copy


def list_scores(features: Features, starts: Ints, weights: Floats) -> Floats:
    """Return scaled_by_list(features, starts) times weights, (n_documents,), holding a few lists scaled at a time."""
    result = np.empty(features.shape[0])
    for first, last in blocks(starts, BLOCK_ROWS):
        a, b = int(starts[first]), int(starts[last])
        scaled = scaled_by_list(features[a:b], starts[first : last + 1] - a)
        result[a:b] = scores(scaled, weights)
    return result


@compiled
def _scale_dense(X: Matrix, starts: Ints) -> None:
    """Overwrite X with the scaled features."""
    low, high = np.empty(X.shape[1], dtype=X.dtype), np.empty(X.shape[1], dtype=X.dtype)
    factor = np.empty(X.shape[1])
    for q in range(len(starts) - 1):
        a, b = starts[q], starts[q + 1]
        if a == b:
            continue
        ranges(X[a:b], low, high)
        for j in range(X.shape[1]):
            factor[j] = factor_of(low[j], high[j], True)
        for i in range(a, b):
            for j in range(X.shape[1]):
                X[i, j] = X[i, j] * factor[j]


@compiled
def _scale_sparse(data: Matrix, indices: Indices, indptr: Indices, starts: Ints, d: int) -> None:
    """Overwrite data with the scaled features."""
    place = np.empty(d, dtype=np.int64)
    for j in range(d):
        place[j] = -1
    columns, low, high, filled = np.empty(d, dtype=np.int64), np.empty(d), np.empty(d), np.empty(d, dtype=np.int64)
    for q in range(len(starts) - 1):
        a, b = starts[q], starts[q + 1]
        m = columns_of_list(data, indices, indptr[a], indptr[b], b - a, place, columns, low, high, filled)
        for p in range(indptr[a], indptr[b]):
            r = place[indices[p]]
            data[p] = data[p] * factor_of(low[r], high[r], True)
        for r in range(m):
            place[columns[r]] = -1


@compiled
def factor_of(low: float, high: float, scaled: bool) -> float:
    """Return what a feature of one list is multiplied by; 0 if it is constant there, for then it orders nothing."""
    spread = np.float64(high) - np.float64(low)  # of float32 values it could overflow, and rounds otherwise
    if spread < MIN_RANGE:
        return 0.0
    return 1.0 / spread if scaled else 1.0


@compiled
def ranges(X: Matrix, low: Matrix, high: Matrix) -> None:
    """Overwrite low and high with the least and the greatest value of each column."""
    for j in range(X.shape[1]):
        low[j], high[j] = X[0, j], X[0, j]
    for i in range(1, X.shape[0]):
        for j in range(X.shape[1]):
            x = X[i, j]
            low[j] = x if x < low[j] else low[j]
            high[j] = x if x > high[j] else high[j]


@compiled
def columns_of_list(
    data: Matrix,
    indices: Indices,
    first: int,
    last: int,
    n: int,
    place: Ints,
    columns: Ints,
    low: Floats,
    high: Floats,
    filled: Ints,
) -> int:
    """Return how many columns are stored between first and last; number them in place and columns, fill low and high.

    low and high are their least and greatest values, 0 among them if stored for fewer than all n documents; filled
    counts. place must be -1 everywhere.
    """
    m = 0
    for p in range(first, last):
        c, x = indices[p], data[p]
        r = place[c]
        if r < 0:
            place[c] = m
            columns[m], low[m], high[m], filled[m] = c, x, x, 1
            m += 1
            continue
        low[r] = x if x < low[r] else low[r]
        high[r] = x if x > high[r] else high[r]
        filled[r] += 1
    for r in range(m):
        if filled[r] < n:
            low[r] = 0.0 if low[r] > 0.0 else low[r]
            high[r] = 0.0 if high[r] < 0.0 else high[r]
    return m
