"""The conclusion of a study on one page: what was chosen, the runner-up, why, what it gains, and what to watch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ranktune.dashboards.figures.panels import joined
from ranktune.dashboards.records.choice import (
    chosen_because,
    chosen_name,
    gain,
    higher_on_test,
    outside,
    rivals,
    tuning_gained,
)
from ranktune.dashboards.records.study import StudyData
from ranktune.solvers.core.arrays import JsonView
from ranktune.tuner.selection.results import ALIKE, BETTER

_ENDS = {ALIKE: "not significantly different (Holm, 0.05)", BETTER: "better on the test queries"}


def verdict(data: StudyData) -> list[tuple[str, str]]:
    """Return what to know of a finished study and the sentences that say it; nothing of an unfinished one."""
    result = data.result
    if result is None:
        return []
    estimate, limits = result.get("estimate"), interval(result.get("estimate_interval"))
    rows = [
        ("chosen", _scored(result["best"], chosen_name(result))),
        ("runner-up", _runner_up(result)),
        ("why", _why(result)),
        ("gain", joined(gain(result), tuning_gained(result))),
        ("expected", f"{data.metric} {estimate:.4f} {limits} on new queries, by validation." if estimate else ""),
        ("watch", joined(data.damage, *_watch(result)) or "Nothing."),
    ]
    return [(what, text) for what, text in rows if text]


def interval(limits: Sequence[float | None] | None) -> str:
    """Return an interval as text; "" where it is not known."""
    return "" if limits is None or None in limits else f"[{limits[0]:.4f}, {limits[1]:.4f}]"


def _scored(row: JsonView, name: str) -> str:
    scores = [("fresh folds", "again"), ("validation", "vali"), ("test", "test")]
    known = [
        f"{title} {row[key]:.4f} {interval(row.get(f'{key}_interval'))}".strip()
        for title, key in scores
        if row.get(key) is not None
    ]
    return f"{name}: {', '.join(known)}." if known else f"{name}."


def _runner_up(result: JsonView) -> str:
    """Return the best other model by validation, and how it differs from the chosen one."""
    others = rivals(result)
    if not others:
        return "There was no other model."
    row = others[0]
    scored, difference, found = _scored(row, row["solver"]), row.get("difference"), str(row.get("verdict"))
    if difference is None:
        return scored
    limits, ends = interval(row.get("difference_interval")), _ENDS.get(found, found)
    return f"{scored} {difference:+.4f} {limits} against the chosen: {ends}."


def _why(result: JsonView) -> str:
    """Return the number that decided, and why it did where another row's is higher."""
    if result.get("folds"):
        return "Each fold chose by its own validation queries."
    best = result["best"]
    if best.get("vali") is None:
        return ""
    where = "by validation" if best.get("again") is None else "on fresh folds"
    return chosen_because(result) or (f"It is the highest {where}." if rivals(result) else "")


def _watch(result: JsonView) -> Iterator[str]:
    """Yield what speaks against the choice, or calls for a look."""
    measured, best = result.get("gain"), result["best"]
    if measured is not None and measured["difference"] is not None and not measured["interval"][0] > 0.0:
        yield "It is not significantly better than the baseline."
    yield higher_on_test(result)
    yield outside(result).replace("That", "The test score")
    alike = [row["solver"] for row in rivals(result) if row.get("verdict") == ALIKE]
    smallest = (result.get("alternatives") or {}).get("smallest")
    if smallest in alike:
        yield f"{smallest} is not significantly different, and the smallest."
    if result["failures"]:
        yield f"{len(result['failures'])} failed; the overview has the errors."
    if not best.get("is_served", True):
        yield "The systems of --serve cannot load it."
    yield str(result.get("ended_early") or "")
