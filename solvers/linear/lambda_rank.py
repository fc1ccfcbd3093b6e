"""LambdaRank: a linear model fitted by full gradient steps, with pairs weighted by their change of NDCG."""

from __future__ import annotations

from typing import ClassVar

from ranktune.solvers.core.checks import check_count, check_not_negative
from ranktune.solvers.core.space import Choice, Float, Int, Parameter
from ranktune.solvers.linear.composition import BatchRanker, Parts
from ranktune.solvers.losses.pair_weights import DeltaNDCG
from ranktune.solvers.losses.pairwise import PairwiseLogistic
from ranktune.solvers.losses.penalties import ElasticNet
from ranktune.solvers.optimizers.batch import GradientSteps

TOLERANCE = 1e-9
"""Relative gradient at which steps end: separable data without a penalty reach it."""


class LambdaRank(BatchRanker):
    """Linear ranking by the logistic loss of pairs, weighted by the change of NDCG@at if the two swap places.

    The weights of the pairs follow the current ranking, so the steps descend no single function: there is no line
    search, the number of steps is fixed, and the rates fall as AdaGrad's do. The loss of a query is the weighted mean
    over its pairs. Among equal scores the lower grade stands first, then the order given: at the first step, with all
    scores 0, that order decides which documents of a grade are among the first. Cost of a step: two passes over the
    features and at log-sums a document.

    Parameters
    ----------
    at : int or None, default=5
        Cutoff of NDCG: pairs without a document among the first at ranks do not count; None: all ranks.
    gain : {"auto", "exp2", "linear"}, default="auto"
        The gain of a grade: "exp2" 2^grade - 1, for whole grades from 0 to 30; "linear" the grade, at least 0; "auto"
        is "exp2" if the grades allow it, else the grade less the lowest of all.
    l1, l2 : float, default=0.01, 0.1
        Strengths of ``sum |w|`` and of ``1/2 sum w^2``; l1 > 0 makes weights exactly zero.
    eta0 : float, default=0.1
        Rate of the first step, whatever the size of the gradient, by AdaGrad; positive.
    iterations : int, default=100
        Number of full gradient steps.
    scaling : {"standard", "minmax", "none"}, default="standard"
        As if features were divided by their standard deviation about the means of the queries, by their largest range
        within a query, or not at all.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        The weights of the raw features.
    objective_ : float
        The loss and the penalty at ``coef_``, the weights of pairs held.
    n_iter_ : int
        Steps done.

    References
    ----------
    Burges, Ragno & Le 2006, "Learning to Rank with Nonsmooth Cost Functions", NIPS.

    Examples
    --------
    >>> from ranktune.solvers import LambdaRank
    >>> X = [[0.9, 0.1], [0.2, 0.8], [0.7, 0.3], [0.1, 0.6]]
    >>> LambdaRank().fit(X, [1, 0, 1, 0], qid=[1, 1, 2, 2]).coef_.round(1)
    array([ 2.4, -2.6])
    """

    space: ClassVar[tuple[Parameter, ...]] = (
        Int("at", 1, 50, log=True),
        Float("l1", 1e-6, 1e-1, log=True),
        Float("l2", 1e-5, 1.0, log=True),
        Float("eta0", 1e-2, 1.0, log=True),
        Int("iterations", 10, 300, log=True),
        Choice("scaling", ("standard", "minmax")),
    )
    path_parameter: ClassVar[str | None] = "iterations"

    def __init__(
        self,
        at: int | None = 5,
        *,
        gain: str = "auto",
        l1: float = 0.01,
        l2: float = 0.1,
        eta0: float = 0.1,
        iterations: int = 100,
        scaling: str = "standard",
    ) -> None:
        self.at = at
        self.gain = gain
        self.l1 = l1
        self.l2 = l2
        self.eta0 = eta0
        self.iterations = iterations
        self.scaling = scaling

    def _parts(self) -> Parts:
        check_not_negative("l1", self.l1)
        check_not_negative("l2", self.l2)
        check_count("iterations", self.iterations)
        loss = PairwiseLogistic(DeltaNDCG(self.at, self.gain))
        optimizer = GradientSteps(tol=TOLERANCE, max_iterations=self.iterations, eta0=self.eta0)
        return Parts(loss, ElasticNet(self.l1, self.l2), optimizer)
