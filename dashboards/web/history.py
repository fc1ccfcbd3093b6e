"""The page of all versions of a study, in one file."""

from __future__ import annotations

from pathlib import Path

from ranktune.dashboards.figures import plotly as figures
from ranktune.dashboards.figures.panels import Panel, Table
from ranktune.dashboards.web.report import one_view, write_page
from ranktune.solvers.core.arrays import JsonView

FOOT = "Made by RankTune. Intervals are 95 % intervals over queries."
MEANING = (
    "Each version was judged on its own data. Means of different versions differ by how hard their queries are, too: "
    "the gain compares two models on the same queries."
)


def write_history(found: JsonView, output: Path) -> Path:
    """Write the page of the versions, as history_of has them, and return its path."""
    facts = [f"{len(found['versions'])} versions"]
    return write_page(one_view(found["study"], "history", "History", facts, MEANING, _panels(found), FOOT), output)


def _panels(found: JsonView) -> list[Panel]:
    rows = [row for row in found["versions"] if row["quality"] is not None]
    names, means = figures.distinct(row["version"] for row in rows), [row["quality"] for row in rows]
    low, high = zip(*(row["interval"] or [row["quality"]] * 2 for row in rows), strict=True) if rows else ((), ())
    bars = figures.error_bars(means, low, high)
    points = figures.scatter("quality", names, means, marker={"size": 9}, error_y=bars)
    shown = figures.figure([points], figures.axis("version", categories=names), figures.axis(found["metric"]))
    cells = [
        [
            row["version"], row["current"], row["decision"] or row["state"], row["solver"], row["quality"],
            *(row["interval"] or (None, None)), row["gain"], len(row["features"]), row["queries"],
            "; ".join(row["changes"]),
        ]
        for row in found["versions"]
    ]  # fmt: skip
    columns = (
        "Version",
        "Current",
        "Decision",
        "Solver",
        found["metric"],
        "Low",
        "High",
        "Gain",
        "Features",
        "Queries",
    )
    return [Panel("versions", "All versions", Table((*columns, "Changes"), cells), shown)]
