"""Parameters: their importance in the whole search space, and of each solver the metric against each of them.

A panel's group is the solver; the panel of the whole search space has none. Trials of several splits are pooled on a
common level. Surfaces and dependences are those of the sampler's surrogate model, fitted again to the trials of one
solver.

One fit may give a model for each of many values of one parameter (trees, rounds, passes, a penalty). Such a trial is a
curve and not a point. The colour of a curve is the value of the most important other parameter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from ranktune.dashboards.figures import plotly as figures
from ranktune.dashboards.figures.kinds import Bars, Points, labels, with_key
from ranktune.dashboards.figures.panels import Figure, Frame, Panel, Trace, counted, grouped, joined
from ranktune.dashboards.records.study import StudyData
from ranktune.dashboards.records.trial import Trial, best_of
from ranktune.dashboards.views.solver_trials import (
    MIN_TRIALS_ACTIVE,
    MIN_TRIALS_FOR_SURFACE,
    SolverTrials,
    fitted_note,
    importance_of_study,
    no_trials_note,
    pooled,
    pooled_note,
    predicted,
    solvers_of,
)
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
MAX_CURVES = 40
"""Curves of a figure: half of them the best, the others an even choice."""
STOPS = ("#2a87c0", "#8795a8", "#b98d5c", "#d9650f")
"""Colours from low to high, for a light page and a dark one."""
MAX_SHARE_ALIKE = 0.5
"""Fraction of the curves that may have the same value of the parameter that the colours show."""
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
    for k, solver in enumerate([solver for solver in solvers if solver.trials] or solvers[:1]):
        shown += grouped(_of_solver(solver, most), k, solver.name)
    return shown


def _of_solver(solver: SolverTrials, most: int) -> Iterator[Panel]:
    yield _drawn_importance(
        Panel("importance", f"Importance of the parameters of {solver.title}"),
        {name: sum(name in trial.params for trial in solver.valued) for name in solver.distributions},
        solver.importance,
        _why_no_importance(solver.data, solver.valued, "of this solver"),
        pooled_note(solver.data),
    )
    yield from _curves_panel(solver)
    if len(solver.valued) < MIN_TRIALS_FOR_SLICES or not solver.distributions:
        return
    if len(solver.distributions) > 1:
        yield _contour(solver, most)
    for j, name in enumerate(solver.ranked):
        yield _slice(solver, name, f"slice-{j}", most)
        if solver.surrogate is not None:
            yield _dependence(solver, solver.surrogate, name, f"dependence-{j}")


def _importance_of_study(data: StudyData) -> Panel:
    """Return the importance of the choice of solver and of every parameter, from the trials of all solvers."""
    return _drawn_importance(
        Panel("importance", "Importance of the solver and of each parameter in the whole search space"),
        *importance_of_study(data),
        _why_no_importance(data, [trial for trial in data.trials if trial.value is not None]),
        "The choice of the solver counts with all parameters that depend on it. Parameters of fewer than "
        f"{MIN_TRIALS_ACTIVE} trials are left out.",
        pooled_note(data),
    )


def _drawn_importance(
    panel: Panel, active: Mapping[str, int], measured: forests.ParameterImportance | None, absent: str, *notes: str
) -> Panel:
    """Return a panel with the importance of parameters, which were active in so many trials, or why it is absent."""
    if measured is None:
        return replace(panel, note=absent if active else "No parameter varies in this study.")
    names, order = list(active), np.argsort(-measured.mean, kind="stable")
    rows = [[names[j], active[names[j]], measured.mean[j], measured.low[j], measured.high[j]] for j in order]
    columns = ("Parameter", "Trials", "Share of variance", "Low", "High")
    kind = Bars("Parameter", columns[2:3], "share of variance", "parameter", ("Low", "High"), MAX_BARS)
    trials = f"{measured.n} trials, {forests.RESAMPLES} resamples; intervals hold the middle 90 %."
    first, _, share, low, high = rows[0]
    answer = f"{first} matters most: its share of the variance is {share:.0%} ({low:.0%} to {high:.0%})."
    answer = answer if low > 0.0 else "No parameter matters for sure: the interval of each share reaches 0."
    return replace(
        panel, table=Frame(columns, rows), kind=kind, note=joined(FOREST_NOTE, trials, *notes), answer=answer
    )


def _why_no_importance(data: StudyData, valued: Sequence[Trial], of: str = "of all solvers") -> str:
    n = len(valued)
    few = f"{counted(n, 'trial')} {of} {'has' if n == 1 else 'have'} a value: too few, {forests.MIN_TRIALS} are needed."
    later = f" From {MIN_TRIALS_FOR_SLICES} of a solver on they are drawn; the trials view lists them."
    few += later * (n < MIN_TRIALS_FOR_SLICES)
    brief = f"It takes seconds to measure: `ranktune show {data.name} --page FILE` writes a page with it." * data.brief
    return no_trials_note(data) or few * (n < forests.MIN_TRIALS) or brief or "All trials have the same value."


def _trial_rows(trials: Sequence[Trial], *names: str) -> list[list[object]]:
    """Return the rows of trials: number, split, parameters, value, and where the trial was stopped."""
    return [[t.place, t.split, *map(t.params.get, names), t.value, t.stopped or None] for t in trials]


def _slice(solver: SolverTrials, name: str, key: str, most: int) -> Panel:
    """Return the metric of trials against one parameter, where it was active."""
    active, n, metric = [trial for trial in solver.valued if name in trial.params], len(solver.valued), solver.metric
    kept, shown = figures.some_of(active, [trial.value for trial in active], most)
    note = solver.note(
        "" if active else "The parameter was active in no trial.",
        f"In {len(active)} of {n} trials the parameter was active." * (0 < len(active) < n),
        shown,
    )
    best = best_of(kept)
    star = [] if best is None else [figures.star("best trial", solver.coordinate(name, best.params[name]), best.value)]
    kind = Points(
        name, metric, solver.axis(name), f"{metric} (validation)", {solver.name: solver.marker}, solver.name, over=star
    )
    table = Frame(("Trial", "Split", name, metric, "Stopped after"), _trial_rows(kept, name))
    return Panel(key, f"{metric} against {figures.short(name)} of {solver.title}", table, kind, note)


def _dependence(solver: SolverTrials, surrogate: Belief, name: str, key: str) -> Panel:
    """Return the mean of the metric over configurations as one parameter changes."""
    title = f"Mean {solver.metric} by {figures.short(name)} of {solver.title}"
    uniform = np.random.default_rng(solver.data.study.seed).random((BACKGROUND, len(surrogate.encoding.axes)))
    curve = surrogate.dependence(f"{solver.name}.{name}", surrogate.encoding.from_unit(uniform))
    if not np.any(curve.sd):
        return Panel(key, title, note="The parameter is never active.")
    note = solver.note(
        f"The prediction of the surrogate model, averaged over {BACKGROUND} configurations from the whole search "
        "space; the band is the model's own 95 % interval of that mean, as if the model were right.",
        fitted_note(len(surrogate.chosen), solver.observations, solver.trials),
    )
    return Panel(key, title, *predicted(curve, name, solver.axis(name), solver.metric), note)


def _contour(solver: SolverTrials, most: int) -> Panel:
    """Return the two most important parameters with the metric as colour."""
    (across, up), metric = solver.ranked[:2], solver.metric
    both = [trial for trial in solver.valued if across in trial.params and up in trial.params]
    kept, shown = figures.some_of(both, [trial.value for trial in both], most)
    title = f"{metric} over {figures.short(across)} and {figures.short(up)} of {solver.title}"
    title += ", the two most important parameters" * (solver.importance is not None)
    table = Frame(("Trial", "Split", across, up, metric, "Stopped after"), _trial_rows(kept, across, up))
    surface = _surface(solver, solver.surrogate, across, up, both)
    note = solver.note(
        "Points are trials; crosses mark those that were stopped early: their values are estimates."
        if any(trial.stopped for trial in kept)  # an open marker would have the colour of the surface below it
        else "Points are trials.",
        shown,
        *("The surface is the prediction of the surrogate model, all other parameters as in the best trial.",
          fitted_note(len(solver.surrogate.chosen), solver.observations, solver.trials))
        if surface and solver.surrogate
        else (f"There are too few trials for a surface, {MIN_TRIALS_FOR_SURFACE} are needed.",),
    )  # fmt: skip
    note = note if kept else "No trial had both parameters active."
    return Panel("contour", title, table, partial(_over_surface, solver, surface), note)


def _over_surface(solver: SolverTrials, surface: Sequence[Trace], frame: Frame) -> Figure:
    """Return trials by two parameters over the surface of the metric."""
    across, up, metric = frame.columns[2:5]
    values, stopped = frame[metric], frame["Stopped after"]
    x, y = ([solver.coordinate(name, value) for value in frame[name]] for name in (across, up))
    marker = {"size": 9, "color": values, "coloraxis": "coloraxis", "line": {"width": 1, "color": "#ffffff"}}
    marker["symbol"] = ["x" if part else "circle" for part in stopped]
    points = figures.scatter("trials", x, y, text=labels(frame), marker=marker, customdata=values)
    points["hovertemplate"] = f"%{{text}}<br>{figures.plain(metric)}: %{{customdata}}<extra></extra>"
    scale = {"colorscale": figures.SEQUENTIAL, "colorbar": figures.colour_bar(metric)}
    return figures.figure([*surface, points], solver.axis(across), solver.axis(up), coloraxis=scale, showlegend=False)


def _surface(
    solver: SolverTrials, surrogate: Belief | None, across: str, up: str, both: Sequence[Trial]
) -> list[Trace]:
    """Return the predicted metric over two parameters, with the others as in the best trial that had both."""
    best = best_of(both)
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
    trace = figures.heat_map(x, y, z, solver.metric) | {"coloraxis": "coloraxis", "hoverinfo": "skip"}
    del trace["colorbar"], trace["colorscale"]
    if not (solver.is_choice(across) or solver.is_choice(up)):
        trace |= {"type": "contour", "contours": {"coloring": "heatmap"}, "line": {"width": 0.5}}
    return [trace]


class _Curve(NamedTuple):
    """A trial with its path in ascending order; best and requested are places on it."""

    trial: Trial
    x: list[float]
    y: list[float]
    best: int
    requested: int


def _curves_panel(solver: SolverTrials) -> list[Panel]:
    """Return the panel of a solver's curves; nothing where no trial has one."""
    drawn = [curve for trial in solver.valued for curve in _curve(trial)]
    parameter = next((curve.trial.path_parameter for curve in reversed(drawn)), "")
    drawn = [curve for curve in drawn if curve.trial.path_parameter == parameter and parameter in solver.distributions]
    if not drawn:
        return []
    kept = _chosen(drawn)
    metric, name = solver.metric, figures.short(parameter)
    rows = [
        [
            curve.trial.place, curve.trial.split, x, y,
            "best" if place == curve.best else "requested" if place == curve.requested else None,
            curve.trial.stopped or None,
        ]
        for curve in kept
        for place, (x, y) in enumerate(zip(curve.x, curve.y, strict=True))
    ]  # fmt: skip
    by = _other_parameter(solver, kept, parameter)
    up, outside = figures.value_axis(f"{metric} (validation)", [y for curve in kept for y in curve.y])

    def drawn_as(_: Frame) -> Figure:
        return figures.figure(_traces(solver, kept, by), solver.axis(parameter), up, height=540)

    thinned = f"{len(kept)} of {len(drawn)} curves are shown, the best among them; the trials view has all."
    note = solver.note(_explanation(drawn, name, by), thinned * (len(kept) < len(drawn)), outside)
    title = f"{metric} along {name} of {solver.title}: the curve of each trial"
    columns = ("Trial", "Split", parameter, metric, "Which", "Stopped after")
    return [Panel("curves", title, Frame(columns, rows), drawn_as, note)]


