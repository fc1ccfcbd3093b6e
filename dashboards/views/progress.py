"""Progress: what each trial found, where the time went, what every worker did when, and how long it will take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ranktune.dashboards.analysis import early_stopped
from ranktune.dashboards.figures.panels import Cell, Panel, Table, look, plain, thinned
from ranktune.dashboards.figures.plotly import pattern, window
from ranktune.dashboards.records.study import (
    SplitData,
    StudyData,
    Trial,
    best_of,
    best_so_far,
    counts,
    duration,
    study_state,
)

Figure = dict[str, Any]

LATELY = 50
"""Trials by whose pace the time that is left is judged."""
LANES = 24
"""Workers drawn at most: those that were busiest."""


def panels(data: StudyData) -> list[Panel]:
    """Return how far the study is, then history, time and workers of each split."""
    found = [_time_left(data)]
    for split in data.splits:
        found += [_history(data, split), _spent(data, split), _lanes(data, split)]
    return found


def _key(name: str, data: StudyData, split: SplitData) -> str:
    return name if len(data.splits) == 1 else f"{name}-{data.splits.index(split) + 1}"


def _titled(title: str, split: SplitData) -> str:
    return f"{split.name}: {title}" if split.name else title


def _time_left(data: StudyData) -> Panel:
    trials = [trial for _, trial in data.trials]
    own = counts(trials)
    rows: list[tuple[str, Cell]] = [
        ("finished", len(trials)),
        ("in all", data.total if data.by_number else None),
        ("judged in full", own.complete),
        ("stopped early, for sure behind the best", own.stopped),
        ("failed", own.failed),
        ("begun again", sum(t.restarts for t in trials)),
        ("processor seconds of learning", round(own.spent, 3)),
    ]
    if own.stopped:
        rows.append(("processor seconds that stopping spared, roughly", round(own.spared, 3)))
    pace = seconds_a_trial(trials)
    if pace is not None:
        rows.append(("seconds between trials, lately", round(pace, 3)))
    left = data.total - len(trials)
    note = "No trial has finished yet."
    if study_state(data) == "finished":
        note = "The study is finished."
    elif data.study.timeout is not None:
        note = f"Trials go on until the study has taken {duration(data.study.timeout)}, reading and choosing included."
    elif data.study.until is not None:
        note = (
            f"Trials go on until they are expected to gain less than {data.study.until:g} of {data.metric}, "
            f"{data.total} at most."
        )
    elif left <= 0:
        note = "All trials have finished; the choice is being made."
    elif pace is not None:
        rows.append(("seconds left", round(pace * left, 1)))
        note = f"{left} trials are left: about {duration(pace * left)} at the pace of the last ones."
    elif trials:
        note = f"{left} trials are left; how long they take is told when two have finished."
    if own.stopped:
        note += (
            f" {own.stopped} of {len(trials)} trials were stopped early, which spared roughly {duration(own.spared)}."
        )
    return Panel("time-left", "How far it is", Table(("what", "value"), rows), None, note)


def seconds_a_trial(trials: Sequence[Trial]) -> float | None:
    """Return the wall time between the ends of the latest trials of one run, None where there are not two.

    A pause (the study was stopped and resumed) counts as one usual step: the median, not the mean, of the steps
    would forget that parallel trials end in bursts, so only steps beyond 20 times the median are cut to it.
    """
    ends = np.sort([t.ended for t in trials if t.ended is not None])[-LATELY - 1 :]
    steps = np.diff(ends)
    if len(steps) == 0:
        return None
    usual = float(np.median(steps))
    long = max(usual, float(np.median([t.ended - t.begun for t in trials[-LATELY:] if t.ended and t.begun])))
    return float(np.minimum(steps, 20 * max(long, 1e-3)).mean())


def _history(data: StudyData, split: SplitData) -> Panel:
    title = _titled(f"Validation {data.metric} of every trial, and the best so far", split)
    best = best_so_far(split.trials)
    columns = ("trial", "solver", data.metric, "standard error", "stopped after", "best so far")
    steps = _steps(best)
    rows = [
        [t.number, t.solver, t.value, t.error_of_mean, t.stopped or None, _number(best[k])]
        for k, t in enumerate(split.trials)
    ]
    kept = thinned(len(rows), steps, 500)
    note = "" if len(kept) == len(rows) else f"The table has {len(kept)} of the {len(rows)} trials; Trials has all."
    if any(t.stopped for t in split.trials):
        note = f"{early_stopped.NOTE} {note}".strip()
    note = f"{note} {window(t.value for t in split.trials)[1]}".strip()
    if not split.trials:
        note = "No trial has finished yet."
    figure = history_figure(data, split) if np.isfinite(best).any() else None
    key = _key("history", data, split)
    return Panel(key, title, Table(columns, [rows[k] for k in kept]), figure, note, split.name)


def history_figure(data: StudyData, split: SplitData) -> Figure:
    """Return each trial's value by number, a colour and symbol a solver, and the best so far as steps."""
    styles = look(data.solvers)
    traces: list[Figure] = []
    best = best_so_far(split.trials)
    shown: list[Trial] = []
    for solver in sorted({t.solver for t in split.trials if t.value is not None}):
        own = [t for t in split.trials if t.solver == solver and t.value is not None]
        top = best_of(own)
        few = [own[k] for k in thinned(len(own), [] if top is None else [own.index(top)])]
        trace = {
            "type": "scatter", "mode": "markers", "name": plain(solver), "x": [t.number for t in few],
            "y": [t.value for t in few], "marker": styles[solver] | {"size": 8, "opacity": 0.8},
            "text": [early_stopped.said(t) for t in few],
            "hovertemplate": "%{text}<br>%{y}<extra>" + plain(solver) + "</extra>",
        }  # fmt: skip
        traces += early_stopped.told_apart(trace, [bool(t.stopped) for t in few])
        shown += few
    kept = _steps(best)
    traces.append({
        "type": "scatter", "mode": "lines", "name": "best so far", "x": [split.trials[k].number for k in kept],
        "y": [float(best[k]) for k in kept], "line": {"shape": "hv", "width": 2, "color": "#7f7f7f"},
    })  # fmt: skip
    y: dict[str, Any] = {"title": {"text": f"validation {plain(data.metric)}"}}
    bounds, _ = window(t.value for t in split.trials)
    y |= {} if bounds is None else {"range": bounds}
    return {
        "data": early_stopped.with_key(traces, shown),
        "layout": {"xaxis": {"title": {"text": "trial number"}}, "yaxis": y, "hovermode": "closest"},
    }


