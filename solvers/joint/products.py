"""The products of documents with many columns of weights, and the updates of these.

X  (n, d) features, dense or CSR          W  (d, m) a column of weights for each of m configurations

A feature is read once for all columns: its weights are adjacent. Equal rows of X have equal scores, to the bit.
"""

from __future__ import annotations

import numpy as np

from ranktune.solvers.core.arrays import Floats, Indices, Ints, Matrix
from ranktune.solvers.core.compiled import compiled


@compiled
def dense_scores(X: Matrix, W: Floats, out: Floats) -> None:
    """Overwrite out, (n, m), with X W. Two rows share what they read of W."""
    n, d, m = X.shape[0], X.shape[1], W.shape[1]
    for i in range(0, n - 1, 2):
        first, second = out[i], out[i + 1]
        for c in range(m):
            first[c], second[c] = 0.0, 0.0
        for j in range(0, d - 3, 4):
            a0, a1, a2, a3 = float(X[i, j]), float(X[i, j + 1]), float(X[i, j + 2]), float(X[i, j + 3])
            b0, b1 = float(X[i + 1, j]), float(X[i + 1, j + 1])
            b2, b3 = float(X[i + 1, j + 2]), float(X[i + 1, j + 3])
            w0, w1, w2, w3 = W[j], W[j + 1], W[j + 2], W[j + 3]
            for c in range(m):
                first[c] += (a0 * w0[c] + a1 * w1[c]) + (a2 * w2[c] + a3 * w3[c])
                second[c] += (b0 * w0[c] + b1 * w1[c]) + (b2 * w2[c] + b3 * w3[c])
        for j in range(d // 4 * 4, d):
            a0, b0, w0 = np.float64(X[i, j]), np.float64(X[i + 1, j]), W[j]
            for c in range(m):
                first[c] += a0 * w0[c]
                second[c] += b0 * w0[c]
    if n % 2 == 1:
        i = n - 1
        last = out[i]
        for c in range(m):
            last[c] = 0.0
        for j in range(0, d - 3, 4):
            a0, a1, a2, a3 = float(X[i, j]), float(X[i, j + 1]), float(X[i, j + 2]), float(X[i, j + 3])
            w0, w1, w2, w3 = W[j], W[j + 1], W[j + 2], W[j + 3]
            for c in range(m):
                last[c] += (a0 * w0[c] + a1 * w1[c]) + (a2 * w2[c] + a3 * w3[c])
        for j in range(d // 4 * 4, d):
            a0, w0 = np.float64(X[i, j]), W[j]
            for c in range(m):
                last[c] += a0 * w0[c]


@compiled
def sparse_scores(
    data: Matrix, indices: Indices, indptr: Indices, first: int, last: int, place: Ints, W: Floats, out: Floats
) -> None:
    """Overwrite out, (last - first, m), with the scores of the rows first to last; W holds the columns in place."""
    m = W.shape[1]
    for i in range(first, last):
        row = out[i - first]
        for c in range(m):
            row[c] = 0.0
        for p in range(indptr[i], indptr[i + 1]):
            x, w = np.float64(data[p]), W[place[indices[p]]]
            for c in range(m):
                row[c] += x * w[c]


@compiled
def add_sparse_transposed(
    data: Matrix, indices: Indices, indptr: Indices, first: int, last: int, place: Ints, V: Floats, out: Floats
) -> None:
    """Add X' V of the rows first to last, V (last - first, m), to the columns in place of out."""
    m = V.shape[1]
    for i in range(first, last):
        v = V[i - first]
        for p in range(indptr[i], indptr[i + 1]):
            x, target = np.float64(data[p]), out[place[indices[p]]]
            for c in range(m):
                target[c] += x * v[c]
