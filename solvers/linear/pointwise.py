"""Pointwise rankers: ridge, logistic and support vector regression on the grade of each document.

    minimise  C sum over documents of a l(z, t) + 1/2 |w|^2,      z = (x - level) M w + b

a  weight of the document's query     t  its target     M  what makes features alike: 1 / standard deviation
level is the mean of the document's query under centre="query": what makes a whole query easy or hard then explains
nothing, as in ranking; deviations are about it, and grades are less their query's mean. Under centre="none" it does not
matter, because the intercept b is never penalised. coef_ = M w applies to the raw features.

Features, dense or sparse, are neither centred nor scaled in memory: both happen to scores and weights. Memory beyond
the features: some vectors of documents and of features.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

import numpy as np

from ranktune.solvers.base.linear import LinearRanker
from ranktune.solvers.base.ranker import Step
from ranktune.solvers.blocks.blocked import BlockedQueries, Data, better_divided, blocked, factors_of
from ranktune.solvers.blocks.workers import OpenBlock
from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.checks import check_choice, check_count, check_not_negative, check_positive
from ranktune.solvers.core.errors import DataError
from ranktune.solvers.core.space import Choice, Float, Parameter
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.linear.composition import MinimisingRanker
from ranktune.solvers.linear.least_squares import LeastSquares
from ranktune.solvers.losses.grade_moments import GradeMoments, grade_moments, joined_grades
from ranktune.solvers.losses.penalties import L2
from ranktune.solvers.losses.pointwise import (
    CENTRES,
    GAINS,
    InsensitiveLoss,
    LogisticLoss,
    PointwiseLoss,
    SquaredInsensitiveLoss,
)
from ranktune.solvers.metrics.gains import can_double
from ranktune.solvers.optimizers.batch import LBFGS

SVR_LOSSES = ("l2", "l1")

ROUNDING = 0.01
"""Width over which SVRRanker rounds the kink of its L1 loss, in standard deviations of the targets."""


class PointwiseRanker(LinearRanker):
    """Base of the pointwise rankers."""

    weighted: ClassVar[bool] = True
    takes_document_weights: ClassVar[bool] = True
    centre: str

    def _check_parameters(self) -> None:
        check_choice("centre", self.centre, CENTRES)

    def _steps(self, queries: Queries) -> Iterator[Step]:
        return self._steps_on(better_divided(queries))

    def _fit_blocks(self, data: BlockedQueries) -> None:
        for _ in self._steps_on(data):
            pass

    def _steps_on(self, data: Data) -> Iterator[Step]:
        raise NotImplementedError

    def _factors(self, data: Data) -> Floats:
        return factors_of(data, "standard", within_queries=self.centre == "query")


class RidgeRanker(PointwiseRanker):
    """Ridge regression on the grades: ``sum over documents of (t - z)^2 + alpha |w|^2``.

    Up to 2,000 features: normal equations, n_documents n_features^2 / 2 multiplications. More, or many sparse ones:
    conjugate gradients, two passes over the features an iteration.

    Parameters
    ----------
    alpha : float, default=1000.0
        Weight of the penalty, on features of standard deviation 1; positive.
    centre : {"query", "none"}, default="query"
        "query": features and grades are less the mean of their query; "none": less that of all documents.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        The weights of the raw features.
    n_iter_ : int
        1.

    References
    ----------
    Hoerl & Kennard 1970, "Ridge Regression", Technometrics 12(1).

    Examples
    --------
    >>> from ranktune.solvers import RidgeRanker
    >>> X = [[0.9, 0.1], [0.2, 0.8], [0.7, 0.3], [0.1, 0.6]]
    >>> RidgeRanker(alpha=1.0).fit(X, [1, 0, 1, 0], qid=[1, 1, 2, 2]).coef_.round(2)
    array([ 0.85, -0.6 ])
    """

    space: ClassVar[tuple[Parameter, ...]] = (
        Float("alpha", 1.0, 1e6, log=True),
        Choice("centre", CENTRES),
    )
    path_parameter: ClassVar[str | None] = "alpha"
    path_increasing: ClassVar[bool] = False

    def __init__(self, alpha: float = 1000.0, *, centre: str = "query") -> None:
        self.alpha = alpha
        self.centre = centre

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_positive("alpha", self.alpha)

    def _steps_on(self, data: Data) -> Iterator[Step]:
        for _ in self._path(data, [self.alpha]):
            yield Step(1, float("nan"))

    def _steps_on_path(self, queries: Queries, values: Sequence[float | int]) -> Iterator[float | int]:
        return self._path(better_divided(queries), values)

    def _path(self, data: Data, values: Sequence[float | int]) -> Iterator[float | int]:
        """Take the products of the features once, and solve for one alpha after the other."""
        multiplier = self._factors(data)
        equations = LeastSquares(data, multiplier, self.centre == "query")
        for alpha in values:
            self.coef_ = multiplier * equations.solve(float(alpha))
            if not np.isfinite(self.coef_).all():
                raise DataError(
                    "the squares of the features are too large for numbers. Divide the features by a factor."
                )
            self.n_iter_ = 1
            yield alpha


class _Smooth(PointwiseRanker, MinimisingRanker):
    """Base of pointwise rankers with a smooth loss, minimised by L-BFGS."""

    path_parameter: ClassVar[str | None] = "C"
    path_expensive: ClassVar[bool] = True
    C: float
    max_iterations: int
    tol: float

    def _check_parameters(self) -> None:
        super()._check_parameters()
        for name in ("C", "tol"):
            check_positive(name, getattr(self, name))
        check_count("max_iterations", self.max_iterations)

    def _loss(self, grades: GradeMoments) -> PointwiseLoss:
        raise NotImplementedError

    def _steps_on(self, data: Data) -> Iterator[Step]:
        for steps in self._path(data, [self.C]):
            yield from steps

    def _steps_on_path(self, queries: Queries, values: Sequence[float | int]) -> Iterator[float | int]:
        """Begin with the strongest penalty; each C goes on from where the one before ended."""
        for C, steps in zip(values, self._path(better_divided(queries), values), strict=True):
            for _ in steps:
                pass
            yield C

    def _path(self, data: Data, values: Sequence[float | int]) -> Iterator[Iterator[Step]]:
        optimizer = LBFGS(tol=float(self.tol), max_iterations=int(self.max_iterations))
        grades = joined_grades(blocked(data).workers.map(_grades))
        scales = [float(C) * grades.weight for C in values]  # the loss is a mean over documents
        penalties = [L2(1.0 / scale) for scale in scales]
        path = self._minimise(self._loss(grades), penalties, optimizer, data, self._factors(data))
        for scale, steps in zip(scales, path, strict=True):
            yield self._scaled(scale, steps)

    def _scaled(self, scale: float, steps: Iterator[Step]) -> Iterator[Step]:
        for step in steps:
            self.objective_ = scale * step.objective
            yield Step(step.iteration, self.objective_, step.violation)


class LogisticRanker(_Smooth):
    """Logistic regression on relevance: the lowest grade of the data is 0, the highest 1, the others lie between.

    A document of relevance p counts p as a relevant one and 1 - p as an irrelevant one, so that all grades matter and
    two grades give the usual logistic regression. Cost: two passes over the features an iteration.

    Parameters
    ----------
    C : float, default=0.01
        Weight of the loss, summed over documents, against ``1/2 |w|^2``; positive.
    gain : {"linear", "exponential"}, default="linear"
        How grades are spaced between 0 and 1: by their number, or by 2^grade.
    centre : {"query", "none"}, default="query"
        "query": features are less the mean of their query; "none": as they are.
    max_iterations : int, default=500
        Iterations of L-BFGS; reaching them warns (RankTuneWarning) and keeps the best weights.
    tol : float, default=0.001
        Stop when the gradient's norm is at most tol times its norm at zero weights.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        The weights of the raw features.
    objective_ : float
        The value that is minimised, at ``coef_``.
    n_iter_ : int
        Iterations done.
    converged_ : bool
        Whether tol was reached.

    References
    ----------
    Cox 1958, "The Regression Analysis of Binary Sequences", J. R. Stat. Soc. B 20(2).

    Examples
    --------
    >>> from ranktune.solvers import LogisticRanker
    >>> X = [[0.9, 0.1], [0.2, 0.8], [0.7, 0.3], [0.1, 0.6]]
    >>> LogisticRanker(C=1.0).fit(X, [1, 0, 1, 0], qid=[1, 1, 2, 2]).coef_.round(1)
    array([ 2.4, -2.5])
    """

    space: ClassVar[tuple[Parameter, ...]] = (
        Float("C", 1e-5, 1e1, log=True),
        Choice("gain", GAINS),
        Choice("centre", CENTRES),
    )

    def __init__(
        self,
        C: float = 0.01,
        *,
        gain: str = "linear",
        centre: str = "query",
        max_iterations: int = 500,
        tol: float = 1e-3,
    ) -> None:
        self.C = C
        self.gain = gain
        self.centre = centre
        self.max_iterations = max_iterations
        self.tol = tol

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("gain", self.gain, GAINS)

    def _loss(self, grades: GradeMoments) -> PointwiseLoss:
        return LogisticLoss(self.gain, self.centre)


class SVRRanker(_Smooth):
    """Linear support vector regression on the grades.

    Cost: two passes over the features an iteration; "l1" takes several times the iterations of "l2".

    Parameters
    ----------
    C : float, default=0.001
        Weight of the loss, summed over documents, against ``1/2 |w|^2``; positive.
    epsilon : float, default=0.5
        Errors up to epsilon cost nothing; at least 0. In grades if these are whole numbers from 0 to 30, else in
        standard deviations of the grades within queries.
    loss : {"l2", "l1"}, default="l2"
        "l2": ``max(0, |z - t| - epsilon)^2``; "l1": without the square, its kink rounded over a hundredth of the
        targets' standard deviation, which lowers the objective by at most half of that times C times the number of
        documents.
    centre : {"query", "none"}, default="query"
        "query": features are less the mean of their query; "none": as they are.
    max_iterations : int, default=500
        Iterations of L-BFGS; reaching them warns (RankTuneWarning) and keeps the best weights.
    tol : float, default=0.001
        Stop when the gradient's norm is at most tol times its norm at zero weights.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        The weights of the raw features.
    objective_ : float
        The value that is minimised, at ``coef_``.
    n_iter_ : int
        Iterations done.
    converged_ : bool
        Whether tol was reached.

    References
    ----------
    Ho & Lin 2012, "Large-scale Linear Support Vector Regression", JMLR 13.

    Examples
    --------
    >>> from ranktune.solvers import SVRRanker
    >>> X = [[0.9, 0.1], [0.2, 0.8], [0.7, 0.3], [0.1, 0.6]]
    >>> SVRRanker(C=1.0, epsilon=0.1).fit(X, [1, 0, 1, 0], qid=[1, 1, 2, 2]).coef_.round(2)
    array([ 0.8 , -0.59])
    """

    space: ClassVar[tuple[Parameter, ...]] = (
        Choice("loss", SVR_LOSSES),
        Float("C", 1e-5, 1.0, log=True),
        Float("epsilon", 1e-2, 1.0, log=True),
        Choice("centre", CENTRES),
    )

    def __init__(
        self,
        C: float = 1e-3,
        *,
        epsilon: float = 0.5,
        loss: str = "l2",
        centre: str = "query",
        max_iterations: int = 500,
        tol: float = 1e-3,
    ) -> None:
        self.C = C
        self.epsilon = epsilon
        self.loss = loss
        self.centre = centre
        self.max_iterations = max_iterations
        self.tol = tol

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_not_negative("epsilon", self.epsilon)
        check_choice("loss", self.loss, SVR_LOSSES)

    def _loss(self, grades: GradeMoments) -> PointwiseLoss:
        epsilon, unit = float(self.epsilon), 1.0 if can_double(grades.deciding) else grades.deviation_within_queries
        if self.loss == "l2":
            return SquaredInsensitiveLoss(epsilon, self.centre, unit)
        by_query = self.centre == "query"
        deviation = (grades.deviation_within_queries if by_query else grades.deviation) / unit
        return InsensitiveLoss(epsilon, ROUNDING * deviation, self.centre, unit)


def _grades(block: OpenBlock) -> GradeMoments:
    return grade_moments(block.queries)
