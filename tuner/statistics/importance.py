"""How much each parameter matters: what a forest that predicts the metric loses when that parameter is shuffled.

n    trials        d    parameters        rows  (n, d) configurations as in ranktune.tuner.gp.encoding, NaN where
inactive

Each of many forests grows on a resample of the trials and is asked about the trials that it left out, once as they are
and once with one parameter shuffled among those in which it is active. Half the loss, as a share of the variance of the
metric, is the importance: the share that goes when the parameter is known no more, alone and with others, so that
shares may add up to more than 1. It is about 0, and may be below, for a parameter that does not matter. That it
differs between resamples tells how sure it is. Importance is over the configurations that were tried, which crowd
where an optimiser found them good. Source: Jansen 1999, "Analysis of variance designs for model output".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ranktune.solvers.core.arrays import Floats, Ints

FEWEST = 10
"""Trials below which nothing can be said."""
MOST = 200
"""Trials that forests grow on at most; more are chosen from at random."""
RESAMPLES, TREES = 20, 3
"""Forests, and trees in each: what differs between forests is what is asked for, so they are many and small."""
SMALLEST_LEAF = 3
INACTIVE = -1.0


@dataclass(frozen=True, eq=False)
class Importance:
    """Shares of the metric's variance, each (d,): their mean over resamples and the middle 90 %; n: trials used."""

    mean: Floats
    low: Floats
    high: Floats
    n: int


def importance(rows: Floats, values: Floats, generator: np.random.Generator) -> Importance | None:
    """Return the importance of each parameter for values, (n,); None where trials are too few or all alike."""
    known = np.isfinite(values)
    rows, values = rows[known], values[known]
    if len(values) > MOST:
        kept = np.sort(generator.choice(len(values), MOST, replace=False))
        rows, values = rows[kept], values[kept]
    if len(values) < FEWEST:
        return None
    variance = float(values.var())
    if variance <= 1e-18 * float(np.mean(values * values)) or rows.shape[1] == 0:
        return None
    X = np.where(np.isnan(rows), INACTIVE, rows).astype(np.float32)
    losses = [_losses(X, values, np.isnan(rows), generator) for _ in range(RESAMPLES)]
    shares = np.array([loss for loss in losses if loss is not None]) / variance
    low, high = np.quantile(shares, [0.05, 0.95], axis=0)
    return Importance(shares.mean(axis=0), low, high, len(values))


def _losses(X: Any, values: Floats, inactive: Any, generator: np.random.Generator) -> Floats | None:
    """Return the rise of the squared error on what one resample leaves out, (d,), a parameter shuffled at a time."""
    n, d = X.shape
    drawn = generator.integers(n, size=n)
    out = np.setdiff1d(np.arange(n), drawn)
    if len(out) < 2:
        return None
    asked = np.repeat(X[None, out], d + 1, axis=0)  # the last as it is
    for j in range(d):
        active = np.flatnonzero(~inactive[out, j])
        asked[j, active, j] = asked[j, generator.permutation(active), j]
    answers = _forest(X, values, drawn, asked.reshape(-1, d), generator).reshape(d + 1, len(out))
    errors = ((answers - values[out]) ** 2).mean(axis=1)
    losses: Floats = 0.5 * (errors[:-1] - errors[-1])  # of two values drawn alike, whose difference varies twice
    return losses


def _forest(X: Any, values: Floats, drawn: Ints, asked: Any, generator: np.random.Generator) -> Floats:
    """Return the mean answer of trees grown on the rows drawn, (len(asked),).

    Source: Geurts, Ernst & Wehenkel 2006, "Extremely randomized trees".
    """
    import sklearn  # takes a second to import, for those who look at importances
    from sklearn.tree import ExtraTreeRegressor

    total = np.zeros(len(asked))
    with sklearn.config_context(skip_parameter_validation=True):  # half the time of trees as small as these
        for seed in generator.integers(2**31, size=TREES):
            tree = ExtraTreeRegressor(min_samples_leaf=SMALLEST_LEAF, random_state=int(seed))
            tree.fit(X[drawn], values[drawn], check_input=False)
            total += tree.predict(asked, check_input=False)
    return total / TREES
