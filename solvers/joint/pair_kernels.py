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

from ranktune.solvers.core.arrays import Floats, Indices, Ints, Matrix
from ranktune.solvers.core.compiled import compiled
from ranktune.solvers.data.list_scaling import columns_of_list
from ranktune.solvers.joint.products import add_sparse_transposed, dense_scores, sparse_scores

BLOCK = 32
"""Pairs whose steps are added to all scores at once."""


class Pairs(NamedTuple):
    """The pairs of all queries: better and worse rows, those of query q from ends[q] to ends[q + 1]."""

    better: Ints
    worse: Ints
    ends: Ints


@compiled
def learn_pairs(K: Floats, better: Ints, worse: Ints, first: int, extra: Floats, s: Floats, taken: Floats) -> None:
    """Take the steps on the pairs of a query whose first row is number first.

    s, (n, m), holds the scores before, and is changed; the sums of the steps are added to taken, (n, m). extra is
    1/(2C), (m,). Pairs are taken BLOCK at a time: within a block each margin is put right for the steps before it, and
    after it all scores are, by one product of matrices.
    """
    n, m = s.shape
    steps, moves, change = np.empty((BLOCK, m)), np.empty((BLOCK, n)), np.empty((n, m))
    for begin in range(0, len(better), BLOCK):
        size = min(BLOCK, len(better) - begin)
        for t in range(size):
            i, j = better[begin + t] - first, worse[begin + t] - first
            step, move, above, below = steps[t], moves[t], s[i], s[j]
            square = K[i, i] + K[j, j] - 2.0 * K[i, j]
            for r in range(n):
                move[r] = K[i, r] - K[j, r]
            for c in range(m):
                step[c] = 1.0 - (above[c] - below[c])
            for u in range(t):
                by, earlier = moves[u, i] - moves[u, j], steps[u]
                for c in range(m):
                    step[c] -= by * earlier[c]
            inside = 1.0 if 0.0 < square < np.inf else 0.0
            up, down = taken[i], taken[j]
            for c in range(m):
                loss = step[c] if step[c] > 0.0 else 0.0
                step[c] = inside * (loss / (square + extra[c]))
                up[c] += step[c]
                down[c] -= step[c]
        if begin + size < len(better):
            np.dot(moves[:size].T, steps[:size], change)
            for r in range(n):
                row, own = s[r], change[r]
                for c in range(m):
                    row[c] += own[c]


@compiled
def learn_dense(
    X: Matrix, starts: Ints, pairs: Pairs, extra: Floats, stretch: Floats, W: Floats, before: Floats
) -> None:
    """Learn from the queries; overwrite before, (n_documents, m), with the scores of each query before its steps."""
    d, m = W.shape
    longest = 0
    for q in range(len(starts) - 1):
        longest = max(longest, starts[q + 1] - starts[q])
    rows, roots = np.empty((longest, d)), np.sqrt(stretch)
    change, taken, s = np.empty((d, m)), np.empty((longest, m)), np.empty((longest, m))
    for q in range(len(starts) - 1):
        a, b = starts[q], starts[q + 1]
        n = b - a
        dense_scores(X[a:b], W, before[a:b])
        first, last = pairs.ends[q], pairs.ends[q + 1]
        if first == last:
            continue
        for i in range(n):
            for j in range(d):
                rows[i, j] = X[a + i, j] * roots[j]
            for c in range(m):
                s[i, c], taken[i, c] = before[a + i, c], 0.0
        gram = dense_gram(rows[:n])
        learn_pairs(gram, pairs.better[first:last], pairs.worse[first:last], a, extra, s[:n], taken[:n])
        np.dot(rows[:n].T, taken[:n], change)
        for j in range(d):
            for c in range(m):
                W[j, c] += roots[j] * change[j, c]


@compiled
def dense_gram(rows: Floats) -> Floats:
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
def learn_sparse(
    data: Matrix,
    indices: Indices,
    indptr: Indices,
    starts: Ints,
    pairs: Pairs,
    extra: Floats,
    stretch: Floats,
    W: Floats,
    before: Floats,
) -> None:
    """Learn as learn_dense does. Cost: the nonzeros, and for the Gram matrix the pairs of those in a column."""
    d, m = W.shape
    place = np.full(d, -1, dtype=np.int64)
    columns, low, high, filled = np.empty(d, dtype=np.int64), np.empty(d), np.empty(d), np.empty(d, dtype=np.int64)
    for q in range(len(starts) - 1):
        a, b = starts[q], starts[q + 1]
        k = columns_of_list(data, indices, indptr[a], indptr[b], b - a, place, columns, low, high, filled)
        own = np.empty((k, m))
        for r in range(k):
            for c in range(m):
                own[r, c] = W[columns[r], c]
        S = before[a:b]
        sparse_scores(data, indices, indptr, a, b, place, own, S)
        first, last = pairs.ends[q], pairs.ends[q + 1]
        if first < last:
            gram = sparse_gram(data, indices, indptr, a, b, place, columns[:k], filled, stretch)
            s, taken = S.copy(), np.zeros((b - a, m))
            learn_pairs(gram, pairs.better[first:last], pairs.worse[first:last], a, extra, s, taken)
            own[:] = 0.0
            add_sparse_transposed(data, indices, indptr, a, b, place, taken, own)
            for r in range(k):
                for c in range(m):
                    W[columns[r], c] += stretch[columns[r]] * own[r, c]
        for r in range(k):
            place[columns[r]] = -1


@compiled
def sparse_gram(
    data: Matrix,
    indices: Indices,
    indptr: Indices,
    a: int,
    b: int,
    place: Ints,
    columns: Ints,
    filled: Ints,
    stretch: Floats,
) -> Floats:
    """Return X S X' of the rows a to b; columns lists what they store, filled how often, place is its inverse."""
    k = len(columns)
    ends = np.zeros(k + 1, dtype=np.int64)
    for r in range(k):
        ends[r + 1] = ends[r] + filled[r]
    at, rows, values = ends[:k].copy(), np.empty(ends[k], dtype=np.int64), np.empty(ends[k])
    for i in range(a, b):
        for p in range(indptr[i], indptr[i + 1]):
            r = place[indices[p]]
            rows[at[r]], values[at[r]] = i - a, data[p]
            at[r] += 1
    gram = np.zeros((b - a, b - a))
    for r in range(k):
        factor = stretch[columns[r]]
        for p in range(ends[r], ends[r + 1]):
            x = factor * values[p]
            own = gram[rows[p]]
            for e in range(ends[r], p + 1):
                own[rows[e]] += x * values[e]
    for i in range(b - a):
        for j in range(i):
            gram[j, i] = gram[i, j]
    return gram
