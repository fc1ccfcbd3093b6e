"""Overview: the chosen model, its uncertainty, and what tuning gained."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from ranktune.dashboards.analysis import tuning_value
from ranktune.dashboards.figures.kinds import Dots
from ranktune.dashboards.figures.panels import Cell, Frame, Panel, facts, joined
from ranktune.dashboards.records.frames import leaderboard_columns
from ranktune.dashboards.records.study import StudyData, duration
from ranktune.dashboards.records.trial import best_of, counts
from ranktune.dashboards.terminal.leaderboard import marks
from ranktune.dashboards.views import delivered, explained, queries
from ranktune.solvers.core.errors import listed
from ranktune.tuner.selection.results import Result
from ranktune.tuner.study.declaration import Study


def panels(data: StudyData) -> list[Panel]:
    """Return the conclusion, the leaderboard, the value of tuning, and the settings."""
    result = data.result
    shown = [_conclusion(data), _leaderboard(data), *explained.drivers(data), *queries.example(data)]
    shown += [] if result is None else delivered.use(result)
    shown.append(tuning_value.panel(data))
    if result is not None:
        shown.append(Panel("details", "Details", facts(_details(data, result), ("what", "value"))))
    if result is not None and result.folds:
        shown.append(_folds(result))
    if any(trial.error for trial in data.trials) or (result is not None and result.failures):
        shown.append(_failures(data))
    if result is not None and result.left_out:
        shown.append(_left_out(result))
    return [*shown, *delivered.panels(data), _settings(data)]


def answers(data: StudyData) -> list[tuple[str, str]]:
    """Return the questions that a finished study answers, and the answers; nothing of an unfinished one."""
    if data.result is None:
        return []
    found = data.result.conclusion
    model, *others = found.next
    use, following = f"{found.use} {model}", " ".join(others)
    answered = ("What to expect", found.expect), ("Better than today", found.gain)
    return [("What to use", use), *answered, ("What next", following)]


def _conclusion(data: StudyData) -> Panel:
    """Return what a finished study answers, or how far an unfinished one is."""
    note = joined(
        data.damage, "" if data.result else joined(_unfinished(data), early_stopping_sentence(data)), data.weights_note
    )
    progress: list[tuple[str, Cell]] = [("state", data.state), ("trials", data.progress), *_endings(data)]
    rows = answers(data) or progress
    return Panel("conclusion", "Conclusion", facts(rows, ("question", "answer")), None, note)


def _details(data: StudyData, result: Result) -> list[tuple[str, Cell]]:
    """Return what the conclusion rests on: a row a sentence or a number."""
    rows: list[tuple[str, Cell]] = [(str(k), line) for k, line in enumerate(result.conclusion.details, 1)]
    rows += [("trials", data.progress), *_endings(data)]
    rows.append(("early stopping", early_stopping_sentence(data)))
    return [(name, value) for name, value in rows if value not in (None, "")]


def _endings(data: StudyData) -> list[tuple[str, Cell]]:
    """Return how many trials ended how, where not all were evaluated in full."""
    counted = counts(data.trials)
    rows = (("evaluated in full", counted.complete), ("stopped early", counted.stopped), ("failed", counted.failed))
    return [(name, count) for name, count in rows if count] if counted.stopped or counted.failed else []


def early_stopping_sentence(data: StudyData) -> str:
    """Return how many trials were stopped early and about what that saved; "" where none was."""
    n = counts(data.trials)
    if not n.stopped:
        return ""
    number, they = ("One trial was", "it was") if n.stopped == 1 else (f"{n.stopped} trials were", "they were")
    text = f"{number} stopped early because {they} significantly worse"
    if n.saved < 1.0:
        return f"{text}."
    share = n.saved / (n.spent + n.saved)
    return f"{text}, which saved about {duration(n.saved)} of processor time, {share:.0%} of a full search."


def _unfinished(data: StudyData) -> str:
    best, counted = best_of(data.trials), counts(data.trials)
    if not data.trials:
        return "No trial has finished yet. Results appear here as trials finish."
    if best is None:
        last = next((trial.error for trial in reversed(data.trials) if trial.error), "")
        return f"All {len(data.trials)} finished trials failed, the last with: {last}"
    return (
        f"The best of {counted.complete + counted.stopped} finished trials so far is {best.solver} with {data.metric} "
        f"{best.value:.4f} on validation queries. The best of many values is too high: the finished study shows a "
        "corrected estimate."
    )


TITLES = {
    "solver": "model", "kind": "kind", "vali": "validation", "again": "fresh folds", "test": "test",
    "beside": "beside", "difference": "difference", "p_value": "p", "p_holm": "p Holm", "verdict": "verdict",
    "nonzeros": "weights", "cost": "cost", "bytes": "bytes", "microseconds": "us a document",
    "seconds": "fit seconds", "trials": "trials",
}  # fmt: skip
"""Of the columns of the leaderboard; that of the metric beside the choice has its name."""


def leaderboard_table(result: Result) -> Frame:
    """Return every row of the leaderboard; columns without a value are left out."""
    rows, columns = result.leaderboard, leaderboard_columns(result)
    columns["solver"] = [f"{row.solver}{marks(row)}" for row in rows]
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
        return Panel("leaderboard", title, _standing(data), None, "The best trial of each solver so far.")
    note = joined(
        "The chosen model is on top, the others follow by validation. Dotted lines are the scores of the chosen. "
        "Intervals are over queries. Models are compared query by query, so a difference can be significant although "
        "the intervals overlap: see p.",
        f"*: {listed(list(data.study.serve))} cannot load it."
        if any(not row.is_served for row in data.result.leaderboard)
        else "",
    )
    return replace(leaderboard_panel(data.result), title=title, note=note)


def leaderboard_panel(result: Result) -> Panel:
    """Return the panel of the leaderboard: a point and an interval for every row, the chosen on top.

    Rows that are significantly worse are hollow. A dotted line of each colour goes through the scores of the chosen, so
    that rows above and below it are distinct.
    """
    series = {name: (name, f"{name} low", f"{name} high") for name in ("validation", "test")}
    unit = f"{result.metric} (mean over queries)"
    kind = Dots("model", series, unit, "model", verdict="verdict", reference=True)
    return Panel("leaderboard", f"Leaderboard of {result.study}", leaderboard_table(result), kind)


def _standing(data: StudyData) -> Frame:
    """Return the best finished trial of each solver."""
    numbers = Counter(trial.solver for trial in data.trials)
    best = [best_of(trial for trial in data.trials if trial.solver == solver) for solver in numbers]
    order = sorted(filter(None, best), key=lambda trial: -(trial.value or 0.0))
    rows = [[t.solver, t.value, t.error_of_mean, t.nonzeros, t.seconds, numbers[t.solver]] for t in order]
    return Frame(("solver", "validation", "standard error", "weights", "fit seconds", "trials"), rows)


def _folds(result: Result) -> Panel:
    rows: list[list[Cell]] = []
    for fold in result.folds:
        row, test = fold.best, fold.best.test
        ends = (None, None, None) if test is None else (test.mean, test.low, test.high)
        rows.append([fold.name, row.solver, None if row.vali is None else row.vali.mean, *ends, row.nonzeros])
    columns = ("fold", "chosen", "validation", "test", "test low", "test high", "weights")
    series = {name: (name, f"{name} low", f"{name} high") for name in ("validation", "test")}
    kind = Dots(("fold", "chosen"), series, result.metric, "fold")
    return Panel("folds", "Chosen model of each fold", Frame(columns, rows), kind)


def _failures(data: StudyData) -> Panel:
    rows = [[t.split, t.place, t.solver, t.error] for t in data.trials if t.error]
    if data.result is not None:
        rows += [[f.split, None, f.solver, f.error] for f in data.result.failures if f.number is None]
    return Panel("failures", "Failures", Frame(("fold", "trial", "solver", "error"), rows))


def _left_out(result: Result) -> Panel:
    columns = ("fold", "what", "error", "traceback")
    rows = [[each.split, each.what, each.error, each.trace] for each in result.left_out]
    note = "What failed after the trials, and is missing here."
    return Panel("left-out", "Left out", Frame(columns, rows), None, note)


def _settings(data: StudyData) -> Panel:
    settings = {name: setting(value) for name, value in data.study.as_dict().items() if _applies(name, data.study)}
    rows = facts(((name, value) for name, value in settings.items() if name != "name"), ("setting", "value"))
    return Panel("settings", "Settings of the study", rows, None, "Others are not set or do not apply.")


def _applies(name: str, study: Study) -> bool:
    """Return whether a setting has an effect in a study."""
    if name in ("folds", "repeats"):
        return study.plan not in ("split", "progressive")
    if name == "outer":
        return study.plan == "nested"
    if name == "permutations":
        return study.plan == "progressive"
    return name != "acquisition" or study.sampler == "thompson"


def setting(value: object) -> Cell:
    """Return a setting as a cell: lists and tables in one line."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {setting(inner)}" for name, inner in value.items()) or None
    if isinstance(value, (list, tuple)):
        return ", ".join(str(item) for item in value) or None
    return value if value is None or isinstance(value, str | int | float) else str(value)
