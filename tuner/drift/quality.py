"""Whether a model is as good on new queries as the study found, and which features have another distribution.

The metric: a query is the unit. Where the new queries have ids of the study's, the differences of those are tested if
their mean is more precise than the difference of the two means. The test is one-sided: only a loss is an alarm.

The features: under no drift the queries of both samples are exchangeable, however the documents of a query depend on
each other. The largest of all standardised differences of means between the samples, over features and statistics, is
therefore compared with what random divisions of the same queries give: its p value is exact (Westfall & Young 1993).
The single features are told apart by t-tests, with the false discovery rate controlled (Benjamini & Hochberg 1995).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr, stdtrit

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.metrics.means import linearised, mean_of
from ranktune.tuner.drift.reference import STATISTICS, Reference
from ranktune.tuner.statistics.intervals import stratified_interval
from ranktune.tuner.statistics.measured import Interval

MIN_PAIRED, MAX_WORST = 20, 10
POWER = 0.8
NORMAL = 1.96
"""Half of a 95 percent interval in standard errors."""
CONSTANT = 1e-6
"""Standard deviation of a statistic, whose values are from 0 to 1, below which it says nothing."""
PERMUTATIONS, BLOCK = 999, 100
FALSE = 0.05
"""False discovery rate of the features that are called moved."""
BINS = 12
"""Ranges of the values of a feature that has moved."""


@dataclass(frozen=True, eq=False)
class ExpectedQuality:
    """What a study found of its model: a mean with its standard error, and values by query.

    part is "test" or "vali"; values of "vali" are shifted, so that their mean is the estimate, which is corrected for
    the selection bias. queries and values are empty where they were not kept.
    """

    part: str
    queries: tuple[str, ...]
    values: Floats
    mean: float
    error: float
    freedom: float

    @classmethod
    def of(
        cls, part: str, queries: Sequence[str], values: Floats, weights: Floats | None, estimate: Interval
    ) -> ExpectedQuality:
        """Return what was found; of validation queries the error is not below that of the estimate."""
        mean, error, freedom = _mean(values, weights)
        if part != "test":
            values = values + (estimate.mean - mean)
            mean, error = estimate.mean, max(error, (estimate.high - estimate.low) / (2 * NORMAL))
        return cls(part, tuple(queries), values, mean, error, freedom)


@dataclass(frozen=True)
class WorseQuery:
    """A query with the value of the metric now, and before where the study had it."""

    query: str
    value: float
    before: float | None


@dataclass(frozen=True)
class Quality:
    """The metric on the new queries beside that of the study.

    Attributes
    ----------
    metric : str
    queries, skipped : int
        New queries that have a value, and those that the metric skips.
    mean, low, high : float
        Mean over the new queries with its 95 percent interval.
    promised, promised_low, promised_high : float
        The estimate of the study with its interval.
    before : float
        What the mean is compared with: that of the study's test queries, else the estimate.
    part : str
        "test" or "vali": the queries of which before is the mean.
    paired : int
        Queries of the same id in both that are compared with each other; 0 where the two means are.
    difference, error : float
        The new mean less before, over the paired queries if there are any, with its standard error.
    p : float
        One-sided, of "it is no worse".
    detectable : float
        The loss that such a day shows as an alarm in 80 percent.
    holds : bool
        Whether no loss is significant at the rate of this part.
    worst : tuple of WorseQuery
        The queries that lost most where they are paired, else those with the worst values.
    """

    metric: str
    queries: int
    skipped: int
    mean: float
    low: float
    high: float
    promised: float
    promised_low: float
    promised_high: float
    before: float
    part: str
    paired: int
    difference: float
    error: float
    p: float
    detectable: float
    holds: bool
    worst: tuple[WorseQuery, ...]


def quality(
    metric: str,
    ids: Sequence[str],
    values: Floats,
    weights: Floats | None,
    study: ExpectedQuality,
    estimate: Interval,
    rate: float,
) -> Quality:
    """Return how the values of new queries, two of them at least, compare with those of the study."""
    counted = ~np.isnan(values)
    mean, error, freedom = _mean(values, weights)
    difference, both = mean - study.mean, np.hypot(error, study.error)
    freedom = both**4 / (error**4 / freedom + study.error**4 / study.freedom) if both > 0.0 else freedom
    earlier = dict(zip(study.queries, study.values.tolist(), strict=True))
    gaps = values - np.array([earlier.get(name, np.nan) for name in ids])
    paired = int((~np.isnan(gaps)).sum())
    if paired >= MIN_PAIRED and (of_pairs := _mean(gaps, weights))[1] <= both:
        difference, both, freedom = of_pairs
    else:
        paired = 0
    p = float(stdtr(freedom, difference / both)) if both > 0.0 else float(difference >= 0.0)
    interval = stratified_interval([values], np.random.default_rng(0), resamples=2_000, weights=[weights])
    needed = -stdtrit(freedom, rate) + stdtrit(freedom, POWER)
    return Quality(
        metric, int(counted.sum()), int((~counted).sum()), interval.mean, interval.low, interval.high,
        estimate.mean, estimate.low, estimate.high, study.mean, study.part, paired, float(difference), float(both), p,
        float(needed * both), p > rate, _worst(ids, values, gaps if paired else values, earlier if paired else {}),
    )  # fmt: skip


def _mean(values: Floats, weights: Floats | None) -> tuple[float, float, float]:
    """Return the mean of the values that are known, its standard error and the degrees of freedom of this."""
    linear = linearised(values, weights)
    linear = linear[~np.isnan(linear)]
    count = len(linear)
    error = float(linear.std(ddof=1)) / count**0.5 if count > 1 else 0.0
    return mean_of(values, weights), error, max(count - 1, 1)


def _worst(ids: Sequence[str], values: Floats, by: Floats, earlier: Mapping[str, float]) -> tuple[WorseQuery, ...]:
    order = [k for k in np.argsort(by, kind="stable")[:MAX_WORST] if not np.isnan(by[k])]
    lost = [k for k in order if not earlier or by[k] < 0.0]
    return tuple(WorseQuery(ids[k], float(values[k]), earlier.get(ids[k])) for k in lost)


@dataclass(frozen=True)
class Moved:
    """One feature: how far its distribution is from that of the training data.

    Attributes
    ----------
    feature : str
        Its name; "colour=(other)" stands for the values of a category that are no features, such as new ones.
    p, q : float
        p value of the tests of this feature; the same adjusted for the number of features, so that of those with q at
        most .05 five percent are false in the mean.
    shift : float or None
        Difference of the means over documents in standard deviations of the training data; None if those are constant.
    distance : float
        The Kolmogorov-Smirnov distance: the largest difference of the two distribution functions.
    missing, missing_before : float
        Shares of documents without a value.
    constant : bool
        Whether it has one value only, and had several.
    before, now : tuple of float
        Shares of the training documents, and of the new ones, in ranges of equal width; the first and the last are
        open. Empty for features that have not moved.
    """

    feature: str
    p: float
    q: float
    shift: float | None
    distance: float
    missing: float
    missing_before: float
    constant: bool
    before: tuple[float, ...]
    now: tuple[float, ...]


def differences(before: Reference, now: Reference) -> tuple[Floats, Floats]:
    """Return the statistics of all queries, standardised together, and the difference of means in standard errors.

    Those of the new queries come first, (n_queries, n), and the differences are (n,); both 0 where nothing varies.
    """
    both = np.concatenate([now.by_query, before.by_query])
    centred = both - both.mean(axis=0)
    deviation = centred.std(axis=0)
    standard = np.divide(centred, deviation, out=np.zeros_like(centred), where=deviation > CONSTANT)
    return standard, standard[: len(now.by_query)].sum(axis=0) / _error(len(now.by_query), len(both))


def _error(new: int, total: int) -> float:
    """Return the standard deviation of the sum of so many of the standardised values, drawn without replacement."""
    return float(np.sqrt(new * (total - new) / max(total - 1, 1)))


def largest_difference(before: Reference, now: Reference, generator: np.random.Generator, rate: float) -> float:
    """Return the p value of "no feature has moved"; rate is the level at which it will be used."""
    standard, observed = differences(before, now)
    new, total = len(now.by_query), len(standard)
    largest, values = np.abs(observed).max(initial=0.0) * (1 - 1e-5), standard.astype(np.float32)
    count = max(PERMUTATIONS, int(20 / rate))
    reached = 1
    for first in range(0, count, BLOCK):
        order = np.argpartition(generator.random((min(BLOCK, count - first), total), dtype=np.float32), new - 1, axis=1)
        chosen = np.zeros(order.shape, dtype=np.float32)
        np.put_along_axis(chosen, order[:, :new], 1.0, axis=1)
        reached += int((np.abs(chosen @ values).max(axis=1, initial=0.0) >= largest * _error(new, total)).sum())
    return reached / (1 + count)


def moved(before: Reference, now: Reference) -> tuple[Moved, ...]:
    """Return every feature, those that have moved most surely first."""
    from scipy.special import stdtr
    from scipy.stats import false_discovery_control

    standard, observed = differences(before, now)
    total = len(standard)
    size = np.abs(observed)
    t = size * np.sqrt((total - 2) / np.maximum(total - 1 - size**2, 1e-12))  # of the variance within the two samples
    p = np.where(size > 0.0, 2.0 * stdtr(total - 2, -t), 1.0).reshape(STATISTICS, -1)
    varying = (np.abs(standard).max(axis=0) > 0.0).reshape(STATISTICS, -1).sum(axis=0)
    by_feature = np.minimum(p.min(axis=0) * np.maximum(varying, 1), 1.0)
    adjusted = false_discovery_control(by_feature)
    distance = np.maximum(np.abs(now.below - before.below), np.abs(now.to - before.to)).max(axis=1)
    found = [
        Moved(
            name, float(by_feature[j]), float(adjusted[j]), _shift(before.moments[j], now.moments[j]),
            float(distance[j]), float(now.moments[j, 2]), float(before.moments[j, 2]),
            bool(now.moments[j, 1] == 0.0 < before.moments[j, 1]),
            *(_shares(before, of, j) if adjusted[j] <= FALSE else () for of in (before, now)),
        )
        for j, name in enumerate(before.names)
    ]  # fmt: skip
    return tuple(sorted(found, key=lambda each: (each.p, -each.distance)))


def _shift(before: Floats, now: Floats) -> float | None:
    return float((now[0] - before[0]) / before[1]) if before[1] > 0.0 else None


def _shares(before: Reference, of: Reference, j: int) -> tuple[float, ...]:
    """Return the shares of the values of a feature in ranges between those of nearly all training documents."""
    values = before.values[j]
    low, high = values[np.minimum(np.searchsorted(before.to[j], (0.05, 0.95)), len(values) - 1)]
    up_to = np.interp(
        np.linspace(low, high, BINS + 1)[1:-1], np.repeat(values, 2), np.ravel([of.below[j], of.to[j]], "F")
    )
    return tuple(np.diff(up_to, prepend=0.0, append=1.0).round(4).tolist())
