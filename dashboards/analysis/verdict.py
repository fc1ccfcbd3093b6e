"""The conclusion of a study on one page: what was chosen, the runner-up, why, what it gains, and what to watch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from ranktune.dashboards.records.choice import chosen_because, tuning_gained
from ranktune.dashboards.records.study import StudyData
from ranktune.solvers.core.arrays import JsonView
from ranktune.tuner.selection.results import ALIKE, BASELINE, BETTER, gain_sentence

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
        ("gain", _gain(result)),
        ("expected", f"{data.metric} {estimate:.4f} {limits} on new queries, by validation." if estimate else ""),
        ("watch", " ".join(filter(None, [data.damage, *_watch(result)])) or "Nothing."),
    ]
    return [(what, text) for what, text in rows if text]


def chosen_name(result: JsonView) -> str:
    """Return the solver of the chosen model; over folds, how often each was chosen."""
    if not result.get("folds"):
        return str(result["best"]["solver"])
    solvers = Counter(fold["best"]["solver"] for fold in result["folds"])
    return ", ".join(f"{name} on {n}" for name, n in solvers.items()) + f" of {len(result['folds'])} folds"


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


def _rivals(result: JsonView) -> list[JsonView]:
    return [row for row in result["leaderboard"][1:] if row["solver"] != BASELINE]


def _runner_up(result: JsonView) -> str:
    """Return the best other model by validation, and how it differs from the chosen one."""
    rivals = _rivals(result)
    if not rivals:
        return "There was no other model."
    row = rivals[0]
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
    return chosen_because(result) or (f"It is the highest {where}." if _rivals(result) else "")


def _gain(result: JsonView) -> str:
    gain = result.get("gain")
    return " ".join(filter(None, ["" if gain is None else gain_sentence(gain), tuning_gained(result)]))


def _watch(result: JsonView) -> Iterator[str]:
    """Yield what speaks against the choice, or calls for a look."""
    gain, best = result.get("gain"), result["best"]
    if gain is not None and gain["difference"] is not None and not gain["interval"][0] > 0.0:
        yield "It is not significantly better than the baseline."
    limits, test = result.get("expected_on_test_interval"), best.get("test")
    if limits is not None and None not in (test, *limits) and not limits[0] <= test <= limits[1]:
        yield "The test score is outside the interval that validation expects: the test queries may differ."
    alike = [row["solver"] for row in _rivals(result) if row.get("verdict") == ALIKE]
    smallest = (result.get("alternatives") or {}).get("smallest")
    if smallest in alike:
        yield f"{smallest} is not significantly different, and the smallest."
    if result["failures"]:
        yield f"{len(result['failures'])} failed; the overview has the errors."
    if not best.get("is_served", True):
        yield "The systems of --serve cannot load it."
    yield str(result.get("ended_early") or "")
