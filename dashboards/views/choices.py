"""Choices: the categorical parameters of each solver, such as loss, pair weight, penalty and optimizer.

A panel's group is the solver: the effect of each value of each parameter, the grid of each pair of parameters, and the
combinations that were tried.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from ranktune.dashboards.analysis.choices import (
    BACKGROUND,
    Grid,
    Level,
    categories,
    choices_of,
    compositions,
    grid,
    levels,
)
from ranktune.dashboards.analysis.pooling import no_trials_note, pooled
from ranktune.dashboards.analysis.solver_trials import MIN_TRIALS_FOR_SURFACE, SolverTrials, solvers_of
from ranktune.dashboards.figures.kinds import Dots, Heat
from ranktune.dashboards.figures.panels import Frame, Panel
from ranktune.dashboards.figures.plotly import short
from ranktune.dashboards.records.study import StudyData

MAX_GRIDS = 15
"""Pairs of parameters with a grid: those of the six most important."""
MIN_CELLS = 4
"""Combinations with trials that a grid needs where there is no surrogate model."""
MAX_COMPOSITIONS = 20
"""Rows of the table of combinations."""


def panels(data: StudyData) -> list[Panel]:
    """Return the panels of each solver of which several combinations of categorical parameters were tried."""
    shown: list[Panel] = []
    for k, solver in enumerate(solvers_of(data, pooled(data))):
        names = choices_of(solver)
        if len(names) < 2 or len(compositions(solver, names)) < 2:
            continue
        shown += [_effects(solver, names, k), _compositions(solver, names, k)]
        pairs = list(combinations(range(len(names)), 2))[:MAX_GRIDS]
        grids = {f"grid-{k}-{i}-{j}": grid(solver, names[i], names[j]) for i, j in pairs}
        values = np.concatenate([_shown_values(each).ravel() for each in grids.values()])
        ends = (float(np.nanmin(values)), float(np.nanmax(values))) if np.isfinite(values).any() else (0.0, 1.0)
        shown += [
            _grid(solver, cells, ends, key)
            for key, cells in grids.items()
            if np.isfinite(cells.expected).any() or int((cells.trials > 0).sum()) >= MIN_CELLS
        ]
    if not shown:
        note = "Of no solver with two or more categorical parameters were two combinations of them tried."
        return [Panel("effects", "Choices", note=no_trials_note(data) or note)]
    return shown


def _effects(solver: SolverTrials, names: list[str], k: int) -> Panel:
    metric = solver.data.metric
    columns = ("Parameter", "Value", "Trials", "Mean of trials", "Effect", "Low", "High", "Verdict")
    rows: list[list[Any]] = [
        [name, str(level.value), level.trials, level.mean, level.effect, level.low, level.high, _verdict(level)]
        for name in names
        for level in levels(solver, name)
    ]
    known = any(np.isfinite(row[4]) for row in rows)
    series = {"effect": ("Effect", "Low", "High")}
    kind = Dots(("Parameter", "Value"), series, f"effect on {metric}", "", by="Parameter") if known else None
    note = solver.note(
        f"An effect is the expected {metric} with the value, less its mean over the values that were tried.",
        f"The surrogate model predicts it over {BACKGROUND} random configurations that can have the value, and its "
        "mean error at the trials with the value is added. A value that goes with certain other choices only counts "
        "together with them. Bars are 95 % intervals."
        if solver.surrogate is not None
        else f"From the means of {len(solver.valued)} trials: too few for the surrogate model and for intervals, "
        f"{MIN_TRIALS_FOR_SURFACE} are needed.",
        "Trials that were stopped early count with their estimates." if any(t.stopped for t in solver.valued) else "",
    )
    note = note if known else "No two values of a parameter that the study has now were tried."
    title = f"What was learnt about each choice of {short(solver.name)}"
    better = [row for row in rows if row[-1] == "better"]
    answer = "No choice is significantly better than the mean of the others."
    if better:
        name, value, _, _, effect, low, high, _ = max(better, key=lambda row: row[4])
        answer = f"{name} {short(value)} gains most: {effect:+.4f} [{low:.4f}, {high:.4f}] {metric}."
    return Panel(f"effects-{k}", title, Frame(columns, rows), kind, note, solver.name, answer)


def _verdict(level: Level) -> str:
    if np.isnan(level.low):
        return ""
    return "better" if level.low > 0.0 else "worse" if level.high < 0.0 else "not significant"


def _shown_values(table: Grid) -> np.ndarray:
    return table.expected if np.isfinite(table.expected).any() else table.mean


def _grid(solver: SolverTrials, table: Grid, ends: tuple[float, float], key: str) -> Panel:
    metric = solver.data.metric
    rows_of, columns_of = (categories(solver, name) for name in (table.down, table.across))
    title = f"{metric} by {short(table.down)} and {short(table.across)} of {short(solver.name)}"
    columns = (str(table.down), str(table.across), "Trials", "Mean of trials", f"Expected {metric}", "Deviation")
    rows = [
        [str(a), str(b), int(table.trials[i, j]), table.mean[i, j], table.expected[i, j], table.sd[i, j]]
        for i, a in enumerate(rows_of)
        for j, b in enumerate(columns_of)
    ]
    modelled = bool(np.isfinite(table.expected).any())
    value = columns[4] if modelled else columns[3]

    def text(row: dict[str, object]) -> str:
        return f"{_compact(float(str(row[value])))}<br>n={row['Trials']}"

    kind = Heat(columns[0], columns[1], value, metric, text, text, ends=ends)
    note = solver.note(
        f"The expected {metric} by the surrogate model, averaged over all other parameters, and the number of trials."
        if modelled
        else f"The mean of the trials of each combination and their number. {len(solver.valued)} trials are too few "
        f"for the surrogate model, {MIN_TRIALS_FOR_SURFACE} are needed.",
        f"The model compresses low values; its standard deviation is {np.nanmedian(table.sd):.2g}: smaller differences "
        "are noise."
        if modelled
        else "",
        f"Colours go from {ends[0]:.4g} to {ends[1]:.4g}, and mean the same in all grids of the solver.",
        "The search space does not have the combinations whose cells are empty."
        if modelled and np.isnan(table.expected).any()
        else "",
    )
    return Panel(key, title, Frame(columns, rows), kind, note, solver.name)


def _compact(value: float) -> str:
    """Return a value for a cell of a grid, without the zero before the point."""
    return f"{value:.3f}".replace("0.", ".", 1) if abs(value) < 1.0 else f"{value:.2f}"


def _compositions(solver: SolverTrials, names: list[str], k: int) -> Panel:
    metric = solver.data.metric
    composed = compositions(solver, names)
    rows = [[row.best, row.mean, row.trials, *row.values] for row in composed[:MAX_COMPOSITIONS]]
    table = Frame((f"best {metric}", f"mean {metric}", "Trials", *map(str, names)), rows)
    note = solver.note(
        f"{len(composed)} combinations of these parameters were tried, the best first.",
        f"The first {MAX_COMPOSITIONS} are listed." if len(composed) > MAX_COMPOSITIONS else "",
        "A dash stands for a parameter that is not active.",
    )
    return Panel(f"compositions-{k}", f"Combinations of {short(solver.name)}", table, None, note, solver.name)
