"""A finished study in the terminal: the leaderboard and the conclusion, from the content of `result.json`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ranktune.dashboards.records.choice import (
    chosen_because,
    chosen_name,
    clicks_and_judgments,
    feature_alone,
    gain,
    higher_on_test,
    outside,
    rivals,
    tuning_gained,
    with_ends,
)
from ranktune.dashboards.terminal.tables import FittedTable, four_digits, table, titled
from ranktune.solvers.core.arrays import JsonView
from ranktune.solvers.core.errors import listed
from ranktune.tuner.selection.results import ALIKE, BETTER

UNSERVED = " *"
"""Mark of rows whose models a system that the study serves cannot load."""
WHOLE = " (whole queries)"
"""Mark of rows whose models compare the documents of a query."""
OPTIONAL = ("kB", "us/doc", "fit s", "trials", "again", "features", "p Holm")
"""Columns that a narrow terminal leaves out, the first of them first."""
PARTS = ("loss", "pair_weight", "penalty", "optimizer")
"""The parameters of Ranker that name its parts."""


def report(result: JsonView, *, answered: bool = False) -> RenderableType:
    """Return the leaderboard, the chosen model of each fold if there are folds, and the conclusion.

    Where the answer stands above it already, what that says is left out.
    """
    parts = [titled(f"{result['study']}: {result['metric']}", leaderboard_table(result))]
    if result.get("folds"):
        parts.append(titled("chosen model of each fold", fold_table(result)))
    said = answer(result)[:-1] if answered else []
    return Group(*parts, Text("\n".join(line for line in conclusion(result).splitlines() if line not in said)))


def leaderboard_table(result: JsonView) -> FittedTable:
    """Return the leaderboard: a row a model, the chosen first."""
    rows = result["leaderboard"]
    right = {
        "vali": _column(rows, "vali"),
        "again": _column(rows, "again"),
        "test [95%]": [_with_interval(row, "test") for row in rows],
        **_beside(result),
        "p Holm": ["" if row["p_holm"] is None else f"{row['p_holm']:.3f}" for row in rows],
        "features": _column(rows, "nonzeros", ".0f"),
        "cost": _column(rows, "cost", ".4g"),
        "kB": _column(rows, "bytes", ".1f", 1000.0),
        "us/doc": _column(rows, "microseconds", ".3f"),
        "fit s": _column(rows, "seconds", ".2f"),
        "trials": [str(row["trials"] or "-") for row in rows],
    }
    for name in ("cost", "again"):  # no costs were given; no trial was scored again
        if all(row.get(name) is None for row in rows):
            del right[name]
    optional = tuple(name for name in OPTIONAL if name in right)
    names = [row["solver"] + marks(row) for row in rows]
    return FittedTable({"solver": names}, right, optional, bold_first=True)


def _column(rows: Sequence[JsonView], name: str, form: str = ".4f", unit: float = 1.0) -> list[str]:
    return ["-" if row.get(name) is None else format(row[name] / unit, form) for row in rows]


def marks(row: JsonView) -> str:
    """Return the marks of a row: its one feature, that no system loads its model, that it compares documents."""
    feature = f" ({row['feature'][:20]})" if row.get("feature") else ""
    return feature + UNSERVED * (not row.get("is_served", True)) + WHOLE * bool(row.get("needs_queries", False))


def _beside(result: JsonView) -> dict[str, list[str]]:
    """Return the column of the metric of clicks, or of judgments, beside the one that chooses; none without a log."""
    found = result.get("clicks")
    return {} if found is None else {found["metric"]: _column(result["leaderboard"], "beside")}


def fold_table(result: JsonView) -> Table:
    """Return the chosen model of each fold."""
    rows = table(("fold", "solver"), ("vali", "test [95%]"))
    for fold in result["folds"]:
        best = fold["best"]
        rows.add_row(fold["name"], best["solver"], _number(best["vali"]), _with_interval(best, "test"))
    return rows


def answer(result: JsonView) -> list[str]:
    """Return the lines on what is known once the chosen model is fitted: what it is, its scores, and its file."""
    best, (low, high) = result["best"], result["estimate_interval"]
    limits = "" if low is None else f" ({low:.3f} to {high:.3f})"
    scores = [f"{name} {_number(value)}" for name, value in best["test_metrics"].items()]
    lines = [
        f"Chosen by validation: {chosen_name(result)}{_params(result)}.",
        f"Expected {result['metric']} by validation, corrected for selection: {_number(result['estimate'])}{limits}.",
        f"Test: {', '.join(scores)}." if scores else "There are no test queries.",
    ]
    if best.get("needs_queries"):
        lines.append("It compares the documents of a query: it scores whole queries, and no search engine can load it.")
    lines += filter(None, (gain(result), outside(result)))
    took = f"{_trials(result)} in {_duration(result['seconds'])}."
    return [*lines, f"{took} Model: {_nearby(result['model'])}"]


def conclusion(result: JsonView) -> str:
    """Return which model was chosen, its scores, the models without a significant difference, and its file."""
    chosen, *scores, model = answer(result)
    because = " ".join(filter(None, (chosen_because(result), higher_on_test(result))))
    lines = [chosen, *filter(None, [because]), *scores]
    lines += filter(None, (clicks_and_judgments(result), tuning_gained(result)))
    lines += filter(None, (feature_alone(result), compositions(result), served(result)))
    others = rivals(result)
    alike = [row["solver"] for row in others if row["verdict"] == ALIKE]
    if alike:
        lines.append(f"Not significantly different (Holm, 0.05): {', '.join(alike)}.")
        lines.append(_smallest_and_fastest(result))
    better = [row["solver"] for row in others if row["verdict"] == BETTER]
    if better:
        lines.append(f"Better on the test queries, which are not used for selection: {', '.join(better)}.")
    if result["failures"]:
        count, last = len(result["failures"]), result["failures"][-1]
        failed = "One trial failed" if count == 1 else f"{count} trials failed, the last"
        lines.append(f"{failed} ({last['solver']}) with: {last['error']}")
    lines += left_out(result)
    lines += filter(None, [model, monotone(result), result.get("ended_early", "")])
    if not result.get("is_complete", True):
        lines.append(f"It is compared with no other model yet: `ranktune resume {result['study']}` goes on with that.")
    return "\n".join(lines)


def left_out(result: JsonView) -> list[str]:
    """Return what failed at the end of a study, each cause once with the folds that it had."""
    folds: dict[tuple[str, str], list[str]] = {}
    for missing in result.get("left_out", ()):
        folds.setdefault((missing["what"], missing["error"]), []).append(missing["split"])
    places = {key: f" ({', '.join(names)})" if any(names) else "" for key, names in folds.items()}
    lines = [f"Left out: {what}{place}. {error}" for (what, error), place in places.items()]
    return [*lines, f"`ranktune show {result['study']} --json` has the tracebacks."] if lines else []


def _smallest_and_fastest(result: JsonView) -> str:
    """Return the smallest and the fastest of the models that do not differ significantly from the chosen one."""
    smallest, fastest = (result["alternatives"].get(kind) for kind in ("smallest", "fastest"))
    if smallest == fastest:
        return f"Among these and the chosen model, {smallest} is the smallest and the fastest."
    return f"Among these and the chosen model, {smallest} is the smallest, {fastest} the fastest."


def compositions(result: JsonView) -> str:
    """Return what Ranker was composed of where it did best, over folds how often; "" if it did not compete."""
    splits = result.get("folds") or [result]
    rows = [row for split in splits for row in split.get("leaderboard", ())]
    parameters = [row["params"] for row in rows if row["solver"] == "Ranker"]
    counts = Counter(" + ".join(params[part] for part in PARTS if part in params) for params in parameters if params)
    if not counts:
        return ""
    often = [f"{parts} on {count}" if len(splits) > 1 else parts for parts, count in counts.most_common()]
    return f"Ranker does best composed of {', '.join(often)}{' folds' if len(splits) > 1 else ''}."


def monotone(result: JsonView) -> str:
    """Return the monotone constraints that the chosen model satisfies; "" if there are none."""
    signs = result.get("monotone", {})
    rising, falling = ([name for name, direction in signs.items() if direction == sign] for sign in (1, -1))
    parts = [
        f"{word} with {listed(names)}" for word, names in (("never falls", rising), ("never rises", falling)) if names
    ]
    return f"Verified: the score {' and '.join(parts)}." if parts else ""


def served(result: JsonView) -> str:
    """Return how much the restriction to models that given systems load lowers the metric; "" if no system is given."""
    restriction = result.get("restriction")
    if restriction is None:
        return ""
    systems = " and ".join(restriction["systems"])
    untried = ", ".join(restriction["untried"])
    rest = f" It cannot load models of {untried}: they had no trials." if untried else ""
    if not result["best"].get("is_served", True):
        return f"{systems} cannot load it, nor any other model of this study.{rest}"
    if restriction["cost"] is None:
        return f"{systems} can load the best model of all: nothing is lost.{rest}"
    mark = " *" if any(not row.get("is_served", True) for row in result["leaderboard"]) else ""
    cost = with_ends(restriction, "cost")
    if restriction["distilled"]:
        how = f"Distilled is a copy of {restriction['best']}{mark}, which {systems} cannot load"
        return f"{how}: {cost} {result['metric']} by validation.{rest}"
    tried = "" if restriction["loss"] is None else f" A copy of it in one model lost {with_ends(restriction, 'loss')}."
    loaded = f"{systems} cannot load {restriction['best']}{mark}."
    return f"{loaded} That costs {cost} {result['metric']} by validation.{tried}{rest}"


def _trials(result: JsonView) -> str:
    """Return the number of trials, and how they ended where not all were evaluated in full."""
    failed = sum(failure.get("number") is not None for failure in result["failures"])
    stopped = result.get("stopped", 0)
    others = [f"{count} {how}" for count, how in ((stopped, "stopped early"), (failed, "failed")) if count]
    counted = f"{result['trials']} trial{'' if result['trials'] == 1 else 's'}"
    if not others:
        return counted
    return f"{counted} ({result['trials'] - stopped - failed} evaluated in full, {', '.join(others)})"


def _with_interval(row: JsonView, name: str) -> str:
    if row[name] is None:
        return "-"
    low, high = row[f"{name}_interval"]
    return f"{row[name]:.4f} [{low:.3f}, {high:.3f}]"


def _number(value: float | None) -> str:
    return four_digits(value) or "-"


def _nearby(path: str) -> str:
    """Return path relative to the current folder where it is below it."""
    here = Path.cwd()
    return str(Path(path).relative_to(here)) if Path(path).is_relative_to(here) else path


def _params(result: JsonView) -> str:
    params = result["best"]["params"]
    if result.get("folds") or not params:
        return ""
    pairs = (f"{name}={value:.4g}" if isinstance(value, float) else f"{name}={value}" for name, value in params.items())
    return f" ({', '.join(pairs)})"


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes = int(seconds // 60)
    return f"{minutes} min {int(seconds - 60 * minutes)} s"
