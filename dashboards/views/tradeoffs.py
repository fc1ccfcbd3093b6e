"""Trade-offs: quality against features, bytes, scoring time and fit time.

A panel's group is the split, where there are several: options are compared within a split.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from ranktune.dashboards.figures import plotly as figures
from ranktune.dashboards.figures.kinds import Points
from ranktune.dashboards.figures.panels import Cell, Frame, Panel, grouped, joined
from ranktune.dashboards.records.study import SplitData, StudyData
from ranktune.dashboards.records.trial import Trial
from ranktune.dashboards.views.solver_trials import no_trials_note
from ranktune.tuner.statistics.pareto import COSTS, Option, front, knee

TITLES = {
    "cost": ("cost of features", "Cost of the features of the model"),
    "nonzeros": ("number of features", "Features of the model"),
    "bytes": ("model size", "Size of the model in bytes"),
    "microseconds": ("time to score a document", "Microseconds to score a document"),
    "seconds": ("fit time", "Seconds of the fit"),
}
MODEL = "model: "
"""Before the name of an option that is a model of the leaderboard; a trial has its number."""


def panels(data: StudyData) -> list[Panel]:
    """Return the Pareto front of each cost, split by split."""
    return [panel for k, split, group in data.groups for panel in grouped(_of_split(data, split), k, group)]


def _of_split(data: StudyData, split: SplitData) -> Iterator[Panel]:
    models = _models(data, split)
    for cost in COSTS:
        if cost != "cost" or any(trial.cost is not None for trial in split.trials):
            yield _front(data, split, models, cost)


def _options(trials: Iterable[Trial]) -> list[Option]:
    """Return the trials that have a value, or an estimate of it; their labels are their numbers.

    The fit time of a trial that was stopped early is that of all parts: fewer parts do not make the model cheaper.
    """
    return [
        Option(str(t.place), t.value, t.nonzeros, t.bytes, t.microseconds, t.full_seconds, t.cost)
        for t in trials
        if t.value is not None
    ]


def _models(data: StudyData, split: SplitData) -> list[Option]:
    """Return the models of a split's leaderboard with their quality by validation, the chosen one first."""
    if data.result is None:
        return []
    folds = [fold for fold in data.result.folds or (data.result,) if fold.name == split.name or len(data.splits) <= 1]
    return [
        Option(f"{MODEL}{row.solver}", row.vali.mean, row.nonzeros, row.bytes, row.microseconds, row.seconds, row.cost)
        for fold in folds[:1]
        for row in fold.leaderboard
        if row.vali is not None
    ]


def _front(data: StudyData, split: SplitData, models: list[Option], cost: str) -> Panel:
    """Return every trial and every model by cost and quality, their Pareto front, and its knee."""
    (what, unit), value = TITLES[cost], f"{data.metric} (validation)"
    title = f"Best {data.metric} by {what}"
    models = [option for option in models if not math.isnan(option.amount(cost))]
    options = _options(trial for trial in split.trials if not trial.stopped)
    best = front([*options, *models], cost)
    bend = knee(best, cost)  # the front of a front is itself
    if bend is None:
        why = "No trial of this split has this cost." if options else "No trial has a value yet."
        return Panel(cost, title, note=no_trials_note(data) or why)
    trials = {str(trial.place): trial for trial in split.trials}
    known = [option for option in _options(split.trials) if not math.isnan(option.amount(cost))]
    most = figures.MAX_POINTS // min(len(data.splits), 3)
    kept, shown = figures.some_of(known, [option.quality for option in known], most)

    def row(kind: str, option: Option) -> list[Cell]:
        trial = trials.get(option.label)
        if trial is None:
            return [kind, None, option.label.removeprefix(MODEL), option.amount(cost), option.quality, None]
        return [kind, trial.place, trial.solver, option.amount(cost), option.quality, trial.stopped or None]

    rows = [row("front, knee" if option is bend else "front", option) for option in best]
    rows += [row("leaderboard", option) for option in models]
    rows += [row("trial", option) for option in kept if option not in best]
    table = Frame(("What", "Trial", "Solver", unit, value, "Stopped after"), rows)
    costs, qualities = zip(*((option.amount(cost), option.quality) for option in (*known, *models)), strict=True)
    up, outside = figures.value_axis(value, qualities, always=best[0].quality)
    across = figures.log_axis(unit, min(costs), max(costs)) if min(costs) > 0 else figures.axis(unit)
    line, grey = table.kept(table.rows[: len(best)]), {"color": figures.GREY, "width": 2}
    over = [
        figures.scatter("front", line[unit], line[value], mode="lines", line=grey | {"shape": "hv"}, hoverinfo="skip"),
        figures.star("knee", bend.amount(cost), bend.quality, ["knee"]),
    ]
    if models:
        marker = {"symbol": "circle-open", "size": 14, "color": figures.GREY, "line": grey}
        rings = table.by("What")["leaderboard"]
        names = figures.distinct(rings["Solver"])
        over.append(figures.scatter("leaderboard", rings[unit], rings[value], marker=marker, text=names))
    note = joined(
        "Points are trials, rings the refitted models of the leaderboard; times are processor times. None is both "
        "better and cheaper than those on the line, the Pareto front. Beyond its knee, quality increases least for its "
        "cost.",
        shown,
        outside,
    )
    styles = figures.solver_styles(data.all_solvers)
    kind = Points(unit, value, across, up, styles, over=over)
    top = best[-1]
    answer = f"{unit}: {top.amount(cost):.4g} for the best {data.metric} by validation, {top.quality:.4f}"
    answer += f"; {bend.amount(cost):.4g} at the knee, {bend.quality:.4f}." if bend is not top else "."
    return Panel(cost, title, table, kind, note, answer=answer)
