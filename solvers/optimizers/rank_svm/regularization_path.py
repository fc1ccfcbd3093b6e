"""RankSVM's solutions for one C after the other, each from the one before; the hinge is smoothed less and less.

The loss and its curvature do not depend on C, so a solution at one C predicts the next one without a pass over the
data: H(C) = I + C K, and the gradient at w is w + C G(w). Where there is a sample, it predicts more exactly.

The hinge (L1 loss) is smoothed until a duality gap is small enough:

    P(w) = 1/2 w'w + C sum over pairs of a_q max(0, 1 - d)           the primal, d the pair's difference in score
    D(alpha) = sum of alpha - 1/2 |sum of alpha (x_i - x_j)|^2       its dual, 0 <= alpha <= C a_q for each pair

With the hinge smoothed by u (notation: pairwise_objective) alpha = -C a_q h'(d) is feasible at ANY w, and both sums
over pairs are counts and sums of scores: sum of alpha = C (hinge of margin 1 - hinge of margin 1 - u) / u, and the
vector is w - g. So every evaluation of the smoothed objective brings a bound from below, P >= D, for nothing:

    P - D = |g|^2 / 2 + what smoothing costs, at most C a_q u / 4 for each pair with 1 - u < d < 1, else nothing

Few pairs lie in that band, so u need not be small: 0.1 or 0.01 as a rule, and Newton's method takes a few steps, each a
few passes over X. Cutting planes (TreeRankSVM, SVMrank) take one pass a plane. On 24,548 documents of 200 queries, to a
gap of 1e-3, C = 0.001: 10 passes against 112 of a one-slack bundle; C = 0.1: 23, where the bundle still had a gap of
3 % after 700.

Sources: Joachims 2006, "Training linear SVMs in linear time"; Airola et al. 2011, "Training linear ranking SVMs in
linearithmic time", Pattern Recognition Letters 32 (the loss and its cutting-plane method).
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ranktune.solvers.base.ranker import Step
from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.optimizers.newton import MAX_STEPS_KEPT, NewtonPoint, Secant, minimise
from ranktune.solvers.optimizers.rank_svm.coarse_to_fine import Descent
from ranktune.solvers.optimizers.rank_svm.hinge_objective import HingeObjective

PREDICTION = 0.3
"""How far the sample's gradient is reduced, as a part of the tolerance of the solution."""
MAX_PREDICTION_STEPS = 20


@dataclass(frozen=True)
class Solution:
    """A step of a search: weights (for the scaled features), value, gradient, and products with H in that step."""

    weights: Floats
    value: float
    gradient: Floats
    step: Step
    products: int = 0


def search(
    descent: Descent, point: NewtonPoint, *, tolerance: float, max_iterations: int, secant: Secant | None = None
) -> Iterator[Solution]:
    """Yield solutions of descent's objective from point on, the last one fulfilling tolerance if that was possible.

    tolerance is of the gradient (part of that at zero) for the squared hinge, of the duality gap for the hinge.
    """
    if descent.objective.smoothing is None:
        for at, step in descent.steps(point, tolerance=tolerance, max_iterations=max_iterations, secant=secant):
            yield Solution(at.weights, at.value, at.gradient, step, at.products)
    else:
        for best, step in descend(descent, point, tolerance=tolerance, max_iterations=max_iterations):
            yield Solution(best.weights, best.primal, np.zeros_like(best.weights), step)


class Follower:
    """One objective followed along rising C.

    What the steps at one C showed of K, as pairs of a step and the change of the loss's gradient, corrects the
    preconditioner at the next one. Where C hardly matters any more, a solution is that of the next C too.
    """

    def __init__(self, descent: Descent, *, tolerance: float, max_iterations: int) -> None:
        self._descent, self._tolerance, self._max_iterations = descent, tolerance, max_iterations
        self._last: Solution | None = None
        self._C = 0.0
        self._prediction = SamplePrediction(descent, tolerance) if descent.is_sampled else None
        self._pairs: deque[tuple[Floats, Floats]] = deque(maxlen=MAX_STEPS_KEPT)

    def to(self, C: float) -> Solution:
        """Return the solution for C."""
        self._descent.set_strength(C)
        products, solution = 0, self._last
        before, before_C = self._last, self._C
        secant = Secant()
        secant.start_anew((step, step + C * change) for step, change in self._pairs)
        for solution in search(
            self._descent,
            self._start(C, secant),
            tolerance=self._tolerance,
            max_iterations=self._max_iterations,
            secant=secant,
        ):
            products += solution.products
            if before is not None:
                self._note(before, before_C, solution, C)
            before, before_C = solution, C
        assert solution is not None  # a search reports where it starts
        self._last, self._C = solution, C
        if products > 0 or solution.step.iteration > 2:  # the preconditioner is too old
            self._descent.renew(solution.weights)
        return solution

    def _note(self, before: Solution, before_C: float, after: Solution, C: float) -> None:
        step = after.weights - before.weights
        if step.any():
            change = (after.gradient - after.weights) / C - (before.gradient - before.weights) / before_C
            self._pairs.append((step, change))

    def _start(self, C: float, secant: Secant) -> NewtonPoint:
        descent, objective = self._descent, self._descent.objective
        if self._last is None:
            return descent.start()
        weights = self._last.weights
        if objective.smoothing is not None:
            return descent.resume(weights)
        loss = (self._last.value - 0.5 * float(weights @ weights)) / self._C
        unmoved = NewtonPoint(
            weights,
            0.5 * float(weights @ weights) + C * loss,
            weights + (C / self._C) * (self._last.gradient - weights),
        )
        if float(np.linalg.norm(unmoved.gradient)) <= self._tolerance * descent.reference:
            return unmoved
        if self._prediction is None:
            predicted = weights - secant.solve(unmoved.gradient, descent.preconditioner.solver(unmoved))
        else:
            predicted = self._prediction.at(C, weights, (self._last.gradient - weights) / self._C, self._C)
        point = NewtonPoint(predicted, *objective.value_and_gradient(predicted))
        if point.value <= unmoved.value:
            return point
        return NewtonPoint(weights, *objective.value_and_gradient(weights))


