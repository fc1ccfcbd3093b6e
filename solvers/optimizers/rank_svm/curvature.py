"""Matrices near the Hessian of a RankSVM's objective, for preconditioning.

H = I + C M X' L X M: L is the Laplacian of the active pairs, each of weight 2 a_q (notation: pairwise_objective).

With up to DENSE_FEATURES features, H is formed in full (on a sample where there are many documents) and factored, so
that correlations of features count, which a diagonal neglects. With more, it is the diagonal, without the products of
different documents: I + C M X' D X M, D the degrees of the active pairs; or, where a small sample shows strong
correlations, the sample's H with its entries off the diagonal shrunk (Ledoit & Wolf 2004, J. Multivariate Anal. 88).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import linalg

from ranktune.solvers.core.arrays import Floats
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
