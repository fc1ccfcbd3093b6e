"""Steps of the first order on the pairs of a query, for many columns of weights at once.

A step adds a multiple of S (x_i - x_j) to the weights, so that within a query all is said by the Gram matrix
K = X S X' of its documents, which columns of the same stretch S share: scores s = X w, a step tau on the pair (i, j)
moves s by tau (K_i - K_j), and the weights move once a query, by S X' a, a the sums of the steps by document. A pair
costs n for each column, whatever the number of features.

SOLAR1 (PA-II): l = max(0, 1 - (s_i - s_j)) > 0: tau = l / (z'Sz + 1/(2C)), z'Sz = K_ii + K_jj - 2 K_ij.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ranktune.solvers.core.arrays import Floats, Ints, Matrix
from ranktune.solvers.core.compiled import compiled, inlined
from ranktune.solvers.data.rows import ListColumns, MatrixRows, close_list, no_columns, open_list
from ranktune.solvers.joint.list_kernels import dense_room, longest_list, scores, transposed

BLOCK = 32
"""Pairs whose steps are added to all scores at once."""


class Pairs(NamedTuple):
    """The pairs of all queries: better and worse rows, those of query q from ends[q] to ends[q + 1].

    weights are theirs, empty where all are 1.
    """

    better: Ints
    worse: Ints
    ends: Ints
    weights: Floats


@compiled
def learn_pairs(
    K: Floats, better: Ints, worse: Ints, weights: Floats, first: int, extra: Floats, s: Matrix, sums: Matrix
) -> None:
    """Take the steps on the pairs of a query whose first row is number first.

    s, (n, m), holds the scores before, and is changed; the sums of the steps are added to sums, (n, m). extra is
    1/(2C), (m,). Pairs are taken BLOCK at a time: within a block each margin is put right for the steps before it, and
    after it all scores are, by one product of matrices. These are of the type of s, single or double; distances of
    documents, which may be next to nothing, are taken from K in double.
    """
    n, m = s.shape
    dtype, zero, one = s.dtype, s.dtype.type(0), s.dtype.type(1)
    steps, moves, change = np.empty((BLOCK, m), dtype), np.empty((BLOCK, n), dtype), np.empty((n, m), dtype)
    usual, of_weight = extra.astype(dtype), np.empty(m, dtype)
    for begin in range(0, len(better), BLOCK):
        size = min(BLOCK, len(better) - begin)
        for t in range(size):
            i, j = better[begin + t] - first, worse[begin + t] - first
            step, move, above, below = steps[t], moves[t], s[i], s[j]
            square = K[i, i] + K[j, j] - 2.0 * K[i, j]
            for r in range(n):
                move[r] = K[i, r] - K[j, r]
            for c in range(m):
                step[c] = one - (above[c] - below[c])
            for u in range(t):
                by, earlier = moves[u, i] - moves[u, j], steps[u]
                for c in range(m):
                    step[c] -= by * earlier[c]
            inside = one if 0.0 < square < np.inf else zero
            more, length = usual, dtype.type(square)
            if len(weights) > 0 and weights[begin + t] != 1.0 and inside == one:
                more = of_weight
                for c in range(m):
                    more[c] = extra_of(square, extra[c], weights[begin + t])
            up, down = sums[i], sums[j]
            for c in range(m):
                loss = step[c] if step[c] > zero else zero
                step[c] = inside * (loss / (length + more[c]))
                up[c] += step[c]
                down[c] -= step[c]
        if begin + size < len(better):
            np.dot(moves[:size].T, steps[:size], change)
            for r in range(n):
                row, change_of_row = s[r], change[r]
                for c in range(m):
                    row[c] += change_of_row[c]


@inlined
def extra_of(square: float, extra: float, weight: float) -> float:
    """Return the extra with which one step is as long as so many steps on a pair in a row.

    Each of these leaves the same share of the loss.
    """
    return float(-square / np.expm1(weight * np.log1p(-square / (square + extra))) - square)


@compiled
def learn(
    rows: MatrixRows, starts: Ints, pairs: Pairs, extra: Floats, stretch: Floats, W: Floats, before: Matrix
) -> None:
    """Learn from the queries; overwrite before, (n_documents, m), with the scores of each query before its steps.

    Cost beside the pairs: the stored values, and for the Gram matrix the pairs of those in a column.
    """
    d, m = W.shape
    at, of_list, roots = no_columns(rows, d), np.empty((d, m), before.dtype), np.sqrt(stretch)
    room = dense_room(rows, longest_list(starts), before)
    for q in range(len(starts) - 1):
        a, b = starts[q], starts[q + 1]
        k = open_list(rows, a, b, at)
        for r in range(k):
            for c in range(m):
                of_list[r, c] = W[at.columns[r], c]
        scores(rows, a, b, at, of_list[:k], room, before[a:b])
        first, last = pairs.ends[q], pairs.ends[q + 1]
        if first < last:
            gram = sparse_gram(rows, a, b, at, k, stretch) if rows.is_sparse else dense_gram(room[: b - a] * roots)
            s, steps = before[a:b].copy(), np.zeros((b - a, m), before.dtype)
            better, worse, weights = pairs.better[first:last], pairs.worse[first:last], pairs.weights[first:last]
            learn_pairs(gram, better, worse, weights, a, extra, s, steps)
            transposed(rows, a, b, at, steps, room, of_list[:k])
            for r in range(k):
                for c in range(m):
                    W[at.columns[r], c] += stretch[at.columns[r]] * of_list[r, c]
        close_list(rows, k, at)


@compiled
def dense_gram(rows: Matrix) -> Floats:
    """Return rows times their transpose, computed below the diagonal, in strips."""
    n = len(rows)
    gram = np.empty((n, n))
    for a in range(0, n, BLOCK):
        b = min(a + BLOCK, n)
        strip = np.dot(rows[a:b], rows[:b].T)
        for i in range(a, b):
            for j in range(i + 1):
                gram[i, j] = strip[i - a, j]
                gram[j, i] = strip[i - a, j]
    return gram


@compiled
def sparse_gram(rows: MatrixRows, a: int, b: int, at: ListColumns, k: int, stretch: Floats) -> Floats:
    """Return X S X' of the rows a to b - 1, a list of k columns."""
    ends = np.zeros(k + 1, dtype=np.int64)
    for r in range(k):
        ends[r + 1] = ends[r] + at.filled[r]
    free, documents, values = ends[:k].copy(), np.empty(ends[k], dtype=np.int64), np.empty(ends[k])
    for i in range(a, b):
        for p in range(rows.indptr[i], rows.indptr[i + 1]):
            r = at.place[rows.indices[p]]
            documents[free[r]], values[free[r]] = i - a, rows.data[p]
            free[r] += 1
    gram = np.zeros((b - a, b - a))
    for r in range(k):
        factor = stretch[at.columns[r]]
        for p in range(ends[r], ends[r + 1]):
            x = factor * values[p]
            products_of_row = gram[documents[p]]
            for e in range(ends[r], p + 1):
                products_of_row[documents[e]] += x * values[e]
    for i in range(b - a):
        for j in range(i):
            gram[j, i] = gram[i, j]
    return gram
