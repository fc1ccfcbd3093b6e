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


def points(
    name: str,
    trials: Sequence[Trial],
    x: Sequence[figures.Place],
    y: Sequence[figures.Place],
    text: Sequence[str],
    marker: Mapping[str, object],
    errors: Sequence[float] | None = None,
    **more: object,
) -> list[Trace]:
    """Return the points of trials, in filled and in open markers, with one entry in the legend."""
    traces: list[Trace] = []
    for early in (False, True):
        kept = [k for k, trial in enumerate(trials) if bool(trial.stopped) == early]
        if not kept:
            continue
        style = {**marker, "symbol": f"{marker['symbol']}-open", "opacity": 0.9} if early else marker
        across, up = ([each[k] for k in kept] for each in (x, y))
        error = None if errors is None else [errors[k] for k in kept]
        trace = figures.scatter(name, across, up, marker=style, text=[text[k] for k in kept], error=error)
        group = {"legendgroup": figures.plain(name)} | ({"showlegend": False} if traces else {})
        traces.append(trace | group | more)
    return traces


def with_legend(traces: Sequence[Trace], trials: Iterable[Trial]) -> list[Trace]:
    """Return traces, and an entry of the legend for open markers where a trial was stopped early."""
    if not any(trial.stopped for trial in trials):
        return list(traces)
    marker = {"symbol": "circle-open", "size": 8, "color": figures.GREY}
    return [*traces, figures.scatter(LEGEND, [None], [None], marker=marker, hoverinfo="skip")]


def solver_points(
    given: Sequence[tuple[Trial, float, float | None]],
    styles: Mapping[str, Mapping[str, str]],
    errors: Sequence[float] | None = None,
) -> list[Trace]:
    """Return the points (trial, x, y) as one trace a solver with open markers and their entry in the legend.

    errors, (n,), is half the length of each point's error bar.
    """
    traces: list[Trace] = []
    for solver in sorted({trial.solver for trial, _, _ in given}):
        places = [k for k, (trial, _, _) in enumerate(given) if trial.solver == solver]
        trials, x, y = zip(*(given[k] for k in places), strict=True)
        marker = {**styles[solver], "size": 7, "opacity": 0.7}
        text = [label(trial, figures.plain(solver)) for trial in trials]
        error = None if errors is None else [errors[k] for k in places]
        traces += points(solver, trials, x, y, text, marker, error)
    return with_legend(traces, [trial for trial, _, _ in given])


def label(trial: Trial, name: str = "") -> str:
    """Return the label of a trial's point, after the plain name of its solver or split where one is given."""
    about = f"{name}, trial {trial.number}" if name else f"trial {trial.number}"
    return f"{about}, stopped after {figures.plain(trial.stopped, 30)}" if trial.stopped else about
