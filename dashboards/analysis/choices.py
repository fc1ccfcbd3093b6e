"""Effects of the categorical parameters of a solver: of each alone, of each pair, and of all together.

A search space may declare a parameter several times, with other choices under other conditions: "loss" and
"loss[newton]" are one parameter here, whose values are those of all its declarations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import scipy
from optuna.distributions import CategoricalDistribution

from ranktune.dashboards.analysis.beliefs import observations
from ranktune.dashboards.analysis.solver_trials import SolverTrials
from ranktune.dashboards.records.trial import Trial, best_of
from ranktune.solvers.core.arrays import Floats, Ints
from ranktune.solvers.core.space import Value
from ranktune.tuner.samplers.belief import Belief

BACKGROUND = 24
"""Configurations that an expected metric is the mean over."""
POOL = 240
"""Random configurations of which the first BACKGROUND are taken that have the parameters in question."""
DRAWS = 256
"""Sample paths of the surrogate model for an interval."""


@dataclass(frozen=True)
class Level:
    """One value of a parameter.

    trials, mean       the trials that had it, and their mean metric
    effect, low, high  the expected metric less its mean over the values that were tried, and a 95 % interval of it;
                       without a surrogate model from the means of trials, without an interval; NaN where not known
    """

    value: Value
    trials: int
    mean: float
    effect: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Grid:
    """Two parameters, a row for each value of down and a column for each value of across.

    trials, mean    the trials of each combination, and their mean metric, NaN where there are none
    expected, sd    the expected metric by the surrogate model and its standard deviation; NaN without a model, and
                    where the search space does not have the combination
    """

    down: str
    across: str
    trials: Ints
    mean: Floats
    expected: Floats
    sd: Floats


@dataclass(frozen=True)
class Composition:
    """One combination of all categorical parameters, with its trials; best is the highest full value."""

    values: tuple[Value, ...]
    trials: int
    mean: float
    best: float | None


def choices_of(solver: SolverTrials) -> list[str]:
    """Return the parameters with several categories, the most important first where that is known."""
    names = dict.fromkeys([*map(_own_name, solver.ranked), *(map(_own_name, _declared(solver)))])
    return [name for name in names if len(categories(solver, name)) > 1]


def categories(solver: SolverTrials, name: str) -> tuple[Value, ...]:
    """Return the values of a parameter in all of its declarations, none of a numeric one."""
    lists = [choices for declared, choices in _declared(solver).items() if _own_name(declared) == name]
    return tuple(dict.fromkeys(value for choices in lists for value in choices))


def value_of(trial: Trial, name: str) -> Value:
    """Return the value of a parameter in a trial, None where it was inactive."""
    return next((value for parameter, value in trial.params.items() if _own_name(parameter) == name), None)


def _own_name(declared: str) -> str:
    return declared.partition("[")[0]


def _declared(solver: SolverTrials) -> dict[str, tuple[Value, ...]]:
    """Return the choices of each declaration of a categorical parameter, also of one with a single choice."""
    prefix, space = f"{solver.name}.", solver.space
    return {
        name.removeprefix(prefix): tuple(distribution.choices)
        for name, distribution in ({} if space is None else space.distributions).items()
        if name.startswith(prefix) and isinstance(distribution, CategoricalDistribution)
    }


def levels(solver: SolverTrials, name: str) -> list[Level]:
    """Return the effect of each value of a categorical parameter."""
    values = categories(solver, name)
    trials, mean = _observed(solver, [{name: value} for value in values])
    known = trials > 0
    effect, half = np.full(len(values), np.nan), np.full(len(values), np.nan)
    if known.sum() > 1:
        tried = [value for value, of_value in zip(values, known, strict=True) if of_value]
        effect[known] = mean[known] - mean[known].mean()
        if solver.surrogate is not None:
            effect[known], half[known] = _effects(solver, solver.surrogate, name, tried)
    cells = zip(values, trials.tolist(), mean, effect, effect - half, effect + half, strict=True)
    return [Level(*cell) for cell in cells]


def _effects(solver: SolverTrials, belief: Belief, name: str, values: Sequence[Value]) -> tuple[Floats, Floats]:
    """Return the effects of values of a parameter, each (k,), and half the lengths of their 95 % intervals.

    The expected metric of each value is corrected by the mean leave-one-out error of the surrogate model at the trials
    that had the value. Without the correction, the model shrinks values with few trials towards the mean, and
    underestimates the effect of bad values.
    Source: Robins, Rotnitzky & Zhao 1994, the augmented estimator of a mean.
    """
    expected, draws = _expected(solver, [{name: value} for value in values])
    trials, errors = _errors(solver, belief)
    has_value = np.array([[value_of(trial, name) == value for trial in trials] for value in values], dtype=np.float64)
    n = np.maximum(has_value.sum(axis=1), 1.0)
    contrast = np.eye(len(values)) - 1.0 / len(values)
    effect = contrast @ (expected + has_value @ errors / n)
    variance = (contrast @ draws.T).var(axis=1) + contrast**2 @ (float(errors @ errors) / max(len(trials), 1) / n)
    return effect, scipy.special.stdtrit(max(len(trials) - len(values), 1), 0.975) * np.sqrt(variance)


def _errors(solver: SolverTrials, belief: Belief) -> tuple[list[Trial], Floats]:
    """Return the trials that the surrogate model is fitted to, and their leave-one-out errors.

    All observations of a trial are left out together. Source: Rasmussen & Williams 2006, eq. 5.12, by blocks.
    """
    observed = observations(solver.trials)
    block_of = np.cumsum([trial is not None for _, trial in observed])[belief.chosen]
    lower, _ = scipy.linalg.lapack.dpotri(belief.posterior.L, lower=1)
    inverse, gains = np.tril(lower) + np.tril(lower, -1).T, belief.posterior.y
    trials, errors = [], []
    for block in np.unique(block_of):
        places = np.flatnonzero(block_of == block)
        residuals = np.linalg.solve(inverse[np.ix_(places, places)], belief.posterior.a[places])
        for place, residual in zip(places, residuals, strict=True):
            trial = observed[belief.chosen[place]][1]
            if trial is not None and trial.value is not None:
                trials.append(trial)
                predicted = belief.centre + belief.spread * (gains[place] - residual)
                errors.append(trial.value - float(predicted))
    return trials, np.array(errors)


def grid(solver: SolverTrials, first: str, second: str) -> Grid:
    """Return the means of the combinations of two categorical parameters; the parameter with more values goes down."""
    down, across = sorted((first, second), key=lambda name: -len(categories(solver, name)))
    rows, columns = categories(solver, down), categories(solver, across)
    cells = [{down: a, across: b} for a in rows for b in columns]
    trials, mean = _observed(solver, cells)
    expected, draws = _expected(solver, cells)
    shape = (len(rows), len(columns))
    tables = (each.reshape(shape) for each in (mean, expected, draws.std(axis=0)))
    return Grid(down, across, trials.reshape(shape), *tables)


def compositions(solver: SolverTrials, names: Sequence[str]) -> list[Composition]:
    """Return the combinations of some parameters that were tried, None where one was inactive, the best first."""
    by_values: dict[tuple[Value, ...], list[int]] = {}
    for k, trial in enumerate(solver.valued):
        by_values.setdefault(tuple(value_of(trial, name) for name in names), []).append(k)
    composed = []
    for values, places in by_values.items():
        trials = [solver.valued[k] for k in places]
        best = best_of(trials)
        mean = float(np.mean([trial.value for trial in trials if trial.value is not None]))
        composed.append(Composition(values, len(trials), mean, None if best is None else best.value))
    return sorted(composed, key=lambda row: (row.best is None, -(row.mean if row.best is None else row.best)))


def _observed(solver: SolverTrials, settings: Sequence[Mapping[str, Value]]) -> tuple[Ints, Floats]:
    """Return the number of trials with each setting, and their mean metric, NaN without trials."""
    counts, means = np.zeros(len(settings), dtype=np.int64), np.full(len(settings), np.nan)
    for k, setting in enumerate(settings):
        observed = [
            trial.value
            for trial in solver.valued
            if trial.value is not None and all(value_of(trial, name) == value for name, value in setting.items())
        ]
        counts[k] = len(observed)
        if observed:
            means[k] = np.mean(observed)
    return counts, means


def _expected(solver: SolverTrials, settings: Sequence[Mapping[str, Value]]) -> tuple[Floats, Floats]:
    """Return the expected metric of each setting, (k,), and sample paths of it, (draws, k), by the surrogate model.

    It is the mean over configurations from the whole search space that have the setting; NaN where there are none.
    """
    mean, draws = np.full(len(settings), np.nan), np.full((DRAWS, len(settings)), np.nan)
    belief = solver.surrogate
    if belief is None:
        return mean, draws
    generator = np.random.default_rng(solver.data.study.seed)
    pool = belief.encoding.from_unit(generator.random((POOL, len(belief.encoding.axes))))
    rows = [_rows_with(solver, belief, pool, setting) for setting in settings]
    together = np.concatenate(rows)
    if len(together):
        means, paths = belief.mean_and_sd(together)[0], belief.draws(together, DRAWS, generator)
        for k, (a, b) in enumerate(pairwise(np.cumsum([0, *map(len, rows)]))):
            if b > a:
                mean[k], draws[:, k] = means[a:b].mean(), paths[:, a:b].mean(axis=1)
    return mean, draws


def _rows_with(solver: SolverTrials, belief: Belief, pool: Floats, setting: Mapping[str, Value]) -> Floats:
    """Return the first BACKGROUND full rows of pool that can have the setting, with it, masked."""
    rows, axes = pool.copy(), []
    for name, value in setting.items():
        having = {
            declared: choices.index(value)
            for declared, choices in _declared(solver).items()
            if _own_name(declared) == name and value in choices
        }
        axes.append([belief.axis(f"{solver.name}.{declared}") for declared in having])
        rows[:, axes[-1]] = list(having.values())
    masked = belief.encoding.masked(rows)
    active = [(~np.isnan(masked[:, columns])).any(axis=1) for columns in axes]
    return masked[np.logical_and.reduce(active)][:BACKGROUND]
