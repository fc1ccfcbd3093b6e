"""The days on which a study was watched: alarms, the metric with its interval, and the features that moved."""

from __future__ import annotations

from collections.abc import Sequence

from ranktune.dashboards.figures import plotly as figures
from ranktune.dashboards.figures.panels import Cell, Figure, Panel, Table
from ranktune.dashboards.records.study import StudyData
from ranktune.solvers.core.arrays import Json
from ranktune.solvers.core.errors import StudyError
from ranktune.tuner.drift.days import read_days

MAX_MOVED = 50
"""Features of a table."""


def panels(data: StudyData) -> list[Panel]:
    """Return the days, the metric on them, and the features that moved on the last of them."""
    try:
        days = read_days(data.folder)
    except StudyError as damage:
        note = f"{damage} Remove the file to see the other days."
        return [Panel("days", "Days that were watched", note=note)]
    if not days:
        note = f"`ranktune watch {data.name} NEW_DATA` compares new data with those of the study; each day is kept."
        return [Panel("days", "Days that were watched", note=note)]
    return [_days(data, days), _moved(days[-1])]


_COLUMNS = (
    "Day", "Data", "Alarm", "Queries", "p of the features", "Features that moved", "Metric", "Low", "High", "Loss, p",
)  # fmt: skip


def _days(data: StudyData, days: Sequence[Json]) -> Panel:
    rows: list[list[Cell]] = []
    for each in days:
        measured = each["quality"] or {}
        metric = (measured.get(name) for name in ("mean", "low", "high", "p"))
        first = (each["day"], each["data"], "alarm" if each["alarm"] else "", each["queries"])
        rows.append([*first, each["p_features"], len(each["moved"]), *metric])
    note = (
        f"Where nothing changes, {days[-1]['rate']:.0%} of the days are an alarm. A p value of a part is an alarm up "
        f"to {days[-1]['rate_part']:.4f}."
    )
    return Panel("days", "Days that were watched", Table(_COLUMNS, rows), _figure(data.metric, days), note)


def _figure(metric: str, days: Sequence[Json]) -> Figure | None:
    known = [each for each in days if each["quality"] is not None]
    if not known:
        return None
    when, measured = [each["day"] for each in known], [each["quality"] for each in known]
    mean, low, high = ([each[name] for each in measured] for name in ("mean", "low", "high"))
    trace = figures.scatter(
        "new data", when, mean, mode="lines+markers",
        marker={
            "size": 10, "color": [figures.ACCENT if each["alarm"] else figures.COLOURS[0] for each in known],
            "symbol": ["x" if each["alarm"] else "circle" for each in known],
        },
        text=["alarm" if each["alarm"] else "no alarm" for each in known],
    )  # fmt: skip
    trace["error_y"] = figures.error_bars(mean, low, high, width=4)
    promised = figures.band(
        "promised", when, [each["promised_low"] for each in measured], [each["promised_high"] for each in measured],
        figures.GREY,
    )  # fmt: skip
    return figures.figure([promised, trace], figures.axis("day", categories=when), figures.axis(metric))


def _moved(day: Json) -> Panel:
    rows = [
        [
            each["feature"],
            each["shift"],
            each["distance"],
            each["missing"],
            each["missing_before"],
            each["q"],
        ]
        for each in day["features"][: len(day["moved"])][:MAX_MOVED]
    ]
    columns = ("Feature", "Shift of the mean, in standard deviations", "Distance", "Missing", "Missing before", "q")
    note = (
        "Compared with the training data, by query. Distance: of the distribution functions (Kolmogorov-Smirnov). Of "
        f"the features here 5 % are false in the mean. {len(day['moved'])} of {len(day['features'])} have moved."
    )
    return Panel("moved", f"Features that moved on {day['day']}", Table(columns, rows), None, note)
