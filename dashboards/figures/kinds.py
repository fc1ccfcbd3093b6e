"""Kinds of figures, each drawn from the columns of a frame: bars, dots with intervals, lines, points, heat maps.

A kind whose figure needs an explanation gives it as reading(frame), in sentences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ranktune.dashboards.figures import plotly as figures
from ranktune.dashboards.figures.panels import Axis, Figure, Frame, Trace

HATCHES = ("", "/", "x", ".", "-", "\\", "|", "+")
"""Of bars in one place, so that colour is not the only difference."""
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
ROOM_FOR_TEXT = 12
"""Rows of a heat map above which a cell has room for a mark only."""
ROWS_OF_A_BOX = 4
"""Points below which they say more than quartiles."""
NOTE = (
    "Open markers are trials that were stopped early because they were significantly worse: their values are estimates."
)
STOPPED = "stopped early"
"""The entry of a legend for open markers."""
Label = str | tuple[str, str]
"""The column of the labels, or those of both ends of what is labelled."""


@dataclass(frozen=True)
class Bars:
    """A bar for each row, by one column or by several: stacked or beside each other, by mode.

    Only the first `most` rows are drawn. ends are the columns of an interval; hover is what a bar is called.
    """

    label: Label
    lengths: Sequence[str]
    unit: str
    what: str
    ends: tuple[str, str] | None = None
    most: int | None = None
    mode: str = "stack"
    upright: bool = False
    colours: Sequence[str] = figures.COLOURS
    hover: str = ""

    def reading(self, frame: Frame) -> Iterator[str]:
        """Yield how many of the rows are drawn, where not all are."""
        if self.most is not None and len(frame.rows) > self.most:
            yield f"The first {self.most} of {len(frame.rows)} are drawn."

    def __call__(self, frame: Frame) -> Figure:
        """Return the figure."""
        frame = frame.kept(frame.rows[: self.most])
        places = _places(frame, self.label)
        traces = []
        for k, name in enumerate(self.lengths):
            lengths = frame[name]
            marker = figures.hatched(self.colours[k % len(self.colours)], HATCHES[k % len(HATCHES)])
            if len(self.lengths) == 1:
                marker = {"color": [figures.ACCENT if (value or 0) < 0 else self.colours[0] for value in lengths]}
            elif not any(lengths):
                continue
            trace = figures.bars(name, places, lengths, horizontal=not self.upright, marker=marker)
            if self.ends is not None:
                trace["error_x"] = figures.error_bars(lengths, *map(frame.__getitem__, self.ends), width=2)
            if self.hover:
                trace |= {"text": list(map(figures.plain, frame[self.hover])), "textposition": "none"}
                trace["hovertemplate"] = "%{text}<br>%{y}<extra></extra>"
            traces.append(trace)
        unit, dense = figures.axis(self.unit), len(places) > ROOM_FOR_TEXT
        across = figures.axis(self.what, categories=places if any(isinstance(at, str) for at in places) else None)
        if self.upright:
            return figures.figure(traces, across, unit, barmode=self.mode, bargap=0 if len(places) > 100 else 0.1)
        down = across | {"autorange": "reversed"} | ({"tickfont": {"size": 11}} if dense else {})
        height = max(230, 120 + (18 if dense else 32) * len(places))
        return figures.figure(traces, unit, down, height=height, barmode=self.mode)


@dataclass(frozen=True)
class Dots:
    """A value with its interval for each row, of one series or of several beside each other.

    series maps names to the columns of value, low and high. What marks a row "worse" in the column verdict is hollow.
    by is a column whose values differ in colour. With reference, a dotted line goes through the first row.
    """

    label: Label
    series: Mapping[str, tuple[str, str, str]]
    unit: str
    what: str
    verdict: str = ""
    by: str = ""
    reference: bool = False

    def __call__(self, frame: Frame) -> Figure:
        """Return the figure."""
        known = {name: columns for name, columns in self.series.items() if columns[0] in frame.columns}
        frame = frame.known(*(value for value, _, _ in known.values()))
        labels, traces, lines = _places(frame, self.label), list[Trace](), list[Trace]()
        groups = frame[self.by] if self.by else []
        styles = list(dict.fromkeys(groups))
        verdicts = frame[self.verdict] if self.verdict else [""] * len(labels)
        for k, (name, columns) in enumerate(known.items()):
            values, low, high = (frame[c] if c in frame.columns else [None] * len(labels) for c in columns)
            rows = [j for j, value in enumerate(values) if value is not None]
            each = [styles.index(groups[j]) % 12 if styles else k - len(known) + 1 for j in rows]
            colours = [figures.GREY if at < 0 else figures.COLOURS[at] for at in each]
            symbols = [f"{figures.SYMBOLS[abs(2 * at) % 12]}{'-open' * (verdicts[j] == 'worse')}"
                       for j, at in zip(rows, each, strict=True)]  # fmt: skip
            offset = 0.26 * (k - (len(known) - 1) / 2)
            trace = figures.scatter(
                name, [values[j] for j in rows], [j + offset for j in rows],
                marker={"color": colours, "size": 10, "symbol": symbols}, text=[labels[j] for j in rows],
                hovertemplate="%{text}<br>%{x}<extra></extra>",
            )  # fmt: skip
            if any(end is not None for end in low):
                ends = (np.array([part[j] for j in rows], dtype=np.float64) for part in (values, low, high))
                trace["error_x"] = figures.error_bars(*ends, width=4, color=figures.GREY if styles else colours[0])
            traces.append(trace)
            if self.reference and values[0] is not None:
                line = {"color": colours[0], "dash": "dot", "width": 1}
                lines.append({"type": "line", "yref": "paper", "y0": 0, "y1": 1, "x0": values[0], "x1": values[0],
                              "layer": "below", "line": line})  # fmt: skip
        down = figures.axis(self.what, tickvals=list(range(len(labels))), ticktext=labels, zeroline=False)
        down["range"] = [len(labels) - 0.5, -0.5]
        height = max(230, 130 + (26 if styles else 38) * len(labels))
        return figures.figure(traces, figures.axis(self.unit, nticks=6), down, height=height, shapes=lines)


@dataclass(frozen=True)
class Curves:
    """Lines over x: one of each column ys, or of the one column for each value of the column by.

    ends are the columns of an interval of the first line; area is the name of an area and the columns of its ends.
    Lines of categories are points. Where up is a title, its axis leaves out a low tail. over is drawn on top.
    """

    x: str
    ys: Sequence[str]
    across: Axis
    up: Axis | str
    by: str = ""
    ends: tuple[str, str] | None = None
    area: tuple[str, str, str] | None = None
    step: bool = False
    markers: bool = False
    over: Sequence[Trace] = ()
    hover: str = ""

    def reading(self, frame: Frame) -> Iterator[str]:
        """Yield what lies outside of the figure."""
        yield _value_axis(self.up, frame, self.ys[0])[1]

    def __call__(self, frame: Frame) -> Figure:
        """Return the figure."""
        groups = frame.by(self.by) if self.by else dict.fromkeys(self.ys, frame)
        traces = []
        if self.area is not None:
            name, low, high = self.area
            known = frame.known(low)
            traces.append(figures.band(name, _places(known, self.x), known[low], known[high], figures.COLOURS[0]))
        category = self.across.get("type") == "category"
        mode = "markers" if category and not self.markers else "lines+markers" if self.markers else "lines"
        for k, (name, of) in enumerate(groups.items()):
            y, colour = of[self.ys[0] if self.by else name], figures.COLOURS[k % 12]
            line = {"width": 3 - (k > 0), "color": colour, "dash": DASHES[k % 6]} | (
                {"shape": "hv"} if self.step else {}
            )
            marker = {"size": 9 if category else 6, "color": colour, "symbol": figures.SYMBOLS[k % 12]}
            trace = figures.scatter(name, _places(of, self.x), y, mode=mode, line=line, marker=marker)
            if self.ends is not None and (self.by or k == 0):
                trace["error_y"] = figures.error_bars(y, *map(of.__getitem__, self.ends), width=4)
            if self.hover:
                trace |= {"text": [figures.plain(f"{name}: {value}") for value in of[self.hover]]}
            traces.append(trace)
        return figures.figure([*traces, *self.over], self.across, _value_axis(self.up, frame, self.ys[0])[0])


@dataclass(frozen=True)
class Points:
    """A point for each row with a trial, in the style of its solver: open where the trial was stopped early.

    The frame has the columns Trial and Stopped after, and may have Split, and Solver or the column by, whose values
    then have the styles. error is half of a bar's length. Where up is a title, its axis leaves out a low tail.
    """

    x: str
    y: str
    across: Axis
    up: Axis | str
    styles: Mapping[str, Mapping[str, object]]
    solver: str = ""
    error: str = ""
    over: Sequence[Trace] = ()
    by: str = "Solver"
    height: int = 380

    def reading(self, frame: Frame) -> Iterator[str]:
        """Yield what open markers are, and what lies outside of the figure."""
        yield stopped_note(frame["Stopped after"])
        yield _value_axis(self.up, frame, self.y)[1]

    def __call__(self, frame: Frame) -> Figure:
        """Return the figure."""
        up, _ = _value_axis(self.up, frame, self.y)
        frame = frame.known("Trial")
        groups = frame.by(self.by) if self.by in frame.columns else {self.solver: frame}
        traces = [trace for name in sorted(groups) for trace in self.drawn(name, groups[name])]
        return figures.figure(
            with_key([*traces, *self.over], frame["Stopped after"]), self.across, up, height=self.height
        )

    def drawn(self, solver: str, frame: Frame) -> list[Trace]:
        """Return the points of a solver, filled ones and open ones, with one entry in the legend.

        Where many are at one category they are beside each other, with a box around their middle half.
        """
        across, up = (isinstance(axis, dict) and axis.get("type") == "category" for axis in (self.across, self.up))
        traces: list[Trace] = []
        for early in (False, True):
            rows = [row for row, part in zip(frame.rows, frame["Stopped after"], strict=True) if bool(part) == early]
            if not rows:
                continue
            of, style = frame.kept(rows), {"size": 7, "opacity": 0.7, **self.styles[solver]}
            style |= {"symbol": f"{style['symbol']}-open", "opacity": 0.9} if early else {}
            x, y = (list(map(figures.plain, of[name])) if category else of[name]
                    for name, category in ((self.x, across), (self.y, up)))  # fmt: skip
            error = of[self.error] if self.error else None
            trace = figures.scatter(solver, x, y, marker=style, text=labels(of, solver), error=error)
            if across or up:
                del trace["mode"]
                line = {"width": int(not early and len(rows) >= ROWS_OF_A_BOX), "color": style["color"]}
                trace |= {"type": "box", "boxpoints": "all", "jitter": 0.6, "pointpos": 0, "hoveron": "points",
                          "fillcolor": "rgba(0,0,0,0)", "line": line, "orientation": "h" if up else "v"}  # fmt: skip
            named = not traces and self.by != self.y
            traces.append(trace | {"legendgroup": figures.plain(solver), "showlegend": named})
        return traces


def _value_axis(up: Axis | str, frame: Frame, y: str) -> tuple[Axis, str]:
    """Return the axis of the values in a column, and what lies outside; an axis that is given as it is."""
    return figures.value_axis(up, frame[y]) if isinstance(up, str) else (up, "")


def labels(frame: Frame, solver: str = "") -> list[str]:
    """Return the labels of the points of trials: solver, split, number, and where a trial was stopped."""
    splits = frame["Split"] if "Split" in frame.columns else [""] * len(frame.rows)
    return [
        ", ".join(filter(None, (figures.plain(solver), figures.plain(split), f"trial {number}",
                                part and f"stopped after {figures.plain(part, 30)}")))
        for number, split, part in zip(frame["Trial"], splits, frame["Stopped after"], strict=True)
    ]  # fmt: skip


def stopped_note(stopped: Iterable[object]) -> str:
    """Return what open markers are, "" where no trial was stopped early."""
    return NOTE * any(stopped)


def with_key(traces: Sequence[Trace], stopped: Iterable[object]) -> list[Trace]:
    """Return traces, and an entry of the legend for open markers where a trial was stopped early."""
    marker = {"symbol": "circle-open", "size": 8, "color": figures.GREY}
    return [*traces, *[figures.scatter(STOPPED, [None], [None], marker=marker, hoverinfo="skip")] * any(stopped)]


@dataclass(frozen=True)
class Heat:
    """A cell for each row of the frame, by the columns down and across, coloured by value.

    mirrored says that rows are pairs: the value of a pair in the other order is the opposite.
    text is what a cell says of its row, mark what it says where there is little room. ends are those of the colours, by
    default so that zero is in their middle.
    """

    down: str
    across: str
    value: str
    unit: str
    text: Callable[[dict[str, Any]], str]
    mark: Callable[[dict[str, Any]], str] = lambda row: ""
    mirrored: bool = False
    ends: tuple[float, float] | None = None

    def __call__(self, frame: Frame) -> Figure:
        """Return the figure."""
        rows = [dict(zip(frame.columns, row, strict=True)) for row in frame.rows]
        rows += [row | {self.down: row[self.across], self.across: row[self.down],
                        self.value: None if row[self.value] is None else -row[self.value]}
                 for row in rows if self.mirrored]  # fmt: skip
        names = [*frame[self.down], *frame[self.across]] if self.mirrored else []
        ups, sides = (list(dict.fromkeys(names or frame[name])) for name in (self.down, self.across))
        cells_of = {(row[self.down], row[self.across]): row for row in rows if row[self.value] is not None}
        shown = self.mark if len(ups) > ROOM_FOR_TEXT else self.text
        grid = [[cells_of.get((up, side)) for side in sides] for up in ups]
        z = np.array([[np.nan if row is None else row[self.value] for row in line] for line in grid], dtype=np.float64)
        text = [["" if row is None else shown(row) for row in line] for line in grid]
        hover = [[f"{figures.plain(up)}, {figures.plain(side)}" for side in sides] for up in ups]
        many = len(sides) > 4
        y, x = figures.distinct(ups, 14 if many and self.mirrored else 32), figures.distinct(sides, figures.MAX_LABEL)
        cells = figures.heat_map(x, y, z, self.unit)
        if self.ends is None:
            widest = float(np.nanmax(np.abs(z), initial=0.0)) or 1.0
            colours = [list(stop) for stop in figures.DIVERGING]
            cells |= {"colorscale": colours, "zmin": -widest, "zmax": widest, "zmid": 0.0}
        else:
            cells |= {
                "zmin": self.ends[0],
                "zmax": self.ends[1],
                "showscale": len(ups) > ROOM_FOR_TEXT,
                "xgap": 2,
                "ygap": 2,
            }
        cells |= {"text": text, "texttemplate": "%{text}", "textfont": {"size": 10 if many else 11}}
        cells |= {"customdata": hover, "hovertemplate": "%{customdata}<br>%{z}<extra></extra>"}
        across = figures.axis(self.across, categories=x, showgrid=False, tickangle=-40 if self.mirrored else "auto")
        down = figures.axis(self.down, categories=y, showgrid=False, autorange="reversed")
        height = max(240, 150 + (32 if self.mirrored else 44) * len(ups))
        return figures.figure([cells], across, down, height=height)


def _places(frame: Frame, label: Label) -> list[Any]:
    """Return the places of the rows: distinct labels of texts, numbers, the middle or the names of two columns."""
    first, *second = (frame[name] for name in ([label] if isinstance(label, str) else label))
    if not second:
        return figures.distinct(first, 36) if any(isinstance(at, str) for at in first) else first
    pairs = list(zip(first, *second, strict=True))
    if any(isinstance(b, str) for _, b in pairs):
        names = (f"{a}. {b}" if isinstance(a, int) else f"{a}: {b}" for a, b in pairs)
        return figures.distinct(names, figures.MAX_LABEL + 4)
    return [(a + b) / 2 for a, b in pairs]
