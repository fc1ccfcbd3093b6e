"""Matrices near the Hessian of a RankObjective, for preconditioning.

H = I + C M X' L X M: L is the Laplacian of the active pairs, each of weight 2 a_q (notation: rank_objective).

With up to DENSE_FEATURES features, H is formed in full (on a sample where there are many documents) and factored. That
knows how features correlate, which a diagonal does not. With more, it is the diagonal, without the products of
different documents: I + C M X' D X M, D the degrees of the active pairs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg

from ranktune.solvers.arrays import Floats, Ints
from ranktune.solvers.compiled import compiled
from ranktune.solvers.newton import Point, Solve
from ranktune.solvers.rank_objective import RankObjective, blocks

DENSE_FEATURES = 1000
"""Up to so many features, the factored matrix (n_features ** 3 / 3 operations) pays."""

STALE_AFTER = 8
"""A step that took more products than this with the Hessian shows that its matrix no longer fits."""


class SampledHessian:
    """The Hessian of a sample, factored; formed again when it has gone stale.

    The sample must have been evaluated at the first point or close to it. whole says that it is all documents, that
    is the objective itself: it has been evaluated at every point then.
    """

    def __init__(self, sample: RankObjective, *, whole: bool) -> None:
        self.sharp = not whole
        self._sample = sample
        self._whole = whole
        self._solve: Solve | None = None

    def solver(self, point: Point) -> Solve:
        """Return the inverse of the sample's Hessian; formed again, at point, if the last step was long."""
        stale = point.products > STALE_AFTER
        if stale and not self._whole:
            self._sample.value_and_gradient(point.weights)
        if stale or self._solve is None:
            self._solve = _inverse(hessian(self._sample))
        return self._solve


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
    """The diagonal of I + C M X' D X M, D the degrees of the active pairs: one pass over X a step."""

    def __init__(self, objective: RankObjective) -> None:
        self.sharp = False
        self._objective = objective

    def solver(self, point: Point) -> Solve:
        """Return the division by the diagonal at the weights last evaluated."""
        diagonal = self._objective.diagonal()
        return lambda residual: residual / diagonal


def hessian(objective: RankObjective) -> Floats:
    """Return H, (n_features, n_features), at the last weights. For samples: the rows are copied.

    With A the active pairs from the better document, of weight 2 a_q, and D the degrees: L = D - A - A', and so
    X' L X = (X'Y + Y'X) / 2 for Y = (D - 2 A) X.
    """
    queries, n_features = objective.queries, objective.n_features
    order, low, _, codes, degree, _ = objective.windows
    by_score = np.repeat(queries.starts[:-1], queries.lengths) + order
    factors = 2.0 * objective.C * np.repeat(objective.query_weights, queries.lengths)
    half = np.zeros((n_features, n_features))
    for first, last in blocks(queries.starts, 1000):  # small blocks: fresh memory costs more than the arithmetic
        a, b = queries.starts[first], queries.starts[last]
        rows = queries.features[by_score[a:b]]
        X = rows.toarray() if queries.is_sparse else rows
        Y = np.empty_like(X)
        starts, n_grades = queries.starts[first : last + 1] - a, objective.n_grades[first:last]
        _half_laplacian(X, starts, low[a:b], codes[a:b], n_grades, degree[a:b], Y)
        Y *= factors[a:b, None].astype(X.dtype)
        half += X.T @ Y
    result = 0.5 * (half + half.T)
    if objective.multiplier is not None:
        result *= np.outer(objective.multiplier, objective.multiplier)
    result[np.diag_indices_from(result)] += 1.0
    return result


@compiled
def _half_laplacian(X: Any, starts: Ints, low: Any, codes: Any, n_grades: Any, degree: Floats, out: Any) -> None:
    """Overwrite out with (D - 2 A) X for pairs of weight 1; the rows of X and out are sorted by score.

    One downward sweep a query, as for the worse partners in order_statistics, with a row of X in the place of a number.
    """
    n_features = X.shape[1]
    for q in range(len(starts) - 1):
        a, b, k = starts[q], starts[q + 1], n_grades[q]
        tree = np.zeros((k + 1, n_features))
        added = b
        for r in range(b - 1, a - 1, -1):
            while added > a + low[r]:
                added -= 1
                at = np.int64(codes[added]) + 1
                while at <= k:
                    for j in range(n_features):
                        tree[at, j] += X[added, j]
                    at += at & -at
            for j in range(n_features):
                out[r, j] = degree[r] * X[r, j]
            at = np.int64(codes[r])
            while at > 0:
                for j in range(n_features):
                    out[r, j] -= 2.0 * tree[at, j]
                at &= at - 1
