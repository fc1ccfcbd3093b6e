"""Choices: the categorical parameters of each solver, such as loss, pair weight, penalty and optimizer.

A panel's group is the solver: what was learnt about each value of each parameter, the grid of each pair of parameters,
and the combinations that were tried.
"""

from __future__ import annotations

from collections.abc import Sequence
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
from ranktune.dashboards.analysis.pooling import no_trials_note
from ranktune.dashboards.analysis.solver_trials import MIN_TRIALS_FOR_SURFACE, SolverTrials, solvers_of
from ranktune.dashboards.figures import plotly as figures
from ranktune.dashboards.figures.panels import Cell, Panel, Table
from ranktune.dashboards.records.study import StudyData

MAX_GRIDS = 15
"""Pairs of parameters with a grid: those of the six most important."""
MAX_COMPOSITIONS = 40
"""Rows of the table of combinations."""


def panels(data: StudyData) -> list[Panel]:
    """Return the panels of each solver of which several combinations of categorical parameters were tried."""
    found: list[Panel] = []
    for k, solver in enumerate(solvers_of(data)):
        names = choices_of(solver)
        if len(names) < 2 or len(compositions(solver, names)) < 2:
            continue
        found += [_effects(solver, names, k), _compositions(solver, names, k)]
        pairs = list(combinations(range(len(names)), 2))[:MAX_GRIDS]
        grids = [grid(solver, names[i], names[j]) for i, j in pairs]
        ends = _colour_range(grids)
        found += [_grid(solver, own, ends, f"grid-{k}-{i}-{j}") for (i, j), own in zip(pairs, grids, strict=True)]
    if not found:
        note = "Of no solver with two or more categorical parameters were two combinations of them tried."
        note = no_trials_note(data) or note
        return [Panel("effects", "Choices", Table(("Parameter", "Value"), []), None, note)]
    return found


def _effects(solver: SolverTrials, names: list[str], k: int) -> Panel:
    metric = solver.data.metric
    title = f"What was learnt about each choice of {figures.short(solver.name)}"
    columns = ("Parameter", "Value", "Trials", "Mean of trials", "Effect", "Low", "High", "Verdict")
    known = [(name, level) for name in names for level in levels(solver, name)]
    rows: list[list[Cell]] = [
        [name, level.value, level.trials, *figures.numbers([level.mean, level.effect, level.low, level.high]),
         _verdict(level)]
        for name, level in known
    ]  # fmt: skip
    labels = figures.distinct((f"{name}: {level.value}" for name, level in known), figures.MAX_LABEL)
    traces = []
    for i, name in enumerate(names):
        own = [(label, level) for label, (factor, level) in zip(labels, known, strict=True) if factor == name]
        own = [(label, level) for label, level in own if level.effect is not None]
        if not own:
            continue
        effects = np.array([level.effect for _, level in own], dtype=float)
        trace = figures.scatter(
            name, effects, [label for label, _ in own],
            marker={"size": 10, "color": figures.COLOURS[i % len(figures.COLOURS)],
                    "symbol": figures.SYMBOLS[i % len(figures.SYMBOLS)]},
        )  # fmt: skip
        if own[0][1].low is not None:
            low, high = (np.array([getattr(level, end) for _, level in own], dtype=float) for end in ("low", "high"))
            trace["error_x"] = figures.error_bars(high - effects, effects - low)
        traces.append(trace)
    if not traces:
        note = "No two values of a parameter that the study has now were tried."
        return Panel(f"effects-{k}", title, Table(columns, rows), None, note, solver.name)
    shown = figures.figure(
        traces,
        figures.axis(f"effect on {metric}", zeroline=True),
        figures.axis("", categories=labels, autorange="reversed"),
        height=max(230, 130 + 26 * len(labels)),
        showlegend=False,
    )
    note = solver.note(
        f"An effect is the expected {metric} with the value, less its mean over the values of the parameter.",
        f"Expected by the surrogate model over {BACKGROUND} configurations from the whole search space; bars are 95 % "
        "intervals."
        if solver.surrogate is not None
        else f"From the means of {len(solver.valued)} trials: too few for the surrogate model and for intervals, "
        f"{MIN_TRIALS_FOR_SURFACE} are needed.",
        "Trials that were stopped early count with their estimates." if any(t.stopped for t in solver.valued) else "",
    )
    return Panel(f"effects-{k}", title, Table(columns, rows), shown, note, solver.name)


