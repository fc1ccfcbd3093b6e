"""Plotly's figures as plain dictionaries: scatter, lines, bands, bars, heat maps, and the titles of their axes.

Built without importing Plotly, which takes seconds. Names of studies, parameters, features, queries and documents are
untrusted text: Plotly reads <b> or <a href> in them as markup, so every name passes through plain or distinct before it
enters a figure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from html import unescape
from typing import TypeAlias, TypeVar

import numpy as np

from ranktune.dashboards.figures.panels import Axis, Figure, Trace
from ranktune.solvers.core.arrays import Floats, Ints, Json
from ranktune.solvers.core.errors import printable

T = TypeVar("T")
Place: TypeAlias = str | float | None
Places: TypeAlias = Iterable[Place]
Numbers: TypeAlias = Iterable[float | None]

COLOURS = tuple(
    "#005aff #ff5a00 #1ea52d #b400d2 #0096c3 #a55a00 #ff3cd2 #1e785a #d22d69 #7887ff #b48787 #786996".split()
)
"""Far from each other for colour-blind readers too, with a contrast of at least 3 to the page, light and dark."""
SYMBOLS = tuple(
    "circle square diamond cross triangle-up x star hexagon triangle-down bowtie hourglass pentagon".split()
)
"""With the colour, so that colour is never the only difference."""
GREY, ACCENT = "#7f7f7f", "#d55e00"
MAX_POINTS = 2_000
"""Points of a trace; more are indistinct and make a page slow."""
MAX_NAME = 80
"""Characters of a name in a figure or a title."""
MAX_LABEL = 24
"""Characters of a name at the side of a chart."""
DIVERGING = ((0.0, "#d55e00"), (0.5, "#f7f7f7"), (1.0, "#0072b2"))
"""Below zero, zero, above: distinct for colour-blind readers."""
SEQUENTIAL = "Cividis"
"""From low to high; nearly the same for colour-blind readers."""


def solver_styles(solvers: Iterable[str]) -> dict[str, dict[str, str]]:
    """Return the marker (color, symbol) of each solver: the same in every figure of a study."""
    return {
        name: {"color": COLOURS[k % len(COLOURS)], "symbol": SYMBOLS[(k + k // len(COLOURS)) % len(SYMBOLS)]}
        for k, name in enumerate(sorted(set(solvers)))
    }


def plain(name: object, longest: int = MAX_NAME) -> str:
    """Return name for a figure: one line, no markup, no control or direction characters, at most longest characters.

    Plotly reads `<b>`, `<a href>` and entities in every text.
    """
    line = " ".join(printable(str(name)[: 4 * longest]).split())
    short = line if len(line) <= longest and len(str(name)) <= 4 * longest else line[: longest - 1] + "…"
    return short.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def short(name: object) -> str:
    """Return a name for titles and notes, which are text and not markup: the visible characters of plain(name)."""
    return unescape(plain(name)) or "(no name)"


def distinct(names: Iterable[object], longest: int = MAX_NAME) -> list[str]:
    """Return plain names, made distinct by numbers where two would be equal."""
    labels: dict[str, None] = {}
    for name in names:
        label = text = plain(name, longest) or "(no name)"
        count = 1
        while label in labels:
            count += 1
            label = f"{text} ({count})"
        labels[label] = None
    return list(labels)


def thinned(values: Sequence[float | None] | Floats, most: int = MAX_POINTS) -> Ints:
    """Return ascending indices of at most about most values: extremes, improvements of the best, an even choice."""
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


def some_of(items: Sequence[T], values: Sequence[float | None], most: int = MAX_POINTS) -> tuple[list[T], str]:
    """Return the trials, queries or models at the places of thinned values, and how many they are, where not all."""
    kept = [items[place] for place in thinned(values, most)]
    return kept, f"{len(kept)} of {len(items)} are shown, the best and the worst among them." * (len(kept) < len(items))


def axis(title: str, *, categories: Sequence[str] | None = None, **more: object) -> Axis:
    """Return an axis with a title, of categories in their order if given; title is text, not markup."""
    settings: Axis = {"title": {"text": plain(title, 120), "standoff": 12}, "automargin": True}
    if categories is not None:
        settings |= {"type": "category", "categoryorder": "array", "categoryarray": _cells(categories)}
    return settings | more


def count_axis(title: str, last: int) -> Axis:
    """Return an axis of the numbers from 1 to last, with ticks at whole ones."""
    return axis(title, range=[0.5, max(last, 1) + 0.5], tickformat="d") | ({"dtick": 1} if last <= 10 else {})


def around(values: Floats) -> Json:
    """Return the range of an axis of one value, which Plotly draws 1 below to 1 above it; nothing of several values."""
    known = np.unique(values[np.isfinite(values)])
    half = 0.05 * abs(known) + (known == 0)
    return {"range": [*(known - half), *(known + half)]} if len(known) == 1 else {}


def value_axis(title: str, values: Numbers, always: float = np.inf) -> tuple[Axis, str]:
    """Return an axis that leaves out a long low tail, and the note that says so, "" where all values fit.

    A value is left out where it lies further below the median than three times the distance from the median to the
    best, and below always.
    """
    known = np.array([value for value in values if value is not None], dtype=np.float64)
    if len(known) < 4:
        return axis(title, **around(known)), ""
    median, best = float(np.median(known)), float(known.max())
    lowest = min(median - 3.0 * (best - median), always)
    outside = int((known < lowest).sum())
    if best <= median or not outside:
        return axis(title, **around(known)), ""
    room = 0.05 * (best - lowest)
    count = "One value lies" if outside == 1 else f"{outside} values lie"
    note = f"{count} far below the others, outside the figure until it is zoomed out."
    return axis(title, range=[lowest - room, best + room]), note


def log_axis(title: str, low: float, high: float) -> Axis:
    """Return a logarithmic axis from low to high: ticks at powers of ten, and at 2 and 5 where those are few.

    Plotly's own ticks are crowded on a narrow page, and read 2 or 5 without the power of ten.
    """
    first, last = int(np.floor(np.log10(low))), int(np.ceil(np.log10(high)))
    steps = (1, 2, 5) if last - first <= 2 else (1,)
    values = [step * 10.0**k for k in range(first, last + 1) for step in steps]
    labels = [f"{value:,.10g}" if 1e-4 <= value < 1e7 else f"{value:.0e}" for value in values]
    return axis(f"{title} (log)", type="log", tickmode="array", tickvals=values, ticktext=labels)


def figure(traces: Sequence[Trace], x: Axis, y: Axis, **layout: object) -> Figure:
    """Return the figure of traces over two axes."""
    base: Json = {
        "xaxis": x,
        "yaxis": y,
        "hovermode": "closest",
        "showlegend": sum(trace.get("showlegend", True) for trace in traces) > 1,
        "legend": {"orientation": "h", "yanchor": "bottom", "y": 1.02, "x": 0, "traceorder": "normal"},
        "margin": {"l": 60, "r": 20, "t": 30, "b": 50},
    }
    return {"data": list(traces), "layout": base | layout}


def scatter(
    name: str,
    x: Places,
    y: Places,
    *,
    marker: Mapping[str, object] | None = None,
    mode: str = "markers",
    text: Sequence[str] | None = None,
    error: Numbers | None = None,
    **more: object,
) -> Trace:
    """Return points, or a line with mode "lines"; x and y are numbers or plain names, error half a bar's length."""
    trace: Trace = {"type": "scatter", "mode": mode, "name": plain(name), "x": _cells(x), "y": _cells(y)}
    if marker is not None:
        trace["marker"] = dict(marker)
    if text is not None:
        trace |= {"text": list(text), "hovertemplate": "%{text}<br>%{x}<br>%{y}<extra></extra>"}
    if error is not None:
        trace["error_y"] = {"type": "data", "array": error, "thickness": 1, "width": 2}
    return trace | more


