"""The tables of `ranktune explain`."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from ranktune.dashboards.terminal.tables import table, titled
from ranktune.solvers.core.arrays import JsonView

MOST_FEATURES = 20
"""Features of a table; --json has all."""


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
    notes += [f"{left} more features lose less: --json lists all."] if left > 0 else []
    notes += [f"The model does not use {explained['unused']} other features."] if explained["unused"] else []
    return _noted(f"Importance of the features on {explained['queries']} queries", rows, *notes)


def _query_table(explained: JsonView) -> RenderableType:
    first, second = explained["documents"]
    names = [_short(entry["id"]) for entry in (first, second)]
    if names[0] == names[1]:
        names = [f"{names[0]} (1)", f"{names[1]} (2)"]
    rows = table(("feature",), (*names, "contribution"))
    for entry in explained["contributions"][:MOST_FEATURES]:
        cells = ["missing" if value is None else f"{value:.4g}" for value in entry["values"]]
        rows.add_row(entry["feature"], *cells, f"{entry['contribution']:+.4f}")
    others = explained["contributions"][MOST_FEATURES:]
    if others:
        rows.add_row(f"{len(others)} others", "", "", f"{sum(entry['contribution'] for entry in others):+.4f}")
    rows.add_section()
    rows.add_row("score", *(f"{entry['score']:.4f}" for entry in (first, second)), f"{explained['difference']:+.4f}")
    for name in ("rank", "grade"):
        if first[name] is not None:
            rows.add_row(name, *("" if entry[name] is None else f"{entry[name]:g}" for entry in (first, second)), "")
    how = "They are exact, and add up to it." if explained["is_exact"] else "They are sampled, and add up to it."
    note = "Contributions of the features to the difference of the scores."
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
    return name if len(name) <= longest else name[: longest - 1] + "…"