def _steps(best: Any) -> list[int]:
    """Return the places where the best so far changes, the first that is a number, and the last."""
    known = np.flatnonzero(np.isfinite(best))
    if len(known) == 0:
        return []
    changed = known[1:][best[known[1:]] != best[known[1:] - 1]]
    return sorted({int(known[0]), *map(int, changed), int(known[-1])})


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _spent(data: StudyData, split: SplitData) -> Panel:
    title = _titled("Processor time of learning, by solver", split)
    spent = {name: sum(t.seconds for t in split.trials if t.solver == name) for name in data.solvers}
    names = sorted({t.solver for t in split.trials}, key=lambda name: -spent.get(name, 0.0))
    total = sum(t.seconds for t in split.trials) or 1.0
    rows: list[list[Cell]] = []
    for name in names:
        seconds = [t.seconds for t in split.trials if t.solver == name]
        median = float(np.median(seconds))
        own = counts(t for t in split.trials if t.solver == name)
        share = round(own.spent / total, 4)
        rows.append(
            [name, len(seconds), round(own.spent, 4), round(median, 4), share, own.stopped, round(own.spared, 4)]
        )
    columns = ("solver", "trials", "seconds", "median seconds", "share", "stopped early", "seconds spared, roughly")
    figure = spent_figure(data, split) if split.trials else None
    note = "" if split.trials else "No trial has finished yet."
    return Panel(_key("time", data, split), title, Table(columns, rows), figure, note, split.name)


def spent_figure(data: StudyData, split: SplitData) -> Figure:
    """Return the cumulative processor seconds of each solver over the trials, stacked."""
    styles = look(data.solvers)
    kept = thinned(len(split.trials), most=400)
    numbers = [split.trials[k].number for k in kept]
    traces = []
    for solver in sorted({t.solver for t in split.trials}):
        spent = np.cumsum([t.seconds if t.solver == solver else 0.0 for t in split.trials])
        traces.append({
            "type": "scatter", "mode": "lines", "stackgroup": "all", "name": plain(solver), "x": numbers,
            "y": [round(float(spent[k]), 4) for k in kept], "line": {"width": 1, "color": styles[solver]["color"]},
        })  # fmt: skip
    y = {"title": {"text": "processor seconds, cumulative"}, "rangemode": "tozero"}
    return {"data": traces, "layout": {"xaxis": {"title": {"text": "trial number"}}, "yaxis": y}}