def _curve(trial: Trial) -> Iterator[_Curve]:
    """Yield the curve of a trial; nothing for a path with one value or without the value of the trial."""
    values, best = [value for value, _ in trial.path], trial.params.get(trial.path_parameter)
    if len(values) > 1 and best in values:
        order = np.argsort(values, kind="stable").tolist()
        x, y = zip(*(trial.path[place] for place in order), strict=True)
        yield _Curve(trial, list(x), list(y), order.index(values.index(float(best))), order.index(len(values) - 1))


def _chosen(drawn: Sequence[_Curve]) -> list[_Curve]:
    """Return the curves that are drawn, the best of them last, so that it lies on top."""
    order = sorted(drawn, key=lambda curve: (curve.trial.full_value is not None, curve.trial.value or 0.0))
    if len(order) <= MAX_CURVES:
        return order
    half = MAX_CURVES // 2
    places = np.linspace(0, len(order) - half - 1, MAX_CURVES - half).astype(np.int64)
    return [order[place] for place in places] + order[-half:]


def _other_parameter(solver: SolverTrials, kept: Sequence[_Curve], path_parameter: str) -> str:
    """Return the most important other parameter of those in which the curves differ, "" of none."""
    for name in solver.ranked:
        values = Counter(str(curve.trial.params.get(name)) for curve in kept)
        if name != path_parameter and max(values.values()) <= MAX_SHARE_ALIKE * len(kept):
            return name
    return ""


