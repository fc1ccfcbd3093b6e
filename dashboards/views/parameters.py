"""Parameters, solver by solver: what matters, the metric against each parameter, the two that matter most together.

A panel's group is the solver. Trials of several splits are pooled on a common level. Surfaces and dependences are the
optimiser's own surrogate, refitted to the trials of one solver.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ranktune.dashboards.analysis import early_stopped
from ranktune.dashboards.analysis.beliefs import flat
from ranktune.dashboards.analysis.curves import curves
from ranktune.dashboards.analysis.pooling import Pooled, best_pooled, competing, pooled, state_note
from ranktune.dashboards.analysis.solver_trials import BELIEVED, FEWEST_FOR_SURFACE, SolverTrials
from ranktune.dashboards.figures import plotly as figures
from ranktune.dashboards.figures.panels import Cell, Panel, Table, look
from ranktune.dashboards.records.study import StudyData
from ranktune.solvers.core.arrays import Floats
from ranktune.tuner.samplers.belief import Belief, Slice
from ranktune.tuner.statistics import importance as forests

MOST_POINTS = 24_000
"""Points of all slices of the view together."""
BACKGROUND = 32
"""Configurations that a partial dependence is the mean over."""
SIDE = 25
"""Places along each side of a surface."""


def panels(data: StudyData) -> list[Panel]:
    """Return the panels of each solver: importance, the two most important together, then parameter by parameter."""
    everything, names = pooled(data), competing(data)
    looks = look(names)
    solvers = [
        SolverTrials(data, name, [one for one in everything if one.trial.solver == name], looks[name]) for name in names
    ]
    solvers.sort(key=lambda solver: -np.inf if solver.best is None else solver.best.in_full or 0.0, reverse=True)
    slices = sum(len(solver.distributions) for solver in solvers if solver.good)
    most = int(np.clip(MOST_POINTS // max(slices, 1), 150, figures.MOST_POINTS))
    found: list[Panel] = []
    for k, solver in enumerate(solvers):
        found.append(_importance(solver, k))
        found += curves(solver, k)
        if solver.good and solver.distributions:
            found += [_contour(solver, k, most)] if len(solver.distributions) > 1 else []
            for j, name in enumerate(solver.ranked):
                found += [_slice(solver, name, f"{k}-{j}", most), _dependence(solver, name, f"{k}-{j}")]
    return found


def _importance(solver: SolverTrials, k: int) -> Panel:
    key, title = f"importance-{k}", f"How much each parameter of {figures.short(solver.name)} matters"
    columns = ("Parameter", "Share of variance", "Low", "High")
    found = solver.importance
    if found is None:
        return Panel(key, title, Table(columns, []), None, _why_no_importance(solver), solver.name)
    order = [list(solver.distributions).index(name) for name in solver.ranked]
    rows: list[list[Cell]] = [
        [name, *figures.numbers((found.mean[j], found.low[j], found.high[j]))]
        for name, j in zip(solver.ranked, order, strict=True)
    ]
    names = figures.distinct(solver.ranked, figures.WRAPPED)
    mean, low, high = found.mean[order], found.low[order], found.high[order]
    trace = figures.bars("share", names, mean, lying=True, marker={"color": solver.marker["color"]})
    trace["error_x"] = {
        "type": "data", "symmetric": False, "array": figures.numbers(high - mean),
        "arrayminus": figures.numbers(mean - low), "thickness": 1.5,
    }  # fmt: skip
    shown = figures.figure(
        [trace],
        figures.axis(f"share of the variance of {solver.data.metric}"),
        figures.axis("parameter", categories=names, autorange="reversed"),
        height=max(220, 120 + 30 * len(names)),
    )
    note = solver.note(
        "What a forest of randomised trees loses, on trials it has not seen, when the parameter is shuffled: alone and "
        "with others, so that shares may add up to more than 1. A parameter whose interval reaches 0 may not matter. "
        f"{found.n} of {len(solver.good)} trials, {forests.RESAMPLES} resamples; the interval holds the middle 90 %.",
    )
    return Panel(key, title, Table(columns, rows), shown, note, solver.name)


def _why_no_importance(solver: SolverTrials) -> str:
    missing = state_note(solver.data)
    if missing:
        return missing
    if not solver.distributions:
        return "This solver has no parameter that varies in this study."
    if len(solver.good) < forests.FEWEST:
        return f"{len(solver.good)} trials of this solver have a value: too few, {forests.FEWEST} are needed."
    return "All trials of this solver have the same value."


def _slice(solver: SolverTrials, name: str, key: str, most: int) -> Panel:
    """Return the metric of trials against one parameter, where it was active."""
    active = [one for one in solver.good if name in one.trial.params]
    kept = [active[i] for i in figures.thinned([one.value for one in active], most)]
    metric = solver.data.metric
    rows: list[list[Cell]] = [
        [one.trial.number, one.split, one.trial.params[name], figures.number(one.value), one.trial.stopped or None]
        for one in kept
    ]
    title = f"{metric} against {figures.short(name)} of {figures.short(solver.name)}"
    table = Table(("Trial", "Split", str(name), metric, "Stopped after"), rows)
    note = solver.note(
        f"In {len(active)} of {len(solver.good)} trials the parameter was active."
        if len(active) < len(solver.good)
        else "",
        f"{len(kept)} of {len(active)} trials are shown, the best and the worst among them."
        if len(kept) < len(active)
        else "",
        early_stopped.NOTE if any(one.trial.stopped for one in kept) else "",
    )
    if not kept:
        return Panel(f"slice-{key}", title, table, None, note or "It was active in no trial.", solver.name)
    marker: dict[str, Any] = {**solver.marker, "size": 7, "opacity": 0.7}
    x = [solver.cell(name, one.trial.params[name]) for one in kept]
    trace = figures.scatter(solver.name, x, [one.value for one in kept], marker=marker, text=_said(kept))
    if solver.is_choice(name):  # many trials at one place: beside each other, with a box around their middle half
        clear = {"fillcolor": "rgba(0,0,0,0)", "line": {"width": 1, "color": solver.marker["color"]}}
        trace |= {"type": "box", "boxpoints": "all", "jitter": 0.6, "pointpos": 0, "hoveron": "points"} | clear
        del trace["mode"]
    stopped = [bool(one.trial.stopped) for one in kept]
    traces = early_stopped.told_apart(trace, stopped)
    if solver.is_choice(name) and any(stopped):  # one box around all, points of two kinds on it
        box = trace | {"boxpoints": False, "showlegend": False, "hoverinfo": "skip"}
        traces = [box, *early_stopped.told_apart(trace | {"line": {"width": 0}}, stopped)]
    best = best_pooled(kept)
    if best is not None:
        star = {"symbol": "star", "size": 15, "color": "#d55e00"}
        marked = figures.scatter("best trial", [solver.cell(name, best.trial.params[name])], [best.value], marker=star)
        traces.append(marked | {"text": _said([best]), "hovertemplate": trace["hovertemplate"]})
    traces = early_stopped.with_key(traces, [one.trial for one in kept])
    bounds, outside = figures.window(one.value for one in kept)
    up = figures.axis(f"{metric} (validation)") | ({} if bounds is None else {"range": bounds})
    shown = figures.figure(traces, solver.axis(name), up)
    note = f"{note} {outside}".strip()
    return Panel(f"slice-{key}", title, table, shown, note, solver.name)


def _said(trials: Sequence[Pooled]) -> list[str]:
    return [early_stopped.said(one.trial, figures.plain(one.split)) for one in trials]


def _dependence(solver: SolverTrials, name: str, key: str) -> Panel:
    """Return the mean of the metric over configurations as one parameter changes."""
    metric = solver.data.metric
    title = f"{metric} on average as {figures.short(name)} of {figures.short(solver.name)} changes"
    columns = (str(name), f"mean {metric}", "Low", "High")
    found = None if solver.belief is None else _dependence_of(solver, solver.belief, name)
    if found is None:
        note = _too_few(solver)
        return Panel(f"dependence-{key}", title, Table(columns, []), None, note, solver.name)
    low, high = found.mean - 1.96 * found.sd, found.mean + 1.96 * found.sd
    rows: list[list[Cell]] = [
        [value if solver.is_choice(name) else figures.number(value), *figures.numbers(row)]
        for value, row in zip(found.values, np.column_stack([found.mean, low, high]), strict=True)
    ]
    x = [solver.cell(name, value) for value in found.values]
    colour = solver.marker["color"]
    if solver.is_choice(name):
        traces = [figures.scatter("mean", x, found.mean, marker={"color": colour, "size": 10}, error=1.96 * found.sd)]
    else:
        line = figures.scatter("mean", x, found.mean, mode="lines", line={"color": colour, "width": 2})
        traces = [figures.band("95 % band", x, low, high, colour), line]
    shown = figures.figure(traces, solver.axis(name), figures.axis(f"{metric} (validation)"))
    note = solver.note(
        f"The mean over {BACKGROUND} configurations from all of the space, whether or not the search went there, of "
        "what the optimiser's surrogate expects; the band is how unsure it is of that mean.",
        _stood_for(solver),
    )
    return Panel(f"dependence-{key}", title, Table(columns, rows), shown, note, solver.name)


def _dependence_of(solver: SolverTrials, belief: Belief, name: str) -> Slice | None:
    uniform = np.random.default_rng(solver.data.study.seed).random((BACKGROUND, len(belief.encoding.axes)))
    others = belief.encoding.from_unit(uniform)
    found = belief.dependence(f"{solver.name}.{name}", others)
    return found if np.any(found.sd) else None


def _stood_for(solver: SolverTrials) -> str:
    n = len(solver.observed)
    what = "trials" if n == len(solver.trials) else "values that trials showed"
    return f"{BELIEVED} of {n} {what} stand for all of them." if n > BELIEVED else ""


def _too_few(solver: SolverTrials) -> str:
    if len(solver.good) < FEWEST_FOR_SURFACE:
        return f"{len(solver.good)} trials of this solver have a value: too few, {FEWEST_FOR_SURFACE} are needed."
    return "The parameter is active nowhere."


def _contour(solver: SolverTrials, k: int, most: int) -> Panel:
    """Return the two most important parameters with the metric as colour."""
    across, up = solver.ranked[:2]
    metric = solver.data.metric
    both = [one for one in solver.good if across in one.trial.params and up in one.trial.params]
    kept = [both[i] for i in figures.thinned([one.value for one in both], most)]
    rows: list[list[Cell]] = [
        [one.trial.number, one.split, one.trial.params[across], one.trial.params[up], figures.number(one.value)]
        for one in kept
    ]
    of = f"{figures.short(across)} and {figures.short(up)} of {figures.short(solver.name)}"
    title = f"{metric} over {of}, the two parameters that matter most"
    if solver.importance is None:
        title = f"{metric} over {of}"
    table = Table(("Trial", "Split", across, up, metric), rows)
    if not kept:
        return Panel(f"contour-{k}", title, table, None, "No trial had both parameters active.", solver.name)
    values = figures.numbers(one.value for one in kept)
    points = figures.scatter(
        "trials", [solver.cell(across, one.trial.params[across]) for one in kept],
        [solver.cell(up, one.trial.params[up]) for one in kept], text=_said(kept),
        marker={"color": values, "colorscale": figures.RISING, "size": 9, "line": {"width": 1, "color": "#ffffff"},
                "coloraxis": "coloraxis", "symbol": ["circle-x" if one.trial.stopped else "circle" for one in kept]},
    )  # fmt: skip
    points["customdata"] = values
    points["hovertemplate"] = f"%{{text}}<br>{figures.plain(metric)}: %{{customdata}}<extra></extra>"
    surface = _surface(solver, across, up, both)
    scale = {
        "colorscale": figures.RISING,
        "colorbar": {"title": {"text": figures.plain(metric), "side": "top"}, "thickness": 12},
    }
    shown = figures.figure([*surface, points], solver.axis(across), solver.axis(up), coloraxis=scale, showlegend=False)
    note = "Points are trials. "
    if any(one.trial.stopped for one in kept):  # a hollow point would have the colour of what it lies on
        note = "Points are trials, crossed ones were stopped early: their values are estimates. "
    if surface:
        note += "The surface is what the optimiser's surrogate expects, all other parameters as in the best trial."
    else:
        note += f"There are too few trials for a surface, {FEWEST_FOR_SURFACE} are needed."
    return Panel(f"contour-{k}", title, table, shown, solver.note(note, _stood_for(solver)), solver.name)


def _surface(solver: SolverTrials, across: str, up: str, both: Sequence[Pooled]) -> list[figures.Trace]:
    """Return what is expected over two parameters with the others as in the best trial that had both."""
    belief, best = solver.belief, best_pooled(both)
    if belief is None or best is None:
        return []
    names = [f"{solver.name}.{name}" for name in (across, up)]
    places = [belief.grid(name, SIDE) for name in names]
    rows = np.repeat(belief.full(flat(best.trial))[None], len(places[0]) * len(places[1]), axis=0)
    rows[:, belief.axis(names[0])] = np.tile(places[0], len(places[1]))
    rows[:, belief.axis(names[1])] = np.repeat(places[1], len(places[0]))
    z: Floats = belief.mean_and_sd(belief.encoding.masked(rows))[0].reshape(len(places[1]), len(places[0]))
    x, y = (
        [solver.cell(own, v) for v in belief.external(name, at)]
        for own, name, at in zip((across, up), names, places, strict=True)
    )
    smooth = not (solver.is_choice(across) or solver.is_choice(up))
    trace = figures.heat_map(x, y, z, solver.data.metric)
    trace |= {"type": "contour" if smooth else "heatmap", "coloraxis": "coloraxis", "hoverinfo": "skip"}
    trace.pop("colorbar"), trace.pop("colorscale")
    if smooth:
        trace |= {"contours": {"coloring": "heatmap"}, "line": {"width": 0.5}}
    return [trace]
