"""The race of a pass: when to look, who goes on, how many join.

values  (m, n) what each of m configurations scored on n queries before it learned from them; NaN where a query is
        skipped by the metric, for all alike

Looks come when the number of queries has doubled. What counts is the second half of the queries since the look before,
so that a configuration that joined there has learned from as many queries before it is judged as it is judged on.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ranktune.solvers.core.arrays import Floats, Ints, Mask

LEVEL = 0.05
"""The probability, at most, with which the tests of a pass drop the configuration that is best on average."""

MIN_QUERIES = 8
"""Queries that must differ before a difference is tested: the mean of fewer is far from normal."""

HALVINGS = 6
"""The first look comes after 1/2^HALVINGS of the queries."""

FIRST_QUERIES = 64
"""The least number of queries before the first look."""

FRESH = 0.25
"""The share of the places that is kept for fresh configurations while they can join."""


@dataclass(frozen=True)
class Look:
    """A look at the race: after which query it comes, how many configurations go on, and whether fresh ones join."""

    after: int
    places: int
    fresh: bool

    @property
    def survivors(self) -> int:
        """The most configurations that go on."""
        return self.places - int(self.places * FRESH) if self.fresh else self.places


def looks(n_queries: int, configurations: int, survivors: int) -> list[Look]:
    """Return the looks of a pass: when all queries are through, when half of them are, a quarter, and so on.

    Each halves the places, down to survivors. Fresh configurations join at all but the last two.
    """
    found, places = list[Look](), configurations
    for halvings in range(HALVINGS, -1, -1):
        after = n_queries >> halvings
        if after >= FIRST_QUERIES or halvings == 0:
            places = max(places // 2, min(survivors, configurations)) if halvings else places
            found.append(Look(after, places, halvings > 1))
    return found


def judged(values: Floats) -> Floats:
    """Return the columns of values that count at a look: those of the second half."""
    return values[:, values.shape[1] // 2 :]


def differences(values: Floats) -> tuple[int, Floats, Floats, Ints]:
    """Return the row of the highest mean, the mean differences to it, their standard errors, and how many differ.

    Only queries that are not skipped count; without any the first row is the best and nothing differs.
    """
    known = values[:, ~np.isnan(values).any(axis=0)]
    m, n = known.shape
    if n == 0:
        return 0, np.zeros(m), np.full(m, np.inf), np.zeros(m, dtype=np.int64)
    best = int(known.mean(axis=1).argmax())
    gaps = known - known[best]
    errors = gaps.std(axis=1, ddof=1) / np.sqrt(n) if n > 1 else np.full(m, np.inf)
    return best, gaps.mean(axis=1), errors, np.count_nonzero(gaps, axis=1)


def significantly_worse(values: Floats, n_looks: int) -> Mask:
    """Return which configurations are significantly worse than the best, paired by query, (m,).

    A one-sided t-test at an equal share of LEVEL for each look and each rival (Bonferroni): whichever configuration is
    best on average, it is dropped by a test with a probability of at most LEVEL.
    """
    from scipy.special import stdtrit  # scipy.stats takes a third of a second to import

    _, gaps, errors, differing = differences(values)
    n = np.count_nonzero(~np.isnan(values).any(axis=0))
    if n < 2:
        return np.zeros(len(values), dtype=bool)
    quantile = float(-stdtrit(n - 1, LEVEL / (n_looks * max(len(values) - 1, 1))))
    return (differing >= MIN_QUERIES) & (gaps < -quantile * errors)


def going_on(values: Floats, most: int, n_looks: int) -> tuple[Ints, Mask]:
    """Return the rows that go on, best first, and which rows are significantly worse; at most so many go on."""
    worse = significantly_worse(values, n_looks)
    _, gaps, _, _ = differences(values)
    order = np.argsort(-gaps, kind="stable")
    return order[~worse[order]][:most], worse
