"""ListNet: a linear model whose softmax over a query's documents resembles that of the grades."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from ranktune.solvers.core.checks import check_not_negative
from ranktune.solvers.core.space import Choice, Float, Parameter
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.linear.composition import BatchRanker, Parts
from ranktune.solvers.losses.listwise import SoftmaxCrossEntropy
from ranktune.solvers.losses.penalties import L2, ElasticNet, Penalty
from ranktune.solvers.optimizers.batch import LBFGS, OWLQN


class ListNet(BatchRanker):
    """Linear ranking by the cross entropy of softmaxes, the top-one case of ListNet.

    gain            what a grade is worth: "linear" the grade itself, any number; "exp2" 2^grade - 1, for whole grades
                    from 0 to 30
    temperature     what gains are divided by before the softmax; near 0 only the best documents of a query count
    l1, l2          strengths of sum |w| and of 1/2 sum w^2; l1 > 0 makes weights exactly zero
    scaling         "none": the features as they are; "standard": as if divided by their standard deviation about the
                    means of the queries; "minmax": by their largest range within a query. coef_ is for the raw features
    tol             stop when the gradient's norm is at most tol times its norm at zero weights
    max_iterations  steps at most; reaching them warns (RankTuneWarning) and keeps the best weights

    Minimises  mean over queries of -sum_i p_i log softmax(s)_i + l1 |w| + l2 / 2 |w|^2, p = softmax(gain / temperature)

    which is convex, by L-BFGS, or OWL-QN where l1 > 0. Queries of one grade say nothing and do not count. The paper
    takes plain gradient steps and no penalty.
    Fitted: coef_ (n_features,), objective_, n_iter_, converged_. Cost: two passes over the features an iteration.
    Source: Cao, Qin, Liu, Tsai & Li 2007, "Learning to Rank: From Pairwise Approach to Listwise Approach", ICML.
    """

    space: ClassVar[tuple[Parameter, ...]] = (
        Choice("gain", ("linear", "exp2")),
        Float("temperature", 0.1, 10.0, log=True),
        Float("l1", 1e-6, 1e-1, log=True),
        Float("l2", 1e-5, 1.0, log=True),
        Choice("scaling", ("standard", "minmax")),
    )
    # Along l1, weights come and go, and what is known of the curvature misleads: that costs twice as much.
    path_parameter: ClassVar[str | None] = "l2"
    path_increasing: ClassVar[bool] = False
    path_expensive: ClassVar[bool] = True

    def __init__(
        self,
        *,
        gain: str = "linear",
        temperature: float = 0.3,
        l1: float = 0.01,
        l2: float = 0.1,
        scaling: str = "standard",
        tol: float = 1e-4,
        max_iterations: int = 500,
    ) -> None:
        self.gain = gain
        self.temperature = temperature
        self.l1 = l1
        self.l2 = l2
        self.scaling = scaling
        self.tol = tol
        self.max_iterations = max_iterations

    def _parts(self) -> Parts:
        check_not_negative("l1", self.l1)
        check_not_negative("l2", self.l2)
        loss = SoftmaxCrossEntropy(self.gain, self.temperature)
        optimizer = (OWLQN if self.l1 > 0.0 else LBFGS)(self.tol, self.max_iterations)
        return Parts(loss, self._penalty(self.l2), optimizer)

    def _penalty(self, l2: float) -> Penalty:
        return ElasticNet(self.l1, l2) if self.l1 > 0.0 else L2(l2)

    def _steps_on_path(self, queries: Queries, values: Sequence[float | int]) -> Iterator[float | int]:
        """Begin with the strongest penalty; each l2 goes on from where the one before ended."""
        parts = self._parts()
        penalties = [self._penalty(float(l2)) for l2 in values]
        for l2, steps in zip(values, self._path_of(parts, penalties, queries), strict=True):
            for _ in steps:
                pass
            yield l2
