"""What tests ask of a RankObjective: values at zero, the Hessian whole or times a vector, and its minimum."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from ranktune.solvers.base.ranker import Step
from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.optimizers.newton import Point
from ranktune.solvers.optimizers.rank_svm.coarse_to_fine import Descent
from ranktune.solvers.optimizers.rank_svm.curvature import regularised
from ranktune.solvers.optimizers.rank_svm.pairwise_objective import RankObjective


def at_zero(objective: RankObjective) -> tuple[float, Floats]:
    loss, gradient = objective.loss_at_zero(objective.executor)
    return objective.C * loss, objective.C * gradient


def hessian(objective: RankObjective) -> Floats:
    return regularised(objective.loss_hessian(), objective.C)


def hessian_product(objective: RankObjective, direction: Floats) -> Floats:
    return objective.product_and_image(direction)[0]


def solve(
    objective: RankObjective, *, tolerance: float, max_iterations: int, weights: Floats | None = None
) -> Iterator[tuple[Point, Step]]:
    descent = Descent(objective)
    point = descent.start() if weights is None else descent.resume(weights)
    return descent.steps(point, tolerance=tolerance, max_iterations=max_iterations)


def pairs_of(X: Any, y: Any, qid: Any) -> Any:
    """Differences better - worse of all pairs."""
    i, j = np.nonzero((qid[:, None] == qid) & (y[:, None] > y))
    return X[i] - X[j]
