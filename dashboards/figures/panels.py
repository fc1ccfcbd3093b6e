"""A panel: a frame, which is its table, and a kind, which draws its figure from the columns of the same frame.

The live page and the report show the same panels. A figure is Plotly's JSON (data and layout). It leaves the colours of
page and text to the page, which has a light and a dark theme.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property, reduce
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
class Frame:
    """Named columns of plain values, row by row; pages show None as a dash. frame["Trial"] is a column."""

    columns: tuple[str, ...] = ()
    rows: Sequence[Sequence[Any]] = ()

    def __post_init__(self) -> None:
        """Make the rows those of JSON."""
        object.__setattr__(self, "rows", to_json(list(self.rows)))

    @classmethod
    def of(cls, items: Iterable[object], columns: Mapping[str, str]) -> Frame:
        """Return a row for each item: by column the path of an attribute, such as best.test.mean; None where one is."""
        paths = [path.split(".") for path in columns.values()]
        rows = [[reduce(lambda of, name: getattr(of, name, None), path, item) for path in paths] for item in items]
        return cls(tuple(columns), rows)

    def __getitem__(self, name: str) -> list[Any]:
        place = self.columns.index(name)
        return [row[place] for row in self.rows]

    def kept(self, rows: Iterable[Sequence[Any]]) -> Frame:
        """Return the frame with some of its rows."""
        some = copy(self)
        object.__setattr__(some, "rows", list(rows))
        return some

    def known(self, *names: str) -> Frame:
        """Return the rows that have a value in one of some columns."""
        places = [self.columns.index(name) for name in names]
        return self.kept(row for row in self.rows if any(row[place] is not None for place in places))

    def by(self, name: str) -> dict[Any, Frame]:
        """Return the rows with each value of a column."""
        values = self[name]
        return {
            value: self.kept(row for row, of in zip(self.rows, values, strict=True) if of == value)
            for value in dict.fromkeys(values)
        }


def facts(pairs: Iterable[tuple[str, object]], names: tuple[str, str] = ("what", "value")) -> Frame:
    """Return the frame of two columns with a row for each pair that has a value."""
    return Frame(names, [pair for pair in pairs if pair[1] not in (None, "")])


Kind: TypeAlias = Callable[[Frame], Figure]
"""Draws the figure of a frame: see ranktune.dashboards.figures.kinds."""


@dataclass(frozen=True)
class Panel:
    """A titled frame, with or without a figure of it.

    key     unique in its view, letters, digits and hyphens; title says what the panel shows
    kind    draws the figure; None where the table is all, and not used where there are no rows
    note    how to read the panel, or what is missing and why; plain text, as title. text adds what its figure needs
    answer  what the panel shows, in a sentence: that of its page, where it is the first on it
    group   a view with several groups shows the panels of one at a time, and those without a group
    shown   whether it is open though it comes after the first picture of its page
    """

    key: str
    title: str
    table: Frame = Frame()
    kind: Kind | None = None
    note: str = ""
    group: str = ""
    answer: str = ""
    shown: bool = False

    @cached_property
    def figure(self) -> Figure | None:
        """Plotly's {"data": [...], "layout": {...}}."""
        drawn: Figure | None = to_json(self.kind(self.table)) if self.kind is not None and self.table.rows else None
        return drawn

    @property
    def text(self) -> str:
        """The note, and how to read what the kind draws."""
        reading = getattr(self.kind, "reading", None)
        return self.note if reading is None or not self.table.rows else joined(self.note, *reading(self.table))

    def as_json(self) -> Json:
        """Return the panel as pages read it."""
        return {
            "key": self.key, "title": self.title, "table": vars(self.table), "figure": self.figure, "note": self.text,
            "group": self.group, "answer": self.answer, "shown": self.shown,
        }  # fmt: skip


def grouped(panels: Iterable[Panel], place: object, group: str) -> list[Panel]:
    """Return the panels of one of several groups, with its place after the first word of each key."""
    words = ((panel, *panel.key.partition("-")) for panel in panels)
    return [replace(panel, key=f"{word}-{place}{dash}{rest}", group=group) for panel, word, dash, rest in words]


def joined(*sentences: str) -> str:
    """Return the sentences that are not empty as one text."""
    return " ".join(filter(None, sentences))


def counted(number: int, what: str) -> str:
    """Return a number of things in words: "1 trial", "2 trials", "2 queries"."""
    return f"{number} {what}" if number == 1 else f"{number} {re.sub('y$', 'ie', what)}s"


def panels_json(panels: Sequence[Panel]) -> list[Json]:
    """Return panels as JSON."""
    return [panel.as_json() for panel in panels]
