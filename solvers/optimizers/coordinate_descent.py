"""Coordinate descent on a quadratic with an elastic-net penalty.

    minimise over d   g'd + 1/2 d'Hd + l1 sum |w + d| + l2 / 2 sum (w + d)^2

g (n,) the gradient at w, H (n, n) positive semidefinite, w (n,) the weights that d moves. One coordinate has the exact
minimum that step gives, violation says how far the conditions of an optimum are from holding.
"""

from __future__ import annotations

import numpy as np

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.compiled import compiled, inlined

RIDGE = 1e-12
"""Share of the largest curvature that is added to each: a flat direction gets a finite step."""


@inlined
def step(weight: float, gradient: float, curvature: float, l1: float, l2: float) -> float:
    """Return the d that minimises gradient d + curvature / 2 d^2 + l1 |weight + d| + l2 / 2 (weight + d)^2.

    Zero where nothing but the l1 term is left.
    """
    stiffness = curvature + l2
    if stiffness <= 0.0:
        return -weight if abs(gradient) < l1 else 0.0
    target = curvature * weight - gradient
    if target > l1:
        return (target - l1) / stiffness - weight
    if target < -l1:
        return (target + l1) / stiffness - weight
    return -weight


@inlined
def violation(weight: float, gradient: float, l1: float, l2: float) -> float:
    """Return the distance of zero from the subdifferential of loss and penalty along one coordinate."""
    slope = gradient + l2 * weight
    if weight > 0.0:
        return abs(slope + l1)
    if weight < 0.0:
        return abs(slope - l1)
    return max(abs(slope) - l1, 0.0)


@compiled
def violations(weights: Floats, gradient: Floats, l1: float, l2: float) -> Floats:
    """Return violation of every coordinate, (n,)."""
    result = np.empty(len(weights))
    for r in range(len(weights)):
        result[r] = violation(weights[r], gradient[r], l1, l2)
    return result


@compiled
def minimise(
    H: Floats, gradient: Floats, weights: Floats, l1: float, l2: float, tolerance: float, max_sweeps: int
) -> Floats:
    """Return d, (n,), by sweeps over the coordinates until no violation in a sweep is above tolerance.

    Sweeps over the nonzero weights alone alternate with sweeps over all. Cost: n a coordinate that moves.
    """
    n = len(weights)
    slope, d = gradient.copy(), np.zeros(n)
    ridge = 0.0
    for r in range(n):
        ridge = max(ridge, RIDGE * H[r, r])
    whole = True
    for _ in range(max_sweeps):
        worst = 0.0
        for r in range(n):
            now = weights[r] + d[r]
            if now == 0.0 and not whole:
                continue
            worst = max(worst, violation(now, slope[r], l1, l2))
            change = step(now, slope[r], H[r, r] + ridge, l1, l2)
            if change != 0.0:
                d[r] = -weights[r] if now + change == 0.0 else d[r] + change
                for other in range(n):
                    slope[other] += change * H[other, r]
        if worst <= tolerance:
            if whole:
                break
            whole = True
        else:
            whole = False
    return d
