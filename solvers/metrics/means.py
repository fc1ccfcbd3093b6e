"""Means over queries that count by their weights.

values   (..., n) one number per query; NaN marks a query that does not count, such as one that a metric skips
weights  (n,) how often each query counts, positive; None if each counts once

A weighted mean is a ratio of two sums, sum(w x) / sum(w). Each query's share in its error is, to first order, that of
the linearised value m + r (x - m), where m is the weighted mean and r the weight divided by the mean weight of the
queries that count. The linearised values have the mean m, and their variance divided by n is the variance of m:
n / (n - 1) sum(w^2 (x - m)^2) / sum(w)^2. So what is computed of values without weights (mean, standard error,
t-test) is computed of linearised values with weights. Source: Cochran 1977, Sampling Techniques, chapter 6; Särndal,
Swensson & Wretman 1992, section 5.7.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ranktune.solvers.core.arrays import Floats


def mean_of(values: Floats, weights: Floats | None = None) -> float:
    """Return the mean of values, (n,), over the queries that count; NaN without any."""
    present = ~np.isnan(values)
    if not present.any():
        return float("nan")
    if weights is None:
        return float(values[present].mean())
    return float(np.average(values[present], weights=weights[present] / weights.max()))  # whose sum is finite


def mean_or_zero(per_query: Floats, weights: Floats | None = None) -> float:
    """Return the mean over the queries that count; 0 without any."""
    return 0.0 if np.isnan(per_query).all() else mean_of(per_query, weights)


def linearised(values: Floats, weights: Floats | None = None) -> Floats:
    """Return the values whose plain mean and variance are those of the weighted mean; values without weights."""
    if weights is None:
        return values
    share = relative(weights, values)
    count = (~np.isnan(values)).sum(axis=-1, keepdims=True)
    mean = np.nansum(share * values, axis=-1, keepdims=True) / np.maximum(count, 1)
    return np.asarray(mean + share * (values - mean))


def relative(weights: Floats, values: Floats) -> Floats:
    """Return weights divided by their mean over the queries that count, in the shape of values; 0 for the others."""
    present = ~np.isnan(values)
    counted = np.where(present, weights / weights.max(initial=0.0), 0.0)  # whose sum is finite
    total = counted.sum(axis=-1, keepdims=True)
    return np.asarray(counted * (present.sum(axis=-1, keepdims=True) / np.where(total > 0.0, total, 1.0)))


def effective_count(counted: NDArray[np.bool_], weights: Floats | None = None) -> float:
    """Return how many queries of equal weights have a mean as precise as that of the queries that are counted, (n,).

    It is sum(w)^2 / sum(w^2), the number of queries without weights. Source: Kish 1965, Survey Sampling.
    """
    if weights is None:
        return float(np.count_nonzero(counted))
    relative = weights[counted] / weights.max()
    return float(relative.sum() ** 2 / (relative**2).sum()) if len(relative) else 0.0
