"""Charts as SVG: lines, bands, steps, points and bars over linear or logarithmic axes.

Plotly, of which the dashboards are made, needs a browser to write a picture; a paper's figure is a file and still.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

import numpy as np

from ranktune.solvers.core.arrays import Floats
from ranktune.studies.papers.figures.charts import Chart, Series, Values

WIDTH, HEIGHT = 460, 300
LEFT, RIGHT, TOP, BOTTOM = 62, 14, 30, 46
LINE = 15
"""Height of a line of the legend."""
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c8c00", "#555555")
"""Distinct for colour-blind readers too. Source: Okabe & Ito 2008."""
DASHES = ("", "7 3", "2 3", "9 3 2 3", "5 2", "3 2", "11 4", "1 2")
"""With the colour, so that colour is never the only difference."""
STYLE = "font-family:system-ui,sans-serif;font-size:11px;background:#fff;color:#222"


@dataclass(frozen=True)
class _Axis:
    """A range of values and the pixels it is drawn on."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def at(self, values: Values) -> Floats:
        """Return the pixels of values."""
        numbers = np.asarray(values, dtype=np.float64)
        low, high = self.low, self.high
        if self.log:
            numbers, low, high = np.log10(np.maximum(numbers, 1e-300)), math.log10(low), math.log10(high)
        share = (numbers - low) / (high - low)
        return np.asarray(self.start + np.clip(share, -0.02, 1.02) * (self.end - self.start))

    @property
    def ticks(self) -> list[float]:
        """Round values within the range."""
        if self.log:
            first, last = math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9)
            powers = [10.0**k for k in range(first, last + 1, max(1, (last - first) // 6))]
            if len(powers) > 2:
                return powers
            decades = range(first - 1, last + 1)
            return [m * 10.0**k for k in decades for m in (1, 2, 5) if self.low <= m * 10.0**k <= self.high]
        rough = (self.high - self.low) / 5
        size = 10.0 ** math.floor(math.log10(rough))
        step = next(m * size for m in (1, 2, 2.5, 5, 10) if m * size >= rough)
        return [k * step for k in range(math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9) + 1)]


def svg(chart: Chart) -> str:
    """Return a chart as an SVG document."""
    names = [one.name for one in chart.series]
    legend = _legend_rows(names)
    top = TOP + LINE * len(legend)
    height = HEIGHT + LINE * len(legend)
    x, y = _x_axis(chart), _y_axis(chart, height - BOTTOM, top)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        f'role="img" style="{STYLE}">',
        f"<title>{escape(chart.title)}</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>',
        f'<text x="{WIDTH / 2}" y="17" text-anchor="middle" font-weight="600">{escape(chart.title)}</text>',
        *_frame(chart, x, y),
        *_legend(legend, names),
    ]
    bars = [k for k, one in enumerate(chart.series) if one.style == "bars"]
    for k, one in enumerate(chart.series):
        parts += _bars(one, k, bars.index(k), len(bars), x, y) if k in bars else _line(one, k, x, y)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _x_axis(chart: Chart) -> _Axis:
    if chart.categories:
        return _Axis(-0.6, len(chart.categories) - 0.4, LEFT, WIDTH - RIGHT)
    low, high = _range([np.asarray(one.x, dtype=np.float64) for one in chart.series], chart.log_x)
    return _Axis(low, high, LEFT, WIDTH - RIGHT, chart.log_x)


def _y_axis(chart: Chart, bottom: float, top: float) -> _Axis:
    values = [np.asarray(own, dtype=np.float64) for one in chart.series for own in (one.y, one.low, one.high)]
    low, high = _range(values, chart.log_y)
    if not chart.log_y and 0.0 < low < 0.5 * high and any(one.style == "bars" for one in chart.series):
        low = 0.0
    return _Axis(low, high, bottom, top, chart.log_y)


def _range(values: Sequence[Floats], log: bool) -> tuple[float, float]:
    """Return the range of finite values with some room; of positive ones on a logarithmic axis."""
    known = np.concatenate([np.ravel(own) for own in values]) if values else np.zeros(0)
    known = known[np.isfinite(known) & ((known > 0.0) | (not log))]
    if not len(known):
        return 1.0, 10.0
    low, high = float(known.min()), float(known.max())
    if log:
        room = max(high / low, 1.5) ** 0.04
        return low / room, high * room
    room = 0.05 * (high - low) or 0.05 * abs(high) or 0.5
    return low - (0.0 if low == 0.0 else room), high + room


def _frame(chart: Chart, x: _Axis, y: _Axis) -> list[str]:
    bottom, top = y.start, y.end
    parts = []
    for value, at in zip(y.ticks, y.at(y.ticks), strict=True):
        parts.append(f'<path d="M{LEFT} {at:.1f}H{WIDTH - RIGHT}" stroke="#e4e4e4"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">{_number(value)}</text>')
    named = [(name, float(k)) for k, name in enumerate(chart.categories)]
    marks = named or [(_number(value), value) for value in x.ticks]
    for name, value in marks:
        at = float(x.at([value])[0])
        parts.append(f'<path d="M{at:.1f} {bottom}v4" stroke="#444"/>')
        parts.append(f'<text x="{at:.1f}" y="{bottom + 16}" text-anchor="middle">{escape(name)}</text>')
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts += [
        f'<path d="M{LEFT} {top}V{bottom}H{WIDTH - RIGHT}" fill="none" stroke="#444"/>',
        f'<text x="{middle}" y="{bottom + 34}" text-anchor="middle">{escape(chart.x_label)}</text>',
        f'<text transform="translate(13 {(top + bottom) / 2}) rotate(-90)" text-anchor="middle">'
        f"{escape(chart.y_label)}</text>",
    ]
    return parts


def _legend_rows(names: Sequence[str]) -> list[list[int]]:
    """Return the numbers of the series in each line of the legend; none for a single series."""
    rows: list[list[int]] = [[]]
    used = 0.0
    for k, name in enumerate(names if len(names) > 1 else ()):
        width = _legend_width(name)
        if rows[-1] and used + width > WIDTH - LEFT - RIGHT:
            rows.append([])
            used = 0.0
        rows[-1].append(k)
        used += width
    return [row for row in rows if row]


def _legend_width(name: str) -> float:
    return 40.0 + 6.1 * len(name)


def _legend(rows: Sequence[Sequence[int]], names: Sequence[str]) -> list[str]:
    parts = []
    for line, row in enumerate(rows):
        at, height = float(LEFT), TOP + LINE * line
        for k in row:
            parts.append(f'<path d="M{at:.1f} {height}h24" {_stroke(k)}/>')
            parts.append(f'<text x="{at + 29:.1f}" y="{height + 4}">{escape(names[k])}</text>')
            at += _legend_width(names[k])
    return parts


def _stroke(k: int, *, dashed: bool = True) -> str:
    dash = DASHES[k % len(DASHES)] if dashed else ""
    return f'fill="none" stroke="{_colour(k)}" stroke-width="1.8"' + (f' stroke-dasharray="{dash}"' if dash else "")


def _colour(k: int) -> str:
    return COLOURS[k % len(COLOURS)]


def _line(one: Series, k: int, x: _Axis, y: _Axis) -> list[str]:
    parts = []
    across, up = x.at(one.x), y.at(one.y)
    if len(one.low):
        outline = [*zip(across, y.at(one.low), strict=True), *zip(across[::-1], y.at(one.high)[::-1], strict=True)]
        parts.append(f'<path d="{_path(outline)}Z" fill="{_colour(k)}" fill-opacity="0.15"/>')
    points = [(a, b) for a, b, value in zip(across, up, one.y, strict=True) if np.isfinite(value)]
    if one.style == "steps":
        corners = [(b[0], a[1]) for a, b in pairwise(points)]
        points = [points[0], *(p for pair in zip(corners, points[1:], strict=True) for p in pair)] if points else []
    if one.style != "points":
        parts.append(f'<path d="{_path(points)}" {_stroke(k)}/>')
    if "points" in one.style:
        for a, b, value in zip(across, up, one.y, strict=True):
            if np.isfinite(value):
                filled = "#fff" if one.style == "points" else _colour(k)
                parts.append(
                    f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3.2" fill="{filled}" stroke="{_colour(k)}" '
                    f'stroke-width="1.6"><title>{escape(one.name)}: {_number(float(value))}</title></circle>'
                )
    return parts


def _bars(one: Series, k: int, place: int, count: int, x: _Axis, y: _Axis) -> list[str]:
    """Return the bars of one series, beside those of the others within each category."""
    width = 0.8 / count
    left = x.at(np.asarray(one.x, dtype=np.float64) - 0.4 + place * width)
    right = x.at(np.asarray(one.x, dtype=np.float64) - 0.4 + (place + 1) * width)
    zero = float(y.at([min(max(0.0, y.low), y.high)])[0])
    parts = []
    for a, b, top, value in zip(left, right, y.at(one.y), one.y, strict=True):
        if not np.isfinite(value):
            continue
        high, low = min(top, zero), max(top, zero)
        parts.append(
            f'<rect x="{a + 0.5:.1f}" y="{high:.1f}" width="{b - a - 1:.1f}" height="{low - high:.1f}" '
            f'fill="{_colour(k)}"><title>{escape(one.name)}: {_number(float(value))}</title></rect>'
        )
    return parts


def _path(points: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in points) if points else ""


def _number(value: float) -> str:
    """Return a tick's text: 0.25, 1,000 or 1e-05."""
    if value != 0.0 and not 1e-4 <= abs(value) < 1e6:
        return f"{value:.0e}"
    text = f"{value:,.4f}" if abs(value) < 10 else f"{value:,.2f}"
    return text.rstrip("0").rstrip(".") or "0"
