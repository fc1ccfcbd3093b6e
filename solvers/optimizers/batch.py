"""Optimizers that evaluate all lists at every step: L-BFGS, OWL-QN for L1, and gradient steps with AdaGrad's rates.

    minimise  F(w) = loss(X M w) + l1 |w| + l2 / 2 |w|^2

w  (n_features,) weights on the scaled features   M  diagonal, what each feature is multiplied by   v = M w is the model
f  the smooth part of F: all but l1 |w|           g  its gradient       S(a, b) = sign(a) max(0, |a| - b)

An evaluation of f costs a product with X, one with X', and the loss. Each optimizer starts at w = 0. The violation of a
Step is the norm of the shortest subgradient of F over that at zero. Memory: a few vectors, never a copy of X. A weight
of the loss divides the strengths instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, ClassVar, NamedTuple

import numpy as np

from ranktune.solvers.base.ranker import Step
from ranktune.solvers.core.arrays import Floats, Ints
from ranktune.solvers.core.compiled import compiled, inlined
from ranktune.solvers.core.parameters import Param, Range, part
from ranktune.solvers.data.blocked import Data
from ranktune.solvers.data.query_columns import within
from ranktune.solvers.data.scaling import SCALINGS
from ranktune.solvers.losses.base import Loss
from ranktune.solvers.losses.of_weights import of_weights
from ranktune.solvers.optimizers.base import Needs, Optimizer, Parts, Progress, minimised
from ranktune.solvers.optimizers.one_pass_kernels import DELTA

MAX_ITERATIONS = Param("The largest number of iterations.")


class ScaledObjective:
    """f and its gradient at weights on the scaled features, which keep within the signs of monotone constraints."""

    def __init__(self, loss: Loss, l2: float, data: Data, multiplier: Floats | None) -> None:
        self.loss = of_weights(loss, data)
        self.l2 = l2
        self.signs = data.monotone
        self.multiplier = np.ones(data.n_features) if multiplier is None else multiplier

    def value_and_gradient(self, weights: Floats) -> tuple[float, Floats]:
        """Return f and g. If a step was so long that they are not finite, f is infinite."""
        with np.errstate(over="ignore", invalid="ignore"):
            value, by_weight = self.loss(weights * self.multiplier)
            gradient = self.multiplier * by_weight + self.l2 * weights
            value += 0.5 * self.l2 * float(weights @ weights)
        return (value if np.isfinite(value) and np.isfinite(gradient).all() else np.inf), gradient


class SearchPoint(NamedTuple):
    """A point of a search: w, F(w), and g(w)."""

    weights: Floats
    value: float
    gradient: Floats


class Curvature:
    """The inverse Hessian from the last steps and changes of the gradient: Nocedal & Wright 2006, algorithm 7.4."""

    def __init__(self, memory: int) -> None:
        self.memory = memory
        self._count = 0
        self._steps, self._changes = np.zeros((2, 0, 0))
        self._inner = np.zeros(memory)

    def add(self, step: Floats, change: Floats) -> None:
        """Add a step, in place of the oldest, unless the gradient did not grow along it."""
        inner = float(step @ change)
        if inner > 1e-12 * float(np.linalg.norm(step)) * float(np.linalg.norm(change)):
            if self._count == 0:
                self._steps, self._changes = np.empty((2, self.memory, len(step)))
            at = self._count % self.memory
            self._steps[at], self._changes[at], self._inner[at] = step, change, inner
            self._count += 1

    def shift(self, l2: float) -> None:
        """Change to the Hessian plus l2 times the unit matrix; l2 may be negative."""
        count = min(self._count, self.memory)
        steps, changes = self._steps[:count], self._changes[:count]
        changes += l2 * steps
        self._inner[:count] = (steps * changes).sum(axis=1)
        if (self._inner[:count] <= 0.0).any():  # nothing but rounding is left of one
            self._count = 0

    def solve(self, gradient: Floats) -> Floats:
        """Return an approximation of H^-1 gradient; before the first step, gradient scaled to length one at most."""
        if self._count == 0:
            return gradient / max(float(np.linalg.norm(gradient)), 1.0)
        result = np.array(gradient)
        _two_loops(self._steps, self._changes, self._inner, self._count, result)
        return result


@compiled
def _two_loops(steps: Floats, changes: Floats, inner: Floats, count: int, vector: Floats) -> None:
    """Overwrite vector with the product of it and the inverse Hessian; the newest pair is number count - 1."""
    memory = len(inner)
    oldest, shares = max(count - memory, 0), np.zeros(memory)
    for number in range(count - 1, oldest - 1, -1):
        at = number % memory
        shares[at] = _inner(steps[at], vector) / inner[at]
        for j in range(len(vector)):
            vector[j] -= shares[at] * changes[at, j]
    at = (count - 1) % memory
    scale = inner[at] / _inner(changes[at], changes[at])
    for j in range(len(vector)):
        vector[j] *= scale
    for number in range(oldest, count):
        at = number % memory
        change = shares[at] - _inner(changes[at], vector) / inner[at]
        for j in range(len(vector)):
            vector[j] += change * steps[at, j]


@inlined
def _inner(a: Floats, b: Floats) -> float:
    total = 0.0
    for j in range(len(a)):
        total += a[j] * b[j]
    return total


class Trail:
    """The point and curvature of a search, from which the next one, of other strengths, goes on.

    The effect of strengths is known in closed form: a change of them takes no evaluation.
    """

    curvature: Curvature | None = None

    def __init__(self, objective: ScaledObjective, l1: float) -> None:
        self.objective, self.l1 = objective, l1
        zero = np.zeros_like(objective.multiplier)
        self.point = SearchPoint(zero, *objective.value_and_gradient(zero))
        self.at_zero = self.point.gradient

    @property
    def violation(self) -> float:
        """The norm of the shortest subgradient of F over that at zero."""
        ends = (self.point.weights, self.point.gradient), (np.zeros_like(self.at_zero), self.at_zero)
        norm, reference = (float(np.linalg.norm(shortest(*end, self.l1, self.objective.signs))) for end in ends)
        return norm / max(reference, 1e-300) if norm > 0.0 else 0.0

    def change_strengths(self, l1: float, l2: float) -> None:
        """Keep the weights and change the strengths of the penalty."""
        weights, value, gradient = self.point
        more = l2 - self.objective.l2
        value += (l1 - self.l1) * float(np.abs(weights).sum()) + 0.5 * more * float(weights @ weights)
        self.point = SearchPoint(weights, value, gradient + more * weights)
        if self.curvature is not None:
            self.curvature.shift(more)
        self.l1, self.objective.l2 = l1, l2


@part
class Batch(Optimizer):
    """An optimizer that evaluates all queries at every step; subclasses say how it moves."""

    searched: ClassVar[Mapping[str, Range]] = {"loss": Range(default="softmax")}
    needs: ClassVar[Needs] = Needs(loss=("value_and_gradient",), penalty=("strengths",), scalings=SCALINGS)
    tol: Annotated[
        float, Param("Stop when the shortest subgradient is at most so long, relative to that at zero weights.")
    ] = 1e-4
    max_iterations: Annotated[int, MAX_ITERATIONS] = 500

    def follow(self, path: Sequence[Parts], data: Data) -> Iterator[Iterator[Progress]]:
        """Yield for each of path what is reached after each step; exhaust it before the next one.

        The first starts at zero weights, each further one where the one before ended; decreasing strengths cost least.
        It ends at the optimum to tol, after max_iterations, or where no step descends any more.
        """
        trail: Trail | None = None
        for parts in path:
            l1, l2 = parts.strengths
            if trail is None:
                trail = Trail(ScaledObjective(parts.loss, l2, data, parts.multiplier), l1)
            else:
                trail.change_strengths(l1, l2)
            yield self._steps(trail, parts.loss_weight)

    def _steps(self, trail: Trail, loss_weight: float) -> Iterator[Progress]:
        for iteration, point in enumerate(self.search(trail)):
            trail.point = point
            step = Step(iteration, point.value, trail.violation)
            yield minimised(point.weights * trail.objective.multiplier + 0.0, step, self.tol, loss_weight)
            if step.violation <= self.tol or iteration == self.max_iterations:
                return

    def search(self, trail: Trail) -> Iterator[SearchPoint]:
        """Yield points from that of trail on."""
        raise NotImplementedError


@part
class _QuasiNewton(Batch):
    """A batch optimizer that approximates the inverse Hessian by its last steps."""

    memory: Annotated[int, Param("The number of steps from which the inverse Hessian is approximated.")] = 30


@part
class LBFGS(_QuasiNewton):
    """Limited-memory BFGS, for smooth losses and penalties without L1; orthant-wise under monotone constraints.

    {parameters}

    References
    ----------
    Liu & Nocedal 1989, "On the limited memory BFGS method for large scale optimization", Math. Prog. 45.

    Examples
    --------
    >>> from ranktune.solvers import LBFGS, L2, Ranker, SoftmaxCrossEntropy
    >>> ranker = Ranker(SoftmaxCrossEntropy(), None, L2(0.1), LBFGS())
    >>> low, high = ranker.fit([[0.0], [1.0], [3.0]], [0, 1, 2]).predict([[1.0], [2.0]])
    >>> bool(low < high)
    True
    """

    needs: ClassVar[Needs] = Needs(loss=("value_and_gradient",), penalty=("strengths", "gradient"), scalings=SCALINGS)
    penalties: ClassVar[tuple[str, ...]] = ("l2",)

    def search(self, trail: Trail) -> Iterator[SearchPoint]:
        """Yield points from that of trail on."""
        if trail.objective.signs is not None:
            return (yield from OWLQN(self.tol, self.max_iterations, self.memory).search(trail))
        point = trail.point
        curvature = trail.curvature = trail.curvature or Curvature(self.memory)
        while True:
            yield point
            moved = wolfe(trail.objective, point, -curvature.solve(point.gradient))
            if moved is None:
                return
            curvature.add(moved.weights - point.weights, moved.gradient - point.gradient)
            point = moved


@part
class OWLQN(_QuasiNewton):
    """Orthant-wise L-BFGS, for L1 and elastic nets: within an orthant F is smooth, and a step ends at its border.

    {parameters}

    References
    ----------
    Andrew & Gao 2007, "Scalable Training of L1-Regularized Log-Linear Models", ICML.

    Examples
    --------
    >>> from ranktune.solvers import L1, OWLQN, Ranker, SoftmaxCrossEntropy
    >>> ranker = Ranker(SoftmaxCrossEntropy(), None, L1(0.1), OWLQN())
    >>> low, high = ranker.fit([[0.0], [1.0], [3.0]], [0, 1, 2]).predict([[1.0], [2.0]])
    >>> bool(low < high)
    True
    """

    def search(self, trail: Trail) -> Iterator[SearchPoint]:
        """Yield points from that of trail on."""
        point, objective, l1 = trail.point, trail.objective, trail.l1
        curvature = trail.curvature = trail.curvature or Curvature(self.memory)
        while True:
            yield point
            downhill = -shortest(point.weights, point.gradient, l1, objective.signs)
            direction = -curvature.solve(-downhill)
            direction[direction * downhill <= 0.0] = 0.0
            moved = _within_orthant(objective, point, direction, downhill, l1)
            if moved is None:  # the curvature misleads near a border: the projected gradient decides
                curvature = trail.curvature = Curvature(self.memory)
                moved = _within_orthant(objective, point, downhill, downhill, l1)
            if moved is None:
                return
            curvature.add(moved.weights - point.weights, moved.gradient - point.gradient)
            point = moved


@part
class GradientSteps(Batch):
    """Full gradient steps with AdaGrad's rates and the proximal step of the penalty, without a line search.

    w_j = S(w_j - eta_j g_j, eta_j l1) / (1 + eta_j l2), eta_j = eta0 / sqrt(sum of the squares of g_j so far). For
    losses whose gradient is not that of their value, such as a pairwise loss under DeltaNDCG, and for hinges.

    {parameters}

    References
    ----------
    Duchi, Hazan & Singer 2011, "Adaptive Subgradient Methods for Online Learning", JMLR 12.
    """

    planned: ClassVar[bool] = True
    losses: ClassVar[str] = "pairwise"
    searched: ClassVar[Mapping[str, Range]] = {}
    max_iterations: Annotated[int, MAX_ITERATIONS.but(python="Reaching it is no failure to converge.")] = 100
    eta0: Annotated[float, Param("The size of the first step of every weight.")] = 0.1

    def search(self, trail: Trail) -> Iterator[SearchPoint]:
        """Yield points from that of trail on."""
        point, objective, l1 = trail.point, trail.objective, trail.l1
        squares = np.zeros_like(point.weights)
        while True:
            yield point
            gradient = point.gradient - objective.l2 * point.weights
            squares += gradient * gradient
            eta = self.eta0 / (DELTA + np.sqrt(squares))
            moved = point.weights - eta * gradient
            moved = np.sign(moved) * np.maximum(np.abs(moved) - eta * l1, 0.0) / (1.0 + eta * objective.l2)
            weights = within(moved, objective.signs)
            value, gradient = objective.value_and_gradient(weights)
            point = SearchPoint(weights, value + l1 * float(np.abs(weights).sum()), gradient)


def shortest(weights: Floats, gradient: Floats, l1: float, signs: Ints | None = None) -> Floats:
    """Return the shortest subgradient of F within signs, (n_features,): zero exactly at an optimum."""
    at_zero = np.sign(gradient) * np.maximum(np.abs(gradient) - l1, 0.0)
    at_zero = at_zero if signs is None else np.where(at_zero * signs > 0.0, 0.0, at_zero)
    return np.where(weights == 0.0, at_zero, gradient + l1 * np.sign(weights))


def wolfe(objective: ScaledObjective, point: SearchPoint, direction: Floats) -> SearchPoint | None:
    """Return a point along direction that descends enough and where the slope has flattened; None where none is.

    Bisection, with doubling at first. Where f has no digits left, a slope that flattened is enough.
    Source: Lewis & Overton 2013, "Nonsmooth optimization via quasi-Newton methods", Math. Prog. 141, algorithm 2.6.
    """
    slope = float(point.gradient @ direction)
    if not slope < 0.0:
        return None
    low, high, length = 0.0, np.inf, 1.0
    for _ in range(60):
        weights = point.weights + length * direction
        value, gradient = objective.value_and_gradient(weights)
        now = float(gradient @ direction) if np.isfinite(value) else np.inf
        flat = value <= point.value + 1e-11 * abs(point.value) and abs(now) <= 0.9 * abs(slope)
        if not (value <= point.value + 1e-4 * length * slope or flat):
            high = length
        elif now < 0.9 * slope:
            low = length
        else:
            return SearchPoint(weights, value, gradient)
        length = 0.5 * (low + high) if np.isfinite(high) else 2.0 * length
    return None


def _within_orthant(
    objective: ScaledObjective, point: SearchPoint, direction: Floats, downhill: Floats, l1: float
) -> SearchPoint | None:
    """Return the first point at 1, 1/2, 1/4 ... of direction, stopped where weights change sign, that descends."""
    signs = np.where(point.weights == 0.0, np.sign(downhill), np.sign(point.weights))
    length = 1.0
    for _ in range(50):
        weights = point.weights + length * direction
        weights = np.where(weights * signs > 0.0, weights, 0.0)
        value, gradient = objective.value_and_gradient(weights)
        value += l1 * float(np.abs(weights).sum())
        expected = float(downhill @ (weights - point.weights))
        if expected > 0.0 and value <= point.value - 1e-4 * expected:
            return SearchPoint(weights, value, gradient)
        length *= 0.5
    return None
