"""The accelerated proximal gradient method (FISTA), with a line search and restarts.

    w_new = S(y - g(y) / L, l1 / L),   y = w_new + (t - 1) / t_new (w_new - w),   t_new = (1 + sqrt(1 + 4 t^2)) / 2

S(a, b) = sign(a) max(0, |a| - b). L bounds the curvature of the smooth part f: doubled until the step lies below the
parabola, and lowered a little before each. Where a step ascends, the momentum misleads: t begins again at 1. A step
without momentum that does not descend ends the search.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ranktune.solvers.core.parameters import part
from ranktune.solvers.data.query_columns import within
from ranktune.solvers.optimizers.batch import Batch, ScaledObjective, SearchPoint, Trail

LOWERED = 0.9
"""The part of L that is tried first at the next step."""

ROUNDING = 1e-12
"""Share of the value by which a step may ascend: in its last digits."""


@part
class FISTA(Batch):
    """The accelerated proximal gradient method, for smooth losses and any penalty.

    {parameters}

    References
    ----------
    Beck & Teboulle 2009, "A Fast Iterative Shrinkage-Thresholding Algorithm for Linear Inverse Problems", SIAM J.
    Imaging Sci. 2; O'Donoghue & Candes 2015, "Adaptive Restart for Accelerated Gradient Schemes", Found. Comput. Math.

    Examples
    --------
    >>> from ranktune.solvers import FISTA, L1, Ranker, SoftmaxCrossEntropy
    >>> ranker = Ranker(SoftmaxCrossEntropy(), None, L1(0.1), FISTA())
    >>> low, high = ranker.fit([[0.0], [1.0], [3.0]], [0, 1, 2]).predict([[1.0], [2.0]])
    >>> bool(low < high)
    True
    """

    def search(self, trail: Trail) -> Iterator[SearchPoint]:
        """Yield points from that of trail on."""
        point, objective, l1 = trail.point, trail.objective, trail.l1
        curvature = max(float(np.linalg.norm(point.gradient)), 1e-300)  # a first step of length one
        ahead, t = _smooth(point, l1), 1.0
        while True:
            yield point
            result = _step(objective, ahead, curvature, l1)
            if result is not None and result[0].value > point.value + ROUNDING * abs(point.value) and t > 1.0:
                ahead, t = _smooth(point, l1), 1.0
                result = _step(objective, ahead, curvature, l1)
            if result is None or result[0].value > point.value + ROUNDING * abs(point.value):
                return
            moved, curvature = result
            curvature *= LOWERED
            following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * t * t))
            weights = moved.weights + (t - 1.0) / following * (moved.weights - point.weights)
            t, point = following, moved
            ahead = SearchPoint(weights, *objective.value_and_gradient(weights)) if t > 2.0 else _smooth(point, l1)
            if not np.isfinite(ahead.value):
                ahead, t = _smooth(point, l1), 1.0


def _smooth(point: SearchPoint, l1: float) -> SearchPoint:
    """Return point with the value of the smooth part alone."""
    return SearchPoint(point.weights, point.value - l1 * float(np.abs(point.weights).sum()), point.gradient)


def _step(
    objective: ScaledObjective, ahead: SearchPoint, curvature: float, l1: float
) -> tuple[SearchPoint, float] | None:
    """Return the proximal step from ahead, whose value is of f, and the L that it took; None where there is none."""
    for _ in range(100):
        target = ahead.weights - ahead.gradient / curvature
        weights = within(np.sign(target) * np.maximum(np.abs(target) - l1 / curvature, 0.0), objective.signs)
        change = weights - ahead.weights
        value, gradient = objective.value_and_gradient(weights)
        bound = ahead.value + float(ahead.gradient @ change) + 0.5 * curvature * float(change @ change)
        if value <= bound + ROUNDING * abs(ahead.value):
            return SearchPoint(weights, value + l1 * float(np.abs(weights).sum()), gradient), curvature
        curvature *= 2.0
    return None
