"""The days on which a study was watched: the verdict on the last, the metric day by day, the features that moved."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ranktune.dashboards.figures import plotly as figures
from ranktune.dashboards.figures.kinds import Curves
from ranktune.dashboards.figures.panels import Frame, Panel, facts
from ranktune.dashboards.records.study import StudyData
from ranktune.solvers.core.arrays import Json
from ranktune.solvers.core.errors import StudyError
from ranktune.tuner.drift.watching import read_days

_COLUMNS = (
    "Day", "Data", "Alarm", "Queries", "p of the features", "Features that moved", "Metric", "Low", "High", "Loss, p",
    "Promised low", "Promised high",
)  # fmt: skip
_MOVED = {
    "Feature": "feature", "Before and now": "", "Shift of the mean": "shift", "Distance": "distance",
    "Missing": "missing", "Missing before": "missing_before", "q": "q",
}  # fmt: skip


def panels(data: StudyData) -> list[Panel]:
    """Return the numbers of the last day, the metric on all days, and the features that moved on the last."""
    try:
        days = read_days(data.folder)
        note = f"`ranktune watch {data.name} NEW_DATA` compares new data with those of the study; each day is kept."
    except StudyError as damage:
        days, note = [], f"{damage} Remove the file to see the other days."
    if not days:
        return [Panel("days", "Days that were watched", note=note)]
    return [_numbers(data, days), _days(data, days), _moved(days[-1])]


def _numbers(data: StudyData, days: Sequence[Json]) -> Panel:
    """Return the numbers of the last day; the answer is its verdict."""
    last, alarms = days[-1], sum(day["alarm"] for day in days)
    measured, of_features = last["quality"], f"{len(last['moved'])} of {len(last['features'])}"
    rows: list[tuple[str, object]] = [("features that moved", of_features)] * (last["p_features"] is not None)
    if measured is not None:
        for name, part in ((data.metric, "mean"), ("promised by the study", "promised")):
            ends = (measured[end if part == "mean" else f"promised_{end}"] for end in ("low", "high"))
            rows.append((name, "{:.3f} [{:.3f}, {:.3f}]".format(measured[part], *ends)))
    rows += [("queries", last["queries"]), ("days with an alarm", f"{alarms} of {len(days)}")]
    answer = f"{'Alarm' if last['alarm'] else 'No alarm'} on {last['day']}: {', and '.join(_parts(data, last))}."
    note = f"`ranktune retune {data.name} NEW_DATA` keeps, refits or replaces the model." * last["alarm"]
    return Panel("numbers", f"Numbers of {last['day']}", facts(rows), None, note, "", answer)


def _parts(data: StudyData, day: Json) -> Iterator[str]:
    """Yield what became of the features and of the metric, those that were watched."""
    p, measured, moved = day["p_features"], day["quality"], len(day["moved"])
    if p is not None:
        are = f"{moved or 'some'} of {len(day['features'])} features {'has' if moved == 1 else 'have'} moved"
        yield are if p <= day["rate_part"] else "the features are as before"
    if measured is not None:
        now = f"{data.metric} is {measured['mean']:.3f}"
        than = f"lower by {-measured['difference']:.3f} than in the study"
        yield f"{now}, {'not worse than before' if measured['holds'] else than}"


def _days(data: StudyData, days: Sequence[Json]) -> Panel:
    names = ("mean", "low", "high", "p", "promised_low", "promised_high")
    rows = [
        [
            each["day"], each["data"], "alarm" if each["alarm"] else "", each["queries"], each["p_features"],
            len(each["moved"]), *((each["quality"] or {}).get(name) for name in names),
        ]
        for each in days
    ]  # fmt: skip
    table = Frame(_COLUMNS, rows)
    alarms = table.by("Alarm").get("alarm", Frame(_COLUMNS))
    marker = {"symbol": "x", "size": 12, "color": figures.ACCENT}
    kind = Curves(
        "Day", ("Metric",), figures.axis("day", categories=table["Day"]), figures.axis(data.metric),
        ends=("Low", "High"), area=("promised", "Promised low", "Promised high"), markers=True,
        over=[figures.scatter("alarm", alarms["Day"], alarms["Metric"], marker=marker)] if alarms.rows else (),
    )  # fmt: skip
    note = f"Where nothing changes, {days[-1]['rate']:.0%} of the days have an alarm."
    drawn = kind if table.known("Metric").rows else None
    return Panel("days", f"{data.metric} of each day, beside what the study promised", table, drawn, note)


def _moved(day: Json) -> Panel:
    """Return the features that moved, those that moved furthest first, with their values before and now."""
    shown = [each for each in day["features"] if each["feature"] in day["moved"]]
    furthest = sorted(shown, key=lambda each: -max(each["distance"], abs(each["missing"] - each["missing_before"])))
    rows = [
        [each[name] if name else [each["before"], each["now"]] if "now" in each else None for name in _MOVED.values()]
        for each in furthest
    ]
    note = (
        "Grey bars are the training data, the line the new ones. The shift is in standard deviations, the distance is "
        "that of the distribution functions (Kolmogorov-Smirnov). Of the features here 5 % are false in the mean."
    )
    title = f"Features that moved: {len(shown)} of {len(day['features'])}"
    return Panel("moved", title, Frame(tuple(_MOVED), rows), None, note if rows else "", shown=True)
