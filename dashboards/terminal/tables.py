"""The style of tables in the terminal.

What a command prints as text for other programs: csv, Markdown or LaTeX.
"""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from shutil import get_terminal_size
from typing import IO

from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.segment import Segment
from rich.style import StyleType
from rich.table import Table
from rich.text import Text

from ranktune.solvers.core.errors import guarded, printable


class Screen(Console):
    """A console on which text is text: no markup, and nothing in it that a terminal obeys, but for the own styles."""

    def __init__(self, *, stderr: bool = False, file: IO[str] | None = None, **options: object) -> None:
        file = file or (sys.stderr if stderr else sys.stdout)
        file = getattr(file, "behind", file)  # which takes styles too
        super().__init__(file=file, markup=False, emoji=False, highlight=False, **options)  # type: ignore[arg-type]

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield the segments of what is printed."""
        for each in super().render(renderable, options):
            yield each if each.control else each._replace(text=printable(each.text, keep="\n"))


class TextTable(Table):
    """A table whose cells are text: no markup, and each as long as it looks."""

    def add_row(self, *cells: RenderableType | None, style: StyleType | None = None, end_section: bool = False) -> None:
        """Add a row."""
        shown = (Text(printable(cell)) if isinstance(cell, str) else cell for cell in cells)
        super().add_row(*shown, style=style, end_section=end_section)


def table(left: Collection[str], right: Collection[str] = ()) -> TextTable:
    """Return an empty table: text in the columns of the left names, then numbers in those of the right ones."""
    rows = TextTable(box=SIMPLE_HEAD)
    for name in left:
        rows.add_column(Text(printable(name)), overflow="fold")
    for name in right:
        rows.add_column(Text(printable(name)), justify="right", no_wrap=True)
    return rows


MARK = ">"
"""What stands before the row that is chosen."""
FIRST_ROW = 3
"""The line of the first row: below an empty line, the names of the columns and a rule."""


@dataclass(frozen=True)
class FittedTable:
    """A table that leaves out columns where the terminal is too narrow for all of them.

    left and right map names of columns to cells of text and of numbers; optional columns are left out in their order.
    With bold_first the first row is the chosen one, which is marked.
    """

    left: Mapping[str, Sequence[str]]
    right: Mapping[str, Sequence[str]]
    optional: Sequence[str] = ()
    bold_first: bool = False

    def without(self, names: Collection[str]) -> Table:
        """Return the table without some columns."""
        left, right = ([name for name in part if name not in names] for part in (self.left, self.right))
        rows = table(left, right)
        for k, cells in enumerate(zip(*({**self.left, **self.right}[name] for name in [*left, *right]), strict=True)):
            rows.add_row(*cells, style="bold" if self.bold_first and k == 0 else None)
        return rows

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the table with as many of the columns as fit."""
        tables = [self.without(self.optional[:k]) for k in range(len(self.optional) + 1)]
        widths = [console.measure(each, options=options.update(width=1000)).maximum for each in tables]
        fitting = (each for each, width in zip(tables, widths, strict=True) if width <= options.max_width)
        lines = console.render_lines(next(fitting, tables[-1]), options, pad=False)
        if self.bold_first and len(lines) > FIRST_ROW:
            lines[FIRST_ROW][0] = Segment(MARK, lines[FIRST_ROW][0].style)  # the edge, a space
        for line in lines:
            yield from (*line, Segment.line())


def titled(title: str, below: RenderableType) -> Group:
    """Return a table under a title that may be wider than it."""
    return Group(Text(printable(title), style="bold"), below)


def four_digits(value: float | None) -> str:
    """Return value with four decimals, "" for None."""
    return "" if value is None else f"{value:.4f}"


def as_text(what: RenderableType, width: int | None = None) -> str:
    """Return what a terminal shows as plain text, by default as wide as the terminal, or of 80 columns without one."""
    width = width or get_terminal_size((80, 24)).columns
    console = Screen(file=StringIO(), width=width, color_system=None, force_terminal=False, force_jupyter=False)
    with console.capture() as captured:
        console.print(what)
    return "\n".join(line.rstrip() for line in captured.get().splitlines())


_SPECIAL = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"} | {
    character: f"\\{character}" for character in "&%$#_{}"
}


def formatted(what: RenderableType, form: str) -> str:
    """Return the tables in what a command prints, with all their columns, and in Markdown and LaTeX the sentences too.

    Parameters
    ----------
    what : renderable
        Tables, texts, and groups of them.
    form : {"csv", "latex", "markdown"}
        In csv, tables are separated by an empty line. In LaTeX, sentences are comments, and tables need booktabs.
    """
    parts = []
    for part in _parts(what):
        if isinstance(part, Table):
            parts.append({"csv": _csv, "latex": _latex, "markdown": _markdown}[form](part))
        elif form != "csv" and (text := as_text(part, 1000).strip()):
            line = re.sub("^", "% ", text, flags=re.MULTILINE) if form == "latex" else _in_markdown(text)
            parts.append(f"{line}\n")
    return "\n".join(parts)


def _parts(what: RenderableType) -> Iterator[RenderableType]:
    if isinstance(what, Group):
        for part in what.renderables:
            yield from _parts(part)
    else:
        yield what.without(()) if isinstance(what, FittedTable) else what


def _rows(table: Table) -> list[list[str]]:
    """Return the names of the columns, then the rows, without markup."""
    columns = [[as_text(cell, 10**6) for cell in (column.header, *column.cells)] for column in table.columns]
    return [list(row) for row in zip(*columns, strict=True)]


def _csv(table: Table) -> str:
    text = StringIO()
    numbers = [column.justify == "right" for column in table.columns]
    head, *rows = _rows(table)
    guards = [[c if number else guarded(c) for c, number in zip(row, numbers, strict=True)] for row in rows]
    csv.writer(text, lineterminator="\n").writerows([map(guarded, head), *guards])
    return text.getvalue()


def _markdown(table: Table) -> str:
    head, *rows = (list(map(_in_markdown, row)) for row in _rows(table))
    sides = ["--:" if column.justify == "right" else "---" for column in table.columns]
    return "".join(f"| {' | '.join(row)} |\n" for row in (head, sides, *rows))


def _in_markdown(text: str) -> str:
    return re.sub(r"[\\`*\[<|~$]|\b_+|_+\b|&(?=#?\w+;)", lambda found: "\\" + "\\".join(found[0]), text)


def _latex(table: Table) -> str:
    def line(cells: Sequence[str]) -> str:
        return f"{' & '.join(''.join(_SPECIAL.get(c, c) for c in cell) for cell in cells)} \\\\\n"

    head, *rows = _rows(table)
    sides = "".join("r" if column.justify == "right" else "l" for column in table.columns)
    body = f"\\toprule\n{line(head)}\\midrule\n{''.join(map(line, rows))}\\bottomrule\n"
    return f"\\begin{{tabular}}{{{sides}}}\n{body}\\end{{tabular}}\n"
