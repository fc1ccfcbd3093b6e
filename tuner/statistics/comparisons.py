"""Comparison of models by query, two or all pairs of several, and of the values of configurations on two data sets.

a, b         (n,) what two models score on the same n queries; NaN marks a query that the metric skips
difference   a - b on the queries that both score; a positive one favours a
weights      (n,) how often each query counts, positive; None if each counts once

Several splits (test sets of several folds) are lists of such arrays. Their difference is the mean of the splits' mean
differences, as published tables average folds; tests and counts pool the queries of all splits. Of several models a
split is an array (models, n_s), and all pairs are tested with the same signs.

The movement of values from one data set to another, of k configurations that were evaluated on both, with n and m
validation queries, is the noise of the former values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import scipy

from ranktune.solvers.core.arrays import Floats, Json
from ranktune.solvers.core.errors import DataError
from ranktune.solvers.metrics.means import linearised, mean_of
from ranktune.tuner.statistics.intervals import randomisation_test, stratified_interval, weighted
from ranktune.tuner.statistics.measured import ALPHA, Comparison

MAX_SIGNS = 4_000_000
"""Largest number of random signs in all, with at least MIN_PATTERNS patterns."""
MAX_PATTERNS, MIN_PATTERNS = 10_000, 2_000
MAX_EXACT = 50
"""Differing queries up to which the distribution of Wilcoxon's statistic is exact, not normal."""
LEAST = 3
"""Configurations from which on a movement can be measured."""
PRIOR_DEGREES = 2
"""Degrees of freedom that the sampling variance counts in the variance of the movement."""


def compare(
    a: Floats,
    b: Floats,
    generator: np.random.Generator,
    *,
    level: float = 0.95,
    weights: Floats | None = None,
) -> Comparison:
    """Return how a does against b, both (n,), paired by query. Raises DataError where their lengths differ.

    Source: Smucker, Allan & Carterette 2007, "A comparison of statistical significance tests for information retrieval
    evaluation", whose conclusion is to prefer the randomisation test.
    """
    return compare_splits([a], [b], generator, level=level, weights=None if weights is None else [weights])


def compare_splits(
    a: Sequence[Floats],
    b: Sequence[Floats],
    generator: np.random.Generator,
    *,
    level: float = 0.95,
    weights: Sequence[Floats | None] | None = None,
) -> Comparison:
    """Return how a does against b over several splits, an array (n_s,) a split, each split counting equally.

    With weights w, those of each split or None, the means are weighted. The tests by signs and ranks are of w d, where
    d are the differences and w is divided by its mean in the split. The squared standard error of the t-test is
    n / (n - 1) sum(w^2 (d - m)^2) / sum(w)^2, where m is the weighted mean. Raises DataError where the splits or their
    queries are not as many on both sides.
    """
    shapes = [np.shape(values) for values in a], [np.shape(values) for values in b]
    if shapes[0] != shapes[1] or not shapes[0]:
        raise DataError(
            f"compared are values of shapes {shapes[0]} and {shapes[1]}: both sides need the same queries, "
            "split by split. Score both models on the same data."
        )
    values_a, values_b = ([np.asarray(values, dtype=np.float64) for values in side] for side in (a, b))
    weights = [None] * len(values_a) if weights is None else weights
    by_split = [x - y for x, y in zip(values_a, values_b, strict=True)]
    interval = stratified_interval(by_split, generator, level=level, weights=weights)
    pooled = np.concatenate(by_split)
    counted = pooled[~np.isnan(pooled)]
    tested = np.concatenate([weighted(gap, weight) for gap, weight in zip(by_split, weights, strict=True)])
    linear = np.concatenate([linearised(gap, weight) for gap, weight in zip(by_split, weights, strict=True)])
    return Comparison(
        difference=interval.mean,
        low=interval.low,
        high=interval.high,
        p_randomisation=randomisation_test(tested, np.zeros_like(tested), generator),
        p_t=paired_t(linear[~np.isnan(linear)]),
        p_wilcoxon=signed_rank(tested[~np.isnan(tested)]),
        effect=_effect(interval.mean, counted),
        wins=int((counted > 0).sum()),
        ties=int((counted == 0).sum()),
        losses=int((counted < 0).sum()),
        level=level,
        mean_a=_mean_where(by_split, values_a, weights),
        mean_b=_mean_where(by_split, values_b, weights),
        queries=len(counted),
    )


def _mean_where(difference: Sequence[Floats], values: Sequence[Floats], weights: Sequence[Floats | None]) -> float:
    """Return the mean of the splits' means over the queries whose difference is known."""
    common = [np.where(np.isnan(gap), np.nan, value) for gap, value in zip(difference, values, strict=True)]
    means = [mean_of(value, weight) for value, weight in zip(common, weights, strict=True)]
    return float(np.mean(means))


def paired_t(difference: Floats) -> float:
    """Return the two-sided p-value of Student's t for a mean difference of 0; difference is (n,) without NaN.

    1 for fewer than two queries, or where none differs; 0 where all differ by the same amount.
    """
    n = len(difference)
    if n < 2 or not difference.any():
        return 1.0
    deviation = _deviation(difference)
    if deviation == 0.0:
        return 0.0
    t = abs(float(difference.mean())) / (deviation / np.sqrt(n))
    return float(2.0 * scipy.special.stdtr(n - 1, -t))


