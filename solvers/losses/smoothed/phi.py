"""The loss of a pair by the difference z of its scores: hinge max(0, m - z), its square, or log(1 + exp(-z)); sums."""

from __future__ import annotations

import numpy as np

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.compiled import inlined

HINGE, SQUARED_HINGE, LOGISTIC = 0, 1, 2


@inlined
def phi_and_slope(phi: int, margin: float, lead: float) -> tuple[float, float]:
    """Return phi(lead) and its derivative, lead = s_better - s_worse."""
    if phi == LOGISTIC:
        small = np.exp(-abs(lead))  # never overflows
        share = small / (1.0 + small) if lead > 0.0 else 1.0 / (1.0 + small)
        return max(-lead, 0.0) + np.log1p(small), -share
    short = margin - lead
    if short <= 0.0:
        return 0.0, 0.0
    if phi == HINGE:
        return short, -1.0
    return short * short, -2.0 * short


@inlined
def total(values: Floats) -> float:
    """Return the sum of values, by eight partial sums."""
    a = b = c = d = e = f = g = h = 0.0
    whole = len(values) // 8 * 8
    for p in range(0, whole, 8):
        a += values[p]
        b += values[p + 1]
        c += values[p + 2]
        d += values[p + 3]
        e += values[p + 4]
        f += values[p + 5]
        g += values[p + 6]
        h += values[p + 7]
    for p in range(whole, len(values)):
        a += values[p]
    return ((a + e) + (c + g)) + ((b + f) + (d + h))
