"""Figures of benchmarks, from the tables of their stored results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ranktune.studies.benchmarks.tables import Cell, Row, Table

COLOURS = ("#1b6ca8", "#d1495b", "#6c757d", "#2e933c", "#8f5db7")
"""Of series, the first of which is RankTune's."""


def draw(name: str, tables: Sequence[Table], path: Path) -> None:
    """Write the figure of a benchmark as SVG, the same bytes for the same numbers."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context({"svg.hashsalt": name, "font.size": 10, "axes.spines.top": False}):
        figure = Figure(figsize=(7.5, 3.6), layout="constrained")
        FIGURES[name](figure.add_subplot(), tables)
        figure.savefig(path, metadata={"Date": None}, facecolor="white")


def number(value: Cell) -> float | None:
    """Return a cell that is a number, None for any other."""
    return None if value is None or isinstance(value, str | bool) else float(value)


def bars(
    axes: Any,
    tables: Sequence[Table],
    *,
    of: str,
    column: str,
    label: str,
    ours: Sequence[str] = ("RankTune", "RankSVM"),
) -> None:
    """Draw a bar for each row of the first table, on a scale of powers of ten; those that begin with ours stand out."""
    rows = [row for row in tables[0].rows if number(row.get(column))]
    values = [number(row[column]) or 0.0 for row in rows]
    names = [_wrapped(str(row[of])) for row in rows]
    own = [str(row[of]).startswith(tuple(ours)) for row in rows]
    axes.barh(range(len(rows)), values, color=[COLOURS[0] if one else COLOURS[2] for one in own])
    axes.set_yticks(range(len(rows)), names, fontsize=8)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xlabel(label)


def _wrapped(text: str, width: int = 40) -> str:
    import textwrap

    return "\n".join(textwrap.wrap(text, width))


def lines(
    axes: Any,
    tables: Sequence[Table],
    *,
    of: str,
    columns: Sequence[str],
    label: str,
    table: int = 0,
    only: Callable[[Row], bool] = lambda row: True,
) -> None:
    """Draw a line for each column of a table over the column `of`, on scales of powers of ten."""
    rows = [row for row in tables[table].rows if only(row)]
    for column, colour in zip(columns, COLOURS, strict=False):
        points = [(number(row[of]), number(row[column])) for row in rows if number(row.get(column)) is not None]
        axes.plot(*zip(*points, strict=True), marker="o", markersize=4, color=colour, label=column)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel(of)
    axes.set_ylabel(label)
    axes.legend(frameon=False, fontsize=8)


def growth(axes: Any, tables: Sequence[Table]) -> None:
    """Draw the time of a suggestion over the number of trials before it, a line for each row."""
    for row, colour in zip(tables[0].rows, COLOURS, strict=False):
        points = [(int(name.removeprefix("n=")), number(value)) for name, value in row.items() if name != "sampler"]
        axes.plot(*zip(*points, strict=True), marker="o", markersize=4, color=colour, label=str(row["sampler"]))
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("trials before")
    axes.set_ylabel("milliseconds")
    axes.legend(frameon=False, fontsize=8)


FIGURES: Mapping[str, Callable[[Any, Sequence[Table]], None]] = {
    "counting": partial(
        lines, of="k", columns=("tree of 32", "Fenwick", "direct", "table"), label="ns a document, l = 100,000",
        only=lambda row: row["l"] == 100_000,
    ),
    "memory": partial(bars, of="solver", column="peak MB", label="peak memory, MB", ours=("",)),
    "metrics": partial(bars, of="metric", column="us a query", label="processor microseconds a query"),
    "objective": partial(bars, of="method", column="to 0.0001", label="seconds to 0.0001 above the lowest objective"),
    "parser": partial(bars, of="reader", column="MB/s", label="ranking text, MB a processor second"),
    "serving": partial(
        lines, of="batch", columns=("predict", "LightGBM", "walk"), label="us a document",
        only=lambda row: row["model"] == "trees",
    ),
    "solvers": partial(bars, of="what", column="ratio", label="processor time, ours / theirs", ours=("",)),
    "suggestions": growth,
}  # fmt: skip
"""The figures by the name of the benchmark."""