def _explanation(drawn: Sequence[_Curve], name: str, by: str) -> str:
    """Return how to read the curves, and how often another value than the requested one was best."""
    complete = [curve for curve in drawn if not curve.trial.stopped]
    gains = [curve.y[curve.best] - curve.y[curve.requested] for curve in complete if curve.best != curve.requested]
    return joined(
        f"Each line is one fit, which gives a model for every value of {name} on it. The dot is the best of them, and "
        "is the value of the trial.",
        by and f"Colours show {figures.short(by)}.",
        f"In {len(gains)} of {counted(len(complete), 'trial')} evaluated in full another value than the requested one "
        f"was better, by {float(np.median(gains)):.2g} in the median."
        if gains
        else "",
        "Values that were significantly worse than the best of their line are means over fewer parts of the plan.",
        "Dotted lines with open markers are trials that were stopped early: their values are estimates."
        * (len(complete) < len(drawn)),
    )


def _traces(solver: SolverTrials, kept: Sequence[_Curve], by: str) -> list[Trace]:
    """Return a line a trial with a dot at its best, the key of the colours, and a star for the best of all."""
    trials = [curve.trial for curve in kept]
    texts = [_label(trial, by) for trial in trials]
    colours, key = _colours(solver, trials, by)
    best = best_of(trials)
    traces: list[Trace] = []
    for (trial, x, y, _, _), colour, text in zip(kept, colours, texts, strict=True):
        line = {"width": 3.5 if trial is best else 1.5, "color": colour} | ({"dash": "dot"} if trial.stopped else {})
        trace = figures.scatter("trial", x, y, mode="lines", line=line, text=[text] * len(x), showlegend=False)
        traces.append(trace | {"opacity": 1.0 if trial is best else 0.75})
    x, y = [curve.x[curve.best] for curve in kept], [curve.y[curve.best] for curve in kept]
    marker = {"color": colours, "size": 8, "symbol": ["circle-open" if t.stopped else "circle" for t in trials]}
    traces += [figures.scatter("best of a trial", x, y, marker=marker, text=texts, showlegend=False), *key]
    if best is not None:
        top = trials.index(best)
        traces.append(figures.star("best trial", x[top], y[top], [texts[top]]))
    return with_key(traces, [trial.stopped for trial in trials])


