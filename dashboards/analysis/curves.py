"""Validation curves: of trials that were learnt along a path, the metric by the parameter that grew on the way.

One fit gives the models for many values of such a parameter (trees, rounds, passes, a penalty): a trial shows a curve
where it would else show a point. Colours tell the other parameter that matters most.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ranktune.dashboards.analysis import early_stopped
from ranktune.dashboards.analysis.pooling import Pooled, best_pooled
from ranktune.dashboards.analysis.solver_trials import SolverTrials
from ranktune.dashboards.figures import plotly as figures
from ranktune.dashboards.figures.panels import COLOURS, Cell, Panel, Table
from ranktune.solvers.core.arrays import Floats

MOST_CURVES = 40
"""Curves that can be told apart at most: half of them the best, the others an even choice."""
STOPS = ("#2a87c0", "#8795a8", "#b98d5c", "#d9650f")
"""From low to high, seen on a light page and on a dark one."""
UNKNOWN = "#7f7f7f"
ALIKE = 0.5
"""Share of the curves that may have one value of the parameter that colours tell: of more, all would look the same."""


@dataclass(frozen=True)
class _Curve:
    """A trial with the places of its path, rising; best and asked: which of them it is, and which was asked for."""

    one: Pooled
    x: list[float]
    y: list[float]
    best: int
    asked: int


def curves(solver: SolverTrials, k: int) -> list[Panel]:
    """Return the curves of a solver's trials; nothing where none of them has one."""
    found = [curve for one in solver.good if (curve := _curve(one)) is not None]
    along = next((curve.one.trial.path_parameter for curve in reversed(found)), "")
    found = [curve for curve in found if curve.one.trial.path_parameter == along and along in solver.distributions]
    if not found:
        return []
    kept = _chosen(found)
    metric, name = solver.data.metric, figures.short(along)
    rows: list[list[Cell]] = [
        [
            curve.one.trial.number, curve.one.split, figures.number(x), figures.number(y),
            "best" if place == curve.best else "asked for" if place == curve.asked else None,
            curve.one.trial.stopped or None,
        ]
        for curve in kept
        for place, (x, y) in enumerate(zip(curve.x, curve.y, strict=True))
    ]  # fmt: skip
    columns = ("Trial", "Split", along, metric, "Which", "Stopped after")
    by = _other(solver, kept, along)
    bounds, outside = figures.window(y for curve in kept for y in curve.y)
    up = figures.axis(f"{metric} (validation)") | ({} if bounds is None else {"range": bounds})
    shown = figures.figure(_traces(solver, kept, by), solver.axis(along), up, height=540)
    note = solver.note(_read(found, name, by), _left_out(kept, found), outside)
    title = f"{metric} along {name} of {figures.short(solver.name)}: the curve of each trial"
    return [Panel(f"curves-{k}", title, Table(columns, rows), shown, note, solver.name)]


def _curve(one: Pooled) -> _Curve | None:
    """Return the curve of a trial on the common level, None where it is none: of one point, or without its own."""
    trial = one.trial
    values = [value for value, _ in trial.path]
    if len(values) < 2 or one.value is None or trial.params.get(trial.path_parameter) not in values:
        return None
    own = values.index(trial.params[trial.path_parameter])
    level = one.value - trial.path[own][1]
    order = [int(place) for place in np.argsort(values, kind="stable")]
    y = [trial.path[place][1] + level for place in order]
    return _Curve(one, [values[place] for place in order], y, order.index(own), order.index(len(values) - 1))


def _chosen(found: Sequence[_Curve]) -> list[_Curve]:
    """Return the curves that are drawn, the best of them last, so that it lies on top."""
    order = sorted(found, key=lambda curve: (curve.one.in_full is not None, curve.one.value or 0.0))
    if len(order) <= MOST_CURVES:
        return order
    half = MOST_CURVES // 2
    places = np.linspace(0, len(order) - half - 1, MOST_CURVES - half).astype(np.int64)
    return [order[place] for place in places] + order[-half:]


def _other(solver: SolverTrials, kept: Sequence[_Curve], along: str) -> str | None:
    """Return the parameter that matters most beside the one along, of those in which the curves differ."""
    for name in solver.ranked:
        values = Counter(str(curve.one.trial.params.get(name)) for curve in kept)
        if name != along and max(values.values()) <= ALIKE * len(kept):
            return name
    return None


def _read(found: Sequence[_Curve], name: str, by: str | None) -> str:
    """Return how to read the curves, and what they say of what was asked for."""
    own = [curve for curve in found if not curve.one.trial.stopped]
    gains = [curve.y[curve.best] - curve.y[curve.asked] for curve in own if curve.best != curve.asked]
    said = f"One fit gives the models for all values of {name} on a line, and the best of them, the dot, is the trial"
    said += "." if by is None else f"; colours tell {figures.short(by)}."
    if gains:
        said += (
            f" In {len(gains)} of {len(own)} trials that were judged in full another value than the one asked for was "
            f"better, by {float(np.median(gains)):.2g} in the median."
        )
    said += " What fell for sure behind the best of its line was judged on fewer parts, and is less sure."
    if len(own) < len(found):
        said += " Dotted lines with hollow dots are trials that were stopped early: estimates."
    return said


