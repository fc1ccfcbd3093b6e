"""Trade-offs: what quality costs in features, bytes, microseconds and training time.

A panel's group is the split, where there are several: options are weighed within a split.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ranktune.dashboards.analysis import early_stopped
from ranktune.dashboards.analysis.pooling import competing, state_note
from ranktune.dashboards.figures import plotly as figures
from ranktune.dashboards.figures.panels import COLOURS, Cell, Panel, Table, look
from ranktune.dashboards.records.study import SplitData, StudyData, Trial
from ranktune.tuner.statistics.pareto import COSTS, Option, best_within, front, knee

TITLES = {
    "nonzeros": ("number of features", "features that the model looks at"),
    "bytes": ("the model's size", "size of the model in bytes"),
    "microseconds": ("time to score a document", "microseconds to score a document"),
    "seconds": ("time to learn the model", "seconds to learn the model"),
}
LIMITS = (1, 2, 5, 10, 20, 29)
"""Numbers of features within which the best is told; 29 as in the figures of the ElasticRank paper."""


def panels(data: StudyData) -> list[Panel]:
    """Return the front of each cost and the best within each number of features, split by split."""
    several = len(data.splits) > 1
    found: list[Panel] = []
    for k, split in enumerate(data.splits or (SplitData("", data.folder, (), None, {}),)):
        group = split.name if several else ""
        most = figures.MOST_POINTS // (3 if several else 1)
        found += [_front(data, split, cost, f"{cost}-{k}", group, most) for cost in COSTS]
        found.append(_within(data, split, f"within-{k}", group))
    return found


def _options(trials: Iterable[Trial]) -> list[Option]:
    """Return the trials that have a value, or an estimate of it; their labels are their numbers.

    Times are those of all parts, also of a trial that was stopped: it is no cheaper for being judged less.
    """
    return [
        Option(str(t.number), t.value, t.nonzeros, t.bytes, t.microseconds, t.seconds_in_full)
        for t in trials
        if t.value is not None
    ]


def _in_full(split: SplitData) -> list[Option]:
    """Return the options that were judged in full: what a best may be made of."""
    return _options(trial for trial in split.trials if not trial.stopped)


def _front(data: StudyData, split: SplitData, cost: str, key: str, group: str, most: int) -> Panel:
    """Return every trial by cost and quality, the line that none beats, its knee, and the leaderboard's rows."""
    title = f"Best {data.metric} by {TITLES[cost][0]}"
    columns = ("What", "Trial", "Solver", _capital(TITLES[cost][1]), f"{data.metric} (validation)")
    options = _in_full(split)
    best = front(options, cost)
    if not best:
        note = state_note(data) or ("No trial of this split tells it." if options else "No trial has a value yet.")
        return Panel(key, title, Table(columns, []), None, note, group)
    bend = knee(best, cost)  # the front of a front is itself
    board = _leaderboard(data, split, cost)
    solver_of = {str(trial.number): trial.solver for trial in split.trials}
    rows: list[list[Cell]] = [
        [
            "front, knee" if option is bend else "front", int(option.label), solver_of[option.label],
            figures.number(option.cost(cost)), figures.number(option.quality),
        ]
        for option in best
    ]  # fmt: skip
    rows += [["leaderboard", None, label, figures.number(x), figures.number(y)] for label, x, y in board]
    known = [option for option in _options(split.trials) if not math.isnan(option.cost(cost))]
    kept = [known[i] for i in figures.thinned([option.quality for option in known], most)]
    bounds, outside = figures.window([option.quality for option in known], always=best[0].quality)
    up = figures.axis(f"{data.metric} (validation)") | ({} if bounds is None else {"range": bounds})
    trials = {str(trial.number): trial for trial in split.trials}
    points = _points(data, [(option, trials[option.label]) for option in kept], cost)
    traces = [*points, *_marks(best, bend, board, cost)]
    shown = figures.figure(traces, _along([option.cost(cost) for option in known], cost), up, height=460)
    note = (
        "Points are trials; times are processor times. No trial beats those on the line in both; beyond the knee "
        "quality grows slowest for its cost. Rings are the leaderboard's models, learnt again and measured again. The "
        "table has the line and the rings; the trials view has the rest."
    )
    note += f" {early_stopped.NOTE}" if any(trial.stopped for trial in split.trials) else ""
    note += f" {outside}" if outside else ""
    note += f" {len(kept)} of {len(known)} trials are shown." if len(kept) < len(known) else ""
    return Panel(key, title, Table(columns, rows), shown, note, group)


def _along(costs: Sequence[float], cost: str) -> dict[str, Any]:
    """Return the axis of a cost: logarithmic unless something costs nothing."""
    if min(costs) > 0:
        return figures.log_axis(TITLES[cost][1], min(costs), max(costs))
    return figures.axis(TITLES[cost][1])


