"""Overview: what was found, how sure that is, and whether tuning was worth it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ranktune.dashboards.analysis import tuning_value
from ranktune.dashboards.figures.panels import Cell, Panel, Table, plain
from ranktune.dashboards.records.study import StudyData, Trial, best_of, counts, duration, study_state, trials_told

Json = Mapping[str, Any]
Figure = dict[str, Any]


def panels(data: StudyData) -> list[Panel]:
    """Return the conclusion, the leaderboard, the best so far with what it is measured against, and the settings."""
    found = [_conclusion(data), _leaderboard(data), tuning_value.panel(data)]
    if data.result is not None and data.result.get("folds"):
        found.append(_folds(data.result))
    if any(trial.error for _, trial in data.trials) or (data.result is not None and data.result["failures"]):
        found.append(_failures(data))
    return [*found, _settings(data)]


def _conclusion(data: StudyData) -> Panel:
    """Return what was found, in two sentences and in a table."""
    rows: list[tuple[str, Cell]] = [("state", study_state(data)), ("trials", trials_told(data)), *_ends(data)]
    racing = spared_sentence(data)
    if data.result is None:
        note = f"{_unfinished(data)} {racing}".strip()
        return Panel("conclusion", "What was found", Table(("what", "value"), rows), None, note)
    result = data.result
    best = result["best"]
    rows += [("chosen", best["solver"]), *(_told(best.get("params")))]
    rows += [(f"test {name}", value) for name, value in best["test_metrics"].items()]
    if result.get("estimate") is not None:
        rows.append((f"{data.metric} to expect, corrected for the choice", result["estimate"]))
        rows.append(("its 95 percent interval", _interval(result.get("estimate_interval"))))
    if result.get("expected_on_test_interval") is not None:
        limits = _interval(result["expected_on_test_interval"])
        rows.append((f"where {data.metric} of so few test queries lies in 95 of 100 cases", limits))
    for name, label in (result.get("alternatives") or {}).items():
        rows.append((f"{name} that is not told apart" if name != "knee" else "best bargain", label))
    rows += [("seconds", result["seconds"]), ("model", result["model"])]
    note = f"{sentences(result)} {racing}".strip()
    return Panel("conclusion", "What was found", Table(("what", "value"), rows), None, note)


def _ends(data: StudyData) -> list[tuple[str, Cell]]:
    """Return how many trials ended how, where not all were judged in full."""
    own = counts(trial for _, trial in data.trials)
    told = (("judged in full", own.complete), ("stopped early", own.stopped), ("failed", own.failed))
    return [(name, count) for name, count in told if count] if own.stopped or own.failed else []


def spared_sentence(data: StudyData) -> str:
    """Return in one sentence how many trials were stopped early and roughly what that spared; "" where none was."""
    own = counts(trial for _, trial in data.trials)
    if not own.stopped:
        return ""
    share = own.spared / (own.spent + own.spared) if own.spared > 0.0 else 0.0
    said = "One trial was stopped" if own.stopped == 1 else f"{own.stopped} trials were stopped"
    return (
        f"{said} early, as soon as {'it was' if own.stopped == 1 else 'they were'} for sure behind the best, which "
        f"spared roughly {duration(own.spared)} of processor time: {share:.0%} of what learning would have taken."
    )


def sentences(result: Json) -> str:
    """Return in two sentences which model was chosen and how good it is, and what is not told apart from it."""
    best, metric = result["best"], result["metric"]
    test = best["test_metrics"].get(metric)
    values = "there are no test queries to judge it by"
    if test is not None:
        values = f"{metric} is {test:.4f} {_interval(best.get('test_interval'))} on test queries"
    if result.get("estimate") is not None:
        values += (
            f", and {result['estimate']:.4f} {_interval(result.get('estimate_interval'))} by validation, "
            "corrected for having been chosen"
        )
    first = f"{_chosen(result)} was chosen by validation among {result['trials']} trials; {values}."
    return f"{first} {_rivals(result)}"


def _chosen(result: Json) -> str:
    folds = result.get("folds")
    if not folds:
        return str(result["best"]["solver"])
    counts: dict[str, int] = {}
    for fold in folds:
        counts[fold["best"]["solver"]] = counts.get(fold["best"]["solver"], 0) + 1
    return ", ".join(f"{name} on {n}" for name, n in counts.items()) + " of " + f"{len(folds)} folds"


def _rivals(result: Json) -> str:
    others = result["leaderboard"][1:]
    if not others:
        return "Nothing else competed."
    p_name = "p_holm" if any(row.get("p_holm") is not None for row in others) else "p_value"
    equal = [row["solver"] for row in others if row.get(p_name) is not None and row[p_name] > 0.05]
    corrected = ", corrected for so many comparisons" if p_name == "p_holm" else ""
    if not equal:
        return f"Each of the other {len(others)} is told apart from it (p <= 0.05{corrected})."
    return f"Not told apart from it (p > 0.05{corrected}): {', '.join(equal)}."


def _unfinished(data: StudyData) -> str:
    trials = [trial for _, trial in data.trials]
    best, own = best_of(trials), counts(trials)
    if not trials:
        return "No trial has finished yet. What they find appears here as they finish."
    if best is None:
        last = next((trial.error for trial in reversed(trials) if trial.error), "")
        return f"All of the {len(trials)} finished trials failed; the last: {last}"
    return (
        f"The best of {own.complete + own.stopped} finished trials so far is {best.solver} with {data.metric} "
        f"{best.value:.4f} on validation "
        "queries. That value is high by luck too: what is chosen, and how good it is, is told when it is finished."
    )


def _told(params: Mapping[str, Any] | None) -> list[tuple[str, Cell]]:
    return [(f"its {name}", value) for name, value in (params or {}).items()]


def _interval(interval: Sequence[float] | None) -> str:
    return "" if interval is None else f"[{interval[0]:.4f}, {interval[1]:.4f}]"


_COLUMNS = (
    ("model", "solver"), ("kind", "kind"), ("validation", "vali"), ("validation low", "vali_interval"),
    ("validation high", "vali_interval"), ("fresh folds", "again"), ("test", "test"), ("test low", "test_interval"),
    ("test high", "test_interval"), ("difference", "difference"),
    ("difference low", "difference_interval"), ("difference high", "difference_interval"), ("p", "p_value"),
    ("p Holm", "p_holm"),
    ("verdict", "verdict"), ("weights", "nonzeros"), ("bytes", "bytes"), ("us a document", "microseconds"),
    ("seconds to learn", "seconds"), ("trials", "trials"),
)  # fmt: skip


def leaderboard_table(result: Json) -> Table:
    """Return every row of the leaderboard with all that is known of it; columns that say nothing are left out."""
    rows = [[_cell(row, title, name) for title, name in _COLUMNS] for row in result["leaderboard"]]
    told = [k for k in range(len(_COLUMNS)) if any(row[k] is not None for row in rows)]
    return Table(tuple(_COLUMNS[k][0] for k in told), [[row[k] for k in told] for row in rows])


def _cell(row: Json, title: str, name: str) -> Cell:
    value = row.get(name)
    if name.endswith("_interval"):
        return None if value is None else value[0 if title.endswith("low") else 1]
    found: Cell = value
    return found


def _leaderboard(data: StudyData) -> Panel:
    title = f"Leaderboard: the best of each solver, {data.metric} with 95 percent intervals"
    if data.result is None:
        return Panel("leaderboard", title, _standing(data), None, "The best trial of each solver until now.")
    note = (
        "Intervals are over queries. Paired by query, a difference can be sure although the intervals overlap: see p."
    )
    return Panel("leaderboard", title, leaderboard_table(data.result), leaderboard_figure(data.result), note)


def leaderboard_figure(result: Json) -> Figure:
    """Return a dot and an interval for every row, the chosen on top; filled where it is not told apart from it."""
    rows = result["leaderboard"]
    places = list(range(len(rows)))
    parts = [
        _dots(rows, places, "vali", "validation", -0.13, "#7f7f7f", "diamond"),
        _dots(rows, places, "test", "test", 0.13, "#0072b2", "circle"),
    ]
    names = [plain(row["solver"], 28) for row in rows]
    return {
        "data": [part for part in parts if part],
        "layout": {
            "height": 130 + 38 * len(rows),
            "xaxis": {"title": {"text": f"{plain(result['metric'])} (mean over queries)"}},
            "yaxis": {
                "tickvals": places, "ticktext": names, "range": [len(rows) - 0.5, -0.5], "zeroline": False,
                "automargin": True,
            },
            "hovermode": "closest",
        },
    }  # fmt: skip


def _dots(
    rows: Sequence[Json], places: Sequence[int], name: str, label: str, offset: float, colour: str, symbol: str
) -> Figure | None:
    known = [k for k in places if rows[k].get(name) is not None]
    if not known:
        return None
    values = [rows[k][name] for k in known]
    limits = [rows[k].get(f"{name}_interval") or [rows[k][name]] * 2 for k in known]
    sure = [rows[k].get("verdict") == "worse" for k in known]
    return {
        "type": "scatter", "mode": "markers", "name": label, "x": values, "y": [k + offset for k in known],
        "marker": {"color": colour, "size": 10, "symbol": [f"{symbol}-open" if s else symbol for s in sure]},
        "error_x": {
            "type": "data", "symmetric": False, "thickness": 1.5, "width": 4, "color": colour,
            "array": [high - value for value, (_, high) in zip(values, limits, strict=True)],
            "arrayminus": [value - low for value, (low, _) in zip(values, limits, strict=True)],
        },
        "text": [plain(rows[k]["solver"]) for k in known],
        "hovertemplate": "%{text}<br>" + label + " %{x:.4f}<extra></extra>",
    }  # fmt: skip


def _standing(data: StudyData) -> Table:
    """Return the best finished trial of each solver."""
    best: dict[str, Trial] = {}
    counts: dict[str, int] = {}
    for _, trial in data.trials:
        counts[trial.solver] = counts.get(trial.solver, 0) + 1
        ahead = best_of(own for own in (best.get(trial.solver), trial) if own is not None)
        best |= {} if ahead is None else {trial.solver: ahead}
    order = sorted(best.values(), key=lambda trial: -(trial.value or 0.0))
    rows = [[t.solver, t.value, t.error_of_mean, t.nonzeros, t.seconds, counts[t.solver]] for t in order]
    return Table(("solver", "validation", "standard error", "weights", "seconds to learn", "trials"), rows)


def _folds(result: Json) -> Panel:
    rows: list[list[Cell]] = []
    for fold in result["folds"]:
        best = fold["best"]
        interval = best.get("test_interval") or (None, None)
        rows.append([fold["name"], best["solver"], best["vali"], best["test"], *interval, best["nonzeros"]])
    columns = ("fold", "chosen", "validation", "test", "test low", "test high", "weights")
    return Panel("folds", "What was chosen on each fold", Table(columns, rows))


def _failures(data: StudyData) -> Panel:
    rows: list[list[Cell]] = [[split, t.number, t.solver, t.error] for split, t in data.trials if t.error]
    if data.result is not None:
        again = (f for f in data.result["failures"] if f.get("number") is None)
        rows += [[f.get("split", ""), None, f["solver"], f["error"]] for f in again]
    return Panel("failures", "What failed, and why", Table(("fold", "trial", "solver", "error"), rows))


def _settings(data: StudyData) -> Panel:
    told = ((name, setting(value)) for name, value in data.study.as_dict().items())
    rows = [(name, value) for name, value in told if value is not None and name != "name"]
    return Panel("settings", "The study's settings", Table(("setting", "value"), rows), None, "Others are not set.")


def setting(value: Any) -> Cell:
    """Return a setting as a cell: lists and tables in one line."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {setting(inner)}" for name, inner in value.items()) or None
    if isinstance(value, (list, tuple)):
        return ", ".join(str(one) for one in value) or None
    found: Cell = value
    return found
