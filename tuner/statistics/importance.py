"""Permutation importance: the loss of a forest that predicts the metric when one parameter is shuffled.

n    trials        d    parameters        rows  (n, d) configurations as in ranktune.tuner.gp.encoding, NaN where
inactive

Each of many forests grows on a resample of the trials and predicts the left-out ones, once as they are and once with
one parameter shuffled among those in which it is active. Half the rise of the squared error, as a share of the variance
of the metric, is the importance: the total effect of the parameter, with interactions, so that shares may sum to more
than 1. It is about 0, or slightly negative, for an irrelevant parameter; its spread over resamples is its uncertainty.
Importance refers to the configurations tried, which concentrate where the optimiser found them good.
Source: Jansen 1999, "Analysis of variance designs for model output".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ranktune.solvers.core.arrays import Floats, Ints

Inputs: TypeAlias = NDArray[np.float32]

MIN_TRIALS = 10
"""Trials that an importance needs."""
MAX_TRIALS = 200
"""Largest number of trials; of more a random sample is used."""
RESAMPLES, TREES = 20, 3
"""Forests, and trees in each: what differs between forests is what is inputs for, so they are many and small."""
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
    if len(values) > MAX_TRIALS:
        kept = np.sort(generator.choice(len(values), MAX_TRIALS, replace=False))
        rows, values = rows[kept], values[kept]
    if len(values) < MIN_TRIALS:
        return None
    variance = float(values.var())
    if variance <= 1e-18 * float(np.mean(values * values)) or rows.shape[1] == 0:
        return None
    X = np.where(np.isnan(rows), INACTIVE, rows).astype(np.float32)
    losses = [_losses(X, values, np.isnan(rows), generator) for _ in range(RESAMPLES)]
    shares = np.array([loss for loss in losses if loss is not None]) / variance
    low, high = np.quantile(shares, [0.05, 0.95], axis=0)
    return Importance(shares.mean(axis=0), low, high, len(values))


def _losses(X: Inputs, values: Floats, inactive: NDArray[np.bool_], generator: np.random.Generator) -> Floats | None:
    """Return the rise of the squared error on what one resample leaves out, (d,), a parameter shuffled at a time."""
    n, d = len(X), X.shape[1]
    drawn = generator.integers(n, size=n)
    out = np.setdiff1d(np.arange(n), drawn)
    if len(out) < 2:
        return None
    inputs = np.repeat(X[None, out], d + 1, axis=0)  # the last as it is
    for j in range(d):
        active = np.flatnonzero(~inactive[out, j])
        inputs[j, active, j] = inputs[j, generator.permutation(active), j]
    predictions = _forest(X, values, drawn, inputs.reshape(-1, d), generator).reshape(d + 1, len(out))
    errors = ((predictions - values[out]) ** 2).mean(axis=1)
    losses: Floats = 0.5 * (errors[:-1] - errors[-1])  # of two values drawn alike, whose difference varies twice
    return losses


def _forest(X: Inputs, values: Floats, drawn: Ints, inputs: Inputs, generator: np.random.Generator) -> Floats:
    """Return the mean prediction of trees grown on the rows drawn, (len(inputs),).

    Source: Geurts, Ernst & Wehenkel 2006, "Extremely randomized trees".
    """
    import sklearn  # imports for a second
    from sklearn.tree import ExtraTreeRegressor

    total = np.zeros(len(inputs))
    with sklearn.config_context(skip_parameter_validation=True):  # half the time of trees as small as these
        for seed in generator.integers(2**31, size=TREES):
            tree = ExtraTreeRegressor(min_samples_leaf=SMALLEST_LEAF, random_state=int(seed))
            tree.fit(X[drawn], values[drawn], check_input=False)
            total += tree.predict(inputs, check_input=False)
    return total / TREES
