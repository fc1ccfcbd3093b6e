"""RankSVM: a linear model that orders the documents of each query, by a squared hinge over all pairs.

    minimise  1/2 w'w + C sum over q of a_q sum over pairs (i, j) of q, y_i > y_j, of max(0, 1 - (s_i - s_j))^2

s = X v, v = M w the weights on the raw features (coef_), M what scaling says. No pair is ever stored: the cost of one
gradient is a pass over X and n log n for each query's n documents, or n log n log k with more than 7 grades.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from ranktune.solvers.errors import ParameterError, RankTuneWarning, nearest
from ranktune.solvers.queries import Queries
from ranktune.solvers.rank_objective import RankObjective
from ranktune.solvers.ranker import LinearRanker, Step
from ranktune.solvers.sampling import solve
from ranktune.solvers.scaling import check_scaling, factors
from ranktune.solvers.space import Choice, Float, Parameter

AVERAGES = ("none", "pairs", "queries")


class RankSVM(LinearRanker):
    """Linear RankSVM by truncated Newton with order statistics.

    C               weight of the loss against 1/2 w'w; positive
    scaling         "none": the features as they are; "minmax": as if divided by their range; "standard": as if divided
                    by their standard deviation. coef_ is for the raw features in any case; constant ones get 0
    average         "none": every pair counts 1 (the paper's sum: the right C falls as the data grows); "pairs": all
                    pairs count the same, those of an average query together 1; "queries": those of every query
                    together 1
    tol             stop when the gradient's norm is at most tol times its norm at zero weights
    max_iterations  steps at most; reaching them warns (RankTuneWarning) and keeps the best weights

    Fitted: coef_ (n_features,), objective_ (what is minimised, at coef_), n_iter_, converged_.
    Source: Lee & Lin 2014, "Large-scale linear RankSVM", Neural Computation 26(4).
    """

    space: ClassVar[tuple[Parameter, ...]] = (
        Float("C", 1e-4, 1e2, default=0.01, log=True),
        Choice("scaling", ("standard", "minmax"), default="standard"),
        Choice("average", ("pairs", "queries"), default="pairs"),
    )

    def __init__(
        self,
        C: float = 1.0,
        *,
        scaling: str = "none",
        average: str = "none",
        tol: float = 1e-3,
        max_iterations: int = 100,
    ) -> None:
        self.C = C
        self.scaling = scaling
        self.average = average
        self.tol = tol
        self.max_iterations = max_iterations

    def _check_parameters(self) -> None:
        for name in ("C", "tol"):
            value = getattr(self, name)
            if not (isinstance(value, int | float | np.number) and 0.0 < value < np.inf):
                raise ParameterError(f"{name}={value!r}: it must be a positive number.")
        if not (isinstance(self.max_iterations, int | np.integer) and self.max_iterations >= 1):
            raise ParameterError(f"max_iterations={self.max_iterations!r}: it must be a whole number of at least 1.")
        check_scaling(self.scaling)
        if self.average not in AVERAGES:
            raise ParameterError(f"average={self.average!r} is unknown. {nearest(str(self.average), AVERAGES)}")

    def _steps(self, queries: Queries) -> Iterator[Step]:
        multiplier = None if self.scaling == "none" else factors(queries.features, self.scaling)
        objective = RankObjective(queries, float(self.C), multiplier=multiplier)
        if self.average == "pairs":
            objective.query_weights *= np.count_nonzero(objective.pairs) / objective.pairs.sum()
        elif self.average == "queries":
            objective.query_weights = 1.0 / np.maximum(objective.pairs, 1.0)
        for point, step in solve(objective, tolerance=float(self.tol), max_iterations=int(self.max_iterations)):
            self.coef_ = point.weights if multiplier is None else point.weights * multiplier
            self.objective_, self.n_iter_ = point.value, step.iteration
            self.converged_ = step.violation <= self.tol
            yield step
        if not self.converged_:
            warnings.warn(
                f"RankSVM stopped after {self.n_iter_} steps at a gradient of {step.violation:.2g} of that at zero, "
                f"above tol={self.tol:g}. The best weights are kept; raise max_iterations or tol, or scale features.",
                RankTuneWarning,
                stacklevel=2,
            )
