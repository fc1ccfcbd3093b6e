"""Validation curves: the metric of trials along their regularization path.

One fit gives a model for each of many values of one parameter (trees, rounds, passes, a penalty): such a trial is a
curve and not a point. The colour of a curve is the value of the most important other parameter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ranktune.dashboards.analysis import early_stopped
from ranktune.dashboards.analysis.solver_trials import SolverTrials
from ranktune.dashboards.figures import plotly as figures
from ranktune.dashboards.figures.panels import Panel, Table, Trace
from ranktune.dashboards.records.trial import Trial, best_of
from ranktune.solvers.core.arrays import Floats

MAX_CURVES = 40
"""Curves of a figure: half of them the best, the others an even choice."""
STOPS = ("#2a87c0", "#8795a8", "#b98d5c", "#d9650f")
"""Colours from low to high, for a light page and a dark one."""
MAX_SHARE_ALIKE = 0.5
"""Fraction of the curves that may have the same value of the parameter that the colours show."""


@dataclass(frozen=True)
class _Curve:
    """A trial with its path in ascending order; best and requested are places on it."""

    trial: Trial
    x: list[float]
    y: list[float]
    best: int
    requested: int


def curves(solver: SolverTrials, k: int) -> list[Panel]:
    """Return the panel of a solver's curves; nothing where no trial has one."""
    drawn = [curve for trial in solver.valued if (curve := _curve(trial)) is not None]
    parameter = next((curve.trial.path_parameter for curve in reversed(drawn)), "")
    drawn = [curve for curve in drawn if curve.trial.path_parameter == parameter and parameter in solver.distributions]
    if not drawn:
        return []
    kept = _chosen(drawn)
    metric, name = solver.data.metric, figures.short(parameter)
    rows = [
        [
            curve.trial.number, curve.trial.split, x, y,
            "best" if place == curve.best else "requested" if place == curve.requested else None,
            curve.trial.stopped or None,
        ]
        for curve in kept
        for place, (x, y) in enumerate(zip(curve.x, curve.y, strict=True))
    ]  # fmt: skip
    columns = ("Trial", "Split", parameter, metric, "Which", "Stopped after")
    by = _other_parameter(solver, kept, parameter)
    y_axis, outside = figures.value_axis(f"{metric} (validation)", [y for curve in kept for y in curve.y])
    shown = figures.figure(_traces(solver, kept, by), solver.axis(parameter), y_axis, height=540)
    thinned = f"{len(kept)} of {len(drawn)} curves are shown, the best among them; the trials view has all."
    note = solver.note(_explanation(drawn, name, by), thinned if len(kept) < len(drawn) else "", outside)
    title = f"{metric} along {name} of {figures.short(solver.name)}: the curve of each trial"
    return [Panel(f"curves-{k}", title, Table(columns, rows), shown, note, solver.name)]


def _curve(trial: Trial) -> _Curve | None:
    """Return the curve of a trial, None for a path with one value or without the value of the trial."""
    values = [value for value, _ in trial.path]
    if len(values) < 2 or trial.params.get(trial.path_parameter) not in values:
        return None
    requested = values.index(float(trial.params[trial.path_parameter] or 0.0))
    order = [int(place) for place in np.argsort(values, kind="stable")]
    x, y = [values[place] for place in order], [trial.path[place][1] for place in order]
    return _Curve(trial, x, y, order.index(requested), order.index(len(values) - 1))


def _chosen(drawn: Sequence[_Curve]) -> list[_Curve]:
    """Return the curves that are drawn, the best of them last, so that it lies on top."""
    order = sorted(drawn, key=lambda curve: (curve.trial.full_value is not None, curve.trial.value or 0.0))
    if len(order) <= MAX_CURVES:
        return order
    half = MAX_CURVES // 2
    places = np.linspace(0, len(order) - half - 1, MAX_CURVES - half).astype(np.int64)
    return [order[place] for place in places] + order[-half:]


def _other_parameter(solver: SolverTrials, kept: Sequence[_Curve], path_parameter: str) -> str | None:
    """Return the most important other parameter of those in which the curves differ."""
    for name in solver.ranked:
        values = Counter(str(curve.trial.params.get(name)) for curve in kept)
        if name != path_parameter and max(values.values()) <= MAX_SHARE_ALIKE * len(kept):
            return name
    return None


def _explanation(drawn: Sequence[_Curve], name: str, by: str | None) -> str:
    """Return how to read the curves, and how often another value than the requested one was best."""
    complete = [curve for curve in drawn if not curve.trial.stopped]
    gains = [curve.y[curve.best] - curve.y[curve.requested] for curve in complete if curve.best != curve.requested]
    text = f"Each line is one fit, which gives a model for every value of {name} on it. The dot is the best of them, "
    text += "and is the value of the trial."
    if by is not None:
        text += f" Colours show {figures.short(by)}."
    if gains:
        text += (
            f" In {len(gains)} of {len(complete)} trials that were evaluated in full another value than the requested "
            f"one was better, by {float(np.median(gains)):.2g} in the median."
        )
    text += " Values that were significantly worse than the best of their line are means over fewer parts of the plan."
    if len(complete) < len(drawn):
        text += " Dotted lines with open markers are trials that were stopped early: their values are estimates."
    return text


