"""Plotly's figures as plain dictionaries: scatter, lines, bands, bars, heat maps, and the titles of their axes.

Built without importing Plotly, which takes seconds. Numbers are rounded to what can be seen; NaN becomes null. Names of
studies, parameters, features, queries and documents are anybody's text: Plotly reads <b> or <a href> in them as markup,
so every name goes through plain or distinct before it reaches a figure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import unescape
from typing import Any, TypeAlias

import numpy as np

from ranktune.dashboards.figures.panels import plain as plain
from ranktune.solvers.core.arrays import Floats, Ints

Trace: TypeAlias = dict[str, Any]
Figure: TypeAlias = dict[str, Any]

MOST_POINTS = 2_000
"""Points of a trace; more cannot be told apart, and make a page slow."""
LONGEST_NAME = 80
WRAPPED = 24
"""Letters of a name at the side of a chart."""
DIVERGING = ((0.0, "#d55e00"), (0.5, "#f7f7f7"), (1.0, "#0072b2"))
"""Below zero, zero, above: told apart by colour-blind people, and by lightness from the middle."""
RISING = "Cividis"
"""From low to high; the same to nearly every eye."""


def short(name: object, longest: int = LONGEST_NAME) -> str:
    """Return a name for titles and notes, which are text and not markup: as plain does, letter by letter."""
    return unescape(plain(name, longest)) or "(no name)"


def distinct(names: Iterable[object], longest: int = LONGEST_NAME) -> list[str]:
    """Return plain names of which no two are equal: those that look alike get a number."""
    found: list[str] = []
    seen: dict[str, int] = {}
    for name in names:
        text = plain(name, longest) or "(no name)"
        seen[text] = count = seen.get(text, 0) + 1
        while count > 1 and f"{text} ({count})" in seen:
            count += 1
        text = text if count == 1 else f"{text} ({count})"
        seen.setdefault(text, 1)
        found.append(text)
    return found


def number(value: Any) -> float | None:
    """Return value with six significant digits; None for what is no finite number."""
    if value is None or not np.isfinite(value):
        return None
    return float(f"{float(value):.6g}")


def numbers(values: Iterable[Any]) -> list[float | None]:
    """Return every value as number does."""
    return [number(value) for value in values]


def thinned(values: Sequence[float | None] | Floats, most: int = MOST_POINTS) -> Ints:
    """Return rising places of at most about most values: both extremes, where a new best came, and an even choice."""
    known = np.array([np.nan if value is None else value for value in values], dtype=np.float64)
    if len(known) <= most:
        return np.arange(len(known))
    kept = set(np.linspace(0, len(known) - 1, most // 2).astype(np.int64).tolist())
    best = np.fmax.accumulate(known)
    steps = np.flatnonzero(np.diff(best, prepend=-np.inf) > 0)
    order = np.argsort(np.where(np.isnan(known), np.nanmedian(known) if len(steps) else 0.0, known), kind="stable")
    edge = most // 8
    kept |= {*steps[-edge:].tolist(), *order[:edge].tolist(), *order[-edge:].tolist()}
    return np.array(sorted(kept), dtype=np.int64)


def axis(title: str, *, log: bool = False, categories: Sequence[str] | None = None, **more: Any) -> dict[str, Any]:
    """Return an axis with a title, logarithmic or of named categories in their order; title is text, not markup."""
    found: dict[str, Any] = {"title": {"text": plain(title, 120), "standoff": 12}, "automargin": True}
    if log:
        found["type"] = "log"
    if categories is not None:
        found |= {"type": "category", "categoryorder": "array", "categoryarray": list(categories)}
    return found | more


def figure(traces: Sequence[Trace], x: Mapping[str, Any], y: Mapping[str, Any], **layout: Any) -> Figure:
    """Return the figure of traces over two axes."""
    base: dict[str, Any] = {
        "xaxis": dict(x),
        "yaxis": dict(y),
        "hovermode": "closest",
        "showlegend": sum(trace.get("showlegend", True) for trace in traces) > 1,
        "legend": {"orientation": "h", "yanchor": "bottom", "y": 1.02, "x": 0, "traceorder": "normal"},
        "margin": {"l": 60, "r": 20, "t": 30, "b": 50},
    }
    return {"data": list(traces), "layout": base | layout}


def scatter(
    name: str,
    x: Iterable[Any],
    y: Iterable[Any],
    *,
    marker: Mapping[str, Any] | None = None,
    mode: str = "markers",
    text: Sequence[str] | None = None,
    error: Iterable[Any] | None = None,
    **more: Any,
) -> Trace:
    """Return points, or a line with mode "lines"; x and y are numbers or plain names, error half a bar's length."""
    trace: Trace = {"type": "scatter", "mode": mode, "name": plain(name), "x": _cells(x), "y": _cells(y)}
    if marker is not None:
        trace["marker"] = dict(marker)
    if text is not None:
        trace |= {"text": list(text), "hovertemplate": "%{text}<br>%{x}<br>%{y}<extra></extra>"}
    if error is not None:
        trace["error_y"] = {"type": "data", "array": numbers(error), "thickness": 1, "width": 2}
    return trace | more


