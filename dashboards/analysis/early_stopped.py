"""Open markers for trials that were stopped early, beside the filled markers of those that were evaluated in full.

The value of a stopped trial is an estimate: it is drawn, but is never the best of anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ranktune.dashboards.figures import plotly as figures
from ranktune.dashboards.figures.panels import Trace
from ranktune.dashboards.records.trial import Trial

NOTE = (
    "Open markers are trials that were stopped early because they were significantly worse: their values are estimates."
)
LEGEND = "stopped early"


def note(trials: Iterable[Trial]) -> str:
    """Return what open markers are, "" where no trial was stopped early."""
    return NOTE if any(trial.stopped for trial in trials) else ""


def with_open_markers(trace: Trace, stopped: Sequence[bool]) -> list[Trace]:
    """Return the points of a trace as two traces, filled and open markers, with one entry in the legend.

    stopped, (n,), marks the points that get open markers.
    """
    if not any(stopped):
        return [trace]
    filled = _part(trace, [not early for early in stopped])
    opened = _part(trace, stopped)
    marker = dict(trace["marker"])
    opened["marker"] = marker | {"symbol": f"{marker.get('symbol', 'circle')}-open", "opacity": 0.9}
    group = {"legendgroup": trace["name"]}
    if not filled["x"]:
        return [opened | group]
    return [filled | group, opened | group | {"showlegend": False}]


def with_legend(traces: Sequence[Trace], trials: Iterable[Trial]) -> list[Trace]:
    """Return traces, and an entry of the legend for open markers where a trial was stopped early."""
    if not any(trial.stopped for trial in trials):
        return list(traces)
    marker = {"symbol": "circle-open", "size": 8, "color": figures.GREY}
    return [*traces, figures.scatter(LEGEND, [None], [None], marker=marker, hoverinfo="skip")]


def solver_points(
    points: Sequence[tuple[Trial, float, float | None]],
    styles: Mapping[str, Mapping[str, str]],
    errors: Sequence[float] | None = None,
) -> list[Trace]:
    """Return the points (trial, x, y) as one trace a solver with open markers and their entry in the legend.

    errors, (n,), is half the length of each point's error bar.
    """
    traces: list[Trace] = []
    for solver in sorted({trial.solver for trial, _, _ in points}):
        places = [k for k, (trial, _, _) in enumerate(points) if trial.solver == solver]
        trials, x, y = zip(*(points[k] for k in places), strict=True)
        marker = {**styles[solver], "size": 7, "opacity": 0.7}
        text = [label(trial, figures.plain(solver)) for trial in trials]
        error = None if errors is None else [errors[k] for k in places]
        trace = figures.scatter(solver, x, y, marker=marker, text=text, error=error)
        traces += with_open_markers(trace, [bool(trial.stopped) for trial in trials])
    return with_legend(traces, [trial for trial, _, _ in points])


def label(trial: Trial, name: str = "") -> str:
    """Return the label of a trial's point, after the plain name of its solver or split where one is given."""
    about = f"{name}, trial {trial.number}" if name else f"trial {trial.number}"
    return f"{about}, stopped after {figures.plain(trial.stopped, 30)}" if trial.stopped else about


def _part(trace: Trace, kept: Sequence[bool]) -> Trace:
    def those(values: Sequence[object]) -> list[object]:
        return [value for value, keep in zip(values, kept, strict=True) if keep]

    part = trace | {name: those(trace[name]) for name in ("x", "y", "text") if isinstance(trace.get(name), list)}
    if "error_y" in trace:
        part["error_y"] = trace["error_y"] | {"array": those(trace["error_y"]["array"])}
    return part
