"""The days on which a study was watched: alarms, the metric with its interval, and the features that moved."""

from __future__ import annotations

from collections.abc import Sequence

from ranktune.dashboards.figures import plotly as figures
from ranktune.dashboards.figures.kinds import Curves
from ranktune.dashboards.figures.panels import Frame, Panel
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
        note = f"`ranktune watch {data.name} NEW_DATA` compares new data with those of the study; each day is kept."
    except StudyError as damage:
        days, note = [], f"{damage} Remove the file to see the other days."
    if not days:
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
    table, last = Frame(_COLUMNS, rows), days[-1]
    alarms = table.by("Alarm").get("alarm", Frame(_COLUMNS))
    marker = {"symbol": "x", "size": 12, "color": figures.ACCENT}
    kind = Curves(
        "Day", ("Metric",), figures.axis("day", categories=table["Day"]), figures.axis(data.metric),
        ends=("Low", "High"), area=("promised", "Promised low", "Promised high"), markers=True,
        over=[figures.scatter("alarm", alarms["Day"], alarms["Metric"], marker=marker)] if alarms.rows else (),
    )  # fmt: skip
    note = (
        f"Where nothing changes, {last['rate']:.0%} of the days are an alarm. A p value of a part is an alarm up to "
        f"{last['rate_part']:.4f}."
    )
    ended = f"the last, {last['day']}, had {'one' if last['alarm'] else 'none'}"
    answer = f"{len(alarms.rows)} of {len(days)} days had an alarm; {ended}."
    drawn = kind if table.known("Metric").rows else None
    return Panel("days", "Days that were watched", table, drawn, note, "", answer)


def _moved(day: Json) -> Panel:
    names = ("feature", "shift", "distance", "missing", "missing_before", "q")
    rows = [[each[name] for name in names] for each in day["features"][: len(day["moved"])][:MAX_MOVED]]
    columns = ("Feature", "Shift of the mean, in standard deviations", "Distance", "Missing", "Missing before", "q")
    note = (
        "Compared with the training data, by query. Distance: of the distribution functions (Kolmogorov-Smirnov). Of "
        f"the features here 5 % are false in the mean. {len(day['moved'])} of {len(day['features'])} have moved."
    )
    return Panel("moved", f"Features that moved on {day['day']}", Frame(columns, rows), None, note)