def _verdict(level: Level) -> str:
    if level.low is None or level.high is None:
        return ""
    return "better" if level.low > 0.0 else "worse" if level.high < 0.0 else "not significant"


def _colour_range(grids: Sequence[Grid]) -> tuple[float, float]:
    """Return the lowest and the highest value that the colours of all grids show.

    A standard deviation is added at both ends, so that differences within the noise do not stand out.
    """
    values = []
    for own in grids:
        z, sd = (own.expected, own.sd) if np.isfinite(own.expected).any() else (own.mean, np.zeros_like(own.mean))
        known = np.isfinite(z)
        values += [*(z - sd)[known], *(z + sd)[known]]
    return (float(min(values)), float(max(values))) if values else (0.0, 1.0)


def _grid(solver: SolverTrials, found: Grid, ends: tuple[float, float], key: str) -> Panel:
    metric = solver.data.metric
    rows_of, columns_of = (categories(solver, name) for name in (found.down, found.across))
    title = f"{metric} by {figures.short(found.down)} and {figures.short(found.across)} of {figures.short(solver.name)}"
    columns = (str(found.down), str(found.across), "Trials", "Mean of trials", f"Expected {metric}", "Deviation")
    rows: list[list[Cell]] = [
        [a, b, int(found.trials[i, j]),
         *figures.numbers([found.mean[i, j], found.expected[i, j], found.sd[i, j]])]
        for i, a in enumerate(rows_of) for j, b in enumerate(columns_of)
    ]  # fmt: skip
    modelled = bool(np.isfinite(found.expected).any())
    z = found.expected if modelled else found.mean
    down, across = (figures.distinct(own, figures.MAX_LABEL) for own in (rows_of, columns_of))
    cells = figures.heat_map(across, down, z, metric)
    cells |= {"showscale": False, "xgap": 2, "ygap": 2, "texttemplate": "%{text}", "textfont": {"size": 11}}
    cells["text"] = [
        ["" if np.isnan(value) else f"{value:.3f}<br>n={n}" for value, n in zip(*own, strict=True)]
        for own in zip(z, found.trials, strict=True)
    ]
    cells |= {"zmin": figures.number(ends[0]), "zmax": figures.number(ends[1]), "zauto": False}
    cells["hovertemplate"] = "%{y}, %{x}<br>%{text}<extra></extra>"
    shown = figures.figure(
        [cells],
        figures.axis(found.across, categories=across, showgrid=False),
        figures.axis(found.down, categories=down, autorange="reversed", showgrid=False),
        height=max(220, 130 + 44 * len(down)),
    )
    note = solver.note(
        f"The expected {metric} by the surrogate model, averaged over all other parameters, and the number of trials."
        if modelled
        else f"The mean of the trials of each combination and their number. {len(solver.valued)} trials are too few "
        f"for the surrogate model, {MIN_TRIALS_FOR_SURFACE} are needed.",
        "Colours mean the same in all grids of the solver.",
        "The search space does not have the combinations whose cells are empty."
        if modelled and np.isnan(found.expected).any()
        else "",
    )
    return Panel(key, title, Table(columns, rows), shown, note, solver.name)


def _compositions(solver: SolverTrials, names: list[str], k: int) -> Panel:
    metric = solver.data.metric
    found = compositions(solver, names)
    rows: list[list[Cell]] = [
        [*one.values, one.trials, *figures.numbers([one.best, one.mean])] for one in found[:MAX_COMPOSITIONS]
    ]
    table = Table((*map(str, names), "Trials", f"best {metric}", f"mean {metric}"), rows)
    note = solver.note(
        f"{len(found)} combinations of these parameters were tried, the best first.",
        f"The first {MAX_COMPOSITIONS} are listed." if len(found) > MAX_COMPOSITIONS else "",
        "A dash stands for a parameter that is not active.",
    )
    return Panel(f"compositions-{k}", f"Combinations of {figures.short(solver.name)}", table, None, note, solver.name)
