"""The views of a study, in their order, and their panels as JSON: what the live page and the report both show."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from ranktune.dashboards.figures.panels import Panel
from ranktune.dashboards.records.study import StudyData
from ranktune.solvers.core.errors import StudyError, nearest

Json = dict[str, Any]


@dataclass(frozen=True)
class View:
    """A view: its key in addresses, its title on the page, the module whose function panels makes it."""

    key: str
    title: str
    module: str


VIEWS = (
    View("overview", "Overview", "overview"),
    View("progress", "Progress", "progress"),
    View("solvers", "Solvers", "solvers"),
    View("parameters", "Parameters", "parameters"),
    View("queries", "Queries", "queries"),
    View("trade-offs", "Trade-offs", "tradeoffs"),
    View("weights", "Weights", "weights"),
    View("optimiser", "Optimiser", "optimiser"),
    View("trials", "Trials", "trials"),
)
"""Loaded when first looked at: some need models, one the Gaussian process."""


def build(key: str, data: StudyData) -> list[Panel]:
    """Return the panels of a view. Raises StudyError with the nearest key where there is no such view."""
    found = next((view for view in VIEWS if view.key == key), None)
    if found is None:
        raise StudyError(f"there is no view '{key}'. {nearest(key, [view.key for view in VIEWS])}")
    module: Any = import_module(f"ranktune.dashboards.views.{found.module}")
    panels: list[Panel] = module.panels(data)
    return panels


def view_json(key: str, data: StudyData) -> Json:
    """Return a view as JSON: its key, its title and its panels."""
    title = next((view.title for view in VIEWS if view.key == key), key)
    return {"key": key, "title": title, "panels": panels_json(build(key, data))}


def panels_json(panels: Sequence[Panel]) -> list[Json]:
    """Return panels as JSON knows them: numbers that are none become null."""
    return [
        {
            "key": panel.key,
            "title": panel.title,
            "note": panel.note,
            "group": panel.group,
            "table": {"columns": list(panel.table.columns), "rows": finite(panel.table.rows)},
            "figure": finite(panel.figure),
        }
        for panel in panels
    ]


def finite(value: Any) -> Any:
    """Return value made of what JSON has: lists, NaN and infinities as null, NumPy's numbers as plain ones."""
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(name): finite(inner) for name, inner in value.items()}
    if hasattr(value, "tolist"):
        return finite(value.tolist())
    if isinstance(value, Sequence):
        return [finite(inner) for inner in value]
    raise TypeError(f"a panel holds a {type(value).__name__}, which is no plain value")
