"""What was learnt about the categorical parameters of a solver: each by itself, each pair, and all together.

A search space may declare a parameter several times, with other choices under other conditions: "loss" and
"loss[newton]" are one parameter here, whose values are those of all its declarations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from optuna.distributions import CategoricalDistribution

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
    effect, low, high  the expected metric less its mean over the values of the parameter, and a 95 % interval of it;
                       without a surrogate model from the means of trials, without an interval
    """

    value: Value
    trials: int
    mean: float | None
    effect: float | None
    low: float | None
    high: float | None


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
    own = [choices for declared, choices in _declared(solver).items() if _own_name(declared) == name]
    return tuple(dict.fromkeys(value for choices in own for value in choices))


def value_of(trial: Trial, name: str) -> Value:
    """Return the value of a parameter in a trial, None where it was inactive."""
    return next((value for own, value in trial.params.items() if _own_name(own) == name), None)


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
    """Return what was learnt about each value of a categorical parameter."""
    values = categories(solver, name)
    trials, mean = _observed(solver, [{name: value} for value in values])
    expected, draws = _expected(solver, [{name: value} for value in values])
    if np.isnan(expected).all():
        expected, draws = mean, np.full((1, len(values)), np.nan)
    known = ~np.isnan(expected)
    effect, low, high = (np.full(len(values), np.nan) for _ in range(3))
    if known.sum() > 1:
        effect[known] = expected[known] - expected[known].mean()
        contrasts = draws[:, known] - draws[:, known].mean(axis=1, keepdims=True)
        low[known], high[known] = np.quantile(contrasts, [0.025, 0.975], axis=0)
    cells = zip(values, trials.tolist(), *([_none(x) for x in own] for own in (mean, effect, low, high)), strict=True)
    return [Level(*cell) for cell in cells]


def grid(solver: SolverTrials, one: str, other: str) -> Grid:
    """Return what was learnt about the combinations of two categorical parameters; more values go down."""
    down, across = sorted((one, other), key=lambda name: -len(categories(solver, name)))
    rows, columns = categories(solver, down), categories(solver, across)
    cells = [{down: a, across: b} for a in rows for b in columns]
    shape = (len(rows), len(columns))
    trials, mean = _observed(solver, cells)
    expected, draws = _expected(solver, cells)
    sd = draws.std(axis=0)
    return Grid(down, across, trials.reshape(shape), mean.reshape(shape), expected.reshape(shape), sd.reshape(shape))


def compositions(solver: SolverTrials, names: Sequence[str]) -> list[Composition]:
    """Return the combinations of some parameters that were tried, None where one was inactive, the best first."""
    by_values: dict[tuple[Value, ...], list[int]] = {}
    for k, trial in enumerate(solver.valued):
        by_values.setdefault(tuple(value_of(trial, name) for name in names), []).append(k)
    found = []
    for values, places in by_values.items():
        own = [solver.valued[k] for k in places]
        best = best_of(own)
        mean = float(np.mean([trial.value for trial in own if trial.value is not None]))
        found.append(Composition(values, len(own), mean, None if best is None else best.value))
    return sorted(found, key=lambda one: (one.best is None, -(one.mean if one.best is None else one.best)))


def _observed(solver: SolverTrials, settings: Sequence[Mapping[str, Value]]) -> tuple[Ints, Floats]:
    """Return the number of trials with each setting, and their mean metric, NaN of none."""
    counts, means = np.zeros(len(settings), dtype=np.int64), np.full(len(settings), np.nan)
    for k, setting in enumerate(settings):
        own = [
            trial.value
            for trial in solver.valued
            if trial.value is not None and all(value_of(trial, name) == value for name, value in setting.items())
        ]
        counts[k] = len(own)
        if own:
            means[k] = np.mean(own)
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
    active = [(~np.isnan(masked[:, own])).any(axis=1) for own in axes]
    return masked[np.logical_and.reduce(active)][:BACKGROUND]


def _none(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
