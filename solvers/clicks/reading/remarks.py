"""What a reader of a log should know: the columns found, what was assumed, and what is suspicious."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from ranktune.solvers.clicks.reading.joining import LogRules
from ranktune.solvers.clicks.reading.store import NONE, Store
from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.errors import listed


@dataclass
class Seen:
    """What one pass over the impressions of a log saw: counts by name, impressions by position, clicks by query."""

    shown: Floats
    clicks: Floats
    counts: Counter[str] = field(default_factory=Counter)
    positions: Counter[int] = field(default_factory=Counter)


_COUNTS = {
    "out of order": "{} events come after a later one of their session in the files. They are sorted by time.",
    "early": "{} events are earlier than the impression that they belong to: clocks disagree.",
    "of results": "{} impressions are results that queries list and no event shows: they may not have been seen.",
    "at one place": "{} impressions share their place in a list with another document at the same time. Does a "
    "document change its id, or do positions begin anew on each page?",
}


def remarks_of(store: Store, rules: LogRules, seen: Seen, *, given: int | None) -> Iterator[str]:
    """Yield the remarks on a log; given is the first position that the user gave."""
    yield from _on_columns(store, rules)
    yield from _on_positions(store, rules, seen, given)
    bots = int(rules.bots.sum())
    if bots:
        yield (
            f"{bots:,} sessions are left out as bots: each has more than 1,000 clicks, or at least 50 "
            "impressions of which it clicks 95 % or more."
        )
    for name, text in _COUNTS.items():
        if seen.counts[name]:
            yield text.format(f"{seen.counts[name]:,}")
    shown = seen.shown > 0
    without = int((shown & (seen.clicks <= 0)).sum())
    if without:
        yield f"{without:,} of {int(shown.sum()):,} queries have no click: nothing tells their documents apart."


def _on_columns(store: Store, rules: LogRules) -> Iterator[str]:
    found = [f"{role} from {listed(names)}" for role, names in store.columns.items()]
    yield f"Columns: {'; '.join(found)}."
    if "query" not in store.columns:
        yield "There is no column of queries: all impressions are of one query. If a column holds them, name it query."
    if "session" not in store.columns:
        what = "search" if "kind" in store.columns else "impression"
        yield f"There is no column of sessions or users: each {what} is a session of its own."
    counted = [kind for kind in store.counted if kind not in ("impression", "query")]
    weights = [f"{kind} {rules.weights.get(kind, 0.0):g} ({store.counted[kind]:,})" for kind in counted]
    yield f"Weights of what happened, and how often it did: {', '.join(weights)}."
    absent = [kind for kind, weight in rules.weights.items() if weight and kind not in store.counted]
    if absent:
        yield f"Weights of what did not happen: {listed(absent)}."
    if store.times["numbers"] and store.times["dates"]:
        yield f"Times are dates ({store.times['dates']:,}) and numbers ({store.times['numbers']:,}), in UTC."
    elif not rules.has_time:
        yield "There are no times: clicks cannot be ordered, and duplicates of impressions cannot be found."


def _on_positions(store: Store, rules: LogRules, seen: Seen, given: int | None) -> Iterator[str]:
    said = "as given" if given is not None else "by the positions seen"
    for first in (0, 1):
        sources = [source for source in sorted(store.starts) if rules.first[source] == first]
        if sources:
            where = [store.sources.names[source] for source in sources if source != NONE]
            of = f" in {listed(where)}" if where else ""
            yield f"Positions begin at {first}{of}, {said}."
    if len(seen.positions) == 1:
        (position,) = seen.positions
        yield f"All impressions are at position {position}: the log says nothing of the effect of positions."
    elif seen.positions and min(seen.positions) > 1:
        yield f"The first position with an impression is {min(seen.positions)}, counted from 1."
