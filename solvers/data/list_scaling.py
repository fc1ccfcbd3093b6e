"""Features put on a scale of length one within each list: divided by maximum - minimum there, constant ones made 0.

The minimum is not subtracted. That would add a constant to all scores of a list, which no loss over its pairs and no
ranking sees, and it would fill sparse lists. What a sparse list does not store is 0 and counts as a value.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from ranktune.solvers.core.arrays import Features, Floats, Ints, as_ints
from ranktune.solvers.core.compiled import compiled
from ranktune.solvers.data.products import blocks, scores
from ranktune.solvers.data.rows import Rows, close_list, no_columns, open_list, rows_of

MIN_RANGE = 1e-300
"""A smaller range counts as zero: dividing by it would overflow."""

BLOCK_ROWS = 4096
"""Rows scored at a time: few enough to stay in cache."""


def scaled_by_list(features: Features, starts: Ints) -> Features:
    """Return features, (n_documents, n_features), each column divided by its range within each list; a new array.

    starts is (n_lists + 1,), the first row of each list and the number of rows. float32 stays float32, CSR stays CSR
    with the same stored places. Cost: two passes over features.
    """
    if sparse.issparse(features):
        scaled = sparse.csr_array(features, copy=True)
        scaled.sum_duplicates()
    else:
        scaled = np.array(features, order="C")
    _scale(rows_of(scaled), as_ints(starts), scaled.shape[1])
    return scaled


def list_scores(features: Features, starts: Ints, weights: Floats) -> Floats:
    """Return scaled_by_list(features, starts) times weights, (n_documents,), holding a few lists scaled at a time."""
    result = np.empty(features.shape[0])
    for first, last in blocks(starts, BLOCK_ROWS):
        a, b = int(starts[first]), int(starts[last])
        scaled = scaled_by_list(features[a:b], starts[first : last + 1] - a)
        result[a:b] = scores(scaled, weights)
    return result


@compiled
def _scale(rows: Rows, starts: Ints, d: int) -> None:
    """Overwrite the features of rows with the scaled ones."""
    at, factor = no_columns(rows, d), np.empty(d)
    for q in range(len(starts) - 1):
        a, b = starts[q], starts[q + 1]
        if a == b:
            continue
        m = open_list(rows, a, b, at)
        for r in range(m):
            factor[r] = factor_of(at.low[r], at.high[r], True)
        for i in range(a, b):
            if rows.is_sparse:
                for p in range(rows.indptr[i], rows.indptr[i + 1]):
                    rows.data[p] = rows.data[p] * factor[at.place[rows.indices[p]]]
            else:
                for j in range(d):
                    rows.dense[i, j] = rows.dense[i, j] * factor[j]
        close_list(rows, m, at)


@compiled
def factor_of(low: float, high: float, scaled: bool) -> float:
    """Return what a feature of one list is multiplied by; 0 if it is constant there, for then it orders nothing."""
    spread = np.float64(high) - np.float64(low)  # of float32 values it could overflow, and rounds otherwise
    if spread < MIN_RANGE:
        return 0.0
    return 1.0 / spread if scaled else 1.0
