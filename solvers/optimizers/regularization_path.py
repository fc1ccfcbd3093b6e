"""RankSVM's solutions for many C, and for many folds, each from its neighbours'.

The loss and its curvature do not depend on C, so what is known at one C predicts the next one without a look at the
data: H(C) = I + C K, and the gradient at w is w + C G(w). Solutions of different folds share most documents, so from
one C to the next they move nearly alike. Every point still fulfils the rule of a fit from nothing.

Cs (n_C,) rising     coefs (n_C, n_features), for the raw features
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ranktune.solvers.base.ranker import Step
from ranktune.solvers.core.arrays import Floats, Ints
from ranktune.solvers.core.checks import check_positive
from ranktune.solvers.core.errors import ParameterError
from ranktune.solvers.optimizers import smoothed_hinge
from ranktune.solvers.optimizers.coarse_to_fine import Descent
from ranktune.solvers.optimizers.newton import Point


@dataclass(frozen=True)
class Solution:
    """Where a search stands: weights (for the scaled features), f and g, its record, products with H in that step."""

    weights: Floats
    value: float
    gradient: Floats
    step: Step
    products: int = 0


@dataclass(frozen=True, eq=False)
class RankPath:
    """The solutions along Cs; at(k) is the k-th as a fitted ranker.

    Cs, objectives, iterations, converged: (n_C,); coefs (n_C, n_features).
    """

    Cs: Floats
    coefs: Floats
    objectives: Floats
    iterations: Ints
    converged: NDArray[np.bool_]
    template: Any

    def at(self, k: int) -> Any:
        """Return the ranker for Cs[k], as if fitted with it."""
        ranker = type(self.template)(**{**self.template.get_params(), "C": float(self.Cs[k])})
        ranker.n_features_in_ = self.coefs.shape[1]
        if hasattr(self.template, "feature_names_in_"):
            ranker.feature_names_in_ = self.template.feature_names_in_
        ranker.coef_ = self.coefs[k].copy()
        ranker.objective_ = float(self.objectives[k])
        ranker.n_iter_, ranker.converged_ = int(self.iterations[k]), bool(self.converged[k])
        return ranker

    @property
    def models(self) -> list[Any]:
        """The fitted rankers, in the order of Cs."""
        return [self.at(k) for k in range(len(self.Cs))]


@dataclass(frozen=True, eq=False)
class CrossValidatedPath:
    """A path for each fold, and the scores of its validation documents.

    scores[f] is (n_C, documents of the f-th validation part), in the order of the queries as the plan names them.
    """

    paths: tuple[RankPath, ...]
    scores: tuple[Floats, ...]


def check_strengths(Cs: Any) -> Floats:
    """Return Cs as an array; raise ParameterError unless they are positive and rise."""
    values = np.atleast_1d(np.asarray(Cs, dtype=np.float64))
    if values.ndim != 1 or len(values) == 0:
        raise ParameterError(f"Cs has shape {values.shape}: give a list of at least one C.")
    for value in values:
        check_positive("Cs: C", float(value))
    if (np.diff(values) <= 0.0).any():
        raise ParameterError("Cs must rise, each above the one before. Sort them and leave out repetitions.")
    return values


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
        self.last: Solution | None = None
        self._descent, self._tolerance, self._max_iterations = descent, tolerance, max_iterations
        self._C = 0.0

    def to(self, C: float, moved: Floats | None = None) -> Solution:
        """Return the solution for C.

        moved says how far a similar objective's solution has moved since the last C, or at the first C where it is.
        """
        self._descent.set_strength(C)
        products, found = 0, None
        for found in search(
            self._descent, self._start(C, moved), tolerance=self._tolerance, max_iterations=self._max_iterations
        ):
            products += found.products
        assert found is not None  # a search reports where it starts
        self.last, self._C = found, C
        if products > 0 or found.step.iteration > 2:  # the matrix is too old
            self._descent.renew(found.weights)
        return found

    def _start(self, C: float, moved: Floats | None) -> Point:
        descent, objective = self._descent, self._descent.objective
        if self.last is None:
            return descent.start() if moved is None else descent.resume(moved)
        weights = self.last.weights
        if objective.smoothing is not None:
            return descent.resume(weights if moved is None else weights + moved)
        loss = (self.last.value - 0.5 * float(weights @ weights)) / self._C
        unmoved = Point(
            weights,
            0.5 * float(weights @ weights) + C * loss,
            weights + (C / self._C) * (self.last.gradient - weights),
        )
        if moved is None:
            moved = -descent.preconditioner.solver(unmoved)(unmoved.gradient)
        point = Point(weights + moved, *objective.value_and_gradient(weights + moved))
        if point.value <= unmoved.value:
            return point
        return Point(weights, *objective.value_and_gradient(weights))


def follow(followers: Sequence[Follower], Cs: Floats) -> Iterator[list[Solution]]:
    """Yield the solutions of all followers for one C after the other; the first leads, the others move as it does."""
    leader, *others = followers
    for C in Cs:
        before = None if leader.last is None else leader.last.weights
        ahead = leader.to(float(C))
        moved = ahead.weights if before is None else ahead.weights - before
        yield [ahead, *(follower.to(float(C), moved) for follower in others)]
