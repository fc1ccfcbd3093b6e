"""Permutation importance: the loss of a forest that predicts the metric when one parameter is shuffled.

n    trials        d    parameters        rows  (n, d) configurations as in ranktune.tuner.gp.encoding, NaN where
inactive

Each of many forests grows on a resample of the trials and predicts the left-out ones, once as they are and once with
one parameter shuffled among those in which it is active. What depends on the parameter goes with it: a parameter that
its new value makes active has the value of the trial it came from, and one that it makes inactive has none. Half the
rise of the squared error, as a share of the variance
of the metric, is the importance: the total effect of the parameter, with interactions, so that shares may sum to more
than 1. It is about 0, or slightly negative, for an irrelevant parameter; its spread over resamples is its uncertainty.
Importance refers to the configurations tried, which concentrate where the optimiser found them good.
Source: Jansen 1999, "Analysis of variance designs for model output".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ranktune.solvers.core.arrays import Floats, Ints

Inputs: TypeAlias = NDArray[np.float32]
Mask: TypeAlias = Callable[[Floats], Floats]
"""Full rows -> the same with NaN where a parameter is inactive."""

MIN_TRIALS = 10
"""Trials that an importance needs."""
MAX_TRIALS = 200
"""Largest number of trials; of more a random sample is used."""
RESAMPLES, TREES = 20, 3
"""Forests, and trees in each: what differs between forests is what is inputs for, so they are many and small."""
SMALLEST_LEAF = 3
INACTIVE = -1.0


@dataclass(frozen=True, eq=False)
class ParameterImportance:
    """Shares of the metric's variance, each (d,): their mean over resamples and the middle 90 %; n: trials used."""

    mean: Floats
    low: Floats
    high: Floats
    n: int


def importance(
    rows: Floats,
    values: Floats,
    generator: np.random.Generator,
    *,
    columns: Ints | None = None,
    masked: Mask | None = None,
) -> ParameterImportance | None:
    """Return the importance of each parameter for values, (n,); None where trials are too few or all alike.

    columns are the parameters in question, all by default. masked returns full rows with NaN where inactive; without it
    no parameter depends on another.
    """
    columns = np.arange(rows.shape[1]) if columns is None else columns
    finite = np.isfinite(values)
    rows, values = rows[finite], values[finite]
    if len(values) > MAX_TRIALS:
        drawn = np.sort(generator.choice(len(values), MAX_TRIALS, replace=False))
        rows, values = rows[drawn], values[drawn]
    if len(values) < MIN_TRIALS:
        return None
    variance = float(values.var())
    if variance <= 1e-18 * float(np.mean(values * values)) or len(columns) == 0:
        return None
    losses = [_losses(rows, values, columns, masked, generator) for _ in range(RESAMPLES)]
    shares = np.array([loss for loss in losses if loss is not None]) / variance
    low, high = np.quantile(shares, [0.05, 0.95], axis=0)
    return ParameterImportance(shares.mean(axis=0), low, high, len(values))


def _losses(
    rows: Floats,
    values: Floats,
    columns: Ints,
    masked: Mask | None,
    generator: np.random.Generator,
) -> Floats | None:
    """Return the rise of the squared error on what one resample leaves out, (len(columns),), one shuffled at a time."""
    n, d = rows.shape
    drawn: Ints = np.asarray(generator.integers(n, size=n))
    out = np.setdiff1d(np.arange(n), drawn)
    if len(out) < 2:
        return None
    changed = np.repeat(rows[None, out], len(columns) + 1, axis=0)  # the last as it is
    for shuffled, j in zip(changed, columns.tolist(), strict=False):
        active = np.flatnonzero(~np.isnan(shuffled[:, j]))
        shuffled[active] = exchanged(shuffled[active], shuffled[generator.permutation(active)], j, masked)
    X, inputs = _inputs(rows), _inputs(changed.reshape(-1, d))
    predictions = _forest(X, values, drawn, inputs, generator).reshape(len(columns) + 1, len(out))
    errors = ((predictions - values[out]) ** 2).mean(axis=1)
    losses: Floats = 0.5 * (errors[:-1] - errors[-1])  # of two values drawn alike, whose difference varies twice
    return losses


def exchanged(rows: Floats, donors: Floats, j: int, masked: Mask | None) -> Floats:
    """Return rows with parameter j, and what depends on it, as in the rows donors."""
    mixed = rows.copy() if masked is None else np.where(np.isnan(rows), donors, rows)
    mixed[:, j] = donors[:, j]
    if masked is None:
        return mixed
    unknown = np.isnan(mixed)
    return np.where(unknown, np.nan, masked(np.where(unknown, 0.0, mixed)))


def _inputs(rows: Floats) -> Inputs:
    return np.where(np.isnan(rows), INACTIVE, rows).astype(np.float32)


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
