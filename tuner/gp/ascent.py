"""Batched projected quasi-Newton ascent from several starts within a box.

c    starts        D    columns, of which each start may move its own

All starts are evaluated in one call, because the overhead of a call exceeds the cost of these functions.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ranktune.solvers.core.arrays import Floats

Both = Callable[[Floats], tuple[Floats, Floats]]
"""Rows (c, D) -> values (c,) and gradients (c, D)."""

FIRST_STEP_LENGTH = 0.1
"""Length of the first step, before there is a curvature estimate."""
ARMIJO = 1e-4
"""Share of the linear prediction that a step must gain to be accepted (Armijo's rule)."""


def ascend(
    function: Both,
    starts: Floats,
    free: NDArray[np.bool_],
    *,
    calls: int,
    tolerance: float,
    low: Floats | float = 0.0,
    high: Floats | float = 1.0,
) -> Floats:
    """Return the rows, (c, D), reached from starts along their free columns, (c, D), in at most that many calls.

    low and high, (D,), are the bounds of columns; starts lie between them where they are free. A start stops once a
    step gains less than tolerance. No result is below its start.

    Source: projected BFGS with backtracking; Nocedal & Wright 2006, sections 6.1 and 16.7.
    """
    x = starts.copy()
    value, gradient = function(x)
    inverse = np.zeros((len(x), x.shape[1], x.shape[1]))
    fresh = np.ones(len(x), dtype=bool)  # no curvature estimate yet
    step = np.ones(len(x))
    alive: NDArray[np.bool_] = np.asarray(free.any(axis=1))
    direction = np.zeros_like(x)
    turn = alive  # needs a new direction
    for _ in range(calls - 1):
        if not alive.any():
            break
        pushed = ((x <= low) & (gradient < 0.0)) | ((x >= high) & (gradient > 0.0))
        _set_directions(direction, turn, gradient, free & ~pushed, inverse, fresh)
        step = np.where(turn, 1.0, step)
        trial = np.clip(x + step[:, None] * direction, low, high)
        moved = trial - x
        found, slope = function(trial)
        promised = np.einsum("ij,ij->i", gradient, moved)
        good = alive & (found >= value + ARMIJO * promised) & (promised > 0.0)
        _update_inverse_hessians(inverse, fresh, good, moved, gradient - slope, free)
        gained = found - value
        x[good], value[good], gradient[good] = trial[good], found[good], slope[good]
        step = np.where(good, 1.0, 0.25 * step)
        turn = good
        alive = alive & ~(good & (gained < tolerance)) & (promised > 0.1 * tolerance)
    return x


def _set_directions(
    direction: Floats, turn: NDArray[np.bool_], gradient: Floats, free: NDArray[np.bool_], inverse: Floats,
    fresh: NDArray[np.bool_],
) -> None:  # fmt: skip
    """Set the directions of the marked starts; columns that are not free stay."""
    pull = np.where(free, gradient, 0.0)
    steepest = pull * (FIRST_STEP_LENGTH / np.maximum(np.abs(pull).max(axis=1, keepdims=True), 1e-300))
    newton = np.where(free, np.einsum("ijk,ik->ij", inverse, pull), 0.0)
    uphill = ~fresh & (np.einsum("ij,ij->i", newton, pull) > 0.0)
    chosen = np.where(uphill[:, None], newton, steepest)
    direction[turn] = chosen[turn]


def _update_inverse_hessians(
    inverse: Floats, fresh: NDArray[np.bool_], good: NDArray[np.bool_], s: Floats, y: Floats, free: NDArray[np.bool_]
) -> None:
    """Apply the BFGS update for the steps s, with y the decrease of the gradient."""
    sy = np.einsum("ij,ij->i", s, y)
    learns = good & (sy > 1e-10 * np.sqrt(np.einsum("ij,ij->i", s, s) * np.einsum("ij,ij->i", y, y)))
    for i in np.flatnonzero(learns):
        if fresh[i]:
            inverse[i] = np.diag(np.where(free[i], sy[i] / (y[i] @ y[i]), 0.0))
            fresh[i] = False
        Hy = inverse[i] @ y[i]
        inverse[i] += ((sy[i] + y[i] @ Hy) / sy[i] ** 2) * np.outer(s[i], s[i])
        inverse[i] -= (np.outer(Hy, s[i]) + np.outer(s[i], Hy)) / sy[i]
