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

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np

from ranktune.solvers.base.vocabulary import MAX_ITERATIONS, TOL
from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.checks import check_not_negative
from ranktune.solvers.core.parameters import Param, with_parameters
from ranktune.solvers.data.blocked import Data, OpenBlock, blocked
from ranktune.solvers.data.scaling import without_level
from ranktune.solvers.linear.composition import ComposedRanker, LinearComposition
from ranktune.solvers.losses.base import Loss
from ranktune.solvers.losses.penalties import L2
from ranktune.solvers.losses.pointwise import CENTRES, GAINS, InsensitiveLoss, SquaredInsensitiveLoss
from ranktune.solvers.metrics.judgements import can_double, deciding
from ranktune.solvers.optimizers.base import Parts

ROUNDING = 0.01
"""Width over which SVRRanker rounds the kink of its L1 loss, in standard deviations of the targets."""


STRENGTH_OF_LOSS = Param(
    "Weight of the loss, summed over documents, against ``1/2 |w|^2``; positive.", low=1e-5, high=1.0, log=True
)
CENTRE = Param(
    '"query": features, and grades in regression, are less the mean of their query; "none": as they are.',
    choices=CENTRES,
)


@dataclass(frozen=True, eq=False)
class GradeMoments:
    """Of the grades of documents, weighted.

    weight    of the documents          mean      of the grades
    squares   sum of squared deviations from the mean, and within from the mean of the query
    deciding  a few grades that have the extremes of all
    """

    weight: float
    mean: float
    squares: float
    within: float
    deciding: Floats

    @property
    def deviation(self) -> float:
        """The standard deviation of the grades."""
        return float(np.sqrt(self.squares / self.weight))

    @property
    def deviation_within_queries(self) -> float:
        """The standard deviation from the means of the queries."""
        return float(np.sqrt(self.within / self.weight))


def grade_moments(block: OpenBlock) -> GradeMoments:
    """Return the moments of the grades of a block."""
    queries = block.queries
    weights, grades = queries.weight_of_document, queries.grades
    mean = float(np.average(grades, weights=weights))
    squares, within = (
        float(weights @ differences**2) for differences in (grades - mean, without_level(grades, queries))
    )
    return GradeMoments(float(weights.sum()), mean, squares, within, deciding(grades))


def joined_grades(parts: Sequence[GradeMoments]) -> GradeMoments:
    """Return the moments of the documents of all parts."""
    weights, means = np.array([part.weight for part in parts]), np.array([part.mean for part in parts])
    mean = float(weights @ means / weights.sum())
    squares = sum(part.squares for part in parts) + float(weights @ (means - mean) ** 2)
    extremes = deciding(np.concatenate([part.deciding for part in parts]))
    return GradeMoments(float(weights.sum()), mean, squares, sum(part.within for part in parts), extremes)


class PointwiseRanker(ComposedRanker):
    """Base of the pointwise rankers, whose loss is a sum over documents: its weight is of the mean of one document."""

    scaling: str = "standard"
    centre: str

    @property
    def scaled_within_queries(self) -> bool:  # type: ignore[override]
        """Whether deviations are about the means of the queries."""
        return self.centre == "query"

    def _adapted(self, path: Sequence[Parts], data: Data) -> list[Parts]:
        grades = joined_grades(blocked(data).workers.map(grade_moments))
        return [
            replace(parts, loss=self._on(grades, parts.loss), loss_weight=parts.loss_weight * grades.weight)
            for parts in super()._adapted(path, data)
        ]

    def _on(self, grades: GradeMoments, loss: Loss) -> Loss:
        """Return the loss of documents with these grades."""
        return loss


@with_parameters
class RidgeRanker(PointwiseRanker):
    """Ridge regression on the grades: ``sum over documents of (t - z)^2 + alpha |w|^2``.

    Up to 2,000 features: normal equations, n_documents n_features^2 / 2 multiplications. More, or many sparse ones:
    conjugate gradients, two passes over the features an iteration.

    {parameters}

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

    alpha: Annotated[
        float,
        Param("Weight of the penalty, on features of standard deviation 1; positive.", low=1.0, high=1e6, log=True),
    ] = 1000.0
    _: KW_ONLY
    centre: Annotated[str, CENTRE] = "query"

    path_parameter: ClassVar[str | None] = "alpha"
    path_increasing: ClassVar[bool] = False

    def _composition(self) -> LinearComposition:
        return LinearComposition("pointwise_squared", None, L2(2.0 * self.alpha), "least_squares")


@with_parameters
class LogisticRanker(PointwiseRanker):
    """Logistic regression on relevance: the lowest grade of the data is 0, the highest 1, the others lie between.

    A document of relevance p counts p as a relevant one and 1 - p as an irrelevant one, so that all grades matter and
    two grades give the usual logistic regression. Cost: two passes over the features an iteration.

    {parameters}

    {attributes}

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

    C: Annotated[float, STRENGTH_OF_LOSS.but(high=1e1)] = 0.01
    _: KW_ONLY
    gain: Annotated[
        str, Param("How grades are spaced between 0 and 1: by their number, or by 2^grade.", choices=GAINS)
    ] = "linear"
    centre: Annotated[str, CENTRE] = "query"
    max_iterations: Annotated[int, MAX_ITERATIONS] = 500
    tol: Annotated[float, TOL] = 1e-3

    path_parameter: ClassVar[str | None] = "C"
    path_expensive: ClassVar[bool] = True

    def _composition(self) -> LinearComposition:
        return LinearComposition("pointwise_logistic", None, L2(1.0), "lbfgs", self.C)


@with_parameters
class SVRRanker(PointwiseRanker):
    """Linear support vector regression on the grades.

    Cost: two passes over the features an iteration; "l1" takes several times the iterations of "l2".

    {parameters}

    {attributes}

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

    C: Annotated[float, STRENGTH_OF_LOSS] = 1e-3
    _: KW_ONLY
    epsilon: Annotated[
        float,
        Param(
            "Errors up to epsilon cost nothing; at least 0. In grades if these are whole numbers from 0 to 30, else in "
            "standard deviations of the grades within queries.",
            low=1e-2,
            high=1.0,
            log=True,
            check=check_not_negative,
        ),
    ] = 0.5
    loss: Annotated[
        str,
        Param(
            '"l2": ``max(0, |z - t| - epsilon)^2``; "l1": without the square, its kink rounded over a hundredth of the '
            "targets' standard deviation, which lowers the objective by at most half of that times C times the number "
            "of documents.",
            choices=("l2", "l1"),
        ),
    ] = "l2"
    centre: Annotated[str, CENTRE] = "query"
    max_iterations: Annotated[int, MAX_ITERATIONS] = 500
    tol: Annotated[float, TOL] = 1e-3

    space_order: ClassVar[tuple[str, ...]] = ("loss",)
    path_parameter: ClassVar[str | None] = "C"
    path_expensive: ClassVar[bool] = True

    def _composition(self) -> LinearComposition:
        kind = SquaredInsensitiveLoss if self.loss == "l2" else InsensitiveLoss
        return LinearComposition(kind(epsilon=float(self.epsilon), centre=self.centre), None, L2(1.0), "lbfgs", self.C)

    def _on(self, grades: GradeMoments, loss: Any) -> Loss:
        unit = 1.0 if can_double(grades.deciding) else grades.deviation_within_queries
        rounding = {}
        if self.loss == "l1":
            of_queries = self.centre == "query"
            deviation = grades.deviation_within_queries if of_queries else grades.deviation
            rounding = {"rounding": ROUNDING * (deviation / unit)}
        scaled: Loss = replace(loss, unit=unit, **rounding)
        return scaled
