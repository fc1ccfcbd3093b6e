"""Parameters: their importance in the whole search space, and of each solver the metric against each of them.

A panel's group is the solver; the panel of the whole search space has none. Trials of several splits are pooled on a
common level. Surfaces and dependences are those of the sampler's surrogate model, fitted again to the trials of one
solver.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from ranktune.dashboards.analysis.beliefs import predicted
from ranktune.dashboards.analysis.curves import curves
from ranktune.dashboards.analysis.pooling import no_trials_note, pooled, pooled_note, stopped_note
from ranktune.dashboards.analysis.solver_trials import (
    MAX_OBSERVATIONS,
    MIN_TRIALS_ACTIVE,
    MIN_TRIALS_FOR_SURFACE,
    SolverTrials,
    importance_of_study,
    solvers_of,
)
from ranktune.dashboards.figures import plotly as figures
from ranktune.dashboards.figures.kinds import Bars, Points, labels
from ranktune.dashboards.figures.panels import Figure, Frame, Panel, Trace, joined
from ranktune.dashboards.records.study import StudyData
from ranktune.dashboards.records.trial import Trial, best_of
from ranktune.solvers.core.arrays import Floats
from ranktune.tuner.samplers.belief import Belief
from ranktune.tuner.statistics import importance as forests

MAX_POINTS = 24_000
"""Points of all slices of the view together."""
BACKGROUND = 32
"""Configurations that a partial dependence is the mean over."""
SIDE = 25
"""Places along each side of a surface."""
MIN_TRIALS_FOR_SLICES = 3
"""Trials of a solver below which a figure of each parameter would show a point or two."""
MAX_BARS = 20
"""Parameters that are drawn; the table has all."""
FOREST_NOTE = (
    "Permutation importance of a forest of randomised trees: the increase of its error on held-out trials when a "
    "parameter takes its values from other trials, and with it the parameters that depend on it. Interactions count "
    "for each of their parameters, so that shares may add up to more than 1. A parameter whose interval contains 0 may "
    "have no influence."
)


def panels(data: StudyData) -> list[Panel]:
    """Return the panel of the whole search space, and those of each solver.

    Those are: importance, curves, the two most important parameters, each parameter.
    """
    solvers = solvers_of(data, pooled(data))
    slices = sum(len(each.distributions) for each in solvers if len(each.valued) >= MIN_TRIALS_FOR_SLICES)
    most = int(np.clip(MAX_POINTS // max(slices, 1), 150, figures.MAX_POINTS))
    shown = [_importance_of_study(data)] if len(data.solvers) > 1 else []
    for k, solver in enumerate(solvers):
        shown += [_importance(solver, k), *curves(solver, k)]
        if len(solver.valued) >= MIN_TRIALS_FOR_SLICES and solver.distributions:
            if len(solver.distributions) > 1:
                shown.append(_contour(solver, k, most))
            for j, name in enumerate(solver.ranked):
                shown.append(_slice(solver, name, f"{k}-{j}", most))
                if solver.surrogate is not None:
                    shown.append(_dependence(solver, solver.surrogate, name, f"{k}-{j}"))
    return shown


def _importance_of_study(data: StudyData) -> Panel:
    """Return the importance of the choice of solver and of every parameter, from the trials of all solvers."""
    n = sum(trial.value is not None for trial in data.trials)
    few = f"{n} trial{'s' * (n != 1)} with a value: too few, {forests.MIN_TRIALS} are needed."
    equal = "All trials have the same value."
    return _drawn_importance(
        Panel("importance", "Importance of the solver and of each parameter in the whole search space"),
        *importance_of_study(data),
        no_trials_note(data) or (few if n < forests.MIN_TRIALS else left_out(data) or equal),
        "The choice of the solver counts with all parameters that depend on it. Parameters of fewer than "
        f"{MIN_TRIALS_ACTIVE} trials are left out.",
        pooled_note(data),
    )


def _importance(solver: SolverTrials, k: int) -> Panel:
    title = f"Importance of the parameters of {figures.short(solver.name)}"
    return _drawn_importance(
        Panel(f"importance-{k}", title, group=solver.name),
        {name: sum(name in trial.params for trial in solver.valued) for name in solver.distributions},
        solver.importance,
        _why_no_importance(solver),
        pooled_note(solver.data),
    )


def _drawn_importance(
    panel: Panel, active: Mapping[str, int], measured: forests.ParameterImportance | None, absent: str, *notes: str
) -> Panel:
    """Return a panel with the importance of parameters, which were active in so many trials, or why it is absent."""
    if measured is None:
        return replace(panel, note=absent)
    names, order = list(active), np.argsort(-measured.mean, kind="stable")
    rows = [[names[j], active[names[j]], measured.mean[j], measured.low[j], measured.high[j]] for j in order]
    columns = ("Parameter", "Trials", "Share of variance", "Low", "High")
    kind = Bars("Parameter", columns[2:3], "share of variance", "parameter", ("Low", "High"), MAX_BARS)
    note = joined(
        FOREST_NOTE,
        f"{measured.n} trials, {forests.RESAMPLES} resamples; intervals hold the middle 90 %.",
        f"The first {MAX_BARS} of {len(names)} are drawn." if len(names) > MAX_BARS else "",
        *notes,
    )
    first, _, share, low, high = rows[0]
    answer = f"{first} matters most: its share of the variance is {share:.0%} ({low:.0%} to {high:.0%})."
    answer = answer if low > 0.0 else "No parameter matters for sure: every interval of a share holds 0."
    return replace(panel, table=Frame(columns, rows), kind=kind, note=note, answer=answer)


def _why_no_importance(solver: SolverTrials) -> str:
    if not solver.distributions:
        return no_trials_note(solver.data) or "This solver has no parameter that varies in this study."
    if len(solver.valued) < forests.MIN_TRIALS:
        return no_trials_note(solver.data) or _too_few(solver, forests.MIN_TRIALS)
    return left_out(solver.data) or "All trials of this solver have the same value."


def left_out(data: StudyData) -> str:
    """Return how to measure the importance, of a study whose report is written without it."""
    return f"It takes seconds to measure: `ranktune show {data.name} --page FILE` writes a page with it." * data.brief


def _too_few(solver: SolverTrials, needed: int) -> str:
    n = len(solver.valued)
    have = "1 trial of this solver has" if n == 1 else f"{n} trials of this solver have"
    return joined(
        f"{have} a value: too few, {needed} are needed.",
        f"From {MIN_TRIALS_FOR_SLICES} on they are drawn against each parameter; the trials view lists them."
        if n < MIN_TRIALS_FOR_SLICES
        else "",
    )


def _trial_rows(trials: Sequence[Trial], *names: str) -> list[list[object]]:
    """Return the rows of trials: number, split, parameters, value, and where the trial was stopped."""
    return [[t.place, t.split, *map(t.params.get, names), t.value, t.stopped or None] for t in trials]


def _slice(solver: SolverTrials, name: str, key: str, most: int) -> Panel:
    """Return the metric of trials against one parameter, where it was active."""
    active = [trial for trial in solver.valued if name in trial.params]
    kept = [active[i] for i in figures.thinned([trial.value for trial in active], most)]
    metric, best = solver.data.metric, best_of(kept)
    up, outside = figures.value_axis(f"{metric} (validation)", [trial.value for trial in kept])
    note = solver.note(
        "" if kept else "The parameter was active in no trial.",
        f"In {len(active)} of {len(solver.valued)} trials the parameter was active."
        if 0 < len(active) < len(solver.valued)
        else "",
        f"{len(kept)} of {len(active)} trials are shown, the best and the worst among them."
        if len(kept) < len(active)
        else "",
        stopped_note(kept),
        outside,
    )
    star = [] if best is None else [figures.star("best trial", solver.coordinate(name, best.params[name]), best.value)]
    kind = Points(name, metric, solver.axis(name), up, {solver.name: solver.marker}, solver.name, over=star)
    title = f"{metric} against {figures.short(name)} of {figures.short(solver.name)}"
    table = Frame(("Trial", "Split", name, metric, "Stopped after"), _trial_rows(kept, name))
    return Panel(f"slice-{key}", title, table, kind, note, solver.name)


def _dependence(solver: SolverTrials, surrogate: Belief, name: str, key: str) -> Panel:
    """Return the mean of the metric over configurations as one parameter changes."""
    metric = solver.data.metric
    title = f"Mean {metric} by {figures.short(name)} of {figures.short(solver.name)}"
    uniform = np.random.default_rng(solver.data.study.seed).random((BACKGROUND, len(surrogate.encoding.axes)))
    curve = surrogate.dependence(f"{solver.name}.{name}", surrogate.encoding.from_unit(uniform))
    if not np.any(curve.sd):
        return Panel(f"dependence-{key}", title, note="The parameter is never active.", group=solver.name)
    note = solver.note(
        f"The prediction of the surrogate model, averaged over {BACKGROUND} configurations from the whole search "
        "space; the band is the model's own 95 % interval of that mean, as if the model were right.",
        _subset_note(solver),
    )
    drawn = predicted(curve, name, solver.axis(name), metric)
    return Panel(f"dependence-{key}", title, *drawn, note, solver.name)


def _subset_note(solver: SolverTrials) -> str:
    n = len(solver.observations)
    what = "trials" if n == len(solver.trials) else "observations"
    return f"The surrogate model is fitted to {MAX_OBSERVATIONS} of {n} {what}." if n > MAX_OBSERVATIONS else ""


def _contour(solver: SolverTrials, k: int, most: int) -> Panel:
    """Return the two most important parameters with the metric as colour."""
    across, up = solver.ranked[:2]
    metric = solver.data.metric
    both = [trial for trial in solver.valued if across in trial.params and up in trial.params]
    kept = [both[i] for i in figures.thinned([trial.value for trial in both], most)]
    title = f"{metric} over {figures.short(across)} and {figures.short(up)} of {figures.short(solver.name)}"
    if solver.importance is not None:
        title += ", the two most important parameters"
    table = Frame(("Trial", "Split", across, up, metric, "Stopped after"), _trial_rows(kept, across, up))
    if not kept:
        return Panel(f"contour-{k}", title, table, None, "No trial had both parameters active.", solver.name)
    surface = _surface(solver, across, up, both)
    stopped = any(trial.stopped for trial in kept)  # an open marker would have the colour of the surface below it
    note = solver.note(
        "Points are trials; crosses mark those that were stopped early: their values are estimates."
        if stopped
        else "Points are trials.",
        "The surface is the prediction of the surrogate model, all other parameters as in the best trial."
        if surface
        else f"There are too few trials for a surface, {MIN_TRIALS_FOR_SURFACE} are needed.",
        _subset_note(solver),
    )
    return Panel(f"contour-{k}", title, table, partial(_over_surface, solver, surface), note, solver.name)


def _over_surface(solver: SolverTrials, surface: Sequence[Trace], frame: Frame) -> Figure:
    """Return trials by two parameters over the surface of the metric."""
    (across, up), metric = frame.columns[2:4], solver.data.metric
    values, stopped = frame[metric], frame["Stopped after"]
    x, y = ([solver.coordinate(name, row[k]) for row in frame.rows] for k, name in enumerate((across, up), start=2))
    marker = {"size": 9, "color": values, "coloraxis": "coloraxis", "line": {"width": 1, "color": "#ffffff"}}
    marker["symbol"] = ["x" if part else "circle" for part in stopped]
    points = figures.scatter("trials", x, y, text=labels(frame), marker=marker, customdata=values)
    points["hovertemplate"] = f"%{{text}}<br>{figures.plain(metric)}: %{{customdata}}<extra></extra>"
    scale = {"colorscale": figures.SEQUENTIAL, "colorbar": figures.colour_bar(metric)}
    return figures.figure([*surface, points], solver.axis(across), solver.axis(up), coloraxis=scale, showlegend=False)


def _surface(solver: SolverTrials, across: str, up: str, both: Sequence[Trial]) -> list[Trace]:
    """Return the predicted metric over two parameters, with the others as in the best trial that had both."""
    surrogate, best = solver.surrogate, best_of(both)
    if surrogate is None or best is None:
        return []
    names = [f"{solver.name}.{name}" for name in (across, up)]
    places = [surrogate.grid(name, SIDE) for name in names]
    rows = np.repeat(surrogate.full(best.flat_params)[None], len(places[0]) * len(places[1]), axis=0)
    rows[:, surrogate.axis(names[0])] = np.tile(places[0], len(places[1]))
    rows[:, surrogate.axis(names[1])] = np.repeat(places[1], len(places[0]))
    z: Floats = surrogate.mean_and_sd(surrogate.encoding.masked(rows))[0].reshape(len(places[1]), len(places[0]))
    x, y = (
        [solver.coordinate(axis, v) for v in surrogate.external(name, at)]
        for axis, name, at in zip((across, up), names, places, strict=True)
    )
    smooth = not (solver.is_choice(across) or solver.is_choice(up))
    trace = figures.heat_map(x, y, z, solver.data.metric)
    trace |= {"type": "contour" if smooth else "heatmap", "coloraxis": "coloraxis", "hoverinfo": "skip"}
    del trace["colorbar"], trace["colorscale"]
    if smooth:
        trace |= {"contours": {"coloring": "heatmap"}, "line": {"width": 0.5}}
    return [trace]