def star(name: str, x: Place, y: Place, text: Sequence[str] | None = None) -> Trace:
    """Return one point marked with a star."""
    return scatter(name, [x], [y], marker={"symbol": "star", "size": 15, "color": ACCENT}, text=text)


def band(name: str, x: Places, low: Sequence[float] | Floats, high: Iterable[float], colour: str) -> Trace:
    """Return the area between low and high over x, colour as #rrggbb."""
    across = _cells(x)
    return {
        "type": "scatter",
        "mode": "lines",
        "name": plain(name),
        "x": across + across[::-1],
        "y": [*high, *low[::-1]],
        "fill": "toself",
        "fillcolor": faint(colour, 0.2),
        "line": {"width": 0, "color": colour},
        "hoverinfo": "skip",
    }


def bars(name: str, labels: Places, lengths: Numbers, *, horizontal: bool = False, **more: object) -> Trace:
    """Return bars, one a label; horizontal ones leave room for long labels."""
    x, y = (_cells(lengths), _cells(labels)) if horizontal else (_cells(labels), _cells(lengths))
    trace: Trace = {"type": "bar", "name": plain(name), "x": x, "y": y}
    return trace | ({"orientation": "h"} if horizontal else {}) | more


def error_bars(values: Sequence[float] | Floats, low: object, high: object, **more: object) -> Json:
    """Return the error bars of values, from low to high; none where an end is None or NaN."""
    start, end = (np.array(each, dtype=np.float64) for each in (low, high))
    lengths = {"array": end - values, "arrayminus": values - start}
    return {"type": "data", "symmetric": False, "thickness": 1.5} | lengths | more


def heat_map(x: Places, y: Places, z: Floats, title: str) -> Trace:
    """Return cells coloured by z, a row for each y; title says what the colours measure."""
    trace: Trace = {"type": "heatmap", "x": _cells(x), "y": _cells(y), "z": z, "showlegend": False}
    return trace | {"colorscale": SEQUENTIAL, "colorbar": colour_bar(title)}


def colour_bar(title: str) -> Json:
    """Return the scale of a figure's colours."""
    return {"title": {"text": plain(title), "side": "top"}, "thickness": 12}


def hatched(colour: str, shape: str | list[str]) -> Json:
    """Return the marker of a bar with a hatching, or one a bar, "" for none: colour is not the only difference."""
    pattern = {"shape": shape, "fillmode": "overlay", "fgcolor": "#ffffff", "fgopacity": 0.65}
    return {"color": colour, "pattern": pattern | {"size": 7, "solidity": 0.25}}


def faint(colour: str, opacity: float) -> str:
    """Return the colour #rrggbb with an opacity."""
    red, green, blue = (int(colour[k : k + 2], 16) for k in (1, 3, 5))
    return f"rgba({red},{green},{blue},{opacity})"


def _cells(values: Places) -> list[Place]:
    """Return names without markup, if some have it, and numbers as they are."""
    return [plain(value) if isinstance(value, str) and _MARKUP.search(value) else value for value in values]


_MARKUP = re.compile(r"[<>\x00-\x1f\u202a-\u202e\u2066-\u2069]")
