"""The tables of `ranktune watch`, `ranktune explain` and `ranktune retune --history`."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.text import Text

from ranktune.dashboards.terminal.tables import MARK, FittedTable, four_digits, table, titled
from ranktune.solvers.core.arrays import JsonView

MOST_MOVED, MOST_FEATURES = 10, 20
"""Features of a table of `ranktune watch`, and of `ranktune explain`; --json has all."""


def drift_table(found: JsonView) -> RenderableType:
    """Return what new data say of a study, as tables."""
    return Group(*_drift(found), *(Text(f"Note: {note}") for note in found["notes"]))


def _drift(found: JsonView) -> Iterator[RenderableType]:
    verdict, what = "ALARM" if found["alarm"] else "no alarm", f"{found['data']}, {found['queries']} queries"
    yield titled(f"{found['study']}, {found['day']}: {verdict}", _parts(found))
    if found["p_features"] is not None:
        yield _features(found)
    if (measured := found["quality"]) is not None:
        yield titled(f"The metric on {what}", _metric(measured))
        if measured["worst"]:
            yield _worst(measured)


def _parts(found: JsonView) -> RenderableType:
    rows, measured, rate = table(("what",), ("p", "alarm at", "verdict")), found["quality"], f"{found['rate_part']:.4f}"
    if (p := found["p_features"]) is not None:
        verdict = "moved" if p <= found["rate_part"] else "alike"
        rows.add_row(f"{len(found['features'])} features", f"{p:.4f}", rate, verdict)
    if measured is not None:
        verdict = "no loss found" if measured["holds"] else "worse"
        rows.add_row(measured["metric"], f"{measured['p']:.4f}", rate, verdict)
    rows.caption = f"{found['rate']:.0%} of days are an alarm where nothing changes"
    return rows


def _features(found: JsonView) -> RenderableType:
    count, tested = len(found["moved"]), f"{found['tested']} new and {found['reference_queries']} training queries"
    if not count:
        return Text(f"No single feature has moved for sure, by {tested}.\n")
    rows = table(("feature",), ("shift", "distance", "missing", "before", "q"))
    for each in found["features"][: min(count, MOST_MOVED)]:
        shift = "constant" if each["constant"] else "" if each["shift"] is None else f"{each['shift']:+.2f} sd"
        shares = (f"{each[name]:.1%}" for name in ("missing", "missing_before"))
        rows.add_row(each["feature"], shift, f"{each['distance']:.3f}", *shares, f"{each['q']:.4f}")
    rows.caption = "distance: Kolmogorov-Smirnov; q: false discovery rate"
    more = f", the first {MOST_MOVED}" * (count > MOST_MOVED)
    return titled(f"Features that moved: {count} of {len(found['features'])}{more}, by {tested}", rows)


def _metric(measured: JsonView) -> RenderableType:
    rows = table((measured["metric"],), ("mean", "95% interval"))
    for title, mean, prefix in (("promised", "promised", "promised_"), ("new data", "mean", "")):
        ends = f"{measured[prefix + 'low']:.4f} to {measured[prefix + 'high']:.4f}"
        rows.add_row(title, four_digits(measured[mean]), ends)
    if measured["part"] == "test":
        rows.add_row("test queries of the study", four_digits(measured["before"]), "")
    over = f"over {measured['paired']} queries of both" if measured["paired"] else "two means"
    difference, half = measured["difference"], 1.96 * measured["error"]
    rows.add_row(f"difference, {over}", f"{difference:+.4f}", f"{difference - half:+.4f} to {difference + half:+.4f}")
    if half:
        rows.caption = f"a loss of {measured['detectable']:.4f} is found on 80 % of such days"
    return rows


def _worst(measured: JsonView) -> RenderableType:
    columns = ("value", "before") if measured["paired"] else ("value",)
    rows = table(("query",), ("new", "before")[: len(columns)])
    for each in measured["worst"]:
        rows.add_row(each["query"], *(four_digits(each[name]) for name in columns))
    return titled("Queries that lost most" if measured["paired"] else "Queries with the worst values", rows)


def explanation(explained: JsonView) -> RenderableType:
    """Return the result of ranktune.explain as a table of at most MOST_FEATURES features."""
    if "contributions" in explained:
        return _query_table(explained)
    return _effects_table(explained) if "effects" in explained else _importance_table(explained)


def _importance_table(explained: JsonView) -> RenderableType:
    rows = table(("feature",), ("loss", "95% interval"))
    for entry in explained["features"][:MOST_FEATURES]:
        low, high = entry["interval"]
        rows.add_row(entry["feature"], f"{entry['loss']:.4f}", f"{low:.4f} to {high:.4f}")
    left = len(explained["features"]) - MOST_FEATURES
    notes = [f"Loss of {explained['metric']} ({explained['mean']:.4f}) if a feature is shuffled within queries."]
    notes += [f"{left} more features lose less: --json lists all."] * (left > 0)
    notes += [f"The model does not use {explained['unused']} other features."] * bool(explained["unused"])
    return _noted(f"Importance of the features on {explained['queries']} queries", rows, *notes)


def _query_table(explained: JsonView) -> RenderableType:
    first, second = documents = explained["documents"]
    names = [_short(entry["id"]) for entry in documents]
    if names[0] == names[1]:
        names = [f"{names[0]} (1)", f"{names[1]} (2)"]
    rows = table(("feature",), (*names, "contribution"))
    for entry in explained["contributions"][:MOST_FEATURES]:
        cells = ["missing" if value is None else f"{value:.4g}" for value in entry["values"]]
        rows.add_row(entry["feature"], *cells, f"{entry['contribution']:+.4f}")
    if others := explained["contributions"][MOST_FEATURES:]:
        rows.add_row(f"{len(others)} others", "", "", f"{sum(entry['contribution'] for entry in others):+.4f}")
    rows.add_section()
    rows.add_row("score", *(f"{entry['score']:.4f}" for entry in documents), f"{explained['difference']:+.4f}")
    for name in ("rank", "grade"):
        if first[name] is not None:
            rows.add_row(name, *("" if entry[name] is None else f"{entry[name]:g}" for entry in documents), "")
    note = "Contributions of the features to the difference of the scores."
    how = f"They are {'exact' if explained['is_exact'] else 'sampled'}, and add up to it."
    return _noted(f"Query {explained['query']}: {first['id']} and {second['id']}", rows, note, how)


def _effects_table(explained: JsonView) -> RenderableType:
    rows = table((_short(explained["feature"]),), ("effect on the score",))
    for point in explained["effects"]:
        rows.add_row(f"{point['value']:.6g}", f"{point['effect']:+.4f}")
    note = "Mean score of documents that are given the value, beside the mean of their query."
    return _noted(f"Effect of {explained['feature']}, over {explained['queries']} queries", rows, note)


def _noted(title: str, rows: RenderableType, *notes: str) -> RenderableType:
    return Group(titled(title, rows), *map(Text, notes))


def _short(name: str, longest: int = 18) -> str:
    return name if len(name) <= longest else f"{name[: longest - 1]}…"


def history_table(found: JsonView) -> FittedTable:
    """Return the versions of a study as a table, the current one marked."""
    left: dict[str, list[str]] = {"": [], "version": [], "decision": [], "solver": []}
    right: dict[str, list[str]] = {found["metric"]: [], "95% interval": [], "gain": [], "features": [], "queries": []}
    for row in found["versions"]:
        done, ends = row["state"] == "finished", row["interval"]
        cells = (
            MARK * row["current"], row["version"], row["decision"] if done else row["state"], row["solver"],
            four_digits(row["quality"]), "" if ends is None else f"{ends[0]:.4f} to {ends[1]:.4f}",
            "" if row["gain"] is None else f"{row['gain']:+.4f}", str(len(row["features"])) * done,
            str(row["queries"] or ""),
        )  # fmt: skip
        for column, cell in zip((*left.values(), *right.values()), cells, strict=True):
            column.append(cell)
    return FittedTable(left, right, ("queries", "features", "gain", "95% interval"))


def changes(found: JsonView) -> list[str]:
    """Return what changed from version to version, a line a version."""
    return [f"{row['version']}: {'; '.join(row['changes'])}." for row in found["versions"] if row["changes"]]
