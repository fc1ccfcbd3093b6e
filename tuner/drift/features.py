"""Which features have another distribution than in the training data: two-sample tests by query.

Under no drift the queries of both samples are exchangeable, however the documents of a query depend on each other. The
largest of all standardised differences of means between the samples, over features and statistics, is therefore
compared with what random divisions of the same queries give: its p value is exact (Westfall & Young 1993). The single
features are told apart by t-tests, with the false discovery rate controlled (Benjamini & Hochberg 1995).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ranktune.solvers.core.arrays import Floats
from ranktune.tuner.drift.reference import STATISTICS, Reference

CONSTANT = 1e-6
"""Standard deviation of a statistic, whose values are from 0 to 1, below which it says nothing."""
PERMUTATIONS, BLOCK = 999, 100


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
    """

    feature: str
    p: float
    q: float
    shift: float | None
    distance: float
    missing: float
    missing_before: float
    constant: bool


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
        )
        for j, name in enumerate(before.names)
    ]  # fmt: skip
    return tuple(sorted(found, key=lambda each: (each.p, -each.distance)))


def _shift(before: Floats, now: Floats) -> float | None:
    return float((now[0] - before[0]) / before[1]) if before[1] > 0.0 else None
