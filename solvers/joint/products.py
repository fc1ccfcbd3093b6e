"""The products of the documents of a list with many columns of weights, or of their slopes.

X  (n, k) the features that the list stores          W  (k, m) a column of weights for each of m configurations

A feature is read once for all columns: its weights are adjacent. Equal rows of X have equal scores, to the bit.
Rows and products have the type of out, single or double. Dense rows count from the lowest value of each feature in the
list: differences of documents are what a ranking is made of, and they keep their digits in single precision.
"""

from __future__ import annotations

import numpy as np

from ranktune.solvers.core.arrays import Ints, Matrix
from ranktune.solvers.core.compiled import compiled, inlined
from ranktune.solvers.data.rows import ListColumns, MatrixRows


@inlined
def dense_room(rows: MatrixRows, longest: int, like: Matrix) -> Matrix:
    """Return room for the dense rows of a list, of the type of like; without columns where rows are sparse."""
    return np.empty((longest, rows.dense.shape[1]), dtype=like.dtype)


@compiled
def dense_scores(X: Matrix, W: Matrix, out: Matrix) -> None:
    """Overwrite out, (n, m), with X W. Two rows share what they read of W.

    BLAS is faster, but adds the products of some rows in another order, so that equal documents would not tie.
    """
    n, d, m = X.shape[0], X.shape[1], W.shape[1]
    spare = np.empty(m, out.dtype)
    for i in range(0, n, 2):
        k = min(i + 1, n - 1)  # the last of an odd number of rows goes with itself
        first, second = out[i], out[k] if k > i else spare
        for c in range(m):
            first[c], second[c] = 0.0, 0.0
        for j in range(0, d - 3, 4):
            a0, a1, a2, a3 = X[i, j], X[i, j + 1], X[i, j + 2], X[i, j + 3]
            b0, b1, b2, b3 = X[k, j], X[k, j + 1], X[k, j + 2], X[k, j + 3]
            w0, w1, w2, w3 = W[j], W[j + 1], W[j + 2], W[j + 3]
            for c in range(m):
                first[c] += (a0 * w0[c] + a1 * w1[c]) + (a2 * w2[c] + a3 * w3[c])
                second[c] += (b0 * w0[c] + b1 * w1[c]) + (b2 * w2[c] + b3 * w3[c])
        for j in range(d // 4 * 4, d):
            a0, b0, w0 = X[i, j], X[k, j], W[j]
            for c in range(m):
                first[c] += a0 * w0[c]
                second[c] += b0 * w0[c]


@compiled
def scores(rows: MatrixRows, first: int, last: int, at: ListColumns, W: Matrix, room: Matrix, out: Matrix) -> None:
    """Overwrite out, (last - first, m), with the scores of a list by W, (k, m), the weights of its columns.

    If rows are dense, they are copied to room, less the lowest of each column.
    """
    if not rows.is_sparse:
        X, low = rows.dense, at.low
        for i in range(first, last):
            for j in range(X.shape[1]):
                room[i - first, j] = np.float64(X[i, j]) - low[j]
        dense_scores(room[: last - first], W, out)
        return
    data, indices, place, m = rows.data, rows.indices, at.place, W.shape[1]
    for i in range(first, last):
        row = out[i - first]
        row[:] = 0.0
        for p in range(rows.indptr[i], rows.indptr[i + 1]):
            x, w = out.dtype.type(data[p]), W[place[indices[p]]]
            for c in range(m):
                row[c] += x * w[c]


@inlined
def longest_list(starts: Ints) -> int:
    """Return the most documents of a list."""
    longest = 0
    for q in range(len(starts) - 1):
        longest = max(longest, starts[q + 1] - starts[q])
    return longest


@compiled
def transposed(rows: MatrixRows, first: int, last: int, at: ListColumns, V: Matrix, room: Matrix, out: Matrix) -> None:
    """Overwrite out, (k, m), with X' V of a list, whose columns V, (last - first, m), sum to 0; scores filled room."""
    if not rows.is_sparse:
        np.dot(room[: last - first].T, V, out)
        return
    data, indices, place, m = rows.data, rows.indices, at.place, V.shape[1]
    out[:] = 0.0
    for i in range(first, last):
        v = V[i - first]
        for p in range(rows.indptr[i], rows.indptr[i + 1]):
            x, target = out.dtype.type(data[p]), out[place[indices[p]]]
            for c in range(m):
                target[c] += x * v[c]