def _lanes(data: StudyData, split: SplitData) -> Panel:
    title = _titled("What every worker did when", split)
    timed = [t for t in split.trials if t.begun is not None and t.ended is not None]
    columns = (
        "worker", "trials", "failed", "died before", "stopped early", "busy seconds", "first began, s", "last ended, s",
    )  # fmt: skip
    if not timed:
        why = "No trial has finished yet." if not split.trials else "The record does not say when its trials ran."
        return Panel(_key("workers", data, split), title, Table(columns, []), None, why, split.name)
    zero = min(t.begun for t in timed if t.begun is not None)
    rows: list[list[Cell]] = []
    for worker in _workers(timed):
        own = [t for t in timed if t.worker == worker]
        busy = round(sum(_length(t) for t in own), 3)
        died, failed = sum(t.restarts for t in own), sum(t.value is None for t in own)
        span = [round((own[0].begun or zero) - zero, 3), round(max(t.ended or zero for t in own) - zero, 3)]
        rows.append([worker or "not told", len(own), failed, died, sum(bool(t.stopped) for t in own), busy, *span])
    note = "A cross is a trial that failed, a triangle one that was begun again because its worker was lost."
    if any(t.stopped for t in timed):
        note += " Hatched bars were stopped early, for sure behind the best."
    key = _key("workers", data, split)
    return Panel(key, title, Table(columns, rows), lanes_figure(data, timed), note, split.name)


def _workers(trials: Sequence[Trial]) -> list[str]:
    """Return the workers by when they first began."""
    return list(dict.fromkeys(t.worker for t in sorted(trials, key=lambda t: t.begun or 0.0)))


def _length(trial: Trial) -> float:
    return (trial.ended or 0.0) - (trial.begun or 0.0)


def lanes_figure(data: StudyData, timed: Sequence[Trial]) -> Figure:
    """Return a lane a worker, a bar a trial; failures and restarts are marked."""
    zero = min(t.begun for t in timed if t.begun is not None)
    busiest = sorted(_workers(timed), key=lambda w: -sum(_length(t) for t in timed if t.worker == w))[:LANES]
    lanes = [worker for worker in _workers(timed) if worker in busiest]
    place = {worker: k for k, worker in enumerate(lanes)}
    shown = [t for t in timed if t.worker in place]
    longest = np.argsort([-_length(t) for t in shown], kind="stable")[:500]
    shown = [shown[k] for k in thinned(len(shown), [int(k) for k in longest])]
    styles = look(data.solvers)
    traces: list[Figure] = []
    for solver in sorted({t.solver for t in shown}):
        own = [t for t in shown if t.solver == solver]
        traces.append({
            "type": "bar", "orientation": "h", "name": plain(solver), "y": [place[t.worker] for t in own],
            "base": [round((t.begun or zero) - zero, 4) for t in own], "x": [round(_length(t), 4) for t in own],
            "text": [early_stopped.said(t) for t in own], "textposition": "none", "width": 0.7,
            "marker": {
                "color": styles[solver]["color"], "line": {"width": 0.5, "color": "rgba(127,127,127,0.6)"},
                "pattern": pattern(["/" if t.stopped else "" for t in own]),
            },
            "hovertemplate": "%{text}, %{x:.3f} s<extra>" + plain(solver) + "</extra>",
        })  # fmt: skip
    marks = (("failed", "x", [t for t in shown if t.value is None]),
             ("begun again", "triangle-up", [t for t in shown if t.restarts]))  # fmt: skip
    for name, symbol, own in marks:
        if own:
            traces.append({
                "type": "scatter", "mode": "markers", "name": name, "y": [place[t.worker] for t in own],
                "x": [round((t.ended or zero) - zero, 4) for t in own],
                "marker": {"symbol": symbol, "size": 9, "color": "#d55e00", "line": {"width": 1, "color": "#ffffff"}},
            })  # fmt: skip
    names = [plain(worker or "not told", 16) for worker in lanes]
    y = {"tickvals": list(range(len(lanes))), "ticktext": names, "title": {"text": "worker (process)"},
         "range": [len(lanes) - 0.4, -0.6], "automargin": True}  # fmt: skip
    x = {"title": {"text": "seconds since the first trial began"}}
    layout = {"xaxis": x, "yaxis": y, "barmode": "overlay", "height": 190 + 34 * len(lanes), "hovermode": "closest"}
    return {"data": traces, "layout": layout}
