"""Choices: the categorical parameters of each solver, such as loss, pair weight, penalty and optimizer.

A panel's group is the solver: the effect of each value of each parameter, the grid of each pair of parameters, and the
combinations that were tried.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import combinations

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
from ranktune.dashboards.figures import plotly as figures
from ranktune.dashboards.figures.panels import Panel, Table, Trace
from ranktune.dashboards.records.study import StudyData

MAX_GRIDS = 15
"""Pairs of parameters with a grid: those of the six most important."""
MIN_CELLS = 4
"""Combinations with trials that a grid needs where there is no surrogate model."""
MAX_COMPOSITIONS = 20
"""Rows of the table of combinations."""
MAX_WIDE_COLUMNS = 4
"""Columns of a grid beside which a narrow page has room for whole labels."""
MAX_DENSE_LABEL = 14
"""Characters of the labels beside more columns."""


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
        ends = _colour_range(grids.values())
        shown += [
            _grid(solver, cells, ends, key)
            for key, cells in grids.items()
            if np.isfinite(cells.expected).any() or int((cells.trials > 0).sum()) >= MIN_CELLS
        ]
    if not shown:
        note = "Of no solver with two or more categorical parameters were two combinations of them tried."
        note = no_trials_note(data) or note
        return [Panel("effects", "Choices", note=note)]
    return shown


def _effects(solver: SolverTrials, names: list[str], k: int) -> Panel:
    metric = solver.data.metric
    title = f"What was learnt about each choice of {figures.short(solver.name)}"
    columns = ("Parameter", "Value", "Trials", "Mean of trials", "Effect", "Low", "High", "Verdict")
    known = [(name, level) for name in names for level in levels(solver, name)]
    rows = [
        [name, level.value, level.trials, level.mean, level.effect, level.low, level.high,
         _verdict(level)]
        for name, level in known
    ]  # fmt: skip
    labels = figures.distinct((f"{name}: {level.value}" for name, level in known), figures.MAX_LABEL)
    drawn = [(name, label, x) for label, (name, x) in zip(labels, known, strict=True) if np.isfinite(x.effect)]
    traces = []
    for i, name in enumerate(names):
        by_label = {label: level for factor, label, level in drawn if factor == name}
        if by_label:
            traces.append(_effect_trace(name, by_label, i))
    if not traces:
        note = "No two values of a parameter that the study has now were tried."
        return Panel(f"effects-{k}", title, Table(columns, rows), None, note, solver.name)
    shown = figures.figure(
        traces,
        figures.axis(f"effect on {metric}", nticks=5),
        figures.axis("", categories=labels, autorange="reversed"),
        height=max(230, 130 + 26 * len(labels)),
        showlegend=False,
    )
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
    return Panel(f"effects-{k}", title, Table(columns, rows), shown, note, solver.name)


def _effect_trace(name: str, levels: Mapping[str, Level], place: int) -> Trace:
    """Return the effects of the values of one parameter, by label, with their intervals."""
    effects, low, high = (
        np.array([getattr(at, end) for at in levels.values()], dtype=np.float64) for end in ("effect", "low", "high")
    )
    marker = {"size": 10, "color": figures.COLOURS[place % len(figures.COLOURS)]}
    marker["symbol"] = figures.SYMBOLS[place % len(figures.SYMBOLS)]
    trace = figures.scatter(name, effects, levels, marker=marker)
    if not np.isnan(low).any():
        trace["error_x"] = figures.error_bars(effects, low, high)
    return trace


def _verdict(level: Level) -> str:
    if np.isnan(level.low):
        return ""
    return "better" if level.low > 0.0 else "worse" if level.high < 0.0 else "not significant"


def _colour_range(grids: Iterable[Grid]) -> tuple[float, float]:
    """Return the lowest and the highest value that the colours of all grids show.

    A standard deviation is added at both ends, so that differences within the noise do not stand out.
    """
    values = []
    for each in grids:
        z, sd = (each.expected, each.sd) if np.isfinite(each.expected).any() else (each.mean, np.zeros_like(each.mean))
        known = np.isfinite(z)
        values += [*(z - sd)[known], *(z + sd)[known]]
    return (float(min(values)), float(max(values))) if values else (0.0, 1.0)


def _grid(solver: SolverTrials, table: Grid, ends: tuple[float, float], key: str) -> Panel:
    metric = solver.data.metric
    rows_of, columns_of = (categories(solver, name) for name in (table.down, table.across))
    title = f"{metric} by {figures.short(table.down)} and {figures.short(table.across)} of {figures.short(solver.name)}"
    columns = (str(table.down), str(table.across), "Trials", "Mean of trials", f"Expected {metric}", "Deviation")
    rows = [
        [a, b, int(table.trials[i, j]),
         table.mean[i, j], table.expected[i, j], table.sd[i, j]]
        for i, a in enumerate(rows_of) for j, b in enumerate(columns_of)
    ]  # fmt: skip
    modelled = bool(np.isfinite(table.expected).any())
    z = table.expected if modelled else table.mean
    dense = len(columns_of) > MAX_WIDE_COLUMNS  # a narrow page has room for little beside them
    down = figures.distinct(rows_of, MAX_DENSE_LABEL if dense else figures.MAX_LABEL)
    across = figures.distinct(columns_of, figures.MAX_LABEL)
    cells = figures.heat_map(across, down, z, metric)
    cells |= {"zmin": ends[0], "zmax": ends[1], "zauto": False, "showscale": False}
    cells |= {"xgap": 2, "ygap": 2, "texttemplate": "%{text}", "textfont": {"size": 10 if dense else 11}}
    cells["text"] = [
        ["" if np.isnan(value) else f"{_compact(value)}<br>n={n}" for value, n in zip(*texts, strict=True)]
        for texts in zip(z, table.trials, strict=True)
    ]
    cells["customdata"] = [[f"{figures.plain(a)}, {figures.plain(b)}" for b in columns_of] for a in rows_of]
    cells["hovertemplate"] = f"%{{customdata}}<br>{figures.plain(metric)}: %{{z}}<extra></extra>"
    font = {"size": 10 if dense else 12}
    shown = figures.figure(
        [cells],
        figures.axis(table.across, categories=across, showgrid=False, tickfont=font),
        figures.axis("" if dense else table.down, categories=down, autorange="reversed", showgrid=False, tickfont=font),
        height=max(220, 130 + 44 * len(down)),
        margin={"l": 20, "r": 10, "t": 20, "b": 50},
    )
    note = solver.note(
        f"The expected {metric} by the surrogate model, averaged over all other parameters, and the number of trials."
        if modelled
        else f"The mean of the trials of each combination and their number. {len(solver.valued)} trials are too few "
        f"for the surrogate model, {MIN_TRIALS_FOR_SURFACE} are needed.",
        "The model compresses low values." if modelled else "",
        "Colours mean the same in all grids of the solver.",
        "The search space does not have the combinations whose cells are empty."
        if modelled and np.isnan(table.expected).any()
        else "",
    )
    return Panel(key, title, Table(columns, rows), shown, note, solver.name)


def _compact(value: float) -> str:
    """Return a value for a cell of a grid, without the zero before the point."""
    return f"{value:.3f}".replace("0.", ".", 1) if abs(value) < 1.0 else f"{value:.2f}"


def _compositions(solver: SolverTrials, names: list[str], k: int) -> Panel:
    metric = solver.data.metric
    composed = compositions(solver, names)
    rows = [[row.best, row.mean, row.trials, *row.values] for row in composed[:MAX_COMPOSITIONS]]
    table = Table((f"best {metric}", f"mean {metric}", "Trials", *map(str, names)), rows)
    note = solver.note(
        f"{len(composed)} combinations of these parameters were tried, the best first.",
        f"The first {MAX_COMPOSITIONS} are listed." if len(composed) > MAX_COMPOSITIONS else "",
        "A dash stands for a parameter that is not active.",
    )
    return Panel(f"compositions-{k}", f"Combinations of {figures.short(solver.name)}", table, None, note, solver.name)
