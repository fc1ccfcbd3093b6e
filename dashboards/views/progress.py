"""How the search went: every trial, time and workers, the time left, and what tuning gained.

The value of tuning is the best so far, against the solvers' defaults.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial

import numpy as np

from ranktune.dashboards.figures import plotly as figures
from ranktune.dashboards.figures.kinds import Curves, Points, labels
from ranktune.dashboards.figures.panels import Cell, Figure, Frame, Panel, Trace, counted, facts, grouped, joined
from ranktune.dashboards.records.study import SplitData, StudyData, duration
from ranktune.dashboards.records.trial import Trial, best_of, counts
from ranktune.dashboards.views.solver_trials import no_trials_note
from ranktune.solvers.core.arrays import Floats
from ranktune.tuner.selection.details import tuning_gained
from ranktune.tuner.storage.attributes import ORIGINS

RECENT_TRIALS = 50
"""Trials from which the time left is estimated."""
MAX_WORKERS = 24
"""Workers in the figure: those that began first."""


def panels(data: StudyData) -> list[Panel]:
    """Return the history of each split, the time left, then the workers of each split."""
    parts = [grouped([_history(data, split), _workers(data, split)], k, group) for k, split, group in data.groups]
    histories, workers = zip(*parts, strict=True)
    return [*histories, _time_left(data), *workers]


def _history(data: StudyData, split: SplitData) -> Panel:
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
    note = f"{len(kept)} of the {len(trials)} trials are shown; the trials view has all." * (len(kept) < len(trials))
    line = {"shape": "hv", "color": figures.GREY, "width": 2}
    over = figures.scatter("best so far", [trials[k].place for k in steps], best[steps], mode="lines", line=line)
    across = figures.count_axis("trial number", trials[-1].place if trials else 1)
    styles = figures.solver_styles({*ORIGINS, *(t.origin for t in trials)})
    kind = Points("Trial", data.metric, across, f"validation {data.metric}", styles, over=[over], by="Origin")
    title = f"Validation {data.metric} of every trial, and the best so far"
    note = note if trials else "No trial has finished yet."
    table, answer = Frame(columns, rows), _last_gain(trials, steps)
    return Panel("history", title, table, kind if steps else None, note, answer=answer)


def _last_gain(trials: Sequence[Trial], steps: Sequence[int]) -> str:
    """Return at which trial the best so far rose last."""
    if not steps or len(trials) == 1:
        return ""
    top = max(steps, key=lambda k: (trials[k].full_value or -np.inf, -k))
    after = (
        "it may rise further with more trials" if top + 1 >= 0.8 * len(trials) else "the trials after it gained nothing"
    )
    return f"The best so far rose last at trial {trials[top].place} of {len(trials)}: {after}."


def _time_left(data: StudyData) -> Panel:
    trials, n, pace = data.trials, counts(data.trials), seconds_a_trial(data.trials)
    left = data.total - len(trials)
    remaining = f"{counted(left, 'trial')} {'is' if left == 1 else 'are'} left"
    seconds: float | None = None
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
        seconds = pace * left
        note = f"{remaining}: about {duration(seconds)} at the pace of recent trials."
    elif trials:
        note = f"{remaining}; the time is estimated when two have finished."
    rows: list[tuple[str, Cell]] = [
        ("finished", len(trials)),
        ("trials to run", data.total if data.study.ends_by_count else None),
        *n.ended,
        ("restarted", sum(t.restarts for t in trials)),
        ("processor seconds of fits", n.spent),
        ("processor seconds saved by early stopping, about", n.saved if n.stopped else None),
        ("seconds between recent trials", pace),
        ("seconds left", seconds),
    ]
    return Panel("time-left", "Trials and time", facts(rows), None, note)


def seconds_a_trial(trials: Sequence[Trial]) -> float | None:
    """Return the mean wall time between the ends of recent trials, None of fewer than two.

    Parallel trials end together, so the mean and not the median counts. Pauses of a study that was stopped and resumed
    are cut to 20 times the usual step.
    """
    steps = np.diff(np.sort([t.ended for t in trials if t.ended is not None])[-RECENT_TRIALS - 1 :])
    if len(steps) == 0:
        return None
    lengths = [t.wall for t in trials[-RECENT_TRIALS:] if t.ended and t.begun]
    longest = max(float(np.median(steps)), float(np.median(lengths or [0.0])), 1e-3)
    return float(np.minimum(steps, 20 * longest).mean())


def _workers(data: StudyData, split: SplitData) -> Panel:
    timed = sorted((t for t in split.trials if t.begun is not None and t.ended), key=lambda t: t.begun or 0.0)
    kept, shown = figures.some_of(timed, [t.wall for t in timed])
    rows = [
        (
            figures.plain(t.worker or "unknown", 16), t.place, t.solver, (t.begun or 0.0) - (timed[0].begun or 0.0),
            t.wall, t.stopped or None, "failed" if t.value is None else "restarted" if t.restarts else None, t.restarts,
        )
        for t in kept
    ]  # fmt: skip
    why = "The record does not have the times of its trials." if split.trials else "No trial has finished yet."
    note = joined(
        "A cross marks a trial that failed, a triangle one that was restarted because its worker was lost.",
        "Hatched bars are trials that were stopped early because they were significantly worse."
        * any(t.stopped for t in timed),
        shown,
    )
    columns = ("Worker", "Trial", "Solver", "Began, s", "Seconds", "Stopped after", "Mark", "Restarts")
    lanes = partial(_lanes, figures.solver_styles(data.all_solvers))
    return Panel("workers", "Activity of the workers", Frame(columns, rows), lanes, note if rows else why)


def _lanes(styles: dict[str, dict[str, str]], frame: Frame) -> Figure:
    """Return a row for each worker with a bar for each of its trials; failures and restarts are marked."""
    workers = list(dict.fromkeys(frame["Worker"]))[:MAX_WORKERS]
    frame = frame.kept(row for row in frame.rows if row[0] in workers)
    traces: list[Trace] = []
    for solver, of in sorted(frame.by("Solver").items()):
        marker = figures.hatched(styles[solver]["color"], ["/" if part else "" for part in of["Stopped after"]])
        marker["line"] = {"width": 0.5, "color": "rgba(127,127,127,0.6)"}
        traces.append(
            figures.bars(
                solver, of["Worker"], of["Seconds"], horizontal=True, width=0.7, base=of["Began, s"], marker=marker,
                text=labels(of, solver), textposition="none", hovertemplate="%{text}, %{x:.3f} s<extra></extra>",
            )
        )  # fmt: skip
    for name, of in frame.known("Mark").by("Mark").items():
        marker = {"symbol": "x" if name == "failed" else "triangle-up", "size": 9, "color": figures.ACCENT}
        ends = [row[3] + row[4] for row in of.rows]
        traces.append(
            figures.scatter(name, ends, of["Worker"], marker=marker | {"line": {"width": 1, "color": "#fff"}})
        )
    down = figures.axis("worker (process)", categories=workers, autorange="reversed")
    across = figures.axis("seconds since the first trial began")
    return figures.figure(traces, across, down, barmode="overlay", height=190 + 34 * len(workers))


def trials(data: StudyData) -> list[Panel]:
    """Return the table of all trials, to filter, sort and save."""
    n, stopped = counts(data.trials), "" if data.trials else "No trial has finished yet."
    if n.stopped:
        stopped = "The value of a trial that was stopped early is an estimate; its error is one standard deviation."
    best, ended = best_of(data.trials), (f"{count} {how}" for how, count in n.ended)
    top = "" if best is None else f"The best is trial {best.place}, {best.solver}: {best.value:.4f}."
    answer = joined(f"{counted(len(data.trials), 'trial')}: {', '.join(ended)}.", top) * bool(data.trials)
    return [Panel("trials", "Every finished trial", trials_table(data), None, stopped, "", answer)]


def trials_table(data: StudyData) -> Frame:
    """Return a row a trial, with a column for each parameter, which solvers share; empty columns are left out."""
    always = ["trial", "solver", data.metric]
    parameters = list(dict.fromkeys(name for trial in data.trials for name in trial.params))
    rows = [_row(trial, data.study.metrics, data.metric, parameters) for trial in data.trials]
    names = list(rows[0]) if rows else always
    names = [name for name in names if name in always or any(row[name] not in (None, "", 0) for row in rows)]
    return Frame(tuple(names), [[row[name] for name in names] for row in rows])


def _row(trial: Trial, metrics: Sequence[str], metric: str, parameters: Sequence[str]) -> dict[str, Cell]:
    """Return the cells of a trial by column; a parameter that is called like another column is marked as one."""
    when = None if trial.ended is None else datetime.fromtimestamp(trial.ended, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    path = ", ".join(f"{value:.4g}: {mean:.4f}" for value, mean in trial.path)
    before: dict[str, Cell] = {
        "fold": trial.split, "trial": trial.place, "solver": trial.solver, metric: trial.value,
        "standard error": trial.error_of_mean, "stopped after": trial.stopped or None,
        "error of estimate": trial.error_of_estimate, "origin": trial.origin,
        "expected gain": trial.expected_gain, "lead": trial.lead,
        **{name: trial.means.get(name) for name in metrics if name != metric},
    }  # fmt: skip
    after: dict[str, Cell] = {
        "path": f"{trial.path_parameter} {path}" if path else None, "seconds": trial.seconds,
        "weights": trial.nonzeros, "us a document": trial.microseconds, "bytes": trial.bytes, "ended": when,
        "worker": trial.worker, "restarts": trial.restarts, "error": trial.error,
        "warnings": "; ".join(trial.warnings),
    }  # fmt: skip
    others = before | after
    params = {f"parameter {name}" if name in others else name: trial.params.get(name) for name in parameters}
    return before | params | after


def worth(data: StudyData) -> Panel:
    """Return the best so far, with the best default."""
    title = f"Value of tuning: best validation {data.metric} by number of trials"
    curve = mean_of_splits([best_by_number(split) for split in data.splits])
    if not np.isfinite(curve).any():
        return Panel("worth", title, note=no_trials_note(data) or "No trial has succeeded yet.")
    default = float(np.mean([_best_default(split, len(data.solvers)) for split in data.splits]))
    curves = {"best so far": curve, "best default": np.full(len(curve), default)}
    known = {name: values for name, values in curves.items() if np.isfinite(values).any()}
    gained = "" if data.result is None else tuning_gained(data.result)
    if not gained and np.isfinite(default):
        gained = (
            f"The best so far is {float(np.nanmax(curve)) - default:.4f} above the best of the solvers' defaults on "
            "validation queries. The best of many values is too high: test queries show what tuning gained."
        )
    note = joined(gained, f"Values are means over {len(data.splits)} folds." * (len(data.splits) > 1))
    return Panel("worth", title, *best_so_far_lines(data, known), note)


def best_by_number(split: SplitData) -> Floats:
    """Return the best value among the first k trials, for k = 1, 2, ... up to the first that is missing."""
    missing = next((k for k, trial in enumerate(split.trials) if trial.number != k), len(split.trials))
    return best_so_far(split.trials[:missing])


def best_so_far(trials: Sequence[Trial]) -> Floats:
    """Return the highest full value up to each trial, (n,); NaN before the first of them."""
    return np.fmax.accumulate(np.array([trial.full_value for trial in trials], dtype=np.float64))


def changes(best: Floats) -> list[int]:
    """Return the places where the best so far changes, its first value, and the last place."""
    known = np.flatnonzero(np.isfinite(best)).tolist()
    return [k for k in known if k in (known[0], known[-1]) or best[k] != best[k - 1]]


def _best_default(split: SplitData, solvers: int) -> float:
    """Return the best value of the solvers' defaults, the parameters requested of the first trials; NaN of none."""
    values = (trial.requested_value for trial in split.trials if trial.number < solvers)
    return max((value for value in values if value is not None), default=np.nan)


def mean_of_splits(curves: Sequence[Floats]) -> Floats:
    """Return the mean over the splits up to the end of the shortest curve, (k,); empty where one is empty."""
    length = min(map(len, curves), default=0)
    mean: Floats = np.mean([curve[:length] for curve in curves], axis=0) if length else np.empty(0)
    return mean


def best_so_far_lines(data: StudyData, curves: Mapping[str, Floats]) -> tuple[Frame, Curves]:
    """Return curves at the trials where one of them changes, and at its last trial."""
    places = sorted({k for curve in curves.values() for k in changes(curve)})
    rows = [[k + 1, *(curve[k] if k < len(curve) else None for curve in curves.values())] for k in places]
    across = figures.count_axis("trials", places[-1] + 1 if places else 1)
    up = figures.axis(f"best validation {data.metric}", **figures.around(np.concatenate([[], *curves.values()])))
    return Frame(("trials", *curves), rows), Curves("trials", tuple(curves), across, up, step=True, markers=True)
