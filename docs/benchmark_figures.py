"""Figures of benchmarks, from the tables of their stored results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any

from ranktune.studies.benchmarks.tables import BenchmarkTable, Cell, Row

COLOURS = ("#1b6ca8", "#d1495b", "#6c757d", "#2e933c", "#8f5db7", "#c98b0b", "#0f8b8d")
"""Of series, the first of which is RankTune's."""


def draw(name: str, tables: Sequence[BenchmarkTable], path: Path) -> None:
    """Write the figure of a result as SVG, the same bytes for the same numbers."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context({"svg.hashsalt": name, "font.size": 10, "axes.spines.top": False}):
        figure = Figure(figsize=(7.5, 3.6), layout="constrained")
        FIGURES[name](figure, tables)
        figure.savefig(path, metadata={"Date": None}, facecolor="white")


def number(value: Cell) -> float | None:
    """Return a cell that is a number, None for any other."""
    return None if value is None or isinstance(value, str | bool) else float(value)


def bars(
    figure: Any,
    tables: Sequence[BenchmarkTable],
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
    axes = figure.add_subplot()
    axes.barh(range(len(rows)), values, color=[COLOURS[0] if one else COLOURS[2] for one in own])
    axes.set_yticks(range(len(rows)), names, fontsize=8)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xlabel(label)


def _wrapped(text: str, width: int = 40) -> str:
    import textwrap

    return "\n".join(textwrap.wrap(text, width))


def lines(
    figure: Any,
    tables: Sequence[BenchmarkTable],
    *,
    of: str,
    columns: Sequence[str],
    label: str,
    table: int = 0,
    only: Callable[[Row], bool] = lambda row: True,
) -> None:
    """Draw a line for each column of a table over the column `of`, on scales of powers of ten."""
    axes = figure.add_subplot()
    rows = [row for row in tables[table].rows if only(row)]
    for column, colour in zip(columns, COLOURS, strict=False):
        points = [(number(row[of]), number(row[column])) for row in rows if number(row.get(column)) is not None]
        axes.plot(*zip(*points, strict=True), marker="o", markersize=4, color=colour, label=column)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel(of)
    axes.set_ylabel(label)
    axes.legend(frameon=False, fontsize=8)


def ranks(figure: Any, tables: Sequence[BenchmarkTable]) -> None:
    """Draw the mean rank of each sampler among all problems over the number of trials."""
    axes = figure.add_subplot()
    table = next(table for table in tables if table.title.startswith("Mean ranks, all"))
    for row, colour in zip(table.rows, cycle(COLOURS), strict=False):
        points = [(int(name), float(str(value))) for name, value in row.items() if name != "sampler"]
        axes.plot(*zip(*points, strict=True), marker="o", markersize=4, color=colour, label=str(row["sampler"]))
    axes.invert_yaxis()
    axes.set_xlabel("trials")
    axes.set_ylabel("mean rank")
    axes.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))


def curves(figure: Any, tables: Sequence[BenchmarkTable]) -> None:
    """Draw the median regret of each sampler over the number of trials, a panel for each problem."""
    rows = tables[0].rows
    problems = list(dict.fromkeys(str(row["problem"]) for row in rows))
    samplers = list(dict.fromkeys(str(row["sampler"]) for row in rows))
    for axes, problem in zip(figure.subplots(1, len(problems), squeeze=False)[0], problems, strict=True):
        for sampler, colour in zip(samplers, cycle(COLOURS)):
            some = [row for row in rows if (row["problem"], row["sampler"]) == (problem, sampler)]
            points = [(number(row["trials"]), float(str(row["regret"]).split()[0])) for row in some]
            axes.plot(*zip(*points, strict=True), marker="o", markersize=4, color=colour, label=sampler)
        axes.set_title(problem, fontsize=8)
        axes.set_xlabel("trials")
        axes.tick_params(labelsize=8)
    figure.axes[0].set_ylabel("regret")
    figure.axes[0].legend(frameon=False, fontsize=7)


FIGURES: Mapping[str, Callable[[Any, Sequence[BenchmarkTable]], None]] = {
    "objective": partial(bars, of="method", column="to 0.0001", label="seconds to 0.0001 above the lowest objective"),
    "sampler.composition": curves,
    "sampler.many-problems": ranks,
    "serving": partial(
        lines, of="batch", columns=("predict", "LightGBM", "walk"), label="us a document",
        only=lambda row: row["model"] == "trees",
    ),
    "solvers": partial(bars, of="what", column="ratio", label="processor time, ours / theirs", ours=("",)),
}  # fmt: skip
"""The figures by the file of the result, without its suffix."""
