"""The views of a study, in their order, and their panels as JSON for the live page and the report."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from ranktune.dashboards.figures.panels import Panel
from ranktune.dashboards.records.study import StudyData
from ranktune.solvers.core.arrays import Json
from ranktune.solvers.core.errors import StudyError, nearest


@dataclass(frozen=True)
class View:
    """A view: its key in addresses, its title on the page, and the module whose function panels makes it."""

    key: str
    title: str
    module: str


VIEWS = (
    View("overview", "Overview", "overview"),
    View("progress", "Progress", "progress"),
    View("solvers", "Solvers", "solvers"),
    View("parameters", "Parameters", "parameters"),
    View("choices", "Choices", "choices"),
    View("queries", "Queries", "queries"),
    View("trade-offs", "Trade-offs", "tradeoffs"),
    View("weights", "Weights", "weights"),
    View("optimiser", "Optimiser", "optimiser"),
    View("trials", "Trials", "trials"),
)
"""Each is imported when it is first shown: some need models, one the Gaussian process."""


def find(key: str) -> View:
    """Return a view by its key. Raises StudyError with the nearest key where there is no such view."""
    views = {view.key: view for view in VIEWS}
    if key not in views:
        raise StudyError(f"there is no view '{key}'. {nearest(key, views)}")
    return views[key]


def build(key: str, data: StudyData) -> list[Panel]:
    """Return the panels of a view. Raises StudyError where there is no such view."""
    panels: list[Panel] = import_module(f"ranktune.dashboards.views.{find(key).module}").panels(data)
    return panels


def view_json(key: str, data: StudyData) -> Json:
    """Return a view as JSON: its key, its title and its panels."""
    return {"key": key, "title": find(key).title, "panels": panels_json(build(key, data))}


def panels_json(panels: Sequence[Panel]) -> list[Json]:
    """Return panels as JSON, NaN and infinity as null."""
    return [
        {
            "key": panel.key,
            "title": panel.title,
            "note": panel.note,
            "group": panel.group,
            "table": {"columns": list(panel.table.columns), "rows": to_json(panel.table.rows)},
            "figure": to_json(panel.figure),
        }
        for panel in panels
    ]


def to_json(value: object) -> Any:
    """Return value made of JSON's types: sequences as lists, NaN and infinity as None, NumPy's numbers as Python's.

    Raises TypeError for any other type.
    """
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(name): to_json(inner) for name, inner in value.items()}
    if hasattr(value, "tolist"):
        return to_json(value.tolist())
    if isinstance(value, Sequence):
        return [to_json(inner) for inner in value]
    raise TypeError(f"a panel holds a {type(value).__name__}, which JSON does not have")
