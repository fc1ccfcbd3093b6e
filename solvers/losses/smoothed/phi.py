"""The loss of a pair by the difference of its scores: hinge max(0, m - z), its square, or log(1 + exp(-z))."""

from __future__ import annotations

import numpy as np

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
