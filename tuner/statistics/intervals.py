"""Statistics over queries: intervals of means, and tests of differences.

values, a, b  (n,) one number a query, queries in the same order; NaN marks a query that the metric skips
weights       (n,) how often each query counts, positive; None if each counts once (`ranktune.solvers.metrics.means`)
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.metrics.means import linearised, mean_of, mean_or_zero, relative
from ranktune.tuner.statistics.measured import Interval

MANY, SKEWED = 1_000, 0.2
"""Queries of a stratum from which on quantiles are expanded, and the largest skewness of the mean for that."""
BLOCK = 500_000  # resampled values held at once: what fits a processor's cache
SIGNS = 1.0 - 2.0 * ((np.arange(256)[:, None] >> np.arange(8)) & 1)  # (256, 8) the signs that a byte's bits stand for


def stratified_interval(
    strata: Sequence[Floats],
    generator: np.random.Generator,
    *,
    level: float = 0.95,
    resamples: int = 10_000,
    weights: Sequence[Floats | None] | None = None,
) -> Interval:
    """Return the mean of the strata's means and its percentile bootstrap interval over queries.

    Queries are drawn with replacement within each stratum, since they are what would differ another time. A single
    query gives an interval without width: it says nothing of others. The strata are the test sets of several folds,
    whose table entry is the mean of their means. NaN everywhere where a stratum has no query that counts. With
    weights, those of each stratum or None, the means are weighted: of each resample too, sum(w x) / sum(w) of the
    queries drawn, which are drawn as without weights. Source: Efron & Tibshirani 1993, chapter 13.

    Of strata of 1,000 queries and more, or as many as weighted ones are worth, none is drawn unless the mean is skewed:
    the limits are those of endless draws up to about 0.02 standard errors, 0.08 of few values above 0. Those of 10,000
    draws vary by 0.03.
    """
    pairs = list[tuple[Floats, Floats | None]]()
    for values, all_of in zip(strata, weights or [None] * len(strata), strict=True):
        counts = ~np.isnan(values)
        pairs.append((values[counts], None if all_of is None else all_of[counts]))
    if not all(len(values) for values, _ in pairs):
        return Interval(float("nan"), float("nan"), float("nan"))
    mean = float(np.mean([mean_of(*pair) for pair in pairs]))
    levels = np.array([(1 - level) / 2, (1 + level) / 2])
    limits = _expanded_limits(pairs, mean, levels)
    if limits is None:
        means = np.mean([_resampled_means(*pair, generator, resamples) for pair in pairs], axis=0)
        limits = np.quantile(means, levels)
    return Interval(mean, *map(float, limits))


def _expanded_limits(pairs: Sequence[tuple[Floats, Floats | None]], mean: float, levels: Floats) -> Floats | None:
    """Return quantiles of the bootstrapped mean without draws; None of few queries, or where it is skewed.

    A weighted mean is expanded to the second order of the draws: its weights, too, are drawn. Source: Hall 1992, "The
    bootstrap and Edgeworth expansion", section 2.5, for the expansion of Cornish and Fisher; Kish 1965, "Survey
    sampling", for the number of queries that weighted ones are worth.
    """
    sums = np.zeros(3)
    for values, weights in pairs:
        shares = np.full(len(values), 1 / len(values)) if weights is None else weights / weights.sum()
        if shares @ shares * MANY > 1.0:
            return None
        terms = shares * (values - shares @ values) / len(pairs)  # of a query in the mean
        bias, variance = -terms @ shares, terms @ terms
        sums += bias, variance, (terms**3).sum() + 6.0 * variance * bias
    bias, variance, third = sums.tolist()
    skewness = third / variance**1.5 if variance > 1e-200 else 0.0  # below it the power is 0
    if abs(skewness) > SKEWED:
        return None
    z = scipy.special.ndtri(levels)
    return np.asarray(mean + bias + variance**0.5 * (z + (z**2 - 1.0) * skewness / 6.0))


def _resampled_means(values: Floats, weights: Floats | None, generator: np.random.Generator, resamples: int) -> Floats:
    """Return the means of resamples draws of len(values) values with replacement, (resamples,)."""
    means, block = list[Floats](), max(1, BLOCK // len(values))
    for begin in range(0, resamples, block):
        drawn = generator.integers(len(values), size=(min(block, resamples - begin), len(values)))
        if weights is None:
            means.append(values[drawn].mean(axis=1))
        else:
            means.append((values * weights)[drawn].sum(axis=1) / weights[drawn].sum(axis=1))
    return np.concatenate(means)


def paired(a: Floats, b: Floats, weights: Floats | None = None) -> tuple[float, float]:
    """Return the mean paired difference over queries, and its standard error.

    With weights the squared standard error is sum(w^2 (d - m)^2) / sum(w)^2, of the differences d and their mean m.
    """
    differences = linearised(a - b, weights)
    differences = differences[~np.isnan(differences)]
    error = float(differences.std()) / len(differences) ** 0.5 if len(differences) else 0.0
    return mean_or_zero(differences), error


def z_score(a: Floats, b: Floats, weights: Floats | None = None) -> float:
    """Return the mean paired difference over queries in standard errors; 0 if there is no difference."""
    ahead, error = paired(a, b, weights)
    if error > 0.0:
        return ahead / error
    return float(np.sign(ahead)) * np.inf if ahead else 0.0


def randomisation_test(
    a: Floats,
    b: Floats,
    generator: np.random.Generator,
    *,
    resamples: int = 10_000,
    weights: Floats | None = None,
) -> float:
    """Return the two-sided p-value of "a and b rank equally well", paired by query.

    Under that hypothesis the sign of each query's difference, times its weight, is a coin's. Up to 2**12 sign patterns
    are counted exactly, more are sampled, the observed one included, so that p is never 0. Queries that both skip or
    that do not differ carry no information and are left out. Source: Fisher 1935; Smucker, Allan & Carterette 2007.
    """
    difference = weighted(a - b, weights)
    difference = difference[~np.isnan(difference) & (difference != 0.0)]
    n = len(difference)
    if n == 0:
        return 1.0
    # sums in another order may differ in the last digits
    observed = abs(difference.sum()) - 1e-12 * np.abs(difference).sum()
    if n <= 12:
        signs = 1 - 2 * ((np.arange(2**n)[:, None] >> np.arange(n)) & 1)
        return float((np.abs(signs @ difference) >= observed).mean())
    sums = _sums_of_random_signs(difference, generator, resamples)
    return (1 + int((np.abs(sums) >= observed).sum())) / (1 + resamples)


def weighted(values: Floats, weights: Floats | None) -> Floats:
    """Return values times their weights relative to the mean weight, whose sum has the sign of the weighted mean."""
    return values if weights is None else np.asarray(values * relative(weights, values))


def _sums_of_random_signs(values: Floats, generator: np.random.Generator, resamples: int) -> Floats:
    """Return the sums of resamples draws of random signs for the values, (resamples,).

    A random byte gives eight values their signs, and their sum is looked up.
    """
    padded = np.zeros(-(-len(values) // 8) * 8)
    padded[: len(values)] = values
    table = (padded.reshape(-1, 8) @ SIGNS.T).ravel()  # 256 sums of the first eight values, of the next eight, ...
    begins = 256 * np.arange(len(padded) // 8)
    sums = np.empty(resamples)
    block = max(1, BLOCK // len(begins))
    for begin in range(0, resamples, block):
        size = min(block, resamples - begin)
        drawn = generator.integers(256, size=(size, len(begins)), dtype=np.uint8)
        sums[begin : begin + size] = table.take(drawn + begins).sum(axis=1)
    return sums