def _label(trial: Trial, by: str) -> str:
    (text,) = labels(Frame(("Trial", "Split", "Stopped after"), [(trial.place, trial.split, trial.stopped)]))
    value = trial.params.get(by)
    if value is None:
        return text
    return f"{text}<br>{figures.plain(by)}: {f'{value:.6g}' if isinstance(value, float) else figures.plain(value)}"


def _colours(solver: SolverTrials, trials: Sequence[Trial], by: str) -> tuple[list[str], list[Trace]]:
    """Return the colour of each trial by a parameter, of a number by its quarter, and the key of the colours."""
    values = [trial.params.get(by) for trial in trials]
    known = sorted({value for value in values if value is not None}, key=str)
    if len(known) < 2:
        return [solver.marker["color"]] * len(trials), []
    palette: Sequence[str] = figures.COLOURS
    names = {value: figures.plain(value) for value in known}
    if not solver.is_choice(by):
        numbers = np.sort(np.array(known, dtype=np.float64))
        ends = np.unique(np.quantile(numbers, [0.25, 0.5, 0.75, 1.0], method="higher"))
        names = {value: f"up to {ends[np.searchsorted(ends, value)]:.3g}" for value in numbers.tolist()}
        palette = STOPS
    colours = {name: palette[k % len(palette)] for k, name in enumerate(dict.fromkeys(names.values()))}
    key = [
        figures.scatter(f"{by}: {name}", [None], [None], mode="lines", line={"color": colour})
        for name, colour in colours.items()
    ]
    return [figures.GREY if value is None else colours[names[value]] for value in values], key
