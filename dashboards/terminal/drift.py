"""The tables of `ranktune watch`."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from ranktune.dashboards.terminal.tables import four_digits, table, titled
from ranktune.solvers.core.arrays import JsonView

MOST_FEATURES = 10
"""Features of a table; --json has all."""


def drift_table(found: JsonView) -> RenderableType:
    """Return what new data say of a study, as tables."""
    verdict = "ALARM" if found["alarm"] else "no alarm"
    what = f"{found['data']}, {found['queries']} queries"
    shown = [titled(f"{found['study']}, {found['day']}: {verdict}", _parts(found)), *_features(found)]
    if found["quality"] is not None:
        shown += [titled(f"The metric on {what}", _metric(found["quality"])), *_worst(found["quality"])]
    return Group(*shown, *(Text(f"Note: {note}") for note in found["notes"]))


def _parts(found: JsonView) -> RenderableType:
    rows, measured, rate = table(("what",), ("p", "alarm at", "verdict")), found["quality"], found["rate_part"]
    if found["p_features"] is not None:
        p = found["p_features"]
        rows.add_row(f"{len(found['features'])} features", f"{p:.4f}", f"{rate:.4f}", "moved" if p <= rate else "alike")
    if measured is not None:
        verdict = "no loss found" if measured["holds"] else "worse"
        rows.add_row(measured["metric"], f"{measured['p']:.4f}", f"{rate:.4f}", verdict)
    rows.caption = f"{found['rate']:.0%} of days are an alarm where nothing changes"
    return rows


def _features(found: JsonView) -> list[RenderableType]:
    if found["p_features"] is None:
        return []
    count, tested = len(found["moved"]), f"{found['tested']} new and {found['reference_queries']} training queries"
    if not count:
        return [Text(f"No single feature has moved for sure, by {tested}.\n")]
    rows = table(("feature",), ("shift", "distance", "missing", "before", "q"))
    for each in found["features"][: min(count, MOST_FEATURES)]:
        shift = "constant" if each["constant"] else "" if each["shift"] is None else f"{each['shift']:+.2f} sd"
        shares = (f"{each[name]:.1%}" for name in ("missing", "missing_before"))
        rows.add_row(each["feature"], shift, f"{each['distance']:.3f}", *shares, f"{each['q']:.4f}")
    rows.caption = "distance: Kolmogorov-Smirnov; q: false discovery rate"
    more = f", the first {MOST_FEATURES}" if count > MOST_FEATURES else ""
    return [titled(f"Features that moved: {count} of {len(found['features'])}{more}, by {tested}", rows)]


def _metric(measured: JsonView) -> RenderableType:
    rows = table((measured["metric"],), ("mean", "95% interval"))
    for title, mean, prefix in (("promised", "promised", "promised_"), ("new data", "mean", "")):
        ends = f"{measured[prefix + 'low']:.4f} to {measured[prefix + 'high']:.4f}"
        rows.add_row(title, four_digits(measured[mean]), ends)
    if measured["part"] == "test":
        rows.add_row("test queries of the study", four_digits(measured["before"]), "")
    over = f"over {measured['paired']} queries of both" if measured["paired"] else "two means"
    half = 1.96 * measured["error"]
    difference = measured["difference"]
    rows.add_row(f"difference, {over}", f"{difference:+.4f}", f"{difference - half:+.4f} to {difference + half:+.4f}")
    if measured["error"]:
        rows.caption = f"a loss of {measured['detectable']:.4f} is found on 80 % of such days"
    return rows


def _worst(measured: JsonView) -> list[RenderableType]:
    if not measured["worst"]:
        return []
    rows = table(("query",), ("new", "before") if measured["paired"] else ("new",))
    for each in measured["worst"]:
        values = (each["value"], each["before"]) if measured["paired"] else (each["value"],)
        rows.add_row(each["query"], *map(four_digits, values))
    title = "Queries that lost most" if measured["paired"] else "Queries with the worst values"
    return [titled(title, rows)]
