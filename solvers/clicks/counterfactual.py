"""Ratios of two sums over impressions, such as the expected clicks of a ranking, with intervals between sessions.

The interval is that of the linearised ratio between clusters, sessions or users whose impressions depend on each other,
by Student's t with a correction for skewness: a few clicks of large weight are rare, and a log that lacks them would
seem to be sure of too little.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from ranktune.solvers.clicks.counts import sums
from ranktune.solvers.core.arrays import Floats, Ints, as_ints
from ranktune.solvers.core.errors import DataError

LEVEL = 0.95
SYMMETRIC = 1e-6
"""Skewness of a mean below which rounding would exceed its correction."""


@dataclass(frozen=True)
class ClickEstimate:
    """A ratio, such as clicks an impression, and its 95 % interval, infinite where there is one cluster only."""

    value: float
    low: float
    high: float


def ratio(top: Floats, bottom: Floats, cluster: Ints) -> ClickEstimate:
    """Return sum(top) / sum(bottom) with its interval, all (n,) by impression, with the numbers of clusters.

    Raises DataError unless the sum of bottom is positive. Source: Cochran 1977, Sampling Techniques, chapter 6.

    Examples
    --------
    >>> import numpy as np
    >>> ratio(np.array([0.5, 0.0]), np.array([0.5, 1.5]), np.array([0, 1])).value
    0.25
    """
    total = float(bottom.sum())
    if not total > 0.0:
        raise DataError(
            "all weights are 0: the new policy shows nothing that the log has shown, which tells nothing of it."
        )
    value = float(top.sum()) / total
    numbers, place = np.unique(cluster, return_inverse=True)
    n = len(numbers)
    rest = sums(as_ints(place), top - value * bottom, n)
    if n == 1:
        return ClickEstimate(value, -np.inf, np.inf)
    error = float(np.sqrt(n / (n - 1) * float(rest @ rest)) / total)
    low, high = (value - error * quantile for quantile in reversed(_quantiles(rest)))
    return ClickEstimate(value, low, high)


def _quantiles(values: Floats) -> tuple[float, float]:
    """Return the ends of the middle 95 % of the studentised mean of values, (n,), whose mean is 0, with their skewness.

    A transformation makes the mean as symmetric as Student's t. Source: Hall 1992, "On the Removal of Skewness by
    Transformation", Journal of the Royal Statistical Society B 54.
    """
    n = len(values)
    cubes, squares = float((values**3).mean()), float((values**2).mean())
    skew = cubes / squares**1.5 / np.sqrt(n) if squares > 0.0 else 0.0
    ends = stdtrit(n - 1, np.array([0.5 - LEVEL / 2, 0.5 + LEVEL / 2]))
    if abs(skew) > SYMMETRIC:
        ends = 3.0 / skew * (np.cbrt(1.0 + skew * (ends - skew / 6.0)) - 1.0)
    return float(ends[0]), float(ends[1])