class SamplePrediction:
    """Predicts solutions of descent, which has a sample, to a tolerance of the gradient.

    The sample's loss differs from that of all documents; at a solution the difference of their gradients, the shift, is
    known. With the shift added, the sample's objective has the same gradient there, and where its minimum moves to when
    C rises is close to where that of all documents moves. The shift changes slowly with C: it is continued linearly in
    log C. Source: Shamir, Srebro & Zhang 2014, "Communication-efficient distributed optimization using an approximate
    Newton-type method".
    """

    def __init__(self, descent: Descent, tolerance: float) -> None:
        self._descent, self._tolerance = descent, tolerance
        self._before: tuple[float, Floats] | None = None

    def at(self, C: float, weights: Floats, gradient: Floats, last_C: float) -> Floats:
        """Return weights for C, to which descent is set, from a solution for last_C and the loss's gradient there."""
        descent = self._descent
        assert descent.sample is not None
        sample = descent.sample()
        loss, of_sample = sample.loss_and_gradient(weights)
        shift = gradient - of_sample
        before, self._before = self._before, (math.log(last_C), shift)
        if before is not None:
            shift = shift + (shift - before[1]) * (math.log(C / last_C) / (math.log(last_C) - before[0]))
        value = 0.5 * float(weights @ weights) + C * (loss + float(shift @ weights))
        solution = start = NewtonPoint(weights, value, weights + C * (of_sample + shift))
        for point, _ in minimise(
            _Shifted(sample, shift),
            start,
            descent.preconditioner,
            reference=descent.reference,
            tolerance=PREDICTION * self._tolerance,
            max_iterations=MAX_PREDICTION_STEPS,
        ):
            solution = point
        return solution.weights


class _Shifted:
    """An objective with C shift'w added."""

    def __init__(self, objective: HingeObjective, shift: Floats) -> None:
        self._objective, self._tilt = objective, objective.C * shift

    def value_and_gradient(self, weights: Floats, image: Floats | None = None) -> tuple[float, Floats]:
        value, gradient = self._objective.value_and_gradient(weights, image)
        return value + float(self._tilt @ weights), np.add(gradient, self._tilt)

    def product_and_image(self, direction: Floats) -> tuple[Floats, Floats | None]:
        return self._objective.product_and_image(direction)


FIRST_SMOOTHING = 0.5
"""Large, because the start is far from the optimum."""

MIN_SMOOTHING = 1e-9
"""Below this, sums in float64 do not resolve the difference of the two margins."""


@dataclass(frozen=True)
class Bounds:
    """The best so far: weights and their P, and the greatest D. The optimum lies between dual and primal."""

    weights: Floats
    primal: float
    dual: float

    @property
    def gap(self) -> float:
        """(P - D) / P, at least 0."""
        return max(self.primal - self.dual, 0.0) / self.primal if self.primal > 0.0 else 0.0


def bounds_at(objective: HingeObjective, point: NewtonPoint) -> tuple[float, float]:
    """Return P and D at point, which objective evaluated last. Cost: none."""
    assert objective.smoothing is not None
    hinge, beyond = objective.hinges
    primal = 0.5 * float(point.weights @ point.weights) + objective.C * hinge
    vector = point.weights - point.gradient
    dual = objective.C * (hinge - beyond) / objective.smoothing - 0.5 * float(vector @ vector)
    return float(primal), float(dual)


def descend(
    descent: Descent, point: NewtonPoint, *, tolerance: float, max_iterations: int
) -> Iterator[tuple[Bounds, Step]]:
    """Yield bounds and records from point on, until the relative gap is at most tolerance.

    The record's objective is the best P so far, its violation the gap. descent's objective must have a smoothing.
    """
    objective = descent.objective
    assert objective.smoothing is not None
    best = Bounds(point.weights, np.inf, -np.inf)
    iteration = 0
    while True:
        left = max_iterations - iteration
        for number, (at, _) in enumerate(descent.steps(point, tolerance=1e-15, max_iterations=left)):
            primal, dual = bounds_at(objective, at)
            better = primal < best.primal
            best = Bounds(at.weights if better else best.weights, min(primal, best.primal), max(dual, best.dual))
            iteration += number > 0
            yield best, Step(iteration, best.primal, best.gap)
            if best.gap <= tolerance or iteration >= max_iterations:
                return
            unsolved = 0.5 * float(at.gradient @ at.gradient)
            smoothing_gap = primal - dual - unsolved
            if unsolved <= 0.3 * smoothing_gap:
                break
        if objective.smoothing <= MIN_SMOOTHING:
            return
        wanted = 0.5 * tolerance * best.primal / max(smoothing_gap, 1e-300)
        set_smoothing(descent, max(objective.smoothing * min(max(wanted**0.5, 0.03), 0.5), MIN_SMOOTHING))
        point = descent.resume(at.weights)


def set_smoothing(descent: Descent, smoothing: float) -> None:
    """Make smoothing that of the objective and of the sample that stands for it."""
    descent.objective.smoothing = smoothing
    if descent.sample is not None:
        descent.sample().smoothing = smoothing
    descent.preconditioner.forget()
