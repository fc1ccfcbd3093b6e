"""Trade-offs: quality against features, bytes, scoring time and fit time.

A panel's group is the split, where there are several: options are compared within a split.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from ranktune.dashboards.analysis.pooling import no_trials_note, stopped_note
from ranktune.dashboards.figures import plotly as figures
from ranktune.dashboards.figures.kinds import Lines, Points
from ranktune.dashboards.figures.panels import Cell, Frame, Panel, joined
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
AMOUNTS = ("nonzeros", "bytes", "microseconds", "seconds", "cost")
MODEL = "model: "
"""Before the name of an option that is a model of the leaderboard; a trial has its number."""


def panels(data: StudyData) -> list[Panel]:
    """Return the Pareto front of each cost and the best within each number of features, split by split."""
    shown: list[Panel] = []
    for k, split, group in data.groups:
        most = figures.MAX_POINTS // (3 if group else 1)
        models = _models(data, split)
        costs = [cost for cost in COSTS if cost != "cost" or any(t.cost is not None for t in split.trials)]
        shown += [_front(data, split, models, cost, f"{cost}-{k}", group, most) for cost in costs]
        shown.append(_within(data, split, models, f"within-{k}", group))
    return shown


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
        Option(f"{MODEL}{row.solver}", row.vali.mean, *(getattr(row, amount) for amount in AMOUNTS))
        for fold in folds[:1]
        for row in fold.leaderboard
        if row.vali is not None
    ]


def _front(
    data: StudyData, split: SplitData, models: list[Option], cost: str, key: str, group: str, most: int
) -> Panel:
    """Return every trial and every model by cost and quality, their Pareto front, and its knee."""
    title, unit, value = f"Best {data.metric} by {TITLES[cost][0]}", TITLES[cost][1], f"{data.metric} (validation)"
    models = [option for option in models if not math.isnan(option.amount(cost))]
    options = _options(trial for trial in split.trials if not trial.stopped)
    best = front([*options, *models], cost)
    if not best:
        why = "No trial of this split has this cost." if options else "No trial has a value yet."
        return Panel(key, title, note=no_trials_note(data) or why, group=group)
    bend = knee(best, cost)  # the front of a front is itself
    trials = {str(trial.place): trial for trial in split.trials}
    known = [option for option in _options(split.trials) if not math.isnan(option.amount(cost))]
    kept = [known[i] for i in figures.thinned([option.quality for option in known], most)]
    on_front = {option.label for option in best}

    def row(what: str, option: Option) -> list[Cell]:
        trial = trials.get(option.label)
        ends = [option.amount(cost), option.quality]
        if trial is None:
            return [what, None, option.label.removeprefix(MODEL), *ends, None]
        return [what, trial.place, trial.solver, *ends, trial.stopped or None]

    rows = [row("front, knee" if option is bend else "front", option) for option in best]
    rows += [row("leaderboard", option) for option in models]
    rows += [row("trial", option) for option in kept if option.label not in on_front]
    everything = [*known, *models]
    costs = [option.amount(cost) for option in everything]
    up, outside = figures.value_axis(value, [option.quality for option in everything], always=best[0].quality)
    across = figures.log_axis(unit, min(costs), max(costs)) if min(costs) > 0 else figures.axis(unit)
    line = {"shape": "hv", "color": figures.GREY, "width": 2}
    x, y = [option.amount(cost) for option in best], [option.quality for option in best]
    over = [figures.scatter("front", x, y, mode="lines", line=line, hoverinfo="skip")]
    over += [figures.star("knee", bend.amount(cost), bend.quality, ["knee"])] if bend is not None else []
    if models:
        ring = {"symbol": "circle-open", "size": 14, "color": figures.GREY, "line": {"width": 2}}
        x, y = [option.amount(cost) for option in models], [option.quality for option in models]
        names = figures.distinct(option.label.removeprefix(MODEL) for option in models)
        over.append(figures.scatter("leaderboard", x, y, marker=ring, text=names))
    note = joined(
        "Points are trials, rings the refitted models of the leaderboard; times are processor times. None is both "
        "better and cheaper than those on the line, the Pareto front. Beyond its knee, quality increases least for its "
        "cost.",
        stopped_note(split.trials),
        outside,
        f"{len(kept)} of {len(known)} trials are shown." if len(kept) < len(known) else "",
    )
    columns = ("What", "Trial", "Solver", unit, value, "Stopped after")
    kind = Points(unit, value, across, up, figures.solver_styles(data.all_solvers), over=over)
    top = best[-1]
    answer = f"{unit}: {top.amount(cost):.4g} for the best {data.metric} by validation, {top.quality:.4f}"
    answer += f"; {bend.amount(cost):.4g} at the knee, {bend.quality:.4f}." if bend and bend is not top else "."
    return Panel(key, title, Frame(columns, rows), kind, note, group, answer)


def _within(data: StudyData, split: SplitData, models: list[Option], key: str, group: str) -> Panel:
    """Return the best trial or model within each number of features."""
    title, value = f"Best {data.metric} within a number of features", f"{data.metric} (validation)"
    options = [*_options(trial for trial in split.trials if not trial.stopped), *models]
    highest = best_within(options, {})
    if highest is None:
        note = no_trials_note(data) or "No trial has a value yet."
        return Panel(key, title, note=note, group=group)
    solver_of = {str(trial.place): trial.solver for trial in split.trials}
    sparse = front(options, "nonzeros")  # it has the best within any limit
    rows: list[list[Cell]] = []
    for limit in (*LIMITS, None):
        best = highest if limit is None else best_within(sparse, {"nonzeros": limit})
        name = "all" if limit is None else str(limit)
        if best is None:
            rows.append([name, None, None, None, None, None])
            continue
        features = None if best.nonzeros is None else int(best.nonzeros)
        of_model = best.label.startswith(MODEL)
        what = best.label.removeprefix(MODEL) if of_model else solver_of[best.label]
        number = None if of_model else int(best.label)
        rows.append([name, features, number, what, best.quality, highest.quality - best.quality])
    columns = ("Features at most", "Features", "Trial", "Solver", value, "Below the best")
    across = figures.axis("features at most", categories=[str(row[0]) for row in rows])
    kind = Lines(columns[0], (value,), across, figures.axis(value), markers=True, hover="Solver")
    note = "The best trial or model with no more features; a dash where there is none."
    return Panel(key, title, Frame(columns, rows), kind, note, group)
