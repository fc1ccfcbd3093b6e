"""Tables of what a benchmark measured, and timing in turns.

The rows of a table have plain values, the same on the terminal, in a file and on a page.

Works whose times are compared take turns. Noise of the machine affects the works of a turn alike, so that the median of
the ratios of turns is more precise than the ratio of the medians. Works run on one thread, and RankTune's warnings are
not shown.
"""

from __future__ import annotations

import math
import operator
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.table import Table as RichTable
from rich.text import Text
from threadpoolctl import threadpool_limits

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.errors import RankTuneWarning

Cell: TypeAlias = str | int | float | bool | None
Row: TypeAlias = Mapping[str, Cell]
Compare: TypeAlias = Callable[[float, float], bool]
COMPARED: Mapping[str, Compare] = {
    "<=": operator.le, ">=": operator.ge, "<": operator.lt, "within": lambda figure, limit: abs(figure) <= limit,
}  # fmt: skip
MAX_FIGURE = 12
"""Characters of a string that is kept in one line as a number is."""
Work: TypeAlias = Callable[[], object]
Clock: TypeAlias = Callable[[], float]


@dataclass(frozen=True)
class BenchmarkTable:
    """Rows with a title; note is a remark below. Columns are the keys of the rows, in order of appearance.

    failed: whether the rows say that something went wrong, so that the command ends with 1.
    """

    title: str
    rows: Sequence[Row]
    note: str = ""
    failed: bool = False

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(dict.fromkeys(name for row in self.rows for name in row))

    def is_text(self, column: str) -> bool:
        """Return whether a column holds words, which are aligned to the left."""
        return any(isinstance(row.get(column), str) and not _is_figure(str(row[column])) for row in self.rows)


def judged(row: Row, wanted: str) -> Row:
    """Return a row with what is wanted of its figures, and whether they are: "ratio <= 0.9, s < 3"; "" wants nothing.

    A limit without a name is that of the column "found".
    """
    met = all(
        COMPARED[comparison](float(str(row[name or "found"])), float(limit))
        for name, comparison, limit in clauses(wanted)
    )
    return {**row, "wanted": wanted, "met": met}


def clauses(wanted: str) -> Iterator[tuple[str, str, str]]:
    """Yield the columns, comparisons and limits of what is wanted."""
    for clause in filter(None, wanted.split(", ")):
        *name, comparison, limit = clause.rsplit(" ", 2)
        yield "".join(name), comparison, limit


def text_of(value: Cell) -> str:
    """Return a cell in words: four significant digits of a number with a fraction, thousands separated."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "NO"
    if isinstance(value, str):
        return value
    if isinstance(value, int) or (math.isfinite(value) and abs(value) >= 1000):
        return f"{round(value):,}"
    return f"{value:.4g}"


def _is_figure(text: str) -> bool:
    """Return whether a string is short and begins as numbers do, as in "+0.01", "3 of 5" and "<= 2"."""
    return not text or (text[0] in "+-0123456789<>=" and len(text) <= MAX_FIGURE)


def drawn(table: BenchmarkTable, width: int) -> RichTable:
    """Return a table for a terminal of so many columns. Words are folded where they do not fit, numbers are not."""
    room = min(max(len(table.title), len(table.note)) + 2, width)  # both in one line, if they fit
    drawing = RichTable(
        box=SIMPLE_HEAD, title=Text(table.title), title_justify="left", padding=(0, 1, 0, 0), min_width=room,
        caption=Text(table.note) if table.note else None, caption_justify="left",
    )  # fmt: skip
    for name in table.columns:
        words = table.is_text(name)
        drawing.add_column(name, justify="left" if words else "right", no_wrap=not words, overflow="fold")
    for row in table.rows:
        drawing.add_row(*(Text(text_of(row.get(name))) for name in table.columns))
    return drawing


def markdown(table: BenchmarkTable) -> str:
    """Return a table in Markdown, with its title above and its note below."""
    names = table.columns
    rule = "|".join("---" if table.is_text(name) else "---:" for name in names)
    lines = [f"| {' | '.join(names)} |", f"|{rule}|"]
    lines += [
        f"| {' | '.join(text_of(row.get(name)).replace('|', chr(92) + '|') for name in names)} |" for row in table.rows
    ]
    return "\n".join([f"**{table.title}**", "", *lines, *(["", table.note] if table.note else [])])


@dataclass(frozen=True)
class Turns:
    """The seconds of each turn of each work, (turns,), and what its last turn returned."""

    seconds: Mapping[str, Floats]
    values: Mapping[str, Any]

    def median(self, name: str) -> float:
        """Return the median seconds of a work."""
        return float(np.median(self.seconds[name]))

    def ratios(self, name: str, beside: str) -> Floats:
        """Return the seconds of a work in those of another work, turn by turn, sorted."""
        return np.sort(self.seconds[name] / self.seconds[beside])

    def ratio(self, name: str, beside: str) -> float:
        """Return the median of the ratios of the turns."""
        return float(np.median(self.ratios(name, beside)))


def take_turns(
    works: Mapping[str, Work], repeats: int, clock: Clock = time.process_time, at_least: float = 0.0
) -> Turns:
    """Run each work in each of so many turns, after a turn that is not timed.

    A work is called until a turn has at least so many seconds, where the clock is too coarse for one call.
    """
    seconds: dict[str, list[float]] = {name: [] for name in works}
    values: dict[str, Any] = {}
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", RankTuneWarning)
        for work in works.values():
            work()
        for _ in range(repeats):
            for name, work in works.items():
                calls, begun = 0, clock()
                while calls == 0 or clock() - begun < at_least:
                    values[name] = work()
                    calls += 1
                seconds[name].append((clock() - begun) / calls)
    return Turns({name: np.array(each) for name, each in seconds.items()}, values)
