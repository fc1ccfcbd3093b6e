"""Minimising RankSVM's hinge (L1 loss) by smoothing it less and less, with a duality gap as stopping rule.

    P(w) = 1/2 w'w + C sum over pairs of a_q max(0, 1 - d)           the primal, d the pair's difference in score
    D(alpha) = sum of alpha - 1/2 |sum of alpha (x_i - x_j)|^2       its dual, 0 <= alpha <= C a_q for each pair

With the hinge smoothed by u (notation: rank_objective) alpha = -C a_q h'(d) is feasible at ANY w, and both sums over
pairs are counts and sums of scores: sum of alpha = C (hinge of margin 1 - hinge of margin 1 - u) / u, and the vector is
w - g. So every evaluation of the smoothed objective brings a bound from below, P >= D, for nothing:

    P - D = |g|^2 / 2 + what smoothing costs, at most C a_q u / 4 for each pair with 1 - u < d < 1, else nothing

Few pairs lie in that band, so u need not be small: 0.1 or 0.01 as a rule, and Newton's method takes a few steps, each a
few passes over X. Cutting planes (TreeRankSVM, SVMrank) take one pass a plane. On 24,548 documents of 200 queries, to a
gap of 1e-3, C = 0.001: 10 passes against 112 of a one-slack bundle; C = 0.1: 23, where the bundle still had a gap of
3 % after 700.

Sources: Joachims 2006, "Training linear SVMs in linear time"; Airola et al. 2011, "Training linear ranking SVMs in
linearithmic time", Pattern Recognition Letters 32 (the loss and its cutting-plane method).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ranktune.solvers.base.ranker import Step
from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.optimizers.newton import NewtonPoint
from ranktune.solvers.optimizers.rank_svm.coarse_to_fine import Descent
from ranktune.solvers.optimizers.rank_svm.hinge_objective import HingeObjective

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
    if descent.part is not None:
        descent.part().smoothing = smoothing
    descent.preconditioner.forget()
