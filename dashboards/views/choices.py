"""Choices: the categorical parameters of each solver, such as loss, pair weight, penalty and optimizer.

A panel's group is the solver: the effect of each value of each parameter, the grid of each pair of parameters, and the
combinations that were tried. A search space may declare a parameter several times, with other choices under other
conditions: "loss" and "loss[newton]" are one parameter here, whose values are those of all its declarations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, pairwise
from typing import Any, NamedTuple

import numpy as np
import scipy
from optuna.distributions import CategoricalDistribution

from ranktune.dashboards.figures.kinds import Dots, Heat
from ranktune.dashboards.figures.panels import Frame, Panel, grouped
from ranktune.dashboards.figures.plotly import short
from ranktune.dashboards.records.study import StudyData
from ranktune.dashboards.records.trial import Trial, best_of
from ranktune.dashboards.views.solver_trials import (
    MIN_TRIALS_FOR_SURFACE,
    SolverTrials,
    no_trials_note,
    observations,
    pooled,
    solvers_of,
)
from ranktune.solvers.core.arrays import Floats, Ints
from ranktune.solvers.core.space import Value
from ranktune.tuner.samplers.belief import Belief

BACKGROUND = 24
"""Configurations that an expected metric is the mean over."""
POOL = 240
"""Random configurations of which the first BACKGROUND are taken that have the parameters in question."""
DRAWS = 256
"""Sample paths of the surrogate model for an interval."""
MAX_GRIDS = 15
"""Pairs of parameters with a grid: those of the six most important."""
MIN_CELLS = 4
"""Combinations with trials that a grid needs where there is no surrogate model."""
MAX_COMBINATIONS = 20
"""Rows of the table of combinations."""


class Level(NamedTuple):
    """One value of a parameter.

    trials, mean       the trials that had it, and their mean metric
    effect, low, high  the expected metric less its mean over the values that were tried, and a 95 % interval of it;
                       without a surrogate model from the means of trials, without an interval; NaN where not known
    """

    value: str
    trials: int
    mean: float
    effect: float
    low: float
    high: float

    @property
    def verdict(self) -> str:
        """Whether the value is better or worse than the others; "" without an interval."""
        if np.isnan(self.low):
            return ""
        return "better" if self.low > 0.0 else "worse" if self.high < 0.0 else "not significant"


class Grid(NamedTuple):
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

    @property
    def is_modelled(self) -> bool:
        """Whether there is a surrogate model."""
        return bool(np.isfinite(self.expected).any())

    @property
    def shown(self) -> Floats:
        """What the cells show."""
        return self.expected if self.is_modelled else self.mean


class Combination(NamedTuple):
    """One combination of all categorical parameters, with its trials; best is the highest full value."""

    best: float | None
    mean: float
    trials: int
    values: tuple[Value, ...]


def panels(data: StudyData) -> list[Panel]:
    """Return the panels of each solver of which several combinations of categorical parameters were tried."""
    shown = [
        panel
        for k, solver in enumerate(solvers_of(data, pooled(data)))
        for panel in grouped(_of_solver(solver, choices_of(solver)), k, solver.name)
    ]
    note = "No solver was tried with two combinations of its choices yet."
    return shown or [Panel("effects", "Choices", note=no_trials_note(data) or note)]


def _of_solver(solver: SolverTrials, names: list[str]) -> Iterator[Panel]:
    composed = compositions(solver, names)
    if len(names) < 2 or len(composed) < 2:
        return
    yield _effects_panel(solver, names)
    rows = [[*row[:3], *row.values] for row in composed[:MAX_COMBINATIONS]]
    note = solver.note(
        f"{len(composed)} combinations of these parameters were tried, the best first.",
        f"The first {MAX_COMBINATIONS} are listed." * (len(composed) > MAX_COMBINATIONS),
        "A dash stands for a parameter that is not active.",
    )
    table = Frame((f"best {solver.metric}", f"mean {solver.metric}", "Trials", *names), rows)
    yield Panel("compositions", f"Combinations of {solver.title}", table, None, note)
    pairs = list(combinations(range(len(names)), 2))[:MAX_GRIDS]
    grids = {f"grid-{i}-{j}": grid(solver, names[i], names[j]) for i, j in pairs}
    values = np.concatenate([each.shown.ravel() for each in grids.values()])
    ends = (float(np.nanmin(values)), float(np.nanmax(values))) if np.isfinite(values).any() else (0.0, 1.0)
    for key, cells in grids.items():
        if cells.is_modelled or int((cells.trials > 0).sum()) >= MIN_CELLS:
            yield _grid_panel(solver, cells, ends, key)


def _effects_panel(solver: SolverTrials, names: list[str]) -> Panel:
    of_names = [(name, level) for name in names for level in levels(solver, name)]
    columns = ("Parameter", "Value", "Trials", "Mean of trials", "Effect", "Low", "High", "Verdict")
    table = Frame(columns, [[name, *level, level.verdict] for name, level in of_names])
    few = f"{len(solver.valued)} trials: too few for the surrogate model and for intervals"
    note = solver.note(
        f"An effect is the expected {solver.metric} with the value, less its mean over the values that were tried.",
        f"The surrogate model predicts it over {BACKGROUND} random configurations that can have the value, and its "
        "mean error at the trials with the value is added. A value that goes with certain other choices only counts "
        "together with them. Bars are 95 % intervals."
        if solver.surrogate is not None
        else f"From the means of {few}, {MIN_TRIALS_FOR_SURFACE} are needed.",
        "Trials that were stopped early count with their estimates." * any(t.stopped for t in solver.valued),
    )
    title = f"What was learnt about each choice of {solver.title}"
    if not any(np.isfinite(level.effect) for _, level in of_names):
        note = "No two values of a parameter that the study has now were tried."
        return Panel("effects", title, table, None, note)
    answer = "No choice is significantly better than the mean of the others."
    if better := [(level, name) for name, level in of_names if level.verdict == "better"]:
        level, name = max(better, key=lambda each: each[0].effect)
        gain = f"{level.effect:+.4f} [{level.low:.4f}, {level.high:.4f}] {solver.metric}"
        answer = f"{name} {short(level.value)} gains most: {gain}."
    series = {"effect": ("Effect", "Low", "High")}
    kind = Dots(("Parameter", "Value"), series, f"effect on {solver.metric}", "", by="Parameter")
    return Panel("effects", title, table, kind, note, answer=answer)


def _grid_panel(solver: SolverTrials, table: Grid, ends: tuple[float, float], key: str) -> Panel:
    metric, modelled = solver.metric, table.is_modelled
    rows_of, columns_of = (categories(solver, name) for name in table[:2])
    columns = (*table[:2], "Trials", "Mean of trials", f"Expected {metric}", "Deviation")
    cells = zip(*(cells.ravel() for cells in table[2:]), strict=True)
    rows = [[str(a), str(b), *next(cells)] for a in rows_of for b in columns_of]
    value = columns[4 if modelled else 3]

    def text(row: dict[str, Any]) -> str:
        return f"{row[value]:.3f}<br>n={row['Trials']}"

    few = f"{len(solver.valued)} trials are too few for the surrogate model, {MIN_TRIALS_FOR_SURFACE} are needed."
    note = solver.note(
        *(
            f"The expected {metric} by the surrogate model, averaged over all other parameters, and the number of "
            "trials.",
            "The model compresses low values; its standard deviation is "
            f"{np.nanmedian(table.sd):.2g}: smaller differences are noise.",
        )
        if modelled
        else (f"The mean of the trials of each combination and their number. {few}",),
        f"Colours go from {ends[0]:.4g} to {ends[1]:.4g}, and mean the same in all grids of the solver.",
        "The search space does not have the combinations whose cells are empty."
        * bool(modelled and np.isnan(table.expected).any()),
    )
    kind = Heat(table.down, table.across, value, metric, text, text, ends=ends)
    title = f"{metric} by {short(table.down)} and {short(table.across)} of {solver.title}"
    return Panel(key, title, Frame(columns, rows), kind, note)


def choices_of(solver: SolverTrials) -> list[str]:
    """Return the parameters with several categories, the most important first where that is known."""
    names = dict.fromkeys(map(_own_name, (*solver.ranked, *_declared(solver))))
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
    return {name: d.choices for name, d in solver.declared.items() if isinstance(d, CategoricalDistribution)}


def levels(solver: SolverTrials, name: str) -> list[Level]:
    """Return the effect of each value of a categorical parameter."""
    values = categories(solver, name)
    trials, mean = _observed(solver, [{name: value} for value in values])
    known = trials > 0
    effect, half = np.full((2, len(values)), np.nan)
    if known.sum() > 1:
        effect[known] = mean[known] - mean[known].mean()
        if solver.surrogate is not None:
            tried = [values[k] for k in np.flatnonzero(known)]
            effect[known], half[known] = _effects(solver, solver.surrogate, name, tried)
    cells = zip(map(str, values), trials.tolist(), mean, effect, effect - half, effect + half, strict=True)
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
                errors.append(trial.value - float(belief.centre + belief.spread * (gains[place] - residual)))
    return trials, np.array(errors)


def grid(solver: SolverTrials, first: str, second: str) -> Grid:
    """Return the means of the combinations of two categorical parameters; the parameter with more values goes down."""
    down, across = sorted((first, second), key=lambda name: -len(categories(solver, name)))
    rows, columns = categories(solver, down), categories(solver, across)
    cells = [{down: a, across: b} for a in rows for b in columns]
    expected, draws = _expected(solver, cells)
    (trials, mean), shape = _observed(solver, cells), (len(rows), len(columns))
    tables = (each.reshape(shape) for each in (mean, expected, draws.std(axis=0)))
    return Grid(down, across, trials.reshape(shape), *tables)


def compositions(solver: SolverTrials, names: Sequence[str]) -> list[Combination]:
    """Return the combinations of some parameters that were tried, None where one was inactive, the best first."""
    by_values: dict[tuple[Value, ...], list[Trial]] = {}
    for trial in solver.valued:
        by_values.setdefault(tuple(value_of(trial, name) for name in names), []).append(trial)
    composed = []
    for values, trials in by_values.items():
        best, mean = best_of(trials), float(np.mean([trial.value for trial in trials]))
        composed.append(Combination(None if best is None else best.value, mean, len(trials), values))
    return sorted(composed, key=lambda row: (row.best is None, -(row.mean if row.best is None else row.best)))


def _observed(solver: SolverTrials, settings: Sequence[Mapping[str, Value]]) -> tuple[Ints, Floats]:
    """Return the number of trials with each setting, and their mean metric, NaN without trials."""
    values = [
        [
            value
            for trial, value in zip(solver.valued, solver.values, strict=True)
            if all(value_of(trial, name) == each for name, each in setting.items())
        ]
        for setting in settings
    ]
    return np.array(list(map(len, values))), np.array([np.mean(of) if of else np.nan for of in values])


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
            belief.axis(f"{solver.name}.{declared}"): choices.index(value)
            for declared, choices in _declared(solver).items()
            if _own_name(declared) == name and value in choices
        }
        axes.append(list(having))
        rows[:, axes[-1]] = list(having.values())
    masked = belief.encoding.masked(rows)
    active = [(~np.isnan(masked[:, columns])).any(axis=1) for columns in axes]
    return masked[np.logical_and.reduce(active)][:BACKGROUND]
