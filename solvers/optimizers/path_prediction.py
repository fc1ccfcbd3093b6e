"""The next solution of a path over C, predicted by the sample of an objective.

The sample's loss differs from that of all documents; at a solution the difference of their gradients, the shift, is
known. With the shift added, the sample's objective has the same gradient there, and where its minimum moves to when C
rises is close to where that of all documents moves (Shamir, Srebro & Zhang 2014, "Communication-efficient distributed
optimization using an approximate Newton-type method"). The shift changes slowly with C: it is continued linearly in
log C.
"""

from __future__ import annotations

import math

import numpy as np

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.optimizers.coarse_to_fine import Descent
from ranktune.solvers.optimizers.hinge_objective import HingeObjective
from ranktune.solvers.optimizers.newton import Point, minimise

TOLERANCE = 0.3
"""How far the sample's gradient is reduced, as a part of the tolerance of the solution."""
MAX_ITERATIONS = 20


class SamplePrediction:
    """Predicts solutions of descent, which has a sample, to a tolerance of the gradient."""

    def __init__(self, descent: Descent, tolerance: float) -> None:
        self._descent, self._tolerance = descent, tolerance
        self._before: tuple[float, Floats] | None = None

    def at(self, C: float, weights: Floats, gradient: Floats, known: float) -> Floats:
        """Return weights for C, to which descent is set, from a solution for known C and the loss's gradient there."""
        descent = self._descent
        assert descent.part is not None
        part = descent.part()
        loss, own = part.loss_and_gradient(weights)
        shift = gradient - own
        before, self._before = self._before, (math.log(known), shift)
        if before is not None:
            shift = shift + (shift - before[1]) * (math.log(C / known) / (math.log(known) - before[0]))
        value = 0.5 * float(weights @ weights) + C * (loss + float(shift @ weights))
        found = start = Point(weights, value, weights + C * (own + shift))
        for point, _ in minimise(
            _Shifted(part, shift),
            start,
            descent.preconditioner,
            reference=descent.reference,
            tolerance=TOLERANCE * self._tolerance,
            max_iterations=MAX_ITERATIONS,
        ):
            found = point
        return found.weights


class _Shifted:
    """An objective with C shift'w added."""

    def __init__(self, objective: HingeObjective, shift: Floats) -> None:
        self._objective, self._tilt = objective, objective.C * shift

    def value_and_gradient(self, weights: Floats, image: Floats | None = None) -> tuple[float, Floats]:
        value, gradient = self._objective.value_and_gradient(weights, image)
        return value + float(self._tilt @ weights), np.add(gradient, self._tilt)

    def product_and_image(self, direction: Floats) -> tuple[Floats, Floats | None]:
        return self._objective.product_and_image(direction)
