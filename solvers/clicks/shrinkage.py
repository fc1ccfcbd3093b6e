"""Shrinkage of rates that few clicks tell: to what is expected, as strongly as the data say.

clicks    (n,) of groups      expected  (n,) clicks that a group of average rate would have
factor    (n,) rate of a group relative to what is expected

The factors are drawn from a gamma distribution of mean 1 and shape `strength`, clicks from a Poisson distribution of
mean factor times expected. Then the mean of a factor, given its clicks, is (clicks + strength) / (expected +
strength): the prior counts for as many clicks, which were expected. Source: Clayton & Kaldor 1987, "Empirical Bayes
estimates of age-standardized relative risks".
"""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln

from ranktune.solvers.core.arrays import Floats

WEAKEST, STRONGEST = 1e-2, 1e4


def strength_of(clicks: Floats, expected: Floats) -> float:
    """Return the shape of the distribution of factors under which clicks are most likely, in WEAKEST to STRONGEST."""
    from scipy.optimize import minimize_scalar  # takes a tenth of a second to import

    def loss(log_shape: float) -> float:
        shape = np.exp(log_shape)
        terms = gammaln(clicks + shape) - gammaln(shape) - shape * np.log1p(expected / shape)
        return -float(np.sum(terms - clicks * np.log(expected + shape)))

    found = minimize_scalar(
        loss, bounds=(np.log(WEAKEST), np.log(STRONGEST)), method="bounded", options={"xatol": 0.01}
    )
    return float(np.exp(found.x))


def shrunken(clicks: Floats, expected: Floats, strength: float | None = None) -> Floats:
    """Return the factors of groups; without a strength it is estimated. Where 0 is expected and it is 0, 0."""
    strength = strength_of(clicks, expected) if strength is None else strength
    total = expected + strength
    return np.divide(clicks + strength, total, out=np.zeros_like(total), where=total > 0.0)
