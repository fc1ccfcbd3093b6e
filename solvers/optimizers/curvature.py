"""Matrices near the Hessian of a RankObjective, for preconditioning.

H = I + C M X' L X M: L is the Laplacian of the active pairs, each of weight 2 a_q (notation: rank_objective).

With up to DENSE_FEATURES features, H is formed in full (on a sample where there are many documents) and factored, so
that correlations of features count, which a diagonal neglects. With more, it is the diagonal, without the products of
different documents: I + C M X' D X M, D the degrees of the active pairs.
"""

from __future__ import annotations

from collections.abc import Callable
from queue import SimpleQueue
from typing import cast

import numpy as np
from scipy import linalg

from ranktune.solvers.core.arrays import Codes, Floats, Ints, Matrix
from ranktune.solvers.core.compiled import compiled
from ranktune.solvers.data.products import blocks
from ranktune.solvers.losses.order_statistics_kernels import Windows
from ranktune.solvers.optimizers.newton import Point, Solve
from ranktune.solvers.optimizers.pairwise_objective import WORTH_THREADS, RankObjective

DENSE_FEATURES = 1000
"""Up to so many features, the factored matrix (n_features ** 3 / 3 operations) pays."""

STALE_AFTER = 8
"""A step that took more products than this with the Hessian shows that its matrix no longer fits."""


class SampledHessian:
    """The Hessian of a sample, factored; formed again when it has gone stale.

    The sample must have been evaluated at the first point or close to it. whole says that it is all documents, that
    is the objective itself: it has been evaluated at every point then.
    """

    def __init__(self, sample: Callable[[], RankObjective], *, whole: bool) -> None:
        self.sharp = not whole
        self._sample = sample
        self._whole = whole
        self._loss: Floats | None = None
        self._solve: Solve | None = None
        self._strength, self._solved_strength = sample().C, 0.0

    def solver(self, point: Point) -> Solve:
        """Return the inverse of the sample's Hessian; formed again, at point, if the last step was long.

        Where only C has changed, the loss's part is kept and scaled.
        """
        stale = point.products > STALE_AFTER
        if stale and not self._whole:
            self._sample().value_and_gradient(point.weights)
        if stale or self._loss is None:
            self.form()
        if self._solve is None or self._solved_strength != self._strength:
            assert self._loss is not None
            self._solved_strength = self._strength
            self._solve = _inverse(regularised(self._loss, self._strength))
        return self._solve

    def form(self) -> None:
        """Form the matrix at the weights that the sample evaluated last."""
        self._loss, self._solve = loss_hessian(self._sample()), None

    def set_strength(self, C: float) -> None:
        """Make C that of the matrix."""
        self._strength = C

    def forget(self) -> None:
        """Form the matrix again, at the weights that the sample evaluated last, when it is needed next."""
        self._loss = None


def _inverse(matrix: Floats) -> Solve:
    """Return the solution of equations with matrix, whose diagonal grows if rounding has made it indefinite."""
    diagonal = matrix.diagonal().copy()
    for growth in (0.0, 1e-6, 1e-4, 1e-2):
        matrix[np.diag_indices_from(matrix)] = diagonal * (1.0 + growth)
        try:
            factor = linalg.cho_factor(matrix, lower=True, check_finite=False)
        except linalg.LinAlgError:
            continue
        return lambda residual: linalg.cho_solve(factor, residual, check_finite=False)
    usable = np.where(np.isfinite(diagonal), np.maximum(diagonal, 1.0), 1.0)  # features too large to be squared
    return lambda residual: residual / usable


