"""The page of all versions of a study, in one file."""

from __future__ import annotations

from pathlib import Path

from ranktune.dashboards.figures import plotly as figures
from ranktune.dashboards.figures.kinds import Lines
from ranktune.dashboards.figures.panels import Frame, Panel
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
    metric = found["metric"]
    rows = [
        [
            row["version"], row["current"], row["decision"] or row["state"], row["solver"], row["quality"],
            *(row["interval"] or (None, None)), row["gain"], len(row["features"]), row["queries"],
            "; ".join(row["changes"]),
        ]
        for row in found["versions"]
    ]  # fmt: skip
    columns = ("Version", "Current", "Decision", "Solver", metric, "Low", "High", "Gain", "Features", "Queries",
               "Changes")  # fmt: skip
    across = figures.axis("version", categories=figures.distinct((row[0] for row in rows), 36))
    kind = Lines("Version", (metric,), across, figures.axis(metric), ends=("Low", "High"))
    return [Panel("versions", "All versions", Frame(columns, rows), kind)]