def _marks(
    best: Sequence[Option], bend: Option | None, board: Sequence[tuple[str, float, float]], cost: str
) -> list[figures.Trace]:
    """Return the line of the front, its knee, and rings around the leaderboard's rows."""
    found = [_line(best, cost)]
    if bend is not None:
        star = {"symbol": "star", "size": 16, "color": "#d55e00"}
        found.append(_mark("knee", [bend.cost(cost)], [bend.quality], star))
    if board:
        ring = {"symbol": "circle-open", "size": 14, "color": "#7f7f7f", "line": {"width": 2}}
        text = figures.distinct(label for label, _, _ in board)
        found.append(_mark("leaderboard", [x for _, x, _ in board], [y for _, _, y in board], ring, text))
    return found


def _points(data: StudyData, kept: Sequence[tuple[Option, Trial]], cost: str) -> list[figures.Trace]:
    """Return a trace a solver, and one for those of its trials that were stopped."""
    looks = look(competing(data))
    traces: list[figures.Trace] = []
    for solver in dict.fromkeys(trial.solver for _, trial in kept):
        own = [(option, trial) for option, trial in kept if trial.solver == solver]
        text = [early_stopped.said(trial, figures.plain(solver)) for _, trial in own]
        marker = {**looks[solver], "size": 7, "opacity": 0.6}
        x, y = [option.cost(cost) for option, _ in own], [option.quality for option, _ in own]
        trace = figures.scatter(solver, x, y, marker=marker, text=text)
        traces += early_stopped.told_apart(trace, [bool(trial.stopped) for _, trial in own])
    return early_stopped.with_key(traces, [trial for _, trial in kept])


def _line(best: Sequence[Option], cost: str) -> figures.Trace:
    x, y = [option.cost(cost) for option in best], [option.quality for option in best]
    line = {"shape": "hv", "width": 2, "color": "#7f7f7f"}
    return figures.scatter("front", x, y, mode="lines", line=line, hoverinfo="skip")


def _mark(
    name: str, x: Sequence[float], y: Sequence[float], marker: Mapping[str, Any], text: Sequence[str] = ()
) -> figures.Trace:
    return figures.scatter(name, x, y, marker=marker, text=text or [name] * len(x))


def _leaderboard(data: StudyData, split: SplitData, cost: str) -> list[tuple[str, float, float]]:
    """Return label, cost and validation quality of the rows of a split's leaderboard that tell both."""
    found = data.result or {}
    if len(data.splits) > 1:
        found = next((fold for fold in found.get("folds", []) if fold.get("name") == split.name), {})
    return [
        (str(row.get("solver")), float(row[cost]), float(row["vali"]))
        for row in found.get("leaderboard", [])
        if row.get(cost) is not None and row.get("vali") is not None
    ]


def _within(data: StudyData, split: SplitData, key: str, group: str) -> Panel:
    """Return the best trial within each number of features."""
    title = f"Best {data.metric} with at most so many features"
    columns = ("Features at most", "Features", "Trial", "Solver", f"{data.metric} (validation)", "Behind the best")
    options = _in_full(split)
    highest = best_within(options, {})
    if highest is None:
        return Panel(key, title, Table(columns, []), None, state_note(data) or "No trial has a value yet.", group)
    solver_of = {str(trial.number): trial.solver for trial in split.trials}
    sparse = front(options, "nonzeros")  # where the best within any limit is, too
    rows: list[list[Cell]] = []
    for limit in (*LIMITS, None):
        own = highest if limit is None else best_within(sparse, {"nonzeros": limit})
        said = "all" if limit is None else str(limit)
        if own is None:
            rows.append([said, None, None, None, None, None])
            continue
        behind = highest.quality - own.quality
        rows.append(
            [
                said, None if own.nonzeros is None else int(own.nonzeros), int(own.label), solver_of[own.label],
                figures.number(own.quality), figures.number(behind),
            ]
        )  # fmt: skip
    values = [row[4] for row in rows]
    names = [str(row[0]) for row in rows]
    text = [figures.plain(row[3] or "no trial") for row in rows]
    look_of = {"marker": {"color": COLOURS[0], "size": 9}, "line": {"color": COLOURS[0]}}
    trace = figures.scatter("best", names, values, mode="lines+markers", text=text) | look_of
    shown = figures.figure(
        [trace], figures.axis("features at most", categories=names), figures.axis(f"{data.metric} (validation)")
    )
    note = "The best trial of any solver that looks at no more features; a dash where there is none."
    return Panel(key, title, Table(columns, rows), shown, note, group)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