class DiagonalHessian:
    """The diagonal of I + C M X' D X M, D the degrees of the active pairs: one pass over X."""

    def __init__(self, objective: RankObjective) -> None:
        self.sharp = False
        self._objective = objective
        self._loss: Floats | None = None

    def solver(self, point: Point) -> Solve:
        """Return the division by the diagonal, as it was at the first weights or when a step last took many products.

        Fewer active pairs shrink all of it about alike, which conjugate gradients do not notice.
        """
        if self._loss is None or point.products > 2 * STALE_AFTER:
            self._loss = (self._objective.diagonal() - 1.0) / self._objective.C
        diagonal = 1.0 + self._objective.C * self._loss
        return lambda residual: residual / diagonal

    def set_strength(self, C: float) -> None:
        """Do nothing: the objective's C is read when it is needed."""

    def forget(self) -> None:
        """Compute the diagonal again when it is needed next."""
        self._loss = None


def regularised(loss: Floats, C: float) -> Floats:
    """Return I + C loss."""
    result = C * loss
    result[np.diag_indices_from(result)] += 1.0
    return result


def loss_hessian(objective: RankObjective) -> Floats:
    """Return (H - I) / C, (n_features, n_features), at the last weights. For samples: the rows are copied.

    With A the active pairs from the better document, of weight 2 a_q, and D the degrees: L = D - A - A', and so
    X' L X = (X'Y + Y'X) / 2 for Y = (D - 2 A) X, summed over the squared hinges that the loss consists of.
    """
    half = np.zeros((objective.n_features, objective.n_features))
    for (_, factor), windows in zip(objective.terms, objective.windows, strict=True):
        half += factor * _half_sum(objective, windows)
    result = 0.5 * (half + half.T)
    if objective.multiplier is not None:
        result *= np.outer(objective.multiplier, objective.multiplier)
    return result


def _half_sum(objective: RankObjective, windows: Windows) -> Floats:
    """Return X'Y for one squared hinge."""
    queries = objective.queries
    order, low, _, codes, degree, _ = windows
    by_score = np.repeat(queries.starts[:-1], queries.lengths) + order
    factors = 2.0 * np.repeat(objective.query_weights, queries.lengths)
    ranges = blocks(queries.starts, 1000)

    rows = int(max(queries.starts[last] - queries.starts[first] for first, last in ranges))
    dtype = queries.features.dtype
    rooms: SimpleQueue[Matrix] = SimpleQueue()  # fresh memory in every thread would cost more than the arithmetic
    for _ in range(objective.threads):
        rooms.put(np.empty((2, rows, queries.n_features), dtype))

    def work(first: int, last: int) -> Floats:
        a, b = queries.starts[first], queries.starts[last]
        room = rooms.get()
        X, Y = room[:, : b - a]
        if queries.is_sparse:
            X[:] = queries.features[by_score[a:b]].toarray()
        else:
            np.take(queries.features, by_score[a:b], axis=0, out=X, mode="clip")  # "raise" would copy
        starts, n_grades = queries.starts[first : last + 1] - a, objective.n_grades[first:last]
        tree = np.empty((int(n_grades.max()) + 1, queries.n_features))
        _half_laplacian(X, starts, low[a:b], codes[a:b], n_grades, degree[a:b], objective.adjacent, tree, Y)
        Y *= factors[a:b, None].astype(dtype)
        part = X.T @ Y
        rooms.put(room)
        return cast(Floats, part)

    half = np.zeros((objective.n_features, objective.n_features))
    few = len(ranges) < WORTH_THREADS * objective.threads
    run = map if objective.executor is None or few else objective.executor.map
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
    adjacent: bool,
    tree: Floats,
    out: Matrix,
) -> None:
    """Overwrite out with (D - 2 A) X for pairs of weight 1; the rows of X and out are sorted by score.

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
                at = int(codes[added]) + 1
                while at <= k:
                    for j in range(n_features):
                        tree[at, j] += X[added, j]
                    at = k + 1 if adjacent else at + (at & -at)
            for j in range(n_features):
                out[r, j] = degree[r] * X[r, j]
            at = int(codes[r])
            while at > 0:
                for j in range(n_features):
                    out[r, j] -= 2.0 * tree[at, j]
                at = 0 if adjacent else at & (at - 1)
