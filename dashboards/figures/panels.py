"""Panels, of which views are made: each has a title, a table and a note, and most a figure of the same values.

The live page and the report show the same panels. A figure is Plotly's JSON (data and layout). It leaves the colours of
page and text to the page, which has a light and a dark theme.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from ranktune.solvers.core.arrays import Json

Cell: TypeAlias = str | int | float | bool | None
Trace: TypeAlias = Json
Figure: TypeAlias = Json
Axis: TypeAlias = Json


def to_json(value: object) -> Any:
    """Return value made of JSON's types: sequences as lists, NumPy's numbers as Python's.

    Numbers have six significant digits, or are whole; NaN and infinity are None.
    Raises TypeError for any other type.
    """
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        rounded = value if value.is_integer() else float(f"{value:.6g}")
        return rounded if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(name): to_json(inner) for name, inner in value.items()}
    if hasattr(value, "tolist"):
        return to_json(value.tolist())
    if isinstance(value, Sequence):
        return [to_json(inner) for inner in value]
    raise TypeError(f"a panel holds a {type(value).__name__}, which JSON does not have")


@dataclass(frozen=True)
class Table:
    """Columns and rows of plain values; pages show None as a dash."""

    columns: tuple[str, ...]
    rows: Sequence[Sequence[Any]]

    def __post_init__(self) -> None:
        """Make the rows those of JSON."""
        object.__setattr__(self, "rows", to_json(self.rows))


@dataclass(frozen=True)
class Panel:
    """A titled table, with or without a figure.

    key     unique in its view, letters, digits and hyphens; title says what the panel shows
    figure  Plotly's {"data": [...], "layout": {...}}, None where there is only the table
    note    how to read the panel, or what is missing and why; plain text, as title
    group   a view with several groups shows the panels of one at a time, and those without a group
    """

    key: str
    title: str
    table: Table = Table((), ())
    figure: Figure | None = None
    note: str = ""
    group: str = ""

    def __post_init__(self) -> None:
        """Make the figure one of JSON."""
        object.__setattr__(self, "figure", to_json(self.figure))


def joined(*sentences: str) -> str:
    """Return the sentences that are not empty as one text."""
    return " ".join(filter(None, sentences))


def panels_json(panels: Sequence[Panel]) -> list[Json]:
    """Return panels as JSON."""
    return [vars(panel) | {"table": vars(panel.table)} for panel in panels]
