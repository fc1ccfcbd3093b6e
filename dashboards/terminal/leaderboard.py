"""A finished study in the terminal: the leaderboard as a table, and the conclusion in words.

Reads the JSON of a result (`result.json`), never a running study.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from ranktune.dashboards.terminal.tables import table, titled

Json = Mapping[str, Any]


def report(result: Json) -> RenderableType:
    """Return the table, what was chosen on each fold if there are folds, and what it means."""
    parts = [titled(f"{result['study']}: {result['metric']}", leaderboard_table(result))]
    if result.get("folds"):
        parts.append(titled("chosen on each fold", fold_table(result)))
    return Group(*parts, Text(conclusion(result)))


def leaderboard_table(result: Json) -> Table:
    """Return the leaderboard: a row a solver, the chosen first."""
    found = table(("solver",), ("vali", "again", "test [95%]", "p Holm", "features", "kB", "us/doc", "fit s", "trials"))
    for place, row in enumerate(result["leaderboard"]):
        found.add_row(escape(row["solver"]), *_cells(row), style="bold" if place == 0 else None)
    return found


def fold_table(result: Json) -> Table:
    """Return what was chosen on each fold."""
    found = table(("fold", "solver"), ("vali", "test [95%]"))
    for fold in result["folds"]:
        best = fold["best"]
        found.add_row(escape(fold["name"]), escape(best["solver"]), _number(best["vali"]), _with_interval(best, "test"))
    return found


def conclusion(result: Json) -> str:
    """Return in words which model was chosen, how good it is, what cannot be told from it, and where it is."""
    best = result["best"]
    lines = [f"Chosen by validation: {_chosen(result)}."]
    low, high = result["estimate_interval"]
    lines.append(
        f"Validation promises {result['metric']} {_number(result['estimate'])} ({low:.3f} to {high:.3f}), "
        "corrected for having been chosen."
    )
    judged = [f"{name} {_number(value)}" for name, value in best["test_metrics"].items()]
    lines.append(f"Test: {', '.join(judged)}." if judged else "There are no test queries: only validation is known.")
    strange = _outside(result)
    if strange:
        lines.append(strange)
    alike = [row["solver"] for row in result["leaderboard"][1:] if row["verdict"] == "not told apart"]
    if alike:
        lines.append(f"Not told apart from it (Holm, 0.05): {', '.join(alike)}.")
        instead = {kind: result["alternatives"].get(kind) for kind in ("smallest", "fastest")}
        lines.append("Of these the " + ", the ".join(f"{kind} is {label}" for kind, label in instead.items()) + ".")
    better = [row["solver"] for row in result["leaderboard"][1:] if row["verdict"] == "better"]
    if better:
        lines.append(f"Better on test, which must not choose: {', '.join(better)}.")
    if result["failures"]:
        count, last = len(result["failures"]), result["failures"][-1]
        failed = "One trial failed" if count == 1 else f"{count} trials failed, the last"
        lines.append(f"{failed} ({last['solver']}) with: {last['error']}")
    lines.append(f"{_trials(result)} in {_duration(result['seconds'])}. Model: {_nearby(result['model'])}")
    return "\n".join(lines)


def _trials(result: Json) -> str:
    """Return how many trials there were, and how they ended where not all were judged in full."""
    failed = sum(failure.get("number") is not None for failure in result["failures"])
    stopped = result.get("stopped", 0)
    told = [f"{count} {how}" for count, how in ((stopped, "stopped early"), (failed, "failed")) if count]
    if not told:
        return f"{result['trials']} trials"
    return f"{result['trials']} trials ({result['trials'] - stopped - failed} judged in full, {', '.join(told)})"


def _outside(result: Json) -> str:
    """Return a remark where test shows what validation did not lead to expect."""
    limits, test = result["expected_on_test_interval"], result["best"]["test"]
    if limits is None or test is None or limits[0] <= test <= limits[1]:
        return ""
    side = "below" if test < limits[0] else "above"
    return (
        f"That is {side} what such a test should show ({limits[0]:.3f} to {limits[1]:.3f}): "
        "are its queries unlike the others?"
    )


def _chosen(result: Json) -> str:
    """Return which solver, and with which parameters; over folds, how often each."""
    if not result.get("folds"):
        return f"{result['best']['solver']}{_params(result['best']['params'])}"
    counts = Counter(fold["best"]["solver"] for fold in result["folds"])
    return ", ".join(f"{solver} on {count}" for solver, count in counts.most_common()) + " folds"


def _cells(row: Json) -> list[str]:
    return [
        _number(row["vali"]),
        _number(row["again"]),
        _with_interval(row, "test"),
        "" if row["p_holm"] is None else f"{row['p_holm']:.3f}",
        "-" if row["nonzeros"] is None else f"{row['nonzeros']:.0f}",
        f"{row['bytes'] / 1000:.1f}",
        f"{row['microseconds']:.3f}",
        f"{row['seconds']:.2f}",
        str(row["trials"]) if row["trials"] else "-",
    ]


def _with_interval(row: Json, name: str) -> str:
    if row[name] is None:
        return "-"
    low, high = row[f"{name}_interval"]
    return f"{row[name]:.4f} [{low:.3f}, {high:.3f}]".replace("[", r"\[")


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def _nearby(path: str) -> str:
    """Return path as a person in this folder would type it."""
    here = Path.cwd()
    return str(Path(path).relative_to(here)) if Path(path).is_relative_to(here) else path


def _params(params: Json | None) -> str:
    if not params:
        return ""
    told = (f"{name}={value:.4g}" if isinstance(value, float) else f"{name}={value}" for name, value in params.items())
    return f" ({', '.join(told)})"


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes = int(seconds // 60)
    return f"{minutes} min {int(seconds - 60 * minutes)} s"
