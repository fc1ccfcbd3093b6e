"""What a command prints as text for other programs: csv, Markdown or LaTeX."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from io import StringIO

from rich.console import Group, RenderableType
from rich.table import Table

from ranktune.dashboards.terminal.tables import FittedTable, as_text
from ranktune.solvers.core.errors import guarded

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