def band(name: str, x: Iterable[Any], low: Iterable[Any], high: Iterable[Any], colour: str) -> Trace:
    """Return the area between low and high over x, colour as #rrggbb."""
    along = _cells(x)
    return {
        "type": "scatter",
        "mode": "lines",
        "name": plain(name),
        "x": along + along[::-1],
        "y": numbers(high) + numbers(low)[::-1],
        "fill": "toself",
        "fillcolor": faint(colour, 0.2),
        "line": {"width": 0, "color": colour},
        "hoverinfo": "skip",
    }


def bars(name: str, labels: Iterable[Any], lengths: Iterable[Any], *, lying: bool = False, **more: Any) -> Trace:
    """Return bars, one a label; lying ones leave room for long labels."""
    x, y = (lengths, labels) if lying else (labels, lengths)
    trace: Trace = {"type": "bar", "name": plain(name), "x": _cells(x), "y": _cells(y)}
    return trace | ({"orientation": "h"} if lying else {}) | more


def heat_map(
    x: Sequence[Any], y: Sequence[Any], z: Iterable[Iterable[Any]], title: str, *, zero_in_middle: bool = False
) -> Trace:
    """Return cells coloured by z, a row for each y; title says what the colours measure."""
    rows = [numbers(row) for row in z]
    trace: Trace = {
        "type": "heatmap", "x": _cells(x), "y": _cells(y), "z": rows,
        "colorscale": RISING, "colorbar": {"title": {"text": plain(title), "side": "top"}, "thickness": 12},
        "showlegend": False,
    }  # fmt: skip
    if zero_in_middle:
        widest = max((abs(value) for row in rows for value in row if value is not None), default=1.0) or 1.0
        trace |= {"colorscale": [list(stop) for stop in DIVERGING], "zmin": -widest, "zmax": widest, "zmid": 0.0}
    return trace


def pattern(shape: str | list[str]) -> dict[str, Any]:
    """Return a hatching over the colour of a bar, or of each, "" for none: what tells bars apart without colour."""
    return {"shape": shape, "fillmode": "overlay", "fgcolor": "#ffffff", "fgopacity": 0.65, "size": 7, "solidity": 0.25}


def window(values: Iterable[float | None], always: float = np.inf) -> tuple[list[float] | None, str]:
    """Return the range of an axis that leaves out a long bad tail, None where all fit, and a note that says so.

    What lies further below the median than three times the way from there to the best squeezes all else into a line;
    only what lies below always, too, is left out.
    """
    known = np.array([value for value in values if value is not None], dtype=np.float64)
    if len(known) < 4:
        return None, ""
    median, best = float(np.median(known)), float(known.max())
    lowest = min(median - 3.0 * (best - median), always)
    outside = int((known < lowest).sum())
    if best <= median or not outside:
        return None, ""
    room = 0.05 * (best - lowest)
    said = "One value lies" if outside == 1 else f"{outside} values lie"
    return [lowest - room, best + room], f"{said} far below the rest, outside the figure until it is zoomed out."


def log_axis(title: str, low: float, high: float) -> dict[str, Any]:
    """Return a logarithmic axis for values from low to high: marks at powers of ten, and few more where those are few.

    A title and marks of Plotly's own would be crowded on a narrow page, and read 2, 5 without saying of what.
    """
    first, last = int(np.floor(np.log10(low))), int(np.ceil(np.log10(high)))
    steps = (1, 2, 5) if last - first <= 2 else (1,)
    marks = [(step, k) for k in range(first, last + 1) for step in steps]
    ticks: dict[str, Any] = {
        "tickmode": "array",
        "tickvals": [s * 10.0**k for s, k in marks],
        "ticktext": [_power(*m) for m in marks],
    }
    return axis(f"{title} (log)", log=True, **ticks)


def _power(step: int, exponent: int) -> str:
    """Return step * 10 ** exponent as text; with an exponent where there would be many zeros."""
    if -4 <= exponent <= 5:
        return f"{step * 10.0**exponent:,.10g}"
    raised = str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"10{raised}" if step == 1 else f"{step}·10{raised}"


def faint(colour: str, opacity: float) -> str:
    """Return #rrggbb seen through."""
    red, green, blue = (int(colour[k : k + 2], 16) for k in (1, 3, 5))
    return f"rgba({red},{green},{blue},{opacity})"


def _cells(values: Iterable[Any]) -> list[Any]:
    """Return names as they are and numbers as number does."""
    return [value if isinstance(value, str) else number(value) for value in values]
