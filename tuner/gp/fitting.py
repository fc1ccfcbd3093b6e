"""The hyperparameters of a study's trials: their fit and samples, renewed as trials are added, and cached.

Both are renewed each time the number of trials has grown by a tenth, or by twenty, so that they depend on the trials
alone, and a cache of recent ones does not change them. More than MAX_FITTED_TRIALS trials are thinned.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from itertools import islice
from typing import TypeAlias

import numpy as np

from ranktune.solvers.core.arrays import Floats, Ints
from ranktune.tuner.gp.chain import chain
from ranktune.tuner.gp.hyperparameters import HyperparameterDensity, maximum_a_posteriori
from ranktune.tuner.gp.posterior import standard_deviation, standardise

MAX_FITTED_TRIALS = 300
"""Trials that the hyperparameters are fitted to: the likelihood of that many is sharp, and the cost is cubic."""
REFIT_EACH_TRIAL_UP_TO, REFIT_GROWTH, MOST_UNFITTED = 12, 1.1, 20
"""Up to 12 trials every one refits; beyond, growth by 10 %, or by 20 trials if these are fewer."""
SAMPLES, BURN_IN, THINNING = 16, 12, 2
"""Samples of a fit, steps of the chain before the first, and from one to the next."""

Scaled: TypeAlias = Callable[[Floats], Floats]
"""Gains, (n,), to y, (n,)."""
Fitted: TypeAlias = tuple[bytes, bytes, bytes, bytes, bytes, int, Scaled, float]
"""The trials of a fit, hashable: E, gains, noise, extra and columns as bytes, the number of columns, the scale of
gains, and the level of their noise."""


def fit(
    E: Floats,
    gains: Floats,
    v: Floats,
    axis_of_column: Ints,
    scaled: Scaled = standardise,
    level: float = 0.0,
    extra: Floats | float = 0.0,
) -> Floats:
    """Return the MAP theta for the trials, in the order in which they were made; scaled maps gains to y.

    level: the known noise variance of gains, or 0; extra, (n,): additional noise variances of single trials.
    """
    return np.array(_maximum(_fitted(E, gains, v, axis_of_column, scaled, level, extra)))


def samples(
    E: Floats,
    gains: Floats,
    v: Floats,
    axis_of_column: Ints,
    scaled: Scaled = standardise,
    level: float = 0.0,
    extra: Floats | float = 0.0,
) -> Floats:
    """Return SAMPLES thetas of their density given the same trials as those of `fit`, (SAMPLES, d + 2)."""
    return np.array(_samples(_fitted(E, gains, v, axis_of_column, scaled, level, extra)))


def _fitted(
    E: Floats, gains: Floats, v: Floats, axis_of_column: Ints, scaled: Scaled, level: float, extra: Floats | float
) -> Fitted:
    n = _fit_size(len(gains))
    kept = representatives(gains[:n], MAX_FITTED_TRIALS)
    extra = np.broadcast_to(extra, gains.shape)
    e, y, noise, more, axes = (
        array.tobytes() for array in (E[:n][kept], gains[:n][kept], v[:n][kept], extra[:n][kept], axis_of_column)
    )
    return e, y, noise, more, axes, E.shape[1], scaled, level


def relative_variances(gains: Floats, extra: Floats | float) -> Floats:
    """Return variances of gains in the units of standardised gains; 0 where gains are all equal."""
    spread = standard_deviation(gains) if np.any(extra) else 0.0
    return np.asarray(extra) / spread / spread if spread > 0.0 else np.zeros(np.shape(extra))


def _fit_size(n: int) -> int:
    """Return how many of the first of n trials the fit uses."""
    if n <= REFIT_EACH_TRIAL_UP_TO:
        return n
    if n >= MOST_UNFITTED / (REFIT_GROWTH - 1.0):
        return n - n % MOST_UNFITTED
    steps = int(np.floor(np.log(n / REFIT_EACH_TRIAL_UP_TO) / np.log(REFIT_GROWTH) + 1e-9))
    return max(REFIT_EACH_TRIAL_UP_TO, min(n, int(np.ceil(REFIT_EACH_TRIAL_UP_TO * REFIT_GROWTH**steps))))


def representatives(gains: Floats, most: int) -> Ints:
    """Return rising indices of at most that many trials: the best half of them, and an even choice of the others."""
    if len(gains) <= most:
        return np.arange(len(gains))
    order = np.argsort(-gains, kind="stable")
    half = most // 2
    evenly = np.linspace(half, len(gains) - 1, most - half).astype(np.int64)
    return np.sort(np.concatenate([order[:half], order[evenly]]))


@lru_cache(maxsize=16)
def _maximum(fitted: Fitted) -> tuple[float, ...]:
    return tuple(maximum_a_posteriori(_density(fitted)).tolist())


@lru_cache(maxsize=16)
def _samples(fitted: Fitted) -> tuple[tuple[float, ...], ...]:
    density = _density(fitted)
    steps = chain(density, np.array(_maximum(fitted)), np.random.default_rng(len(density.y)))  # always the same
    every = islice(steps, BURN_IN, BURN_IN + SAMPLES * THINNING, THINNING)
    return tuple(tuple(theta.tolist()) for theta in every)


def _density(fitted: Fitted) -> HyperparameterDensity:
    E, gains, v, extra, axes, n_columns, scaled, level = fitted
    observed = np.frombuffer(gains)
    rows = np.frombuffer(E).reshape(len(observed), n_columns)
    known = float(relative_variances(observed, level)), relative_variances(observed, np.frombuffer(extra))
    axis_of_column = np.frombuffer(axes, dtype=np.int64)
    return HyperparameterDensity(rows, scaled(observed), np.frombuffer(v), axis_of_column, *known)
