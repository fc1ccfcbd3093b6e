"""X' L X of the pairs that are active, for the weighted Laplacian L of each query: the Hessian of a squared hinge.

With A the active pairs from the better document, of weight 2 a_q x_i x_j, and D the degrees: L = D - A - A', and so
X' L X = (X'Y + Y'X) / 2 for Y = (D - 2 A) X.
"""

from __future__ import annotations

from concurrent.futures import Executor
from queue import SimpleQueue
from typing import cast

import numpy as np

from ranktune.solvers.core.arrays import Codes, Floats, Ints, Matrix
from ranktune.solvers.core.compiled import compiled
from ranktune.solvers.data.products import blocks
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.losses.order_statistics_kernels import GradedLists, Windows

WORTH_THREADS = 4
"""Fewer blocks a thread than this are done by one thread: handing them over would cost what it saves."""


def half_sum(
    queries: Queries, graded: GradedLists, windows: Windows, adjacent: bool, executor: Executor | None, threads: int
) -> Floats:
    """Return X'Y, (n_features, n_features), for one squared hinge. For samples: the rows are copied."""
    order, low, _, codes, degree, _ = windows
    by_score = np.repeat(queries.starts[:-1], queries.lengths) + order
    factors, copies = 2.0 * np.repeat(graded.weights, queries.lengths), graded.copies
    if len(copies):
        copies = copies[by_score]
        factors *= copies
    ranges = blocks(queries.starts, 1000)

    rows = int(max(queries.starts[last] - queries.starts[first] for first, last in ranges))
    dtype = queries.features.dtype
    rooms: SimpleQueue[Matrix] = SimpleQueue()  # fresh memory in every thread would cost more than the arithmetic
    for _ in range(threads):
        rooms.put(np.empty((2, rows, queries.n_features), dtype))

    def work(first: int, last: int) -> Floats:
        a, b = queries.starts[first], queries.starts[last]
        room = rooms.get()
        X, Y = room[:, : b - a]
        if queries.is_sparse:
            X[:] = queries.features[by_score[a:b]].toarray()
        else:
            np.take(queries.features, by_score[a:b], axis=0, out=X, mode="clip")  # "raise" would copy
        starts, n_grades = queries.starts[first : last + 1] - a, graded.n_grades[first:last]
        tree = np.empty((int(n_grades.max()) + 1, queries.n_features))
        _half_laplacian(X, starts, low[a:b], codes[a:b], n_grades, degree[a:b], copies[a:b], adjacent, tree, Y)
        Y *= factors[a:b, None].astype(dtype)
        part = X.T @ Y
        rooms.put(room)
        return cast(Floats, part)

    half = np.zeros((queries.n_features, queries.n_features))
    few = len(ranges) < WORTH_THREADS * threads
    run = map if executor is None or few else executor.map
    for part in run(work, *zip(*ranges, strict=True)):  # in order: the same bits with any number of threads
        half += part
    return half


@compiled
def _half_laplacian(
    X: Matrix,
    starts: Ints,
    low: Codes,
    codes: Codes,
    n_grades: Codes,
    degree: Floats,
    copies: Floats,
    adjacent: bool,
    tree: Floats,
    out: Matrix,
) -> None:
    """Overwrite out with (D - 2 A) X for pairs of the weight of the partner; the rows of X and out are sorted by score.

    tree, (most grades of a query + 1, n_features), is scratch.

    One downward sweep a query for the worse partners, with a row of X in the place of a number: in a Fenwick tree over
    the grades (whose sums take the fewest rows), or in a row a grade where pairs are of adjacent grades.
    """
    n_features = X.shape[1]
    for q in range(len(starts) - 1):
        a, b, k = starts[q], starts[q + 1], n_grades[q]
        for at in range(k + 1):
            for j in range(n_features):
                tree[at, j] = 0.0
        added = b
        for r in range(b - 1, a - 1, -1):
            while added > a + low[r]:
                added -= 1
                at, x = int(codes[added]) + 1, copies[added] if len(copies) > 0 else 1.0
                while at <= k:
                    for j in range(n_features):
                        tree[at, j] += x * X[added, j]
                    at = k + 1 if adjacent else at + (at & -at)
            for j in range(n_features):
                out[r, j] = degree[r] * X[r, j]
            at = int(codes[r])
            while at > 0:
                for j in range(n_features):
                    out[r, j] -= 2.0 * tree[at, j]
                at = 0 if adjacent else at & (at - 1)
