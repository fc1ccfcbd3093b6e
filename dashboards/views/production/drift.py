"""The days on which a study was watched: alarms, the metric with its interval, and the features that moved."""

from __future__ import annotations

from collections.abc import Sequence

from ranktune.dashboards.figures import plotly as figures
from ranktune.dashboards.figures.kinds import Lines
from ranktune.dashboards.figures.panels import Frame, Panel, joined
from ranktune.dashboards.records.study import StudyData
from ranktune.solvers.core.arrays import Json
from ranktune.solvers.core.errors import StudyError
from ranktune.tuner.drift.watching import read_days

MAX_MOVED = 50
"""Features of a table."""
_COLUMNS = (
    "Day", "Data", "Alarm", "Queries", "p of the features", "Features that moved", "Metric", "Low", "High", "Loss, p",
    "Promised low", "Promised high",
)  # fmt: skip


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


def _days(data: StudyData, days: Sequence[Json]) -> Panel:
    names = ("mean", "low", "high", "p", "promised_low", "promised_high")
    rows = [
        [
            each["day"], each["data"], "alarm" if each["alarm"] else "", each["queries"], each["p_features"],
            len(each["moved"]), *((each["quality"] or {}).get(name) for name in names),
        ]
        for each in days
    ]  # fmt: skip
    alarms = [(row[0], row[6]) for row in rows if row[2]]
    marker = {"symbol": "x", "size": 12, "color": figures.ACCENT}
    x, y = zip(*alarms, strict=True) if alarms else ((), ())
    kind = Lines(
        "Day", ("Metric",), figures.axis("day", categories=[row[0] for row in rows]), figures.axis(data.metric),
        ends=("Low", "High"), area=("promised", "Promised low", "Promised high"), markers=True,
        over=[figures.scatter("alarm", x, y, marker=marker)] if alarms else (),
    )  # fmt: skip
    note = joined(
        f"Where nothing changes, {days[-1]['rate']:.0%} of the days are an alarm.",
        f"A p value of a part is an alarm up to {days[-1]['rate_part']:.4f}.",
    )
    drawn = kind if any(row[6] is not None for row in rows) else None
    answer = (
        f"{len(alarms)} of {len(days)} days had an alarm; the last, {days[-1]['day']}, had "
        f"{'one' if days[-1]['alarm'] else 'none'}."
    )
    return Panel("days", "Days that were watched", Frame(_COLUMNS, rows), drawn, note, "", answer)


def _moved(day: Json) -> Panel:
    names = ("feature", "shift", "distance", "missing", "missing_before", "q")
    rows = [[each[name] for name in names] for each in day["features"][: len(day["moved"])][:MAX_MOVED]]
    columns = ("Feature", "Shift of the mean, in standard deviations", "Distance", "Missing", "Missing before", "q")
    note = (
        "Compared with the training data, by query. Distance: of the distribution functions (Kolmogorov-Smirnov). Of "
        f"the features here 5 % are false in the mean. {len(day['moved'])} of {len(day['features'])} have moved."
    )
    return Panel("moved", f"Features that moved on {day['day']}", Frame(columns, rows), None, note)
