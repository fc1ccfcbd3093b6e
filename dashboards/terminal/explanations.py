"""The tables of `ranktune explain`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.text import Text

from ranktune.dashboards.terminal.tables import table, titled
from ranktune.solvers.core.arrays import JsonView

MOST_FEATURES = 20
"""Features of a table; --json has all."""


def explanation(found: JsonView, top: int = MOST_FEATURES) -> RenderableType:
    """Return what ranktune.explain found as a table of at most top features."""
    if "contributions" in found:
        return _query_table(found, top)
    return _effects_table(found) if "effects" in found else _importance_table(found, top)


def _importance_table(found: JsonView, top: int) -> RenderableType:
    rows = table(("feature",), ("loss", "95% interval"))
    for one in found["features"][:top]:
        low, high = one["interval"]
        rows.add_row(escape(one["feature"]), f"{one['loss']:.4f}", f"{low:.4f} to {high:.4f}")
    left = len(found["features"]) - top
    notes = [f"Loss of {found['metric']} ({found['mean']:.4f}) if a feature is shuffled within queries."]
    notes += [f"{left} more features lose less: --json lists all."] if left > 0 else []
    notes += [f"The model does not use {found['unused']} other features."] if found["unused"] else []
    return _noted(f"Importance of the features on {found['queries']} queries", rows, *notes)


def _query_table(found: JsonView, top: int) -> RenderableType:
    first, second = found["documents"]
    names = [_short(one["id"]) for one in (first, second)]
    if names[0] == names[1]:
        names = [f"{names[0]} (1)", f"{names[1]} (2)"]
    rows = table(("feature",), (*names, "contribution"))
    shown: Sequence[Mapping[str, object]] = found["contributions"][:top]
    for one in found["contributions"][:top]:
        cells = ["missing" if value is None else f"{value:.4g}" for value in one["values"]]
        rows.add_row(escape(one["feature"]), *cells, f"{one['contribution']:+.4f}")
    others = found["contributions"][len(shown) :]
    if others:
        rows.add_row(f"{len(others)} others", "", "", f"{sum(one['contribution'] for one in others):+.4f}")
    rows.add_section()
    rows.add_row("score", *(f"{one['score']:.4f}" for one in (first, second)), f"{found['difference']:+.4f}")
    for name in ("rank", "grade"):
        if first[name] is not None:
            rows.add_row(name, *("" if one[name] is None else f"{one[name]:g}" for one in (first, second)), "")
    how = "They are exact, and add up to it." if found["is_exact"] else "They are sampled, and add up to it."
    note = "Contributions of the features to the difference of the scores."
    return _noted(f"Query {found['query']}: {first['id']} and {second['id']}", rows, note, how)


def _effects_table(found: JsonView) -> RenderableType:
    rows = table((escape(_short(found["feature"])),), ("effect on the score",))
    for one in found["effects"]:
        rows.add_row(f"{one['value']:.6g}", f"{one['effect']:+.4f}")
    note = "Mean score of documents that are given the value, beside the mean of their query."
    return _noted(f"Effect of {found['feature']}, over {found['queries']} queries", rows, note)


def _noted(title: str, rows: RenderableType, *notes: str) -> RenderableType:
    return Group(titled(title, rows), *map(Text, notes))


def _short(name: str, longest: int = 18) -> str:
    return name if len(name) <= longest else name[: longest - 1] + "…"
