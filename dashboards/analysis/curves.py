"""Validation curves: the metric of trials along their regularization path.

One fit gives a model for each of many values of one parameter (trees, rounds, passes, a penalty): such a trial is a
curve and not a point. The colour of a curve is the value of the most important other parameter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ranktune.dashboards.analysis.solver_trials import SolverTrials
from ranktune.dashboards.figures import plotly as figures
from ranktune.dashboards.figures.kinds import labels, with_key
from ranktune.dashboards.figures.panels import Figure, Frame, Panel, Trace
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
            curve.trial.place, curve.trial.split, x, y,
            "best" if place == curve.best else "requested" if place == curve.requested else None,
            curve.trial.stopped or None,
        ]
        for curve in kept
        for place, (x, y) in enumerate(zip(curve.x, curve.y, strict=True))
    ]  # fmt: skip
    columns = ("Trial", "Split", parameter, metric, "Which", "Stopped after")
    by = _other_parameter(solver, kept, parameter)
    y_axis, outside = figures.value_axis(f"{metric} (validation)", [y for curve in kept for y in curve.y])

    def drawn_as(_: Frame) -> Figure:
        return figures.figure(_traces(solver, kept, by), solver.axis(parameter), y_axis, height=540)

    thinned = f"{len(kept)} of {len(drawn)} curves are shown, the best among them; the trials view has all."
    note = solver.note(_explanation(drawn, name, by), thinned if len(kept) < len(drawn) else "", outside)
    title = f"{metric} along {name} of {figures.short(solver.name)}: the curve of each trial"
    return [Panel(f"curves-{k}", title, Frame(columns, rows), drawn_as, note, solver.name)]


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
    return with_key(traces, [trial.stopped for trial in trials])


def _label(solver: SolverTrials, curve: _Curve, by: str | None) -> str:
    trial = curve.trial
    (text,) = labels(Frame(("Trial", "Split", "Stopped after"), [(trial.place, trial.split, trial.stopped)]))
    value = None if by is None else curve.trial.params.get(by)
    if by is None or value is None:
        return text
    return f"{text}<br>{figures.plain(by)}: {f'{value:.6g}' if isinstance(value, float) else figures.plain(value)}"


def _colours(solver: SolverTrials, trials: Sequence[Trial], by: str | None) -> tuple[list[str], list[Trace]]:
    """Return the colour of each trial by a parameter, of a number by its quarter, and the key of the colours."""
    values = [None if by is None else trial.params.get(by) for trial in trials]
    known = sorted({value for value in values if value is not None}, key=str)
    if by is None or len(known) < 2:
        return [solver.marker["color"]] * len(trials), []
    names: list[str] = list(map(figures.plain, known))
    palette: Sequence[str] = figures.COLOURS
    classes = {value: k for k, value in enumerate(known)}
    if not solver.is_choice(by):
        numbers: Floats = np.sort(np.array(known, dtype=np.float64))
        ends = np.unique(np.quantile(numbers, [0.25, 0.5, 0.75, 1.0], method="higher"))
        names, palette = [f"up to {end:.3g}" for end in ends], STOPS
        classes = {value: int(np.searchsorted(ends, float(str(value)))) for value in known}
    key = [
        figures.scatter(f"{by}: {name}", [None], [None], mode="lines", line={"color": palette[k % len(palette)]})
        for k, name in enumerate(names)
    ]
    return [figures.GREY if v is None else palette[classes[v] % len(palette)] for v in values], key
