"""The versions of a study in the terminal."""

from __future__ import annotations

from ranktune.dashboards.terminal.tables import MARK, FittedTable, four_digits
from ranktune.solvers.core.arrays import JsonView


def history_table(found: JsonView) -> FittedTable:
    """Return the versions as a table, the current one marked."""
    rows = found["versions"]
    finished = [row["state"] == "finished" for row in rows]
    said = [row["decision"] if done else row["state"] for row, done in zip(rows, finished, strict=True)]
    left = {
        "": [MARK if row["current"] else "" for row in rows],
        "version": [row["version"] for row in rows],
        "decision": said,
        "solver": [row["solver"] for row in rows],
    }
    right = {
        found["metric"]: [four_digits(row["quality"]) for row in rows],
        "95% interval": [_interval(row["interval"]) for row in rows],
        "gain": ["" if row["gain"] is None else f"{row['gain']:+.4f}" for row in rows],
        "features": [str(len(row["features"])) if done else "" for row, done in zip(rows, finished, strict=True)],
        "queries": ["" if row["queries"] is None else str(row["queries"]) for row in rows],
    }
    return FittedTable(left, right, ("queries", "features", "gain", "95% interval"))


def changes(found: JsonView) -> list[str]:
    """Return what changed from version to version, a line a version."""
    return [f"{row['version']}: {'; '.join(row['changes'])}." for row in found["versions"] if row["changes"]]


def _interval(ends: list[float] | None) -> str:
    return "" if ends is None else f"{ends[0]:.4f} to {ends[1]:.4f}"
