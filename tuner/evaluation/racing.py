"""Racing: whether a trial that is judged part by part is for sure behind the best, so that the rest need not be learnt.

A trial is stopped where, had it been judged in full, it would hardly have come out ahead. What is not judged yet is
of the same kind as what is: queries are dealt into folds by chance, orders are drawn. So the mean paired difference on
the part that is known estimates that on all, and the estimate is the surer the less is missing. A test of it at every
look, at a share of LEVEL each, stops a trial that would have come out ahead with a probability of at most LEVEL,
whichever trial it is raced against and however that one was chosen: its values are the same whoever is judged.

values, rival (n,) what the trial and the one to beat scored, by unit: a query, or an order of all queries, NaN where
a unit is not judged yet, or never
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ranktune.solvers.core.arrays import Floats

LEVEL = 0.05
"""The probability, at most, with which a trial is stopped that in full would have come out ahead."""
FEWEST = 8
"""Queries that differ, at least, before they are tested: of fewer, a mean is far from normal."""
FEWEST_ORDERS = 3
"""Orders that differ, at least, likewise: each is a mean itself."""


def is_behind(
    values: Floats, rival: Floats, looks: int, *, whole: int = 0, fewest: int = FEWEST, level: float = LEVEL
) -> bool:
    """Return whether a trial is for sure behind, at one of so many looks at it; never where nothing is missing.

    whole is how many units there are in all; those of the rival, where it is not given.

    A one-sided paired t-test with the correction for drawing without replacement from a finite population. Source:
    Cochran 1977, Sampling Techniques, chapter 2; level / looks each: Bonferroni.
    """
    known = ~np.isnan(values) & ~np.isnan(rival)
    difference = values[known] - rival[known]
    n, whole = len(difference), whole or int(np.count_nonzero(~np.isnan(rival)))
    if not 1 < n < whole or np.count_nonzero(difference) < fewest:
        return False
    error = partial_error(difference, whole)
    return bool(difference.mean() < -_quantile(level / looks, n - 1) * error)


def partial_error(difference: Floats, whole: int) -> float:
    """Return the standard error of the mean over whole units by that of difference, (n,), of n > 1 of them."""
    n = len(difference)
    return float(np.sqrt(difference.var(ddof=1) / n * (1.0 - n / whole)))


@dataclass(frozen=True)
class Estimate:
    """What a trial that was stopped would have scored in full, and the variance of that: how far off it may be."""

    value: float
    variance: float


def in_full(values: Floats, rival: Floats) -> Estimate:
    """Return what a trial that was stopped would have scored in full, by what its rival did.

    The rival's scores say how hard the units are that were judged: a plain mean over few of them is mostly that.
    """
    known = ~np.isnan(values) & ~np.isnan(rival)
    difference = values[known] - rival[known]
    whole = int(np.count_nonzero(~np.isnan(rival)))
    error = partial_error(difference, whole) if len(difference) > 1 else float("nan")
    return Estimate(float(np.nanmean(rival) + difference.mean()), error**2)


def in_the_race(path: Sequence[Floats], best: int, rival: Floats | None, looks: int) -> int:
    """Return how many of path, from the cheapest on, go on: up to the last that is behind neither rival nor the best.

    None does where all are for sure behind the rival; all do where it is not known who is.
    """
    whole = len(path[best]) if rival is None else int(np.count_nonzero(~np.isnan(rival)))
    for count in range(len(path), 0, -1):
        values = path[count - 1]
        behind = rival is not None and is_behind(values, rival, looks)
        if not behind and not is_behind(values, path[best], looks, whole=whole):
            return count
    return 0


@lru_cache(maxsize=4096)
def _quantile(level: float, degrees: int) -> float:
    """Return the value that a t-distributed number exceeds with the probability level."""
    from scipy.special import stdtrit  # the import is warm by then, and stats takes a third of a second

    return float(-stdtrit(degrees, level))
