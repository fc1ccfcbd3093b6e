"""The style of tables in the terminal.

What a command prints as text for other programs: csv, Markdown or LaTeX.
"""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
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
from ranktune.tuner.statistics.measured import ALPHA


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


DAGGER = "\u2020"
"""What stands after a number that differs significantly from that of the first row."""
MARK = ">"
"""What stands before the row that is chosen."""
FIRST_ROW = 3
"""The line of the first row: below an empty line, the names of the columns and a rule."""


@dataclass(frozen=True)
class FittedTable:
    """A table that leaves out columns where the terminal is too narrow for all of them.

    left and right map names of columns to cells of text and of numbers; optional columns are left out in their order.
    With bold_first the first row is the chosen one, which is marked. For other programs further returns columns that
    are added, or stand for those of the same name.
    """

    left: Mapping[str, Sequence[str]]
    right: Mapping[str, Sequence[str]]
    optional: Sequence[str] = ()
    bold_first: bool = False
    further: Callable[[], Mapping[str, Sequence[Text]]] = dict

    def without(self, names: Collection[str]) -> Table:
        """Return the table without some columns."""
        left, right = ([name for name in part if name not in names] for part in (self.left, self.right))
        rows = table(left, right)
        for k, cells in enumerate(zip(*({**self.left, **self.right}[name] for name in [*left, *right]), strict=True)):
            rows.add_row(*cells, style="bold" if self.bold_first and k == 0 else None)
        return rows

    def apart(self) -> Table:
        """Return the table with the further columns."""
        right = {**self.right, **self.further()}
        rows = table(self.left, right)
        for cells in zip(*self.left.values(), *right.values(), strict=True):
            rows.add_row(*cells)
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


_ENDS = re.compile(r"(?:([-\d]\S+) )?\[?([-+\d][-\d.e]+)(?:,| to) ([-+\d][-\d.e]+)\]?")
"""An interval in a cell: 0.9 [0.8, 1.0], or 0.8 to 1.0."""
_SPECIAL = {character: f"\\{character}" for character in "&%$#_{}"}
_SPECIAL |= {DAGGER: r"$^{\dagger}$", "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}


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
    elif isinstance(what, FittedTable):
        yield (rows := what.apart())
        if DAGGER in as_text(rows, 10**4):
            yield Text(f"{DAGGER} differs significantly from the first row: p Holm of at most {ALPHA:g}.")
    else:
        yield what


def _columns(
    table: Table, escape: Callable[[str], str] = str, bold: str = "{}"
) -> tuple[list[bool], list[tuple[str, ...]]]:
    """Return whether each column holds numbers, and the rows below the names, escaped; ends of intervals are apart."""
    rights, columns = list[bool](), list[list[str]]()
    for column in table.columns:
        head, *cells = (as_text(cell, 10**6) for cell in (column.header, *column.cells))
        split: list[tuple[str, Iterable[str]]] = [(head, cells)]
        if any(parts := [_ENDS.fullmatch(cell) for cell in cells if column.justify == "right"]):
            head = re.sub(r" \[95%\]|95% interval", "", head)
            ends = zip(*(part.groups() if part else "---" for part in parts), strict=True)
            named = zip((head, f"{head} low", f"{head} high"), ends, strict=True)
            split = [(name.strip(), texts) for name, texts in named if name]
        for name, texts in split:
            styles = (getattr(cell, "style", "") if name == head else "" for cell in column.cells)
            forms = (bold if style == "bold" else "{}" for style in styles)
            shown = (form.format(escape(text)) for form, text in zip(forms, texts, strict=True))
            columns.append([escape(name), *shown])
            rights.append(column.justify == "right")
    return rights, list(zip(*columns, strict=True))


def _csv(table: Table) -> str:
    rights, rows = _columns(table)
    text = StringIO()
    for row in rows:
        cells = zip(row, rights, strict=True)
        csv.writer(text, lineterminator="\n").writerow(
            [("" if c == "-" else c.strip(DAGGER)) if right else guarded(c) for c, right in cells]
        )
    return text.getvalue()


def _markdown(table: Table) -> str:
    rights, (head, *rows) = _columns(table, _in_markdown, "**{}**")
    sides = ["--:" if right else "---" for right in rights]
    return "".join(f"| {' | '.join(row)} |\n" for row in (head, sides, *rows))


def _in_markdown(text: str) -> str:
    return re.sub(r"[\\`*\[<|~$]|\b_+|_+\b|&(?=#?\w+;)", lambda found: "\\" + "\\".join(found[0]), text)


def _latex(table: Table) -> str:
    rights, cells = _columns(table, lambda text: "".join(_SPECIAL.get(c, c) for c in text), r"\textbf{{{}}}")
    head, *rows = (f"{' & '.join(row)} \\\\\n" for row in cells)
    sides = "".join("r" if right else "l" for right in rights)
    body = f"\\toprule\n{head}\\midrule\n{''.join(rows)}\\bottomrule\n"
    return f"\\begin{{tabular}}{{{sides}}}\n{body}\\end{{tabular}}\n"
