"""Progress: the value and the time of every trial, the activity of every worker, and the time left."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ranktune.dashboards.analysis import early_stopped
from ranktune.dashboards.analysis.tuning_value import best_so_far, changes
from ranktune.dashboards.figures import plotly as figures
from ranktune.dashboards.figures.panels import Cell, Figure, Panel, Table, Trace, joined
from ranktune.dashboards.records.study import SplitData, StudyData, duration
from ranktune.dashboards.records.trial import Trial, counts

RECENT_TRIALS = 50
"""Trials from which the time left is estimated."""
MAX_WORKERS = 24
"""Workers in the figure: those that were busiest."""


def panels(data: StudyData) -> list[Panel]:
    """Return the time left, then history, time and workers of each split."""
    shown = [_time_left(data)]
    for split in data.splits:
        shown += [_history(data, split), _spent(data, split), _workers(data, split)]
    return shown


def _key(name: str, data: StudyData, split: SplitData) -> str:
    return name if len(data.splits) == 1 else f"{name}-{data.splits.index(split) + 1}"


def _titled(title: str, split: SplitData) -> str:
    return f"{figures.short(split.name)}: {title}" if split.name else title


def _time_left(data: StudyData) -> Panel:
    trials, counted, pace = data.trials, counts(data.trials), seconds_a_trial(data.trials)
    left = data.total - len(trials)
    rows: list[tuple[str, Cell]] = [
        ("finished", len(trials)),
        ("trials to run", data.total if data.study.ends_by_count else None),
        ("evaluated in full", counted.complete),
        ("stopped early, significantly worse", counted.stopped),
        ("failed", counted.failed),
        ("restarted", sum(t.restarts for t in trials)),
        ("processor seconds of fits", counted.spent),
    ]
    if counted.stopped:
        rows.append(("processor seconds saved by early stopping, about", counted.saved))
    if pace is not None:
        rows.append(("seconds between recent trials", pace))
    note = "No trial has finished yet."
    if data.state == "finished":
        note = "The study is finished."
    elif data.study.timeout is not None:
        note = f"The study takes {duration(data.study.timeout)}, reading of the data and selection included."
    elif data.study.until is not None:
        note = (
            f"Trials run until they are expected to improve {data.metric} by less than {data.study.until:g}, "
            f"{data.total} at most."
        )
    elif left <= 0:
        note = "All trials have finished; models are being selected."
    elif pace is not None:
        rows.append(("seconds left", pace * left))
        note = f"{left} trials are left: about {duration(pace * left)} at the pace of recent trials."
    elif trials:
        note = f"{left} trials are left; their time is estimated when two have finished."
    return Panel("time-left", "Progress", Table(("what", "value"), rows), None, note)


def seconds_a_trial(trials: Sequence[Trial]) -> float | None:
    """Return the mean wall time between the ends of recent trials, None of fewer than two.

    Parallel trials end together, so the mean and not the median counts. Pauses of a study that was stopped and resumed
    are cut to 20 times the usual step.
    """
    ends = np.sort([t.ended for t in trials if t.ended is not None])[-RECENT_TRIALS - 1 :]
    steps = np.diff(ends)
    if len(steps) == 0:
        return None
    usual = float(np.median(steps))
    lengths = [_seconds(t) for t in trials[-RECENT_TRIALS:] if t.ended and t.begun]
    longest = max(usual, float(np.median(lengths)) if lengths else 0.0, 1e-3)
    return float(np.minimum(steps, 20 * longest).mean())


def _history(data: StudyData, split: SplitData) -> Panel:
    title = _titled(f"Validation {data.metric} of every trial, and the best so far", split)
    trials, best = split.trials, best_so_far(split.trials)
    steps = changes(best)
    kept = sorted({*figures.thinned([t.value for t in trials], 500).tolist(), *steps})
    rows = [
        [t.number, t.solver, t.value, t.error_of_mean, t.stopped or None, float(top) if np.isfinite(top) else None]
        for t, top in ((trials[k], best[k]) for k in kept)
    ]
    y_axis, outside = figures.value_axis(f"validation {data.metric}", [t.value for t in trials])
    note = joined(
        "" if trials else "No trial has finished yet.",
        early_stopped.note(trials),
        f"The table has {len(kept)} of the {len(trials)} trials; the trials view has all."
        if len(kept) < len(trials)
        else "",
        outside,
    )
    figure = None
    if steps:
        valued = [t for t in trials if t.value is not None]
        shown = [valued[i] for i in figures.thinned([t.value for t in valued])]
        styles = figures.solver_styles(data.all_solvers)
        traces = early_stopped.solver_points([(t, t.number, t.value) for t in shown], styles)
        x = [trials[k].number for k in steps]
        traces.append(figures.steps("best so far", x, best[steps], figures.GREY))
        figure = figures.figure(traces, figures.axis("trial number"), y_axis)
    columns = ("trial", "solver", data.metric, "standard error", "stopped after", "best so far")
    return Panel(_key("history", data, split), title, Table(columns, rows), figure, note, split.name)


def _spent(data: StudyData, split: SplitData) -> Panel:
    title = _titled("Processor time of fits by solver", split)
    trials = split.trials
    by_solver = {name: [t for t in trials if t.solver == name] for name in {t.solver for t in trials}}
    total = sum(t.seconds for t in trials) or 1.0
    rows: list[list[Cell]] = []
    for name, ended in sorted(by_solver.items(), key=lambda item: (-sum(t.seconds for t in item[1]), item[0])):
        n, median = counts(ended), float(np.median([t.seconds for t in ended]))
        seconds, saved = n.spent, n.saved
        rows.append([name, len(ended), seconds, median, n.spent / total, n.stopped, saved])
    columns = ("solver", "trials", "seconds", "median seconds", "share", "stopped early", "seconds saved, about")
    figure = _spent_figure(data, trials) if trials else None
    note = "" if trials else "No trial has finished yet."
    return Panel(_key("time", data, split), title, Table(columns, rows), figure, note, split.name)


def _spent_figure(data: StudyData, trials: Sequence[Trial]) -> Figure:
    """Return the cumulative processor seconds of each solver over the trials, stacked."""
    styles = figures.solver_styles(data.all_solvers)
    kept = figures.thinned(range(len(trials)), 400)
    numbers = [trials[k].number for k in kept]
    traces = []
    for solver in sorted({t.solver for t in trials}):
        spent = np.cumsum([t.seconds if t.solver == solver else 0.0 for t in trials])
        line = {"width": 1, "color": styles[solver]["color"]}
        traces.append(figures.scatter(solver, numbers, spent[kept], mode="lines", stackgroup="all", line=line))
    y_axis = figures.axis("processor seconds, cumulative", rangemode="tozero")
    return figures.figure(traces, figures.axis("trial number"), y_axis)


def _workers(data: StudyData, split: SplitData) -> Panel:
    title = _titled("Activity of the workers", split)
    timed = [t for t in split.trials if t.begun is not None and t.ended is not None]
    columns = (
        "worker", "trials", "failed", "restarted", "stopped early", "busy seconds", "first began, s", "last ended, s",
    )  # fmt: skip
    key = _key("workers", data, split)
    if not timed:
        why = "The record does not have the times of its trials." if split.trials else "No trial has finished yet."
        return Panel(key, title, note=why, group=split.name)
    zero = min(t.begun or 0.0 for t in timed)
    rows: list[list[Cell]] = []
    for worker in _by_start(timed):
        ended = [t for t in timed if t.worker == worker]
        restarted, failed = sum(t.restarts for t in ended), sum(t.value is None for t in ended)
        span = [(ended[0].begun or zero) - zero, max(t.ended or zero for t in ended) - zero]
        busy, stopped = sum(map(_seconds, ended)), sum(bool(t.stopped) for t in ended)
        rows.append([worker or "unknown", len(ended), failed, restarted, stopped, busy, *span])
    note = "A cross marks a trial that failed, a triangle one that was restarted because its worker was lost."
    if any(t.stopped for t in timed):
        note += " Hatched bars are trials that were stopped early because they were significantly worse."
    return Panel(key, title, Table(columns, rows), _workers_figure(data, timed, zero), note, split.name)


def _by_start(trials: Sequence[Trial]) -> list[str]:
    """Return the workers in the order of their first trials."""
    return list(dict.fromkeys(t.worker for t in sorted(trials, key=lambda t: t.begun or 0.0)))


def _seconds(trial: Trial) -> float:
    return (trial.ended or 0.0) - (trial.begun or 0.0)


def _workers_figure(data: StudyData, timed: Sequence[Trial], zero: float) -> Figure:
    """Return a row for each worker with a bar for each trial; failures and restarts are marked."""
    workers = _by_start(timed)
    busiest = sorted(workers, key=lambda w: -sum(_seconds(t) for t in timed if t.worker == w))[:MAX_WORKERS]
    rows = {worker: k for k, worker in enumerate(worker for worker in workers if worker in busiest)}
    shown = [t for t in timed if t.worker in rows]
    shown = [shown[k] for k in figures.thinned([_seconds(t) for t in shown])]
    styles = figures.solver_styles(data.all_solvers)
    traces: list[Trace] = []
    for solver in sorted({t.solver for t in shown}):
        marked = [t for t in shown if t.solver == solver]
        marker = figures.hatched(styles[solver]["color"], ["/" if t.stopped else "" for t in marked])
        marker["line"] = {"width": 0.5, "color": "rgba(127,127,127,0.6)"}
        trace = figures.bars(
            solver, [rows[t.worker] for t in marked], [_seconds(t) for t in marked], horizontal=True,
            width=0.7, base=[(t.begun or zero) - zero for t in marked], marker=marker,
            text=[early_stopped.label(t) for t in marked], textposition="none",
        )  # fmt: skip
        traces.append(trace | {"hovertemplate": "%{text}, %{x:.3f} s<extra>" + figures.plain(solver) + "</extra>"})
    marks = (
        ("failed", "x", [t for t in shown if t.value is None]),
        ("restarted", "triangle-up", [t for t in shown if t.restarts]),
    )
    for name, symbol, marked in marks:
        cross = {"symbol": symbol, "size": 9, "color": figures.ACCENT, "line": {"width": 1, "color": "#ffffff"}}
        x, y = [(t.ended or zero) - zero for t in marked], [rows[t.worker] for t in marked]
        traces += [figures.scatter(name, x, y, marker=cross)] if marked else []
    names = [figures.plain(worker or "unknown", 16) for worker in rows]
    y_axis = figures.axis("worker (process)", tickvals=list(range(len(rows))), ticktext=names)
    y_axis["range"] = [len(rows) - 0.4, -0.6]
    x_axis = figures.axis("seconds since the first trial began")
    return figures.figure(traces, x_axis, y_axis, barmode="overlay", height=190 + 34 * len(rows))