def _left_out(kept: Sequence[_Curve], found: Sequence[_Curve]) -> str:
    if len(kept) == len(found):
        return ""
    return f"{len(kept)} of {len(found)} curves are shown, the best among them; the trials view has all."


def _traces(solver: SolverTrials, kept: Sequence[_Curve], by: str | None) -> list[figures.Trace]:
    """Return a line a trial with a dot at its best, what the colours mean, and a star for the best of all."""
    colours, key = _colours(solver, [curve.one for curve in kept], by)
    best = best_pooled([curve.one for curve in kept])
    traces: list[figures.Trace] = []
    for curve, colour in zip(kept, colours, strict=True):
        text = _text(solver, curve, by)
        line = {"width": 3.5 if curve.one is best else 1.5, "color": colour}
        line |= {"dash": "dot"} if curve.one.trial.stopped else {}
        trace = figures.scatter(
            "trial", curve.x, curve.y, mode="lines", line=line, text=[text] * len(curve.x), showlegend=False,
            opacity=1.0 if curve.one is best else 0.75,
        )  # fmt: skip
        traces.append(trace)
    marker = {"color": colours, "size": 8, "symbol": ["circle-open" if c.one.trial.stopped else "circle" for c in kept]}
    dots = figures.scatter(
        "best of a trial", [c.x[c.best] for c in kept], [c.y[c.best] for c in kept], marker=marker,
        text=[_text(solver, c, by) for c in kept], showlegend=False,
    )  # fmt: skip
    traces += [dots, *key]
    star = next((curve for curve in kept if curve.one is best), None)
    if star is not None:
        marker = {"symbol": "star", "size": 16, "color": "#d55e00", "line": {"width": 1, "color": "#ffffff"}}
        x, y = [star.x[star.best]], [star.y[star.best]]
        traces.append(figures.scatter("best trial", x, y, marker=marker, text=[_text(solver, star, by)]))
    return early_stopped.with_key(traces, [curve.one.trial for curve in kept])


def _text(solver: SolverTrials, curve: _Curve, by: str | None) -> str:
    said = early_stopped.said(curve.one.trial, figures.plain(curve.one.split))
    value = None if by is None else curve.one.trial.params.get(by)
    if by is None or value is None:
        return said
    return f"{said}<br>{figures.plain(by)}: {solver.cell(by, value)}"


def _colours(solver: SolverTrials, own: Sequence[Pooled], by: str | None) -> tuple[list[str], list[figures.Trace]]:
    """Return the colour of each trial, and what tells what colours mean: entries of the legend, or a scale."""
    values = [None if by is None else one.trial.params.get(by) for one in own]
    if by is None or len({value for value in values if value is not None}) < 2:
        return [solver.marker["color"]] * len(own), []
    if solver.is_choice(by):
        choices = list(dict.fromkeys(figures.plain(value) for value in values if value is not None))
        looks = {name: COLOURS[place % len(COLOURS)] for place, name in enumerate(sorted(choices))}
        key = [
            figures.scatter(f"{by}: {name}", [None], [None], mode="lines", line={"color": looks[name], "width": 3})
            for name in looks
        ]
        return [UNKNOWN if value is None else looks[figures.plain(value)] for value in values], key
    log = solver.axis(by).get("type") == "log"
    places = np.array([np.nan if value is None else float(value) for value in values], dtype=np.float64)
    places = np.log10(places) if log else places
    low, high = float(np.nanmin(places)), float(np.nanmax(places))
    return [_shade((place - low) / (high - low)) for place in places], [_scale(by, low, high, log)]


def _shade(share: float) -> str:
    """Return the colour at a share of the way from low to high, grey where that is not known."""
    if not np.isfinite(share):
        return UNKNOWN
    ends: Floats = np.array([[int(stop[k : k + 2], 16) for k in (1, 3, 5)] for stop in STOPS], dtype=np.float64)
    at = np.linspace(0.0, 1.0, len(STOPS))
    return "#" + "".join(f"{round(float(np.interp(share, at, ends[:, c]))):02x}" for c in range(3))


def _scale(by: str, low: float, high: float, log: bool) -> figures.Trace:
    """Return what draws the scale of the colours beside the figure; it has no points."""
    ticks = np.linspace(low, high, 4)
    bar: dict[str, Any] = {
        "title": {"text": figures.plain(by, 24), "side": "top"}, "thickness": 12, "tickmode": "array",
        "orientation": "h", "x": 0.5, "xanchor": "center", "y": -0.2, "yanchor": "top", "len": 0.6,
        "tickvals": figures.numbers(ticks), "ticktext": [f"{10**tick if log else tick:.2g}" for tick in ticks],
    }  # fmt: skip
    stops = [list(stop) for stop in zip(np.linspace(0.0, 1.0, len(STOPS)).tolist(), STOPS, strict=True)]
    marker = {"color": [low, high], "cmin": low, "cmax": high, "colorscale": stops, "showscale": True, "colorbar": bar}
    return figures.scatter(by, [None, None], [None, None], marker=marker, showlegend=False, hoverinfo="skip")
