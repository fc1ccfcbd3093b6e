"""RankSVM: a linear model that minimises the hinge, or the squared hinge, over all pairs of documents of a query.

    minimise  1/2 w'w + C sum over q of a_q sum over pairs (i, j) of q, y_i > y_j, of h(s_i - s_j)

h(d) = max(0, 1 - d)^2 or max(0, 1 - d); s = X v, v = M w the weights on the raw features (coef_), M the scaling.
No pair is ever stored: the cost of one gradient is a pass over X and n log n for each query's n documents.
"""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY
from typing import Annotated, ClassVar

import numpy as np

from ranktune.solvers.base.ranker import Step
from ranktune.solvers.blocks.blocked import Data, better_divided, factors_of
from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.errors import RankTuneWarning
from ranktune.solvers.core.parameters import Param, with_parameters
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.scaling import SCALINGS
from ranktune.solvers.linear.composition import MinimisingRanker
from ranktune.solvers.linear.summed_objective import BlockLoss, hinge_objective
from ranktune.solvers.optimizers.rank_svm.coarse_to_fine import Descent
from ranktune.solvers.optimizers.rank_svm.hinge_objective import HingeObjective
from ranktune.solvers.optimizers.rank_svm.regularization_path import Follower, Solution, search
from ranktune.solvers.optimizers.rank_svm.smoothed_hinge import FIRST_SMOOTHING

PATH_TOLERANCE = 3.0
"""Solutions on a path of C are compared with each other: they are found to so many times tol."""


@with_parameters
class RankSVM(MinimisingRanker):
    """Linear RankSVM by a truncated Newton method with order statistics.

    Minimises ``1/2 w'w + C sum over queries of a_q sum over pairs y_i > y_j of h(s_i - s_j)``,
    ``h(d) = max(0, 1 - d)^2``,

    for the weights w of the scaled features and their scores s. No pair is ever stored. Stored queries of more than two
    million documents are learned from block by block, with memory that does not grow with them.

    {parameters}

    {attributes}

    References
    ----------
    Lee & Lin 2014, "Large-scale linear RankSVM", Neural Computation 26(4).

    Examples
    --------
    >>> from ranktune.solvers import RankSVM
    >>> X = [[0.9, 0.1], [0.2, 0.8], [0.7, 0.3], [0.1, 0.6]]
    >>> ranker = RankSVM(C=1.0).fit(X, [1, 0, 1, 0], qid=[1, 1, 2, 2])
    >>> ranker.coef_.round(2)
    array([ 1.08, -0.83])
    >>> ranker.predict(X).round(2)
    array([ 0.89, -0.45,  0.51, -0.39])
    """

    C: Annotated[float, Param("Weight of the loss against 1/2 w'w; positive.", low=1e-4, high=1e2, log=True)] = 0.01
    _: KW_ONLY
    loss: Annotated[
        str,
        Param(
            '"l2": the squared hinge; "l1": the hinge, smoothed until the duality gap is small.', choices=("l2", "l1")
        ),
    ] = "l2"
    pairs: Annotated[
        str,
        Param(
            '"all" that differ in grade; "adjacent": only of grades next to each other among those of the query.',
            choices=("all", "adjacent"),
        ),
    ] = "all"
    scaling: Annotated[
        str,
        Param(
            "As if features were divided by their standard deviation, by their range, or not at all. Constant features "
            "get 0.",
            choices=SCALINGS,
            searched=("standard", "minmax"),
        ),
    ] = "standard"
    average: Annotated[
        str,
        Param(
            '"none": every pair counts 1, so that the best C falls as the data grow; "pairs": all pairs count the '
            'same, those of an average query together 1; "queries": the pairs of every query together 1.',
            choices=("none", "pairs", "queries"),
            searched=("pairs", "queries"),
        ),
    ] = "pairs"
    tol: Annotated[
        float,
        Param(
            "l2: stop when the gradient's norm is at most tol times its norm at zero weights; l1: when the objective "
            "exceeds its lower bound by at most tol times itself. On a path of C, three times tol."
        ),
    ] = 3e-4
    max_iterations: Annotated[
        int, Param("Steps at most; reaching them warns (RankTuneWarning) and keeps the best weights.")
    ] = 100
    warm_start: Annotated[bool, Param("Start from ``coef_`` of the last fit, if it has as many features.")] = False
    threads: Annotated[int, Param("Threads for passes over X; the result is the same, bit for bit if X is dense.")] = 1

    path_parameter: ClassVar[str | None] = "C"
    path_expensive: ClassVar[bool] = True

    def _data(self, queries: Queries) -> Data:
        return better_divided(queries)

    def _path(self, data: Data, values: Sequence[float | int] | None) -> Iterator[Iterator[Step]]:
        yield self._minimise(self._objective(data))

    def _minimise(self, objective: HingeObjective) -> Iterator[Step]:
        descent = Descent(objective)
        known = self._known(objective.multiplier) if self.warm_start else None
        start = descent.start() if known is None else descent.resume(known)
        for solution in search(descent, start, tolerance=float(self.tol), max_iterations=int(self.max_iterations)):
            self._take_over(solution, objective.multiplier, float(self.tol))
            yield solution.step
        if not self.converged_:
            self._warn(self.n_iter_, solution.step.violation)

    def _objective(self, data: Data) -> HingeObjective:
        return hinge_objective(
            data,
            float(self.C),
            BlockLoss(
                smoothing=None if self.loss == "l2" else FIRST_SMOOTHING,
                adjacent=self.pairs == "adjacent",
                by_query=self.average == "queries",
                threads=int(self.threads),
            ),
            None if self.scaling == "none" else factors_of(data, self.scaling),
            over_pairs=self.average == "pairs",
        )

    def _take_over(self, solution: Solution, multiplier: Floats | None, tolerance: float) -> None:
        """Take over a solution, which has converged where its violation is at most tolerance."""
        self.coef_ = solution.weights if multiplier is None else solution.weights * multiplier
        self.objective_, self.n_iter_ = solution.value, solution.step.iteration
        self.converged_ = solution.step.violation <= tolerance

    def _steps_on_path(self, queries: Queries, values: Sequence[float | int]) -> Iterator[float | int]:
        """Follow rising C, each solution from where the one before leads."""
        objective, tolerance = self._objective(queries), PATH_TOLERANCE * float(self.tol)
        follower = Follower(Descent(objective), tolerance=tolerance, max_iterations=int(self.max_iterations))
        for C in values:
            solution = follower.to(float(C))
            self._take_over(solution, objective.multiplier, tolerance)
            if not self.converged_:
                self._warn(self.n_iter_, solution.step.violation)
            yield C

    def _known(self, multiplier: Floats | None) -> Floats | None:
        """Return the weights of the last fit for the scaled features, or None where they do not fit."""
        coef = getattr(self, "coef_", None)
        if coef is None or len(coef) != self.n_features_in_:
            return None
        if multiplier is None:
            return np.asarray(coef, dtype=np.float64)
        known: Floats = np.divide(coef, multiplier, out=np.zeros_like(coef), where=multiplier != 0.0)
        return known

    def _warn(self, iterations: int, violation: float) -> None:
        what = "a gradient of {:.2g} of that at zero" if self.loss == "l2" else "a relative duality gap of {:.2g}"
        warnings.warn(
            f"RankSVM stopped after {iterations} steps at {what.format(violation)}, "
            f"above tol={self.tol:g}. The best weights are kept; raise max_iterations or tol, or scale features.",
            RankTuneWarning,
            stacklevel=3,
        )
