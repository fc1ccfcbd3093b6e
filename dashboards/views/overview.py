"""Overview: the chosen model, its uncertainty, and what tuning gained."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from ranktune.dashboards.analysis import tuning_value
from ranktune.dashboards.analysis.verdict import interval, verdict
from ranktune.dashboards.figures.kinds import Dots
from ranktune.dashboards.figures.panels import Cell, Frame, Panel, facts, joined
from ranktune.dashboards.records.choice import (
    chosen_because,
    chosen_name,
    clicks_and_judgments,
    feature_alone,
    gain,
    higher_on_test,
    rivals,
)
from ranktune.dashboards.records.frames import leaderboard_columns
from ranktune.dashboards.records.study import StudyData, duration
from ranktune.dashboards.records.trial import best_of, counts
from ranktune.dashboards.terminal.leaderboard import marks
from ranktune.dashboards.views import delivered
from ranktune.solvers.core.arrays import JsonView
from ranktune.solvers.core.errors import listed
from ranktune.tuner.selection.results import ALIKE
from ranktune.tuner.study.declaration import Study


def panels(data: StudyData) -> list[Panel]:
    """Return the conclusion, the leaderboard, the value of tuning, and the settings."""
    shown = [_conclusion(data), *_summary(data), _leaderboard(data), tuning_value.panel(data)]
    if data.result is not None and data.result.get("folds"):
        shown.append(_folds(data.result))
    if any(trial.error for trial in data.trials) or (data.result is not None and data.result["failures"]):
        shown.append(_failures(data))
    if data.result is not None and data.result.get("left_out"):
        shown.append(_left_out(data.result))
    return [*shown, *delivered.panels(data), _settings(data)]


def _conclusion(data: StudyData) -> Panel:
    """Return the conclusion in two sentences and as a table."""
    rows: list[tuple[str, object]] = [("state", data.state), ("trials", data.progress), *_endings(data)]
    result = data.result
    if result is None:
        text = _unfinished(data)
    else:
        best, text = result["best"], sentences(result)
        rows += [("chosen", best["solver"]), *((f"its {name}", v) for name, v in (best.get("params") or {}).items())]
        rows += [(f"test {name}", value) for name, value in best["test_metrics"].items()]
        if result.get("gain") is not None:
            rows += _gain_rows(result["gain"])
        rows.append((f"expected {data.metric}, corrected for selection", result.get("estimate")))
        rows.append(("its 95 % interval", interval(result.get("estimate_interval"))))
        limits = interval(result.get("expected_on_test_interval"))
        rows.append((f"95 % interval of {data.metric} on so few test queries", limits))
        for name, label in (result.get("alternatives") or {}).items():
            rows.append(("best trade-off" if name == "knee" else f"{name} without a significant difference", label))
        rows += [("seconds", result["seconds"]), ("model", result["model"])]
    note = joined(data.damage, text, data.weights_note, early_stopping_sentence(data))
    return Panel("conclusion", "Conclusion", facts(rows), None, note)


def _summary(data: StudyData) -> list[Panel]:
    """Return what is printed as the first page; nothing while the study is not finished."""
    table = facts(verdict(data), ("what", "answer"))
    return [Panel("summary", "In short", table)] if table.rows else []


def _gain_rows(gain: JsonView) -> list[tuple[str, Cell]]:
    """Return the rows of the comparison with the baseline."""
    counts = f"{gain['wins']} better, {gain['ties']} equal, {gain['losses']} worse"
    return [
        ("baseline", gain["baseline"]),
        (f"gain over the baseline ({gain['part']})", gain["difference"]),
        ("its 95 % interval", None if gain["difference"] is None else interval(gain["interval"])),
        ("p of a paired randomisation test", gain["p_randomisation"]),
        ("queries", counts),
    ]


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


def sentences(result: JsonView) -> str:
    """Return which model was chosen with which score, and which are not significantly different.

    The first sentence says whether it is better than the baseline, where there is one.
    """
    best, metric = result["best"], result["metric"]
    test = best["test_metrics"].get(metric)
    values = "there are no test queries"
    if test is not None:
        values = f"{metric} is {test:.4f} {interval(best.get('test_interval'))} on test queries"
    if result.get("estimate") is not None:
        values += (
            f", and {result['estimate']:.4f} {interval(result.get('estimate_interval'))} by validation, "
            "corrected for selection"
        )
    better = gain(result)
    if better and result["gain"]["difference"] is not None:
        better = f"The chosen model is {better}"
    trials = f"{result['trials']} trial{'s' * (result['trials'] != 1)}"
    return joined(
        better,
        f"{chosen_name(result)} was chosen by validation among {trials}; {values}. {_rivals(result)}",
        chosen_because(result),
        higher_on_test(result),
        feature_alone(result),
        clicks_and_judgments(result),
    )


def _rivals(result: JsonView) -> str:
    others = rivals(result)
    if not others:
        return "There was no other model."
    p_name = "p_holm" if any(row.get("p_holm") is not None for row in others) else "p_value"
    equal = [row["solver"] for row in others if row.get(p_name) is not None and row[p_name] > 0.05]
    corrected = ", corrected for multiple comparisons" if p_name == "p_holm" else ""
    if not equal:
        return f"It differs significantly from each of the other {len(others)} (p <= 0.05{corrected})."
    return f"Not significantly different (p > 0.05{corrected}): {', '.join(equal)}."


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


def leaderboard_table(result: JsonView) -> Frame:
    """Return every row of the leaderboard; columns without a value are left out."""
    rows, columns = result["leaderboard"], leaderboard_columns(result)
    columns["solver"] = [f"{row['solver']}{marks(row)}" for row in rows]
    columns["verdict"] = [
        "not significantly different" if row.get("verdict") == ALIKE else row.get("verdict") for row in rows
    ]
    titles = TITLES | {"beside": (result.get("clicks") or {}).get("metric") or "beside"}
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
        if any(not row.get("is_served", True) for row in data.result["leaderboard"])
        else "",
    )
    return replace(leaderboard_panel(data.result), title=title, note=note)


def leaderboard_panel(result: JsonView) -> Panel:
    """Return the panel of the leaderboard: a point and an interval for every row, the chosen on top.

    Rows that are significantly worse are hollow. A dotted line of each colour goes through the scores of the chosen, so
    that rows above and below it are distinct.
    """
    series = {name: (name, f"{name} low", f"{name} high") for name in ("validation", "test")}
    unit = f"{result['metric']} (mean over queries)"
    kind = Dots("model", series, unit, "model", verdict="verdict", reference=True)
    return Panel("leaderboard", f"Leaderboard of {result['study']}", leaderboard_table(result), kind)


def _standing(data: StudyData) -> Frame:
    """Return the best finished trial of each solver."""
    numbers = Counter(trial.solver for trial in data.trials)
    best = [best_of(trial for trial in data.trials if trial.solver == solver) for solver in numbers]
    order = sorted(filter(None, best), key=lambda trial: -(trial.value or 0.0))
    rows = [[t.solver, t.value, t.error_of_mean, t.nonzeros, t.seconds, numbers[t.solver]] for t in order]
    return Frame(("solver", "validation", "standard error", "weights", "fit seconds", "trials"), rows)


def _folds(result: JsonView) -> Panel:
    bests = [(fold["name"], fold["best"]) for fold in result["folds"]]
    rows = [
        [name, row["solver"], row["vali"], row["test"], *(row.get("test_interval") or (None, None)), row["nonzeros"]]
        for name, row in bests
    ]
    columns = ("fold", "chosen", "validation", "test", "test low", "test high", "weights")
    series = {name: (name, f"{name} low", f"{name} high") for name in ("validation", "test")}
    kind = Dots(("fold", "chosen"), series, str(result["metric"]), "fold")
    return Panel("folds", "Chosen model of each fold", Frame(columns, rows), kind)


def _failures(data: StudyData) -> Panel:
    rows = [[t.split, t.place, t.solver, t.error] for t in data.trials if t.error]
    if data.result is not None:
        refits = (f for f in data.result["failures"] if f.get("number") is None)
        rows += [[f.get("split", ""), None, f["solver"], f["error"]] for f in refits]
    return Panel("failures", "Failures", Frame(("fold", "trial", "solver", "error"), rows))


def _left_out(result: JsonView) -> Panel:
    columns = ("fold", "what", "error", "traceback")
    rows = [[missing[name] for name in ("split", "what", "error", "trace")] for missing in result["left_out"]]
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