def signed_rank(difference: Floats) -> float:
    """Return the two-sided p-value of Wilcoxon's signed ranks; difference is (n,) without NaN.

    Queries that do not differ are left out, differences of equal size share the mean of their ranks. Up to MAX_EXACT
    queries the 2^n sign patterns are counted, ties included, beyond it the statistic is taken as normal with the
    variance that the ties leave. Source: Wilcoxon 1945; Pratt & Gibbons 1981, chapter 3.
    """
    difference = difference[difference != 0.0]
    n = len(difference)
    if n == 0:
        return 1.0
    twice = _twice_the_ranks(np.abs(difference))  # whole numbers, midranks included
    positive = int(twice[difference > 0].sum())
    total = n * (n + 1)
    if n <= MAX_EXACT:
        return _counted(twice, min(positive, total - positive))
    deviation = float(np.sqrt((twice.astype(np.float64) ** 2).sum())) / 2  # of the sum of twice the positive ranks
    return float(2.0 * scipy.special.ndtr(-abs(positive - total / 2) / deviation))


def _twice_the_ranks(sizes: Floats) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return twice the rank of each size, from 1 upwards, equal sizes sharing their mean: (n,)."""
    _, place, count = np.unique(sizes, return_inverse=True, return_counts=True)
    last = np.cumsum(count)
    doubled: np.ndarray[tuple[int], np.dtype[np.int64]] = (2 * last - count + 1)[place].astype(np.int64)
    return doubled


def _counted(twice: np.ndarray[tuple[int], np.dtype[np.int64]], smaller: int) -> float:
    """Return the share of the sign patterns whose smaller sum is at most the observed one."""
    share = np.zeros(int(twice.sum()) + 1)  # of the patterns of the ranks so far, by their sum
    share[0] = 1.0
    for rank in twice:
        share[rank:] += share[:-rank].copy()
        share /= 2.0
    return min(1.0, 2.0 * float(share[: smaller + 1].sum()))


def _deviation(difference: Floats) -> float:
    """Return the standard deviation, 0 where values differ by rounding alone."""
    deviation = float(difference.std(ddof=1))
    return deviation if deviation > 1e-12 * float(np.abs(difference).max()) else 0.0


def _effect(mean: float, difference: Floats) -> float:
    if len(difference) and not difference.any():
        return 0.0
    deviation = _deviation(difference) if len(difference) > 1 else 0.0
    return mean / deviation if deviation > 0.0 else float("nan")


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Return the p-values adjusted for being as many as they are; None and NaN are passed through and not counted.

    An adjusted value at most alpha may be called significant, and the chance of even one wrong call among all is at
    most alpha, however the tests depend on each other. Source: Holm 1979.
    """
    tested = [k for k, p in enumerate(p_values) if p is not None and not np.isnan(p)]
    adjusted: list[float | None] = list(p_values)
    highest = 0.0
    for position, k in enumerate(sorted(tested, key=lambda k: float(p_values[k] or 0.0))):
        highest = max(highest, (len(tested) - position) * float(p_values[k] or 0.0))
        adjusted[k] = min(1.0, highest)
    return adjusted


@dataclass(frozen=True)
class Pair:
    """Model a against model b: mean difference a - b, p and Holm-corrected p (None without common queries)."""

    a: int
    b: int
    difference: float
    p: float | None
    p_holm: float | None
    wins: int
    ties: int
    losses: int


def pairwise(
    splits: Sequence[Floats], generator: np.random.Generator, weights: Sequence[Floats | None] | None = None
) -> list[Pair]:
    """Return every pair of models, a before b; the same random signs test all of them."""
    pairs = list(combinations(range(len(splits[0])), 2))
    if not pairs:
        return []
    by_split = [np.stack([values[a] - values[b] for a, b in pairs]) for values in splits]  # (pairs, n_s)
    weights = [None] * len(by_split) if weights is None else weights
    counts = [(~np.isnan(gap)).sum(axis=1) for gap in by_split]
    linear = [linearised(gap, weight) for gap, weight in zip(by_split, weights, strict=True)]
    means = [
        np.nansum(gap, axis=1) / np.where(count > 0, count, np.nan) for gap, count in zip(linear, counts, strict=True)
    ]
    difference = np.mean(means, axis=0)
    pooled = np.concatenate(by_split, axis=1)
    tested = np.concatenate([weighted(gap, weight) for gap, weight in zip(by_split, weights, strict=True)], axis=1)
    p = _p_values(np.nan_to_num(tested, nan=0.0), generator)
    found: list[float | None] = [None if np.isnan(d) else float(value) for d, value in zip(difference, p, strict=True)]
    adjusted = holm(found)
    return [
        Pair(
            a, b, float(difference[k]), found[k], adjusted[k],
            int((pooled[k] > 0).sum()), int((pooled[k] == 0).sum()), int((pooled[k] < 0).sum()),
        )
        for k, (a, b) in enumerate(pairs)
    ]  # fmt: skip


def _p_values(differences: Floats, generator: np.random.Generator) -> Floats:
    """Return the two-sided p of each row of differences, (pairs, n): its sum, under random signs.

    The observed pattern counts, so that p is never 0. Source: Smucker, Allan & Carterette 2007.
    """
    n = differences.shape[1]
    rounds = int(np.clip(MAX_SIGNS // max(n, 1), MIN_PATTERNS, MAX_PATTERNS))
    observed = np.abs(differences.sum(axis=1)) * (1 - 1e-12)
    reached = np.ones(len(differences))
    block = max(1, 1_000_000 // max(n, 1))
    for begin in range(0, rounds, block):
        size = min(block, rounds - begin)
        signs = 1.0 - 2.0 * generator.integers(2, size=(size, n), dtype=np.int8)
        reached += (np.abs(signs @ differences.T) >= observed).sum(axis=0)
    return reached / (1 + rounds)


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
