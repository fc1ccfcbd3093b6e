"""Trials that were stopped early as hollow points, beside those that were judged in full.

What they would have scored is estimated: a point among others, but never the best of anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ranktune.dashboards.figures import plotly as figures
from ranktune.dashboards.records.study import Trial

NOTE = "Hollow points are trials that were stopped early, for sure behind the best: their values are estimates."
KEY = "stopped early"


def told_apart(trace: figures.Trace, stopped: Sequence[bool]) -> list[figures.Trace]:
    """Return the points of a trace as two, filled ones and hollow ones, one entry of the legend for both.

    stopped, (n,), tells of each point whether it is hollow.
    """
    if not any(stopped):
        return [trace]
    filled = _part(trace, [not one for one in stopped])
    hollow = _part(trace, stopped)
    marker = dict(trace["marker"])
    hollow["marker"] = marker | {"symbol": f"{marker.get('symbol', 'circle')}-open", "opacity": 0.9}
    group = {"legendgroup": trace["name"]}
    if not filled["x"]:
        return [hollow | group]
    return [filled | group, hollow | group | {"showlegend": False}]


def with_key(traces: Sequence[figures.Trace], trials: Iterable[Trial]) -> list[figures.Trace]:
    """Return traces, and where any of their trials was stopped, an entry of the legend that says what hollow is."""
    if not any(trial.stopped for trial in trials):
        return list(traces)
    marker = {"symbol": "circle-open", "size": 8, "color": "#7f7f7f"}
    return [*traces, figures.scatter(KEY, [None], [None], marker=marker, hoverinfo="skip")]


def said(trial: Trial, name: str = "") -> str:
    """Return what the label of a trial's point says, after the plain name of its solver or split where one is given."""
    about = f"{name}, trial {trial.number}" if name else f"trial {trial.number}"
    return f"{about}, stopped after {figures.plain(trial.stopped, 30)}" if trial.stopped else about


def _part(trace: figures.Trace, kept: Sequence[bool]) -> figures.Trace:
    def those(values: Sequence[object]) -> list[object]:
        return [value for value, keep in zip(values, kept, strict=True) if keep]

    found = trace | {name: those(trace[name]) for name in ("x", "y", "text") if isinstance(trace.get(name), list)}
    if "error_y" in trace:
        found["error_y"] = trace["error_y"] | {"array": those(trace["error_y"]["array"])}
    return found
