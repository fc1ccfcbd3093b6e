"""The posterior over a study's configurations, recomputed from its record, in units of the metric, for pages.

n    trials of the posterior        d    parameters, flat names in the order of the space
rows (m, d) configurations as in ranktune.tuner.gp.encoding: coordinates, NaN where a parameter is inactive

The hyperparameters are the maximum a posteriori ones. More than MAX_TRIALS_IN_BELIEF trials are thinned; the sampler
itself uses more, at a cost that a page cannot wait for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import scipy
from optuna.distributions import BaseDistribution, CategoricalDistribution

from ranktune.solvers.core.arrays import Floats, Ints
from ranktune.solvers.core.space import Value
from ranktune.tuner.gp.encoding import SpaceEncoding
from ranktune.tuner.gp.hyperparameters import FittedTrials, relative_variance, relative_variances, representatives
from ranktune.tuner.gp.paths import Paths
from ranktune.tuner.gp.posterior import (
    Hyperparameters,
    Posterior,
    compress_losers,
    matern52,
    squared_distances,
    standardise,
)
from ranktune.tuner.samplers.history import UNKNOWN_NOISE, DeclaredSpace, arranged

MAX_TRIALS_IN_BELIEF = 150
"""Largest number of trials of a belief."""
GRID = 41
"""Points of a slice along a number."""


class Space(DeclaredSpace, Protocol):
    """The part of a UnionSpace that a belief uses."""

    def defaults(self) -> list[dict[str, Value]]:
        """Return the default configuration of each solver, by flat name."""
        ...


@dataclass(frozen=True)
class Observation:
    """An observed configuration, by flat name, with its value (None: it failed) and the variance of the value.

    partial: of a trial that was stopped early, the variance of the difference from its value on the whole plan.
    """

    params: Mapping[str, object]
    value: float | None
    variance: float | None = None
    partial: float | None = None


@dataclass(frozen=True, eq=False)
class Slice:
    """The posterior along one parameter, with all others fixed.

    name      flat; log: whether numbers are on a logarithmic scale; values: (m,) numbers, or categories
    mean, sd  (m,) of the noise-free metric; draws: (k, m) sample paths
    """

    name: str
    log: bool
    values: tuple[Any, ...]
    mean: Floats
    sd: Floats
    draws: Floats

    @property
    def is_number(self) -> bool:
        """Whether the parameter is a number."""
        return all(isinstance(value, int | float) and not isinstance(value, bool) for value in self.values)


@dataclass(frozen=True, eq=False)
class Belief:
    """The posterior in terms of the study's parameters and metric; made by fit_belief.

    chosen  (n,) places of the used observations    rows: those, as the sampler encodes them
    centre, spread: gain = centre + spread * standardised gain
    """

    space: Space
    encoding: SpaceEncoding
    chosen: Ints
    rows: Floats
    posterior: Posterior
    centre: float
    spread: float

    @property
    def noise_sd(self) -> float:
        """The standard deviation of the noise, in units of the metric."""
        return float(np.sqrt(self.posterior.hyperparameters.noise)) * self.spread

    def mean_and_sd(self, rows: Floats) -> tuple[Floats, Floats]:
        """Return the posterior mean and standard deviation of the metric at masked rows, each (m,)."""
        mean, variance = self.posterior.mean_and_variance(self.encoding.embed(rows))
        return self.centre + self.spread * mean, self.spread * np.sqrt(variance)

    def draws(self, rows: Floats, count: int, generator: np.random.Generator) -> Floats:
        """Return count sample paths at masked rows, (count, m).

        Far from all trials they revert to the mean of the trials, which are better than average configurations.
        """
        paths = Paths.drawn(self.posterior, generator, count)
        result: Floats = self.centre + self.spread * paths.values(self.encoding.embed(rows)).T
        return result

    def left_out(self) -> tuple[Floats, Floats]:
        """Return the leave-one-out mean and standard deviation of each trial, each (n,), hyperparameters fixed.

        Source: Rasmussen & Williams 2006, eq. 5.12.
        """
        lower, _ = scipy.linalg.lapack.dpotri(self.posterior.L, lower=1)
        variance = 1.0 / np.asarray(lower).diagonal()
        expected = self.posterior.y - self.posterior.a * variance
        return self.centre + self.spread * expected, self.spread * np.sqrt(variance)

    def axis(self, name: str) -> int:
        """Return the axis of a parameter, by flat name."""
        return list(self.space.distributions).index(name)

    def external(self, name: str, places: Floats) -> tuple[Any, ...]:
        """Return the values of a parameter at coordinates."""
        distribution = self.space.distributions[name]
        decoded = self.encoding.axes[self.axis(name)].decode(places)
        return tuple(distribution.to_external_repr(float(value)) for value in decoded)

    def grid(self, name: str, count: int = GRID) -> Floats:
        """Return coordinates along a parameter: all values if they are few, else count of them."""
        axis = self.encoding.axes[self.axis(name)]
        if axis.count <= count:
            return axis.grid() if axis.step or axis.choices else np.array([0.5])
        return np.unique(axis.snap(np.linspace(0.0, 1.0, count)))

    def full(self, params: Mapping[str, object]) -> Floats:
        """Return a configuration as a full row, (d,), with defaults of inactive parameters."""
        merged: dict[str, object] = {}
        for name, when in self.space.conditions.items():  # some parameters are in no default configuration
            merged[name] = _any_value(self.space.distributions[name]) if when else None
        for defaults in self.space.defaults():
            merged |= defaults
        row: Floats = arranged(self.space, [merged | dict(params)])[1][0]
        return row

    def slice(self, params: Mapping[str, object], name: str, draws: int = 0, seed: int = 0) -> Slice:
        """Return the posterior along a parameter from a configuration; equal seeds draw equal sample paths."""
        places = self.grid(name)
        rows = np.repeat(self.full(params)[None], len(places), axis=0)
        rows[:, self.axis(name)] = places
        rows = self.encoding.masked(rows)
        mean, sd = self.mean_and_sd(rows)
        drawn = self.draws(rows, draws, np.random.default_rng(seed))
        log = bool(getattr(self.space.distributions[name], "log", False))
        return Slice(name, log, self.external(name, places), mean, sd, drawn)

    def dependence(self, name: str, others: Floats, count: int = 21) -> Slice:
        """Return the partial dependence on a parameter over the full rows others, (k, d), in which it is active.

        sd is the posterior standard deviation of the mean over rows.
        """
        j = self.axis(name)
        others = others[~np.isnan(self.encoding.masked(others)[:, j])]
        places = self.grid(name, count)
        mean, sd = np.zeros(len(places)), np.zeros(len(places))
        if len(others):
            rows = np.tile(others, (len(places), 1))
            rows[:, j] = np.repeat(places, len(others))
            E = self.encoding.embed(self.encoding.masked(rows))
            mean, sd = self._mean_of_groups(E, len(others))
        log = bool(getattr(self.space.distributions[name], "log", False))
        values = self.external(name, places)
        return Slice(name, log, values, self.centre + self.spread * mean, self.spread * sd, np.zeros((0, len(places))))

    def _mean_of_groups(self, E: Floats, size: int) -> tuple[Floats, Floats]:
        """Return the mean and standard deviation of the mean gain of each group of size rows, (len(E) / size,) each."""
        posterior, groups = self.posterior, len(E) // size
        cross = posterior.cross(E).reshape(groups, size, -1).mean(axis=1)
        half = scipy.linalg.solve_triangular(posterior.L, cross.T, lower=True, check_finite=False)
        prior = np.empty(groups)
        for k, group in enumerate((E * posterior.root).reshape(groups, size, -1)):
            prior[k] = matern52(squared_distances(group, group), posterior.hyperparameters.scale).mean()
        variance = prior - np.einsum("ij,ij->j", half, half)
        return cross @ posterior.a, np.sqrt(np.maximum(variance, 0.0))


def fit_belief(space: Space, observed: Sequence[Observation], most: int = MAX_TRIALS_IN_BELIEF) -> Belief | None:
    """Return the posterior after the observations; None if no value is known or no parameter varies.

    Failed trials count as the worst observed value, as in the sampler.
    """
    values = np.array([np.nan if trial.value is None else trial.value for trial in observed], dtype=np.float64)
    finite = np.isfinite(values)
    if not finite.any():
        return None
    gains = np.where(finite, values, values[finite].min())
    chosen = representatives(gains, most)
    encoding, rows = arranged(space, [observed[i].params for i in chosen])
    if not encoding.varying:
        return None
    gains = gains[chosen]
    variances = np.array(
        [np.nan if observed[i].variance is None else observed[i].variance for i in chosen], dtype=np.float64
    )
    noise = np.where(finite[chosen], 1.0, UNKNOWN_NOISE) * relative_variance(
        np.nan_to_num(variances, nan=0.0, posinf=0.0)
    )
    extra = np.array([observed[i].partial or 0.0 for i in chosen], dtype=np.float64)
    E = encoding.embed(rows)
    theta = FittedTrials(E, gains, noise, encoding.axis_of_column, extra=extra).fit()
    e = relative_variances(gains, extra)
    posterior = Posterior.of(E, standardise(gains), noise, Hyperparameters.from_log(theta), encoding.axis_of_column, e)
    compressed = compress_losers(gains)
    return Belief(space, encoding, chosen, rows, posterior, float(compressed.mean()), float(compressed.std()))


def _any_value(distribution: BaseDistribution) -> object:
    """Return some value of the distribution."""
    return distribution.choices[0] if isinstance(distribution, CategoricalDistribution) else distribution.low  # type: ignore[attr-defined]
