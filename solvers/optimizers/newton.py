"""Truncated Newton: each step solves the Newton equations roughly by preconditioned conjugate gradients.

w  (n_features,) weights   g  gradient   H  Hessian   d  the step, H d = -g roughly   M  near H, easy to invert

The objective is convex with a continuous gradient; it may be only piecewise quadratic, H then any generalised Hessian.
Where M is so near H that a step of M alone shrinks the gradient well, steps take no product with H at all. Secant pairs
of the last steps correct M, within conjugate gradients too (Morales & Nocedal): a quarter of the products fewer on
sparse data. An objective of X w may give X d along with H d: what a step makes of X w is then a sum of what is known.
A step is halved until it descends (Armijo's rule, or the approximate rule of Hager & Zhang where f has no
digits left).
Sources: Nocedal & Wright 2006, "Numerical Optimization", algorithm 7.1; Morales & Nocedal 2000, SIAM J. Optim. 10;
Hager & Zhang 2005, SIAM J. Optim. 16.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeAlias

import numpy as np
import scipy

from ranktune.solvers.base.ranker import Step
from ranktune.solvers.core.arrays import Floats

SHARP_REDUCTION = 0.4
"""Steps without any product with H go on while each of them shrinks the gradient to this part at most."""

MAX_STEPS_KEPT = 8
"""The number of steps that correct M."""

MAX_PRODUCTS_KEPT = 4
"""The number of products that correct M: each costs every later product four passes over vectors."""

Solve: TypeAlias = Callable[[Floats], Floats]
"""r -> M^-1 r, (n_features,)."""

Image: TypeAlias = Floats | None
"""X w of weights w or of a step, (n_documents,), where an objective gives it."""

Product: TypeAlias = Callable[[Floats], tuple[Floats, Image]]
"""d -> H d, (n_features,), and the image of d."""


class Objective(Protocol):
    """What is minimised."""

    def value_and_gradient(self, weights: Floats, image: Image = None) -> tuple[float, Floats]:
        """Return f and g at weights, whose image spares work where it is known."""
        ...

    def product_and_image(self, direction: Floats) -> tuple[Floats, Image]:
        """Return H direction at the weights last given to value_and_gradient, and the image of direction."""
        ...


@dataclass(frozen=True)
class NewtonPoint:
    """Where the method stands: weights, f and g there, the image, and the products with H that the last step took."""

    weights: Floats
    value: float
    gradient: Floats
    image: Image = None
    products: int = 0


class Preconditioner(Protocol):
    """Where M comes from. sharp says that M is so near H that steps need no product with H at all."""

    sharp: bool

    def solver(self, point: NewtonPoint) -> Solve:
        """Return M^-1 at point, which the objective evaluated last."""
        ...


class Secant:
    """What is known of H beyond M, as vectors and H times them: the last steps, or products that the last step took.

    It is applied by the two loops of L-BFGS (Nocedal & Wright 2006, algorithm 7.4).
    """

    def __init__(self) -> None:
        self._pairs: deque[tuple[Floats, Floats, float]] = deque(maxlen=MAX_STEPS_KEPT)

    def learn(self, step: Floats, change: Floats) -> None:
        """Take note that a step changed the gradient by change."""
        along = float(step @ change)
        if along > 0.0:
            self._pairs.append((step, change, along))

    def start_anew(self, pairs: Iterable[tuple[Floats, Floats]]) -> None:
        """Forget all pairs and learn these."""
        self._pairs.clear()
        for step, change in pairs:
            self.learn(step, change)

    def solve(self, vector: Floats, solve: Solve) -> Floats:
        """Return the inverse of M, corrected by the pairs noted, times vector."""
        if not self._pairs:
            return solve(vector)
        axpy = scipy.linalg.blas.daxpy  # y + a x in one pass, y overwritten
        factors, vector = [], vector.copy()
        for step, change, along in reversed(self._pairs):
            factors.append(float(step @ vector) / along)
            vector = axpy(change, vector, a=-factors[-1])
        result = solve(vector)
        for (step, change, along), factor in zip(self._pairs, reversed(factors), strict=True):
            result = axpy(step, result, a=factor - float(change @ result) / along)
        return result


def minimise(
    objective: Objective,
    start: NewtonPoint,
    preconditioner: Preconditioner,
    *,
    reference: float,
    tolerance: float,
    max_iterations: int,
    forcing: float = 0.1,
    secant: Secant | None = None,
) -> Iterator[tuple[NewtonPoint, Step]]:
    """Yield the point and its record, from start on, until the violation |g| / reference is at most tolerance.

    start must be what objective evaluated last; secant is what is known of H, and learns. The equations are solved to
    forcing at first, more exactly near the end. The last point yielded is the best; it fulfils the rule unless
    max_iterations ended the search or no step descends any more in float64.
    """
    point, length = start, 1.0
    secant = Secant() if secant is None else secant
    sharp, first_norm = preconditioner.sharp, float(np.linalg.norm(start.gradient))
    for iteration in range(max_iterations + 1):
        norm = float(np.linalg.norm(point.gradient))
        violation = norm / reference if norm > 0.0 else 0.0
        yield point, Step(iteration, point.value, violation)
        if violation <= tolerance or iteration == max_iterations:
            return
        solve = preconditioner.solver(point)
        if sharp:
            direction, image, products = -secant.solve(point.gradient, solve), None, 0
        else:
            # more exactly as the end nears, so that the last steps converge fast, but not beyond the tolerance
            accuracy = max(min(forcing, (norm / first_norm) ** 0.2), min(0.6 * tolerance / violation, 0.5))
            seen: deque[tuple[Floats, Floats]] = deque(maxlen=MAX_PRODUCTS_KEPT)
            product, better = partial(_noted, objective.product_and_image, seen), partial(secant.solve, solve=solve)
            direction, image, products = conjugate_gradients(product, -point.gradient, better, accuracy)
            secant.start_anew(seen)
        moved = _descend(objective, point, direction, image, products, 1.0 if sharp else length)
        if moved is None and not sharp:
            return
        if moved is not None:
            secant.learn(moved.weights - point.weights, moved.gradient - point.gradient)
            length = _next_length(point, moved, direction)
            sharp = sharp and float(np.linalg.norm(moved.gradient)) < SHARP_REDUCTION * norm
            point = moved
        else:
            objective.value_and_gradient(point.weights, point.image)
            sharp = False


def _noted(product: Product, notes: deque[tuple[Floats, Floats]], vector: Floats) -> tuple[Floats, Image]:
    """Return product(vector), and note vector and H vector."""
    curved, image = product(vector)
    notes.append((vector, curved))
    return curved, image


def conjugate_gradients(product: Product, target: Floats, solve: Solve, tolerance: float) -> tuple[Floats, Image, int]:
    """Return d with |H d - target| <= tolerance |target| in the norm of M^-1, its image, and the products it took.

    Starts at d = 0. Ends early where H has no curvature left, and after 10 n_features products at the latest.
    """
    d = np.zeros_like(target)
    residual = target.copy()
    z = solve(residual)
    p = z
    energy = float(residual @ z)
    goal = tolerance**2 * energy
    moved: Image = None
    for count in range(1, 10 * len(target) + 1):
        curved, image = product(p)
        curvature = float(p @ curved)
        if not curvature > 0.0:
            return (d, moved, count) if count > 1 else (z, image, count)
        alpha = energy / curvature
        d += alpha * p
        if image is not None:
            image *= alpha
            moved = image if moved is None else np.add(moved, image, out=moved)
        residual = residual - alpha * curved  # not in place: p may be it
        z = solve(residual)
        before, energy = energy, float(residual @ z)
        if energy <= goal:
            return d, moved, count
        p = z + (energy / before) * p
    return d, moved, 10 * len(target)


def _next_length(before: NewtonPoint, after: NewtonPoint, direction: Floats) -> float:
    """Return how far the next step should reach first: 1, or more where this one fell short of the minimum on its line.

    Active pairs only get fewer while a hinge is minimised from zero, so H is too large for what follows, and steps keep
    falling short, by less each time: half of what this one lacked is a good guess for the next.
    """
    slope = float(before.gradient @ direction)
    left = float(after.gradient @ direction) / slope
    return 1.0 / (1.0 - 0.5 * min(max(left, 0.0), 0.6))


def _descend(
    objective: Objective, point: NewtonPoint, direction: Floats, along: Image, products: int, longest: float
) -> NewtonPoint | None:
    """Return the first point along direction, at longest times 1, 1/2, 1/4 ..., that descends enough, or None.

    along is the image of direction.
    """
    slope = float(point.gradient @ direction)
    if not slope < 0.0:
        return None
    length = longest
    for _ in range(50):
        weights = point.weights + length * direction
        image = None if point.image is None or along is None else point.image + length * along
        value, gradient = objective.value_and_gradient(weights, image)
        enough = value <= point.value + 1e-4 * length * slope
        flat = value <= point.value + 1e-11 * abs(point.value) and abs(float(gradient @ direction)) <= 0.9 * abs(slope)
        if enough or flat:
            return NewtonPoint(weights, value, gradient, image, products)
        length *= 0.5
    return None
