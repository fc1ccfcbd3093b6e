"""Trade-offs: quality against features, bytes, scoring time and fit time.

A panel's group is the split, where there are several: options are compared within a split.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from ranktune.dashboards.analysis import early_stopped
from ranktune.dashboards.analysis.pooling import no_trials_note
from ranktune.dashboards.figures import plotly as figures
from ranktune.dashboards.figures.panels import Cell, Panel, Table, Trace, joined
from ranktune.dashboards.records.study import SplitData, StudyData
from ranktune.dashboards.records.trial import Trial
from ranktune.tuner.statistics.pareto import COSTS, Option, best_within, front, knee

TITLES = {
    "cost": ("cost of features", "Cost of the features of the model"),
    "nonzeros": ("number of features", "Features of the model"),
    "bytes": ("model size", "Size of the model in bytes"),
    "microseconds": ("time to score a document", "Microseconds to score a document"),
    "seconds": ("fit time", "Seconds of the fit"),
}
LIMITS = (1, 2, 5, 10, 20, 29)
"""Numbers of features for which the best is listed; 29 as in the figures of the ElasticRank paper."""


def panels(data: StudyData) -> list[Panel]:
    """Return the Pareto front of each cost and the best within each number of features, split by split."""
    shown: list[Panel] = []
    for k, split, group in data.groups:
        most = figures.MAX_POINTS // (3 if group else 1)
        costs = [cost for cost in COSTS if cost != "cost" or any(t.cost is not None for t in split.trials)]
        shown += [_front(data, split, cost, f"{cost}-{k}", group, most) for cost in costs]
        shown.append(_within(data, split, f"within-{k}", group))
    return shown


def _options(trials: Iterable[Trial]) -> list[Option]:
    """Return the trials that have a value, or an estimate of it; their labels are their numbers.

    The fit time of a trial that was stopped early is that of all parts: fewer parts do not make the model cheaper.
    """
    return [
        Option(str(t.number), t.value, t.nonzeros, t.bytes, t.microseconds, t.full_seconds, t.cost)
        for t in trials
        if t.value is not None
    ]


def _full_options(split: SplitData) -> list[Option]:
    """Return the options of trials that were evaluated in full."""
    return _options(trial for trial in split.trials if not trial.stopped)


def _front(data: StudyData, split: SplitData, cost: str, key: str, group: str, most: int) -> Panel:
    """Return every trial by cost and quality, the Pareto front, its knee, and the rows of the leaderboard."""
    title, unit = f"Best {data.metric} by {TITLES[cost][0]}", TITLES[cost][1]
    columns = ("What", "Trial", "Solver", unit, f"{data.metric} (validation)")
    options = _full_options(split)
    best = front(options, cost)
    if not best:
        why = "No trial of this split has this cost." if options else "No trial has a value yet."
        return Panel(key, title, note=no_trials_note(data) or why, group=group)
    bend = knee(best, cost)  # the front of a front is itself
    board = _leaderboard(data, split, cost)
    trials = {str(trial.number): trial for trial in split.trials}
    rows = [
        [
            "front, knee" if option is bend else "front", int(option.label), trials[option.label].solver,
            option.amount(cost), option.quality,
        ]
        for option in best
    ]  # fmt: skip
    table = Table(columns, [*rows, *(["leaderboard", None, label, x, y] for label, x, y in board)])
    known = [option for option in _options(split.trials) if not math.isnan(option.amount(cost))]
    kept = [known[i] for i in figures.thinned([option.quality for option in known], most)]
    costs, qualities = [option.amount(cost) for option in known], [option.quality for option in known]
    y_axis, outside = figures.value_axis(f"{data.metric} (validation)", qualities, always=best[0].quality)
    points = [(trials[option.label], option.amount(cost), option.quality) for option in kept]
    traces = early_stopped.solver_points(points, figures.solver_styles(data.all_solvers))
    x_axis = figures.log_axis(unit, min(costs), max(costs)) if min(costs) > 0 else figures.axis(unit)
    shown = figures.figure([*traces, *_marks(best, bend, board, cost)], x_axis, y_axis, height=460)
    note = joined(
        "Points are trials, times are processor times. No trial is both better and cheaper than those on the line, the "
        "Pareto front. Beyond its knee, quality increases least for its cost. Rings are the refitted models of the "
        "leaderboard. The table has the front and the rings, the trials view has all trials.",
        early_stopped.note(split.trials),
        outside,
        f"{len(kept)} of {len(known)} trials are shown." if len(kept) < len(known) else "",
    )
    return Panel(key, title, table, shown, note, group)


def _marks(
    best: Sequence[Option], bend: Option | None, board: Sequence[tuple[str, float, float]], cost: str
) -> list[Trace]:
    """Return the line of the front, its knee, and rings around the rows of the leaderboard."""
    x, y = [option.amount(cost) for option in best], [option.quality for option in best]
    traces = [figures.steps("front", x, y, figures.GREY) | {"hoverinfo": "skip"}]
    if bend is not None:
        traces.append(figures.star("knee", bend.amount(cost), bend.quality, ["knee"]))
    if board:
        ring = {"symbol": "circle-open", "size": 14, "color": figures.GREY, "line": {"width": 2}}
        labels, x_board, y_board = zip(*board, strict=True)
        traces.append(figures.scatter("leaderboard", x_board, y_board, marker=ring, text=figures.distinct(labels)))
    return traces


def _leaderboard(data: StudyData, split: SplitData, cost: str) -> list[tuple[str, float, float]]:
    """Return label, cost and validation quality of the rows of a split's leaderboard that have both."""
    result = data.result or {}
    if len(data.splits) > 1:
        result = next((fold for fold in result.get("folds", []) if fold.get("name") == split.name), {})
    return [
        (str(row.get("solver")), float(row[cost]), float(row["vali"]))
        for row in result.get("leaderboard", [])
        if row.get(cost) is not None and row.get("vali") is not None
    ]


def _within(data: StudyData, split: SplitData, key: str, group: str) -> Panel:
    """Return the best trial within each number of features."""
    title = f"Best {data.metric} within a number of features"
    columns = ("Features at most", "Features", "Trial", "Solver", f"{data.metric} (validation)", "Below the best")
    options = _full_options(split)
    highest = best_within(options, {})
    if highest is None:
        note = no_trials_note(data) or "No trial has a value yet."
        return Panel(key, title, note=note, group=group)
    solver_of = {str(trial.number): trial.solver for trial in split.trials}
    sparse = front(options, "nonzeros")  # it has the best within any limit
    rows: list[list[Cell]] = []
    for limit in (*LIMITS, None):
        best = highest if limit is None else best_within(sparse, {"nonzeros": limit})
        name = "all" if limit is None else str(limit)
        if best is None:
            rows.append([name, None, None, None, None, None])
            continue
        features = None if best.nonzeros is None else int(best.nonzeros)
        scores = list((best.quality, highest.quality - best.quality))
        rows.append([name, features, int(best.label), solver_of[best.label], *scores])
    names = [str(row[0]) for row in rows]
    style = {"marker": {"color": figures.COLOURS[0], "size": 9}, "line": {"color": figures.COLOURS[0]}}
    text = [figures.plain(row[3] or "no trial") for row in rows]
    values = [None if row[4] is None else float(row[4]) for row in rows]
    trace = figures.scatter("best", names, values, mode="lines+markers", text=text) | style
    shown = figures.figure(
        [trace], figures.axis("features at most", categories=names), figures.axis(f"{data.metric} (validation)")
    )
    note = "The best trial of any solver with no more features; a dash where there is none."
    return Panel(key, title, Table(columns, rows), shown, note, group)
