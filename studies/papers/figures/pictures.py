"""Charts as pictures, by Matplotlib. Plotly, of which the dashboards are made, needs a browser to write a file."""

from __future__ import annotations

import io
from importlib.util import find_spec
from typing import TYPE_CHECKING

import numpy as np

from ranktune.solvers.core.errors import ParameterError
from ranktune.studies.papers.figures.work import Chart, Series

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c8c00", "#555555")
"""Distinct for colour-blind readers too. Source: Okabe & Ito 2008."""
DASHES = ("-", "--", ":", "-.", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)), (0, (8, 3)))
"""With the colour, so that colour is never the only difference."""
SIZE = (5.2, 3.4)
"""Inches."""
MAX_NAME_OF_THREE = 20
"""Characters of names of which three fit beside each other in a legend."""


def check_installed() -> None:
    """Raise ParameterError where Matplotlib is not installed."""
    if find_spec("matplotlib") is None:
        raise ParameterError("figures are drawn by Matplotlib, which is not installed: pip install matplotlib.")


def svg(chart: Chart) -> str:
    """Return a chart as an SVG element, with its texts as text. The same chart gives the same text."""
    from matplotlib import rc_context

    text = io.StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": chart.title}):
        _drawn(chart).savefig(text, format="svg", metadata={"Date": None, "Title": chart.title})
    return text.getvalue()[text.getvalue().index("<svg ") :]


def png(chart: Chart) -> bytes:
    """Return a chart as a PNG file."""
    data = io.BytesIO()
    _drawn(chart).savefig(data, format="png", dpi=150)
    return data.getvalue()


def _drawn(chart: Chart) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=SIZE, layout="constrained")
    axes = figure.subplots()
    axes.set_title(chart.title, fontsize="medium")
    axes.set_xlabel(chart.x_label, fontsize="small")
    axes.set_ylabel(chart.y_label, fontsize="small")
    axes.grid(axis="y", color="#e4e4e4")
    axes.set_axisbelow(True)
    names = [series.name for series in chart.series]
    bars = [number for number, series in enumerate(chart.series) if series.style == "bars"]
    for number, series in enumerate(chart.series):
        if number in bars:
            _bars(axes, series, bars.index(number), len(bars), COLOURS[number % len(COLOURS)])
        else:
            _line(axes, series, names.index(series.like) if series.like in names else number)
    if chart.log_x and any(np.greater(series.x, 0.0).any() for series in chart.series):
        axes.set_xscale("log", nonpositive="mask")
    if chart.log_y and any(np.greater(series.y, 0.0).any() for series in chart.series):
        axes.set_yscale("log", nonpositive="mask")
    if chart.y_range is not None:
        axes.set_ylim(*chart.y_range)
    if chart.categories:
        axes.set_xticks(range(len(chart.categories)), chart.categories)
    if len(chart.series) > 1:
        columns = 3 if max(map(len, names)) <= MAX_NAME_OF_THREE else 2
        figure.legend(loc="outside lower center", ncols=columns, fontsize="small", frameon=False)
    return figure


def _line(axes: Axes, series: Series, number: int) -> None:
    colour = COLOURS[number % len(COLOURS)]
    axes.plot(
        np.asarray(series.x, dtype=np.float64),
        np.asarray(series.y, dtype=np.float64),
        color=colour,
        linestyle="none" if series.style == "points" else DASHES[number % len(DASHES)],
        drawstyle="steps-post" if series.style == "steps" else "default",
        marker="o" if "points" in series.style else None,
        markerfacecolor="white" if series.style == "points" else colour,
        markersize=4.5,
        label=series.name,
    )
    if len(series.low):
        axes.fill_between(series.x, series.low, series.high, color=colour, alpha=0.15, linewidth=0.0)


def _bars(axes: Axes, series: Series, place: int, count: int, colour: str) -> None:
    """Draw the bars of one series, beside those of the others within each category."""
    width = 0.8 / count
    left = np.asarray(series.x, dtype=np.float64) - 0.4 + place * width
    axes.bar(left, np.asarray(series.y, dtype=np.float64), width, align="edge", color=colour, label=series.name)
