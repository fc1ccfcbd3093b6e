"""Matrices near the Hessian of a RankSVM's objective, for preconditioning.

H = I + C M X' L X M: L is the Laplacian of the active pairs, each of weight 2 a_q (notation: pairwise_objective).

With up to DENSE_FEATURES features, H is formed in full (on a sample where there are many documents) and factored, so
that correlations of features count, which a diagonal neglects. With more, it is the diagonal, without the products of
different documents: I + C M X' D X M, D the degrees of the active pairs; or, where a small sample shows strong
correlations, the sample's H with its entries off the diagonal shrunk (Ledoit & Wolf 2004, J. Multivariate Anal. 88).

With A the active pairs from the better document, of weight 2 a_q x_i x_j, L = D - A - A', and so
X' L X = (X'Y + Y'X) / 2 for Y = (D - 2 A) X.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from queue import SimpleQueue
from typing import cast

import numpy as np
from scipy import linalg

from ranktune.solvers.core.arrays import Codes, Floats, Ints, Matrix
from ranktune.solvers.core.compiled import compiled
from ranktune.solvers.data.products import blocks
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.losses.order_statistics_kernels import GradedLists, Windows
from ranktune.solvers.optimizers.newton import NewtonPoint, Solve
from ranktune.solvers.optimizers.rank_svm.hinge_objective import HingeObjective

DENSE_FEATURES = 500
"""Up to so many features, the factored matrix pays. Forming it from 20 documents a feature takes 20 n_features ** 3
operations: with 1,000 features as much as 30 evaluations on 30,000 documents. Independent, correlated and skewed
features were compared, at C from 0.01 to 100.
"""

CORRELATED = 8.0
"""Features are correlated if some direction is so many times as curved as the mean one, once each feature is scaled to
the same curvature. Of independent features, a sample of two documents a feature shows 3 times.
"""
POWER_STEPS = 4
SHRINKAGE = 1.0 / 3.0
"""Of the Hessian of a sample of two documents a feature: n_features / (n_features + documents)."""

STALE_AFTER = 8
"""A step that took more products than this with the Hessian shows that its matrix no longer fits."""


class SampledHessian:
    """The Hessian of a sample, factored; formed again when it has gone stale.

    The sample must have been evaluated at the first point or close to it. whole says that it is all documents, that
    is the objective itself: it has been evaluated at every point then. Entries off the diagonal are multiplied by
    1 - shrinkage; a shrunk matrix is too far from H for steps without products.
    """

    def __init__(self, sample: Callable[[], HingeObjective], *, whole: bool, shrinkage: float = 0.0) -> None:
        self.sharp = not whole and shrinkage == 0.0
        self._sample = sample
        self._whole = whole
        self._shrinkage = shrinkage
        self._loss: Floats | None = None
        self._solve: Solve | None = None
        self._strength, self._solved_strength = sample().C, 0.0

    def solver(self, point: NewtonPoint) -> Solve:
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
        self._loss, self._solve = self._sample().loss_hessian(), None
        if self._shrinkage > 0.0:
            diagonal = self._loss.diagonal().copy()
            self._loss *= 1.0 - self._shrinkage
            self._loss[np.diag_indices_from(self._loss)] = diagonal

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

    def __init__(self, objective: HingeObjective) -> None:
        self.sharp = False
        self._objective = objective
        self._loss: Floats | None = None

    def solver(self, point: NewtonPoint) -> Solve:
        """Return the division by the diagonal, as it was at the first weights or when a step last took many products.

        Fewer active pairs shrink all of it about alike, which conjugate gradients do not notice.
        """
        if self._loss is None or point.products > 2 * STALE_AFTER:
            self._loss = self._objective.loss_diagonal()
        diagonal = 1.0 + self._objective.C * self._loss
        return lambda residual: residual / diagonal

    def set_strength(self, C: float) -> None:
        """Do nothing: the objective's C is read when it is needed."""

    def forget(self) -> None:
        """Compute the diagonal again when it is needed next."""
        self._loss = None


def is_correlated(sample: HingeObjective) -> bool:
    """Return whether a diagonal is far from the Hessian of sample at zero weights, by the power method.

    A smoothed hinge is straight there: no. It is the diagonal that then serves.
    """
    sample.rank_at_zero()
    scale = 1.0 / np.sqrt(np.maximum(sample.loss_diagonal(), np.finfo(float).tiny))
    direction, curvatures = np.random.default_rng(0).standard_normal(sample.n_features), []
    for _ in range(POWER_STEPS):
        direction = direction / max(float(np.linalg.norm(direction)), np.finfo(float).tiny)
        curved = scale * sample.loss_product(scale * direction)[0]
        curvatures.append(float(direction @ curved))
        direction = curved
    return curvatures[-1] > CORRELATED * curvatures[0]


def regularised(loss: Floats, C: float) -> Floats:
    """Return I + C loss."""
    result = C * loss
    result[np.diag_indices_from(result)] += 1.0
    return result


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
