"""What a view is made of: panels, each a figure with a table that says the same in words and numbers.

The live page and the report show the same panels. A figure is Plotly's JSON (data and layout), without colours of its
own for page and text: the page gives it those of the light or the dark theme.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

Cell: TypeAlias = str | int | float | bool | None

COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8c8c00", "#7f7f7f")
"""Told apart by colour-blind people too. Source: Okabe & Ito 2008, with two greys of another lightness."""

SYMBOLS = ("circle", "square", "diamond", "cross", "triangle-up", "x", "star", "hexagon")
"""With the colour, so that nothing is told by colour alone."""


@dataclass(frozen=True)
class Table:
    """Columns and rows of plain values; numbers are shown as they are, None as a dash."""

    columns: tuple[str, ...]
    rows: Sequence[Sequence[Cell]]


@dataclass(frozen=True)
class Panel:
    """One thing shown.

    key     unique in its view, letters and hyphens; title says what is to be seen, not what kind of chart it is
    table   the same as text; figure: Plotly's {"data": [...], "layout": {...}}, None where the table says it all
    note    how to read it, or what is missing and why; plain text, as title
    """

    key: str
    title: str
    table: Table
    figure: Mapping[str, Any] | None = None
    note: str = ""
    group: str = field(default="")


def look(solvers: Sequence[str]) -> dict[str, dict[str, str]]:
    """Return the marker (color, symbol) of each solver: the same in every figure of a study."""
    names = sorted(set(solvers))
    return {
        name: {"color": COLOURS[k % len(COLOURS)], "symbol": SYMBOLS[(k + k // len(COLOURS)) % len(SYMBOLS)]}
        for k, name in enumerate(names)
    }


def plain(name: object, longest: int = 80) -> str:
    """Return name as a figure may show it: one line, no markup, no control or direction characters, not too long.

    Plotly reads `<b>`, `<a href>` and entities in every text; names come from data and may hold anything.
    """
    kept = "".join(c if unicodedata.category(c)[0] != "C" else " " for c in str(name)[: 4 * longest])
    line = " ".join(kept.split())
    short = line if len(line) <= longest and len(str(name)) <= 4 * longest else line[: longest - 1] + "…"
    return short.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def thinned(count: int, keep: Sequence[int] = (), most: int = 2000) -> list[int]:
    """Return the indices to draw of count points: all, or about most spread evenly, and in any case those of keep."""
    if count <= most:
        return list(range(count))
    step = count / most
    return sorted({int(k * step) for k in range(most)} | {int(k) for k in keep} | {count - 1})
