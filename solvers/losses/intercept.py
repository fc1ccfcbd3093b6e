"""The intercept at which a convex loss is least, from its derivatives, wherever these are computed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

ROUNDING = 1e-12
"""A derivative, and a change of the intercept relative to it, that count as 0."""

MAX_STEPS = 100


def best_intercept(derivatives: Callable[[float], tuple[float, float]], start: float) -> float:
    """Return the last number given to derivatives, which returns the first and second one there: the least loss.

    Newton's method, kept inside the bracket that the signs of the first derivative give.
    """
    at, low, high, reach = start, -np.inf, np.inf, 1.0
    for _ in range(MAX_STEPS):
        first, second = derivatives(at)
        if not abs(first) > ROUNDING:
            break
        if first < 0.0:
            low = at
        else:
            high = at
        moved = at - first / second if second > 0.0 else np.nan
        if not (low < moved < high):
            moved = 0.5 * (low + high)
            if not np.isfinite(moved):
                moved = at + reach if first < 0.0 else at - reach
                reach *= 2.0
        if abs(moved - at) <= ROUNDING * (1.0 + abs(at)):
            break
        at = moved
    return at
