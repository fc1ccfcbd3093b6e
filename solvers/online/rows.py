"""Rows of dense or CSR features for the kernels of online learners.

d  features    z  (1, d) a difference x_i - x_j of two rows in its first m entries; of sparse rows the stored values
columns        (d,) the column of each entry of z; unused for dense rows, where entry and column are the same
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ranktune.solvers.core.arrays import Features, Floats, Indices, Ints, Matrix
from ranktune.solvers.core.compiled import compiled
from ranktune.solvers.core.vectors import row_product


class Rows(NamedTuple):
    """A matrix in one of two forms, of one type for kernels; the other form is empty."""

    dense: Matrix
    data: Matrix
    indices: Indices
    indptr: Indices
    is_sparse: bool


def rows_of(features: Features) -> Rows:
    """Return features, (n_documents, n_features), for kernels; copied only if sparse with unsorted or repeated columns.

    64-bit column indices are copied to 32 bits.
    """
    if isinstance(features, np.ndarray):
        return Rows(features, np.zeros(0, features.dtype), np.zeros(0, np.int32), np.zeros(1, np.int64), False)
    if not features.has_canonical_format:
        features = features.copy()
        features.sum_duplicates()
    indices = features.indices.astype(np.int32, copy=False)
    return Rows(np.zeros((0, 0), features.dtype), features.data, indices, features.indptr.astype(np.int64), True)


@compiled
def difference(rows: Rows, i: int, j: int, z: Floats, columns: Ints) -> int:
    """Overwrite z, and columns if sparse, with x_i - x_j; return the number of entries m. Cost: the stored values."""
    if not rows.is_sparse:
        for c in range(rows.dense.shape[1]):
            z[0, c] = np.float64(rows.dense[i, c]) - np.float64(rows.dense[j, c])
        return int(rows.dense.shape[1])
    m, a, b = 0, rows.indptr[i], rows.indptr[j]
    while a < rows.indptr[i + 1] or b < rows.indptr[j + 1]:
        left = rows.indices[a] if a < rows.indptr[i + 1] else np.int32(2147483647)
        right = rows.indices[b] if b < rows.indptr[j + 1] else np.int32(2147483647)
        value = 0.0
        if left <= right:
            value += np.float64(rows.data[a])
            a += 1
        if right <= left:
            value -= np.float64(rows.data[b])
            b += 1
        z[0, m], columns[m] = value, min(left, right)
        m += 1
    return m


@compiled
def product(rows: Rows, z: Floats, columns: Ints, m: int, w: Floats) -> float:
    """Return z'w; w is (d,)."""
    total = 0.0
    if rows.is_sparse:
        for k in range(m):
            total += z[0, k] * w[columns[k]]
        return total
    return row_product(z, 0, w)


@compiled
def stretched_square(rows: Rows, z: Floats, columns: Ints, m: int, stretch: Floats) -> float:
    """Return z'S z, S the diagonal matrix of stretch, (d,)."""
    total = 0.0
    if rows.is_sparse:
        for k in range(m):
            total += z[0, k] * z[0, k] * stretch[columns[k]]
        return total
    for c in range(m):
        total += z[0, c] * z[0, c] * stretch[c]
    return total


@compiled
def add(rows: Rows, z: Floats, columns: Ints, m: int, factor: float, stretch: Floats, w: Floats) -> None:
    """Add factor S z to w, S the diagonal matrix of stretch, (d,)."""
    if rows.is_sparse:
        for k in range(m):
            w[columns[k]] += factor * stretch[columns[k]] * z[0, k]
    else:
        for c in range(m):
            w[c] += factor * stretch[c] * z[0, c]


@compiled
def row_score(rows: Rows, i: int, w: Floats) -> float:
    """Return x_i'w; the same bits as products.scores for dense rows."""
    total = 0.0
    if rows.is_sparse:
        for k in range(rows.indptr[i], rows.indptr[i + 1]):
            total += rows.data[k] * w[rows.indices[k]]
        return total
    return row_product(rows.dense, i, w)


@compiled
def add_row(rows: Rows, i: int, factor: float, stretch: Floats, w: Floats) -> None:
    """Add factor S x_i to w, S the diagonal matrix of stretch, (d,)."""
    if rows.is_sparse:
        for k in range(rows.indptr[i], rows.indptr[i + 1]):
            c = rows.indices[k]
            w[c] += factor * stretch[c] * rows.data[k]
    else:
        for c in range(rows.dense.shape[1]):
            w[c] += factor * stretch[c] * rows.dense[i, c]


@compiled
def add_rows(rows: Rows, i: int, j: int, stretch: Floats, w: Floats) -> None:
    """Add S (x_i - x_j) to w, S the diagonal matrix of stretch, (d,)."""
    if rows.is_sparse:
        add_row(rows, i, 1.0, stretch, w)
        add_row(rows, j, -1.0, stretch, w)
    else:
        for c in range(rows.dense.shape[1]):
            w[c] += stretch[c] * (np.float64(rows.dense[i, c]) - np.float64(rows.dense[j, c]))
