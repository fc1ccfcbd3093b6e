"""RankSVM's solutions for one C after the other, each from the one before.

The loss and its curvature do not depend on C, so a solution at one C predicts the next one without a pass over the
data: H(C) = I + C K, and the gradient at w is w + C G(w). Every solution meets the same tolerance as a fit of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ranktune.solvers.base.ranker import Step
from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.optimizers import smoothed_hinge
from ranktune.solvers.optimizers.coarse_to_fine import Descent
from ranktune.solvers.optimizers.newton import Point


@dataclass(frozen=True)
class Solution:
    """A step of a search: weights (for the scaled features), value, gradient, and products with H in that step."""

    weights: Floats
    value: float
    gradient: Floats
    step: Step
    products: int = 0


def search(descent: Descent, point: Point, *, tolerance: float, max_iterations: int) -> Iterator[Solution]:
    """Yield solutions of descent's objective from point on, the last one fulfilling tolerance if that was possible.

    tolerance is of the gradient (part of that at zero) for the squared hinge, of the duality gap for the hinge.
    """
    if descent.objective.smoothing is None:
        for at, step in descent.steps(point, tolerance=tolerance, max_iterations=max_iterations):
            yield Solution(at.weights, at.value, at.gradient, step, at.products)
    else:
        for best, step in smoothed_hinge.descend(descent, point, tolerance=tolerance, max_iterations=max_iterations):
            yield Solution(best.weights, best.primal, np.zeros_like(best.weights), step)


class Follower:
    """One objective followed along rising C."""

    def __init__(self, descent: Descent, *, tolerance: float, max_iterations: int) -> None:
        self._descent, self._tolerance, self._max_iterations = descent, tolerance, max_iterations
        self._last: Solution | None = None
        self._C = 0.0

    def to(self, C: float) -> Solution:
        """Return the solution for C."""
        self._descent.set_strength(C)
        products, found = 0, None
        for found in search(
            self._descent, self._start(C), tolerance=self._tolerance, max_iterations=self._max_iterations
        ):
            products += found.products
        assert found is not None  # a search reports where it starts
        self._last, self._C = found, C
        if products > 0 or found.step.iteration > 2:  # the preconditioner is too old
            self._descent.renew(found.weights)
        return found

    def _start(self, C: float) -> Point:
        descent, objective = self._descent, self._descent.objective
        if self._last is None:
            return descent.start()
        weights = self._last.weights
        if objective.smoothing is not None:
            return descent.resume(weights)
        loss = (self._last.value - 0.5 * float(weights @ weights)) / self._C
        unmoved = Point(
            weights,
            0.5 * float(weights @ weights) + C * loss,
            weights + (C / self._C) * (self._last.gradient - weights),
        )
        predicted = weights - descent.preconditioner.solver(unmoved)(unmoved.gradient)
        point = Point(predicted, *objective.value_and_gradient(predicted))
        if point.value <= unmoved.value:
            return point
        return Point(weights, *objective.value_and_gradient(weights))
