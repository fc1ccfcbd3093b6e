"""How far the values of configurations moved from one data set to another, as the noise of those of the former.

k    configurations that were evaluated on both        n, m    validation queries of the two data sets
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from ranktune.solvers.core.arrays import Floats, Json
from ranktune.tuner.statistics.comparisons import ALPHA

LEAST = 3
"""Configurations from which on a movement can be measured."""
PRIOR_DEGREES = 2
"""Degrees of freedom that the sampling variance counts in the variance of the movement."""


@dataclass(frozen=True)
class Movement:
    """The common shift of the values, and the variance of what else moved.

    Attributes
    ----------
    shift : float
        The mean difference, new less old, in units of the metric.
    variance : float
        The noise variance of an old value, once it is shifted, about the new one; infinite where the ranking of the
        configurations did not carry over.
    correlation : float
        Of the old and the new values; NaN where either are all equal.
    configurations : int
        How many were evaluated on both.
    """

    shift: float
    variance: float
    correlation: float
    configurations: int

    @property
    def carried(self) -> bool:
        """Whether the old values say something of the new data."""
        return math.isfinite(self.variance)

    def as_dict(self) -> Json:
        """Return the fields as JSON, an infinite or unknown number as None."""
        return {name: value if math.isfinite(value) else None for name, value in vars(self).items()}


def movement(old: Floats, new: Floats, sampling: float) -> Movement:
    """Return the movement of values, (k,) each; sampling is the variance that other queries alone would give it.

    The variance is a mean of the observed one, with k - 1 degrees of freedom, and of the sampling variance: a scaled
    inverse chi-squared prior. The ranking carries over where the one-sided test of the correlation says so.
    """
    k, moved = len(old), new - old
    if k < LEAST:
        return Movement(float(moved.mean()) if k else 0.0, math.inf, math.nan, k)
    shift = float(moved.mean())
    if sampling == 0.0 and not moved.any():
        return Movement(0.0, 0.0, 1.0, k)
    if not (np.ptp(old) > 0.0 and np.ptp(new) > 0.0):
        return Movement(shift, math.inf, math.nan, k)
    r = float(np.corrcoef(old, new)[0, 1])
    t = r * math.sqrt((k - 2) / max(1.0 - r * r, 1e-12))
    if float(scipy.special.stdtr(k - 2, -t)) > ALPHA:
        return Movement(shift, math.inf, r, k)
    total = float(((moved - shift) ** 2).sum())
    return Movement(shift, (PRIOR_DEGREES * sampling + total) / (PRIOR_DEGREES + k - 1), r, k)


def sampling_variance(old: Sequence[Floats], new: Sequence[Floats]) -> float:
    """Return the variance of the difference of a configuration between queries alone: 0 where these are the same.

    old and new are the values by query of the same configurations, (n,) and (m,) each. The first is what the others are
    compared with, so that what makes queries hard counts for nothing: half of the variance of a contrast.
    """
    if len(old) < 2 or all(np.array_equal(a, b, equal_nan=True) for a, b in zip(old, new, strict=True)):
        return 0.0
    return float(np.mean([_of_contrasts(old), _of_contrasts(new)]))


def _of_contrasts(values: Sequence[Floats]) -> float:
    """Return the mean variance of the mean contrast of the others with the first."""
    contrasts = [each - values[0] for each in values[1:]]
    return float(np.mean([np.nanvar(gap) / max(int(np.isfinite(gap).sum()), 1) for gap in contrasts]))
