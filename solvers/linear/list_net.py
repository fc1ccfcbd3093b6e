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

    Minimises ``mean over queries of -sum_i p_i log softmax(s)_i + l1 |w| + l2 / 2 |w|^2``,
    ``p = softmax(gain / temperature)``,

    which is convex, by L-BFGS, or OWL-QN if l1 > 0; the paper has gradient steps and no penalty. Queries of one grade
    do not count. Cost: two passes over the features an iteration.

    Parameters
    ----------
    gain : {"linear", "exp2"}, default="linear"
        The gain of a grade: the grade itself, or 2^grade - 1; for any grades.
    temperature : float, default=0.3
        Divides the gains before the softmax; near 0 only the best documents of a query count.
    l1, l2 : float, default=0.01, 0.1
        Strengths of ``sum |w|`` and of ``1/2 sum w^2``; l1 > 0 makes weights exactly zero.
    scaling : {"standard", "minmax", "none"}, default="standard"
        As if features were divided by their standard deviation about the means of the queries, by their largest range
        within a query, or not at all.
    tol : float, default=0.0001
        Stop when the gradient's norm is at most tol times its norm at zero weights.
    max_iterations : int, default=500
        Iterations at most; reaching them warns (RankTuneWarning) and keeps the best weights.

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
    Cao, Qin, Liu, Tsai & Li 2007, "Learning to Rank: From Pairwise Approach to Listwise Approach", ICML.

    Examples
    --------
    >>> from ranktune.solvers import ListNet
    >>> X = [[0.9, 0.1], [0.2, 0.8], [0.7, 0.3], [0.1, 0.6]]
    >>> ListNet().fit(X, [1, 0, 1, 0], qid=[1, 1, 2, 2]).coef_.round(2)
    array([ 2.41, -1.91])
    """

    space: ClassVar[tuple[Parameter, ...]] = (
        Choice("gain", ("linear", "exp2")),
        Float("temperature", 0.1, 10.0, log=True),
        Float("l1", 1e-6, 1e-1, log=True),
        Float("l2", 1e-5, 1.0, log=True),
        Choice("scaling", ("standard", "minmax")),
    )
    # Not l1: weights become zero and nonzero along it, the curvature of the last steps misleads, and the cost doubles.
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
