"""What the optimiser believes of a study's trials, recomputed from its record: in units of the metric, for people.

n    trials that the belief is made of        d    parameters, flat names in the order of the space
rows (m, d) configurations as in ranktune.tuner.gp.encoding: coordinates, NaN where a parameter is inactive

The hyperparameters are the maximum a posteriori ones. More than MAX_TRIALS_IN_BELIEF trials are thinned; the sampler
itself uses more, at a cost that a page cannot wait for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import scipy
from optuna.distributions import BaseDistribution, CategoricalDistribution

from ranktune.solvers.core.arrays import Floats, Ints
from ranktune.solvers.core.space import Value, When
from ranktune.tuner.gp.encoding import Encoding
from ranktune.tuner.gp.hyperparameters import fit, relative_variances, representatives
from ranktune.tuner.gp.kernels import matern52, squared_distances
from ranktune.tuner.gp.paths import Paths
from ranktune.tuner.gp.posterior import Hyperparameters, Posterior, compress_losers, standardise
from ranktune.tuner.samplers.history import LESS_SURE, arranged, relative_variance

MAX_TRIALS_IN_BELIEF = 150
"""Trials that a belief is made of at most."""
GRID = 41
"""Places along a number at which a slice is taken."""


class Space(Protocol):
    """What a belief needs of a UnionSpace."""

    distributions: dict[str, BaseDistribution]
    conditions: dict[str, tuple[When, ...]]

    def defaults(self) -> list[dict[str, Value]]:
        """Return the default configuration of each solver, by flat name."""
        ...


@dataclass(frozen=True)
class Observation:
    """A finished trial: its parameters by flat name, its value (None where it failed), the variance of that value.

    partial: of a trial that was stopped early, the variance by which its value may differ from that of the whole.
    """

    params: Mapping[str, Any]
    value: float | None
    variance: float | None = None
    partial: float | None = None


@dataclass(frozen=True, eq=False)
class Slice:
    """The belief along one parameter, all others as they were in one configuration.

    name      flat; log: whether numbers are on a logarithmic scale; values: (m,) numbers, or categories
    mean, sd  (m,) of the noise-free metric; draws: (k, m), functions that the belief holds possible
    """

    name: str
    log: bool
    values: tuple[Any, ...]
    mean: Floats
    sd: Floats
    draws: Floats

    @property
    def is_number(self) -> bool:
        """Whether the parameter is a number, and no choice."""
        return all(isinstance(value, int | float) and not isinstance(value, bool) for value in self.values)


@dataclass(frozen=True, eq=False)
class Belief:
    """The posterior with what is needed to ask it in the study's own terms; made by believe.

    chosen  (n,) places in the trials that were given    rows, gains, noise: those trials, as the sampler takes them
    centre, spread: gain = centre + spread * standardised gain
    """

    space: Space
    encoding: Encoding
    chosen: Ints
    rows: Floats
    gains: Floats
    noise: Floats
    posterior: Posterior
    centre: float
    spread: float

    @property
    def noise_sd(self) -> float:
        """How far a trial's value is believed to lie from what its configuration is worth, in units of the metric."""
        return float(np.sqrt(self.posterior.hyperparameters.noise)) * self.spread

    def mean_and_sd(self, rows: Floats) -> tuple[Floats, Floats]:
        """Return the expected metric at masked rows and its standard deviation, each (m,)."""
        mean, variance = self.posterior.mean_and_variance(self.encoding.embed(rows))
        return self.centre + self.spread * mean, self.spread * np.sqrt(variance)

    def draws(self, rows: Floats, count: int, generator: np.random.Generator, *, levelled: bool = False) -> Floats:
        """Return count functions drawn from the posterior at masked rows, (count, m).

        Far from all trials they come back to the mean of the trials, which an optimiser chose to be good. Levelled ones
        come back to a level of their own, drawn from what the trials tell of it when those that are near each other
        do not count over and over.
        Source: Rasmussen & Williams 2006, eq. 2.42, with a constant as the only basis function.
        """
        y = standardise(self.gains)
        E = self.encoding.embed(rows)
        paths = Paths.drawn(self.posterior, y, generator, count)
        if not levelled:
            return self.centre + self.spread * paths.values(E).T
        solved, _ = scipy.linalg.lapack.dpotrs(self.posterior.L, np.ones((len(y), 1)), lower=1)
        once = np.asarray(solved)
        total = float(once.sum())
        level = float(once[:, 0] @ y) / total + generator.standard_normal(count) / np.sqrt(total)
        paths = replace(paths, update=paths.update - once * level)  # as drawn given y - level
        result: Floats = self.centre + self.spread * (paths.values(E) + level).T
        return result

    def left_out(self) -> tuple[Floats, Floats]:
        """Return what would be expected of each trial had it not been made, and how far off it may be, each (n,).

        Source: Rasmussen & Williams 2006, eq. 5.12. Hyperparameters stay as they are.
        """
        lower, _ = scipy.linalg.lapack.dpotri(self.posterior.L, lower=1)
        variance = 1.0 / np.asarray(lower).diagonal()
        expected = standardise(self.gains) - self.posterior.a * variance
        return self.centre + self.spread * expected, self.spread * np.sqrt(variance)

    def axis(self, name: str) -> int:
        """Return the place of a parameter, by flat name."""
        return list(self.space.distributions).index(name)

    def external(self, name: str, places: Floats) -> tuple[Any, ...]:
        """Return the values of a parameter at coordinates."""
        distribution = self.space.distributions[name]
        decoded = self.encoding.axes[self.axis(name)].decode(places)
        return tuple(distribution.to_external_repr(float(value)) for value in decoded)

    def grid(self, name: str, count: int = GRID) -> Floats:
        """Return coordinates along a parameter: all of few values, else count from end to end."""
        axis = self.encoding.axes[self.axis(name)]
        if axis.count <= count:
            return axis.grid() if axis.step or axis.choices else np.array([0.5])
        return np.unique(axis.snap(np.linspace(0.0, 1.0, count)))

    def full(self, params: Mapping[str, Any]) -> Floats:
        """Return a configuration as a full row, (d,): defaults where a parameter is inactive."""
        merged: dict[str, Any] = {}
        for name, when in self.space.conditions.items():  # a default even of what no default configuration has
            merged[name] = _anything(self.space.distributions[name]) if when else None
        for defaults in self.space.defaults():
            merged |= defaults
        row: Floats = arranged(self.space, [merged | dict(params)])[1][0]
        return row

    def slice(self, params: Mapping[str, Any], name: str, draws: int = 0, seed: int = 0) -> Slice:
        """Return the belief along a parameter from a configuration; draws with one seed are of the same functions."""
        places = self.grid(name)
        rows = np.repeat(self.full(params)[None], len(places), axis=0)
        rows[:, self.axis(name)] = places
        rows = self.encoding.masked(rows)
        mean, sd = self.mean_and_sd(rows)
        drawn = self.draws(rows, draws, np.random.default_rng(seed))
        log = bool(getattr(self.space.distributions[name], "log", False))
        return Slice(name, log, self.external(name, places), mean, sd, drawn)

    def dependence(self, name: str, others: Floats, count: int = 21) -> Slice:
        """Return the mean of the metric over the full rows others, (k, d), as one parameter goes through its values.

        Only those of others in which the parameter is active count. sd is that of the mean, not of single rows: the
        uncertainty of the belief.
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
        """Return the expected mean of the gains of each group of size rows, (len(E) / size,), and how sure it is."""
        posterior, groups = self.posterior, len(E) // size
        cross = posterior.cross(E).reshape(groups, size, -1).mean(axis=1)
        half = scipy.linalg.solve_triangular(posterior.L, cross.T, lower=True, check_finite=False)
        prior = np.empty(groups)
        for k, own in enumerate((E * posterior.root).reshape(groups, size, -1)):
            prior[k] = posterior.hyperparameters.scale * matern52(squared_distances(own, own)).mean()
        variance = prior - np.einsum("ij,ij->j", half, half)
        return cross @ posterior.a, np.sqrt(np.maximum(variance, 0.0))


def fit_belief(space: Space, observed: Sequence[Observation], most: int = MAX_TRIALS_IN_BELIEF) -> Belief | None:
    """Return what the sampler believes after the trials observed, None where no value is known or nothing can vary.

    Failed trials count as the worst value observed, as the sampler has it.
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
    own = gains[chosen]
    given = np.array(
        [np.nan if observed[i].variance is None else observed[i].variance for i in chosen], dtype=np.float64
    )
    noise = np.where(finite[chosen], 1.0, LESS_SURE) * relative_variance(np.nan_to_num(given, nan=0.0, posinf=0.0))
    extra = np.array([observed[i].partial or 0.0 for i in chosen], dtype=np.float64)
    E = encoding.embed(rows)
    theta = fit(E, own, noise, encoding.axis_of_column, extra=extra)
    e = relative_variances(own, extra)
    posterior = Posterior.of(E, standardise(own), noise, Hyperparameters.from_log(theta), encoding.axis_of_column, e)
    kept = compress_losers(own)
    return Belief(space, encoding, chosen, rows, own, noise, posterior, float(kept.mean()), float(kept.std()))


def _anything(distribution: BaseDistribution) -> Any:
    """Return a value that the distribution has."""
    return distribution.choices[0] if isinstance(distribution, CategoricalDistribution) else distribution.low  # type: ignore[attr-defined]