def _traces(solver: SolverTrials, kept: Sequence[_Curve], by: str | None) -> list[Trace]:
    """Return a line a trial with a dot at its best, the key of the colours, and a star for the best of all."""
    trials = [curve.trial for curve in kept]
    colours, key = _colours(solver, trials, by)
    best = best_of(trials)
    traces: list[Trace] = []
    for curve, colour in zip(kept, colours, strict=True):
        text = _label(solver, curve, by)
        line = {"width": 3.5 if curve.trial is best else 1.5, "color": colour}
        line |= {"dash": "dot"} if curve.trial.stopped else {}
        trace = figures.scatter(
            "trial", curve.x, curve.y, mode="lines", line=line, text=[text] * len(curve.x), showlegend=False,
            opacity=1.0 if curve.trial is best else 0.75,
        )  # fmt: skip
        traces.append(trace)
    marker = {"color": colours, "size": 8, "symbol": ["circle-open" if t.stopped else "circle" for t in trials]}
    dots = figures.scatter(
        "best of a trial", [c.x[c.best] for c in kept], [c.y[c.best] for c in kept], marker=marker,
        text=[_label(solver, c, by) for c in kept], showlegend=False,
    )  # fmt: skip
    traces += [dots, *key]
    top = next((curve for curve in kept if curve.trial is best), None)
    if top is not None:
        traces.append(figures.star("best trial", top.x[top.best], top.y[top.best], [_label(solver, top, by)]))
    return early_stopped.with_legend(traces, trials)


def _label(solver: SolverTrials, curve: _Curve, by: str | None) -> str:
    text = early_stopped.label(curve.trial, figures.plain(curve.trial.split))
    value = None if by is None else curve.trial.params.get(by)
    if by is None or value is None:
        return text
    return f"{text}<br>{figures.plain(by)}: {f'{value:.6g}' if isinstance(value, float) else figures.plain(value)}"


def _colours(solver: SolverTrials, trials: Sequence[Trial], by: str | None) -> tuple[list[str], list[Trace]]:
    """Return the colour of each trial, and the key of the colours: entries of the legend, or a scale."""
    values = [None if by is None else trial.params.get(by) for trial in trials]
    if by is None or len({value for value in values if value is not None}) < 2:
        return [solver.marker["color"]] * len(trials), []
    if solver.is_choice(by):
        choices = sorted({figures.plain(value) for value in values if value is not None})
        colours = {name: figures.COLOURS[place % len(figures.COLOURS)] for place, name in enumerate(choices)}
        key = [
            figures.scatter(f"{by}: {name}", [None], [None], mode="lines", line={"color": colour, "width": 3})
            for name, colour in colours.items()
        ]
        return [figures.GREY if value is None else colours[figures.plain(value)] for value in values], key
    log = solver.axis(by).get("type") == "log"
    places = np.array([np.nan if value is None else float(value) for value in values], dtype=np.float64)
    places = np.log10(places) if log else places
    low, high = float(np.nanmin(places)), float(np.nanmax(places))
    return [_shade((place - low) / (high - low)) for place in places], [_scale(by, low, high, log)]


def _shade(fraction: float) -> str:
    """Return the colour at a fraction of the way from low to high, grey where that is NaN."""
    if not np.isfinite(fraction):
        return figures.GREY
    ends: Floats = np.array([[int(stop[k : k + 2], 16) for k in (1, 3, 5)] for stop in STOPS], dtype=np.float64)
    at = np.linspace(0.0, 1.0, len(STOPS))
    return "#" + "".join(f"{round(float(np.interp(fraction, at, ends[:, c]))):02x}" for c in range(3))


def _scale(by: str, low: float, high: float, log: bool) -> Trace:
    """Return a trace without points that draws the scale of the colours below the figure."""
    ticks = np.linspace(low, high, 4)
    bar = figures.colour_bar(by, 24) | {
        "tickmode": "array", "orientation": "h", "x": 0.5, "xanchor": "center", "y": -0.2, "yanchor": "top", "len": 0.6,
        "tickvals": ticks, "ticktext": [f"{10**tick if log else tick:.2g}" for tick in ticks],
    }  # fmt: skip
    stops = [list(stop) for stop in zip(np.linspace(0.0, 1.0, len(STOPS)).tolist(), STOPS, strict=True)]
    marker = {"color": [low, high], "cmin": low, "cmax": high, "colorscale": stops, "showscale": True, "colorbar": bar}
    return figures.scatter(by, [None, None], [None, None], marker=marker, showlegend=False, hoverinfo="skip")
