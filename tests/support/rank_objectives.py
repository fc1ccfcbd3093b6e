"""What tests ask of a RankObjective: values at zero, the Hessian whole or times a vector, and its minimum."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from ranktune.solvers.base.ranker import Step
from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.optimizers.newton import NewtonPoint
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
) -> Iterator[tuple[NewtonPoint, Step]]:
    descent = Descent(objective)
    point = descent.start() if weights is None else descent.resume(weights)
    return descent.steps(point, tolerance=tolerance, max_iterations=max_iterations)


def pairs_of(X: Any, y: Any, qid: Any) -> Any:
    """Differences better - worse of all pairs."""
    i, j = np.nonzero((qid[:, None] == qid) & (y[:, None] > y))
    return X[i] - X[j]


def noisy(seed: int = 0, n_queries: int = 30, length: int = 25, n_features: int = 6, n_grades: int = 4) -> Any:
    """X, y, qid with grades that follow a linear score and noise."""
    generator = np.random.default_rng(seed)
    X = generator.random((n_queries * length, n_features))
    score = X @ np.linspace(-2, 2, n_features) + 0.5 * generator.normal(size=len(X))
    y = np.digitize(score, np.quantile(score, np.arange(1, n_grades) / n_grades)).astype(float)
    return X, y, np.repeat(np.arange(n_queries), length)
