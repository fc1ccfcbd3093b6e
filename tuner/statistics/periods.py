"""The metric over time: means over periods that have about equally many queries."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.data.columns.encoding import time_text
from ranktune.tuner.statistics.intervals import stratified_interval
from ranktune.tuner.statistics.measured import Interval

MOST, LEAST, RESAMPLES = 16, 10, 1000
"""Periods at most, queries of each at least where there are that many, and draws for the interval of a mean."""


@dataclass(frozen=True)
class Period:
    """What a model scored by the queries of a period.

    part         "test", or "validation": folds forward in time
    label        the row of the leaderboard
    first, last  the first and the last time of its queries, as text
    queries      those that the metric is defined for
    """

    part: str
    label: str
    first: str
    last: str
    queries: int
    mean: Interval


def by_period(
    part: str, label: str, times: Floats, values: Floats, weights: Floats | None, *, dated: bool
) -> Iterator[Period]:
    """Yield the means of values, (n_queries,), by period of their times, the earliest first; a time is in one."""
    ordered, generator = np.sort(times), np.random.default_rng(0)
    count = max(min(MOST, len(times) // LEAST), 1)
    edges = np.unique(ordered[np.arange(count) * len(times) // count])
    period_of = np.searchsorted(edges, times, side="right")
    for number in range(1, len(edges) + 1):
        inside = (period_of == number) & ~np.isnan(values)
        if not inside.any():
            continue
        counts = None if weights is None else weights[inside]
        mean = stratified_interval([values[inside]], generator, resamples=RESAMPLES, weights=[counts])
        first, last = (time_text(time, dated=dated) for time in (times[inside].min(), times[inside].max()))
        yield Period(part, label, first, last, int(inside.sum()), mean)
