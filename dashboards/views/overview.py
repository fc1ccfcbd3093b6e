"""Overview: the chosen model, its uncertainty, what tuning gained, how to use the model, and its training data."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import replace

from ranktune.dashboards.figures.kinds import Dots
from ranktune.dashboards.figures.panels import Cell, Figure, Frame, Panel, counted, facts, joined
from ranktune.dashboards.records.study import StudyData, duration
from ranktune.dashboards.records.trial import best_of, counts, leaderboard_columns
from ranktune.dashboards.terminal.leaderboard import marks
from ranktune.dashboards.views import explained, queries
from ranktune.dashboards.views.progress import worth
from ranktune.dashboards.views.solver_trials import no_trials_note, solvers_of
from ranktune.dashboards.views.solvers import reached
from ranktune.solvers.core.errors import listed
from ranktune.tuner.selection.results import Result
from ranktune.tuner.study.declaration import Study

SERIES = {name: (name, f"{name} low", f"{name} high") for name in ("validation", "test")}
TITLES = {
    "solver": "model", "kind": "kind", "vali": "validation", "again": "fresh folds", "test": "test",
    "beside": "beside", "difference": "difference", "p_value": "p", "p_holm": "p Holm", "verdict": "verdict",
    "nonzeros": "weights", "cost": "cost", "bytes": "bytes", "microseconds": "us a document",
    "seconds": "fit seconds", "trials": "trials",
}  # fmt: skip
"""Of the columns of the leaderboard; that of the metric beside the choice has its name."""
FIRST = 5
"""Models that are drawn first, beside today's ranking and the smallest that is as good; the table has all."""
SIZES = {"weights or leaves": "nonzeros", "bytes": "bytes", "microseconds to score a document": "microseconds"}


def panels(data: StudyData) -> list[Panel]:
    """Return the conclusion, the leaderboard, the value of tuning, and the settings."""
    shown, result = [_conclusion(data), _leaderboard(data), *explained.drivers(data)], data.result
    example = [*queries.example(data), worth(data)]
    if result is None:
        return [*shown, *example, *_failures(data), *_data(data), _settings(data)]
    lines = enumerate((*result.conclusion.details, early_stopping_sentence(data)), 1)
    details = Panel("details", "Details", facts((str(k), line) for k, line in lines))
    return [
        *shown, *_use(result), *example, details, *_folds(result), *_failures(data),
        *_left_out(result), _model(result), *_data(data), _settings(data),
    ]  # fmt: skip


def answers(data: StudyData) -> list[tuple[str, str]]:
    """Return the questions that a finished study answers, and the answers; nothing of an unfinished one."""
    if data.result is None:
        return []
    found = data.result.conclusion
    model, *others = found.next
    answered = ("What to expect", found.expect), ("Better than today", found.gain)
    return [("What to use", f"{found.use} {model}"), *answered, ("What next", " ".join(others))]


def _conclusion(data: StudyData) -> Panel:
    """Return what a finished study answers, or how far an unfinished one is."""
    progress = [] if data.result else [_unfinished(data), early_stopping_sentence(data)]
    rows: list[tuple[str, Cell]] = [*answers(data)] or [
        ("state", data.state),
        ("trials", data.progress),
        *counts(data.trials).ended,
    ]
    note = joined(data.damage, *progress, data.weights_note)
    return Panel("conclusion", "Conclusion", facts(rows, ("question", "answer")), None, note)


def early_stopping_sentence(data: StudyData) -> str:
    """Return how many trials were stopped early and about what that saved; "" where none was."""
    n = counts(data.trials)
    if not n.stopped:
        return ""
    number, they = ("One trial was", "it was") if n.stopped == 1 else (f"{n.stopped} trials were", "they were")
    share = n.saved / ((n.spent + n.saved) or 1.0)
    saved = f", which saved about {duration(n.saved)} of processor time, {share:.0%} of a full search" * (n.saved >= 1)
    return f"{number} stopped early because {they} significantly worse{saved}."


def _unfinished(data: StudyData) -> str:
    best, n = best_of(data.trials), counts(data.trials)
    if best is None:
        last = next((trial.error for trial in reversed(data.trials) if trial.error), "")
        soon = "Results appear here as trials finish." if not data.trials else f"The last error: {last}"
        return joined(no_trials_note(data), soon)
    return (
        f"The best of {counted(n.complete + n.stopped, 'finished trial')} so far is {best.solver} with {data.metric} "
        f"{best.value:.4f} on validation queries. The best of many values is too high: the finished study shows a "
        "corrected estimate."
    )


def leaderboard_table(result: Result) -> Frame:
    """Return every row of the leaderboard; columns without a value are left out."""
    columns = leaderboard_columns(result)
    columns["solver"] = [f"{row.solver}{marks(row)}" for row in result.leaderboard]
    titles = TITLES | {"beside": "beside" if result.clicks is None else result.clicks.metric}
    shown = {
        f"{title}{end.replace('_', ' ')}": columns[name + end]
        for name, title in titles.items()
        for end in ("", "_low", "_high")
        if any(value is not None for value in columns.get(name + end, []))
    }
    return Frame(tuple(shown), list(zip(*shown.values(), strict=True)))


