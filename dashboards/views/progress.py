"""Progress: the value and the time of every trial, the activity of every worker, and the time left."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from ranktune.dashboards.analysis.pooling import stopped_note
from ranktune.dashboards.analysis.tuning_value import best_so_far, changes
from ranktune.dashboards.figures import plotly as figures
from ranktune.dashboards.figures.kinds import Bars, Points, labels
from ranktune.dashboards.figures.panels import Cell, Figure, Frame, Panel, Trace, facts, joined
from ranktune.dashboards.records.study import SplitData, StudyData, duration
from ranktune.dashboards.records.trial import Trial, counts
from ranktune.tuner.storage.attributes import ORIGINS

RECENT_TRIALS = 50
"""Trials from which the time left is estimated."""
MAX_WORKERS = 24
"""Workers in the figure: those that were busiest."""


def panels(data: StudyData) -> list[Panel]:
    """Return the history of each split, the time left, then time and workers of each split."""
    names = [(split, "" if len(data.splits) == 1 else f"-{k}") for k, split in enumerate(data.splits, start=1)]
    shown = [_history(data, split, f"history{end}") for split, end in names] + [_time_left(data)]
    for split, end in names:
        shown += [_spent(split, f"time{end}"), _workers(data, split, f"workers{end}")]
    return shown


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
        ("processor seconds saved by early stopping, about", counted.saved if counted.stopped else None),
        ("seconds between recent trials", pace),
    ]
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
        remain = "One trial is" if left == 1 else f"{left} trials are"
        note = f"{remain} left: about {duration(pace * left)} at the pace of recent trials."
    elif trials:
        note = f"{left} trials are left; their time is estimated when two have finished."
    return Panel("time-left", "Progress", facts(rows), None, note)


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


def _history(data: StudyData, split: SplitData, key: str) -> Panel:
    title = _titled(f"Validation {data.metric} of every trial, and the best so far", split)
    trials, best = split.trials, best_so_far(split.trials)
    steps = changes(best)
    kept = sorted({*figures.thinned([t.value for t in trials]).tolist(), *steps})
    columns = (
        "Trial", "Solver", "Origin", data.metric, "Standard error", "Stopped after", "Expected gain", "Lead",
        "Best so far",
    )  # fmt: skip
    rows = [
        [t.place, t.solver, t.origin, t.value, t.error_of_mean, t.stopped or None, t.expected_gain, t.lead, top]
        for t, top in ((trials[k], best[k]) for k in kept)
    ]
    up, outside = figures.value_axis(f"validation {data.metric}", [t.value for t in trials])
    note = joined(
        "" if trials else "No trial has finished yet.",
        stopped_note(trials),
        f"{len(kept)} of the {len(trials)} trials are shown; the trials view has all."
        if len(kept) < len(trials)
        else "",
        outside,
    )
    line = {"shape": "hv", "color": figures.GREY, "width": 2}
    over = figures.scatter("best so far", [trials[k].place for k in steps], best[steps], mode="lines", line=line)
    across = figures.count_axis("trial number", trials[-1].place if trials else 1)
    styles = figures.solver_styles({*ORIGINS, *(t.origin for t in trials)})
    kind = Points("Trial", data.metric, across, up, styles, over=[over], by="Origin") if steps else None
    return Panel(key, title, Frame(columns, rows), kind, note, split.name, _last_gain(trials, steps))


def _last_gain(trials: Sequence[Trial], steps: Sequence[int]) -> str:
    """Return at which trial the best so far rose last."""
    if not steps or len(trials) == 1:
        return ""
    top = max(steps, key=lambda k: (trials[k].full_value or -np.inf, -k))
    late = (
        "it may rise further with more trials." if top >= 0.8 * len(trials) else "the trials after it gained nothing."
    )
    return f"The best so far rose last at trial {trials[top].place} of {len(trials)}: {late}"


def _spent(split: SplitData, key: str) -> Panel:
    trials = split.trials
    by_solver = {name: [t for t in trials if t.solver == name] for name in dict.fromkeys(t.solver for t in trials)}
    total = sum(t.seconds for t in trials) or 1.0
    rows: list[list[Cell]] = []
    for name, ended in sorted(by_solver.items(), key=lambda item: (-sum(t.seconds for t in item[1]), item[0])):
        n, median = counts(ended), float(np.median([t.seconds for t in ended]))
        rows.append([name, len(ended), n.spent, median, n.spent / total, n.stopped, n.saved])
    columns = ("solver", "trials", "seconds", "median seconds", "share", "stopped early", "seconds saved, about")
    kind = Bars("solver", ("seconds", "seconds saved, about"), "processor seconds", "solver")
    note = "" if trials else "No trial has finished yet."
    return Panel(key, _titled("Processor time of fits by solver", split), Frame(columns, rows), kind, note, split.name)


def _workers(data: StudyData, split: SplitData, key: str) -> Panel:
    title = _titled("Activity of the workers", split)
    timed = [t for t in split.trials if t.begun is not None and t.ended is not None]
    if not timed:
        why = "The record does not have the times of its trials." if split.trials else "No trial has finished yet."
        return Panel(key, title, note=why, group=split.name)
    zero = min(t.begun or 0.0 for t in timed)
    rows: list[list[Cell]] = []
    for worker in dict.fromkeys(t.worker for t in sorted(timed, key=lambda t: t.begun or 0.0)):
        ended = [t for t in timed if t.worker == worker]
        restarted, failed = sum(t.restarts for t in ended), sum(t.value is None for t in ended)
        span = [(ended[0].begun or zero) - zero, max(t.ended or zero for t in ended) - zero]
        busy, stopped = sum(map(_seconds, ended)), sum(bool(t.stopped) for t in ended)
        rows.append([worker or "unknown", len(ended), failed, restarted, stopped, busy, *span])
    note = "A cross marks a trial that failed, a triangle one that was restarted because its worker was lost."
    if any(t.stopped for t in timed):
        note += " Hatched bars are trials that were stopped early because they were significantly worse."
    columns = (
        "worker", "trials", "failed", "restarted", "stopped early", "busy seconds", "first began, s", "last ended, s",
    )  # fmt: skip
    styles = figures.solver_styles(data.all_solvers)
    return Panel(key, title, Frame(columns, rows), partial(_lanes, timed, zero, styles), note, split.name)


def _seconds(trial: Trial) -> float:
    return (trial.ended or 0.0) - (trial.begun or 0.0)


def _lanes(timed: Sequence[Trial], zero: float, styles: dict[str, dict[str, str]], frame: Frame) -> Figure:
    """Return a row for each worker of the frame with a bar for each trial; failures and restarts are marked."""
    busiest = sorted(frame.rows, key=lambda row: -row[5])[:MAX_WORKERS]
    rows = {row[0]: k for k, row in enumerate(row for row in frame.rows if row in busiest)}
    shown = [t for t in timed if (t.worker or "unknown") in rows]
    shown = [shown[k] for k in figures.thinned([_seconds(t) for t in shown])]
    traces: list[Trace] = []
    for solver in sorted({t.solver for t in shown}):
        marked = [t for t in shown if t.solver == solver]
        marker = figures.hatched(styles[solver]["color"], ["/" if t.stopped else "" for t in marked])
        marker["line"] = {"width": 0.5, "color": "rgba(127,127,127,0.6)"}
        about = Frame(("Trial", "Stopped after"), [(t.place, t.stopped) for t in marked])
        traces.append(
            figures.bars(
                solver, [rows[t.worker or "unknown"] for t in marked], [_seconds(t) for t in marked], horizontal=True,
                width=0.7, base=[(t.begun or zero) - zero for t in marked], marker=marker, text=labels(about, solver),
                textposition="none", hovertemplate="%{text}, %{x:.3f} s<extra></extra>",
            )
        )  # fmt: skip
    marks = (
        ("failed", "x", [t for t in shown if t.value is None]),
        ("restarted", "triangle-up", [t for t in shown if t.restarts]),
    )
    for name, symbol, marked in marks:
        cross = {"symbol": symbol, "size": 9, "color": figures.ACCENT, "line": {"width": 1, "color": "#ffffff"}}
        x, y = [(t.ended or zero) - zero for t in marked], [rows[t.worker or "unknown"] for t in marked]
        traces += [figures.scatter(name, x, y, marker=cross)] if marked else []
    names = [figures.plain(worker, 16) for worker in rows]
    down = figures.axis("worker (process)", tickvals=list(range(len(rows))), ticktext=names)
    down["range"] = [len(rows) - 0.4, -0.6]
    across = figures.axis("seconds since the first trial began")
    return figures.figure(traces, across, down, barmode="overlay", height=190 + 34 * len(rows))