def _leaderboard(data: StudyData) -> Panel:
    title = f"Leaderboard: the best of each solver, {data.metric} with 95 % intervals"
    if data.result is None:
        with_trials = [solver for solver in solvers_of(data, data.trials) if solver.best is not None]
        return Panel("leaderboard", title, reached(with_trials), None, "The best trial of each solver so far.")
    rows, board = data.result.leaderboard, leaderboard_panel(data.result)
    smallest = data.result.alternatives.get("smallest")
    few = [k for k, row in enumerate(rows) if k < FIRST or row.is_baseline or row.solver == smallest]
    note = joined(
        "The chosen model is on top, and dotted lines are its scores. Hollow markers are significantly worse than it, "
        "query by query, even where intervals overlap.",
        f"The table has all {len(rows)} models." * (len(few) < len(rows)),
        f"*: {listed(data.study.serve)} cannot load it." * any(not row.is_served for row in rows),
    )

    def of_few(frame: Frame) -> Figure:
        assert board.kind is not None
        return board.kind(frame.kept(frame.rows[k] for k in few))

    return replace(board, title=title, note=note, kind=of_few)


def leaderboard_panel(result: Result) -> Panel:
    """Return the panel of the leaderboard: a point and an interval for every row, the chosen on top.

    Rows that are significantly worse are hollow. A dotted line of each colour goes through the scores of the chosen, so
    that rows above and below it are distinct.
    """
    kind = Dots("model", SERIES, f"{result.metric} (mean over queries)", "model", verdict="verdict", reference=True)
    return Panel("leaderboard", f"Leaderboard of {result.study}", leaderboard_table(result), kind)


def _use(result: Result) -> list[Panel]:
    """Return the commands that come next; none without a model."""
    if not result.model:
        return []
    baseline = result.gain.baseline if result.gain else f"column:{[*result.baselines, 'NAME'][0]}"
    file, today = shlex.quote(result.model), shlex.quote(baseline)
    rows = [
        ("score documents", f"ranktune predict {file} DATA"),
        ("score documents in Python", f"ranktune.load_model({result.model!r}).predict(X)"),
        ("compare it with the ranking of today", f"ranktune evaluate {file} DATA --against {today}"),
        ("explain an order", f"ranktune explain {file} DATA --query QUERY"),
        ("export it", f"ranktune export {file} --format FORMAT"),
        ("see the formats", "ranktune export --help"),
    ]
    return [Panel("use", "What to do next", facts(rows, ("to", "run")), shown=True)]


def _folds(result: Result) -> list[Panel]:
    table = Frame.of(result.folds, {
        "fold": "name", "chosen": "best.solver", "validation": "best.vali.mean", "test": "best.test.mean",
        "test low": "best.test.low", "test high": "best.test.high", "weights": "best.nonzeros",
    })  # fmt: skip
    kind = Dots(("fold", "chosen"), SERIES, result.metric, "fold")
    return [Panel("folds", "Chosen model of each fold", table, kind)] * bool(table.rows)


def _failures(data: StudyData) -> list[Panel]:
    rows = [[t.split, t.place, t.solver, t.error] for t in data.trials if t.error]
    later = [] if data.result is None else [each for each in data.result.failures if each.number is None]
    rows += [[each.split, None, each.solver, each.error] for each in later]
    return [Panel("failures", "Failures", Frame(("fold", "trial", "solver", "error"), rows))] * bool(rows)


def _left_out(result: Result) -> list[Panel]:
    table = Frame.of(result.left_out, {"fold": "split", "what": "what", "error": "error", "traceback": "trace"})
    note = "What failed after the trials, and is missing here."
    return [Panel("left-out", "Left out", table, None, note)] * bool(table.rows)


def _model(result: Result) -> Panel:
    best = result.best
    params = [("share of " * best.is_blend + name, value) for name, value in (best.params or {}).items()]
    rows = [("solver", best.solver), *params, *((title, getattr(best, name)) for title, name in SIZES.items())]
    return Panel("model", "The delivered model", facts(rows))


def _data(data: StudyData) -> list[Panel]:
    sizes = {name.replace("_", " "): name for of_split in data.facts.values() for name in of_split}
    rows = [[split, *map(of_split.get, sizes.values())] for split, of_split in data.facts.items()]
    table = Frame(("fold", *sizes), rows)
    if len(rows) == 1:
        table = facts(zip(sizes, rows[0][1:], strict=True), ("what", "number"))
    note = "Queries, documents and features are those of training and validation together."
    return [Panel("data", "The data", table, None, note)] * bool(rows)


def _settings(data: StudyData) -> Panel:
    settings = {name: setting(value) for name, value in data.study.as_dict().items() if _applies(name, data.study)}
    rows = facts(((name, value) for name, value in settings.items() if name != "name"), ("setting", "value"))
    return Panel("settings", "Settings of the study", rows, None, "Others are not set or do not apply.")


def _applies(name: str, study: Study) -> bool:
    """Return whether a setting has an effect in a study."""
    if name in ("folds", "repeats"):
        return study.plan not in ("split", "progressive")
    plans = {"outer": "nested", "permutations": "progressive"}
    return study.plan == plans.get(name, study.plan) and (name != "acquisition" or study.sampler == "thompson")


def setting(value: object) -> Cell:
    """Return a setting as a cell: lists and tables in one line."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {setting(inner)}" for name, inner in value.items()) or None
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value)) or None
    return value if value is None or isinstance(value, str | int | float) else str(value)
