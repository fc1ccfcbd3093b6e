"""The events of a part of a log to impressions: what is left out, and which impression each event belongs to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars
from polars import col

from ranktune.solvers.clicks.reading.account import Account
from ranktune.solvers.clicks.reading.store import IMPRESSION, NO_TIME, NONE, QUERY, RESULT
from ranktune.solvers.core.arrays import Array, Mask

Frame = polars.DataFrame

PAGE = 1000
"""The highest position, from 1."""


@dataclass(frozen=True)
class Rules:
    """What holds for all parts of a log.

    bots, outside   (n_sessions,) sessions that are left out: they are no people, or begin at another time
    first           application -> its first position
    has_time        whether events have times
    unique          whether equal events are one event: without times of day they may be several
    has_queries     whether the log tells the queries of searches apart from events
    kinds           number of a kind -> its name
    weights         name of a kind -> its weight
    """

    bots: Mask
    outside: Mask
    first: Mapping[int, int]
    has_time: bool
    unique: bool
    has_queries: bool
    kinds: list[str]
    weights: Mapping[str, float]


@dataclass
class Sieve:
    """The rows of a part that are left, with the account of those that are not, and counts for remarks."""

    rows: Frame
    account: Account
    seen: Counter[str]

    def leave(self, reason: str, which: polars.Expr) -> None:
        """Leave out the rows for which an expression holds. A result of a query is no line of its own."""
        bad = self.rows.select(which.fill_null(False)).to_series()
        count = int((bad & (self.rows["kind"] != RESULT)).sum())
        if bad.any():
            self.rows = self.rows.filter(~bad)
        if count:
            self.account.left_out[reason] += count


def impressions_of(rows: Frame, rules: Rules, account: Account, seen: Counter[str]) -> Frame:
    """Return the impressions in the rows of a part, with the weights of what happened in "click"."""
    by_id = polars.lit(NONE, polars.Int32) if rules.has_queries else NONE - 1 - col("query")
    query = polars.when(col("query") < NONE).then(by_id).otherwise("query").alias("query")
    sieve = Sieve(rows.with_columns(query).with_row_index("line"), account, seen)
    _clean(sieve, rules)
    _name_queries(sieve)
    shown = col("kind") == IMPRESSION
    impressions = sieve.rows.filter(shown)
    account.used["impression"] += impressions.height - int((impressions["line"] == _DERIVED).sum())
    events = sieve.rows.filter(~shown)
    if events.height:
        impressions = _joined(impressions, events, rules, sieve)
    if rules.has_time:
        _compare_places(impressions, seen)
    return impressions


_DERIVED = 2**32 - 1
"""The line of an impression that is a result of a query."""


def _clean(sieve: Sieve, rules: Rules) -> None:
    """Leave out what is wrong with an event, or with its session."""
    event, shown = col("kind") != QUERY, col("kind").is_in([IMPRESSION, RESULT])
    for reason, sessions in (("a session that begins at another time", rules.outside), ("bots", rules.bots)):
        if sessions.any():
            sieve.leave(reason, event & polars.Series(sessions[sieve.rows["session"].to_numpy()]))
    if rules.unique:
        same = ["search", "session", "query", "document", "position", "time", "kind", "click"]
        sieve.leave("a duplicate", event & ~polars.struct(same).is_first_distinct())
    if rules.has_time:
        sieve.leave("no time", event & (col("time") == NO_TIME))
        late = (col("time").diff().over("session") < 0) & event
        sieve.seen["out of order"] += int(sieve.rows.select(late.sum()).item() or 0)
    first = col("source").replace_strict(list(rules.first), list(rules.first.values()), default=1)
    first = polars.when(col("kind") == RESULT).then(0).otherwise(first)
    place = polars.when(col("position") != NONE).then(col("position") - first + 1).otherwise(NONE)
    sieve.rows = sieve.rows.with_columns(place.cast(polars.Int64).alias("position"))
    sieve.leave("impossible position", shown & (col("position") < 1))
    sieve.leave("a position above the page", shown & (col("position") > PAGE))


def _name_queries(sieve: Sieve) -> None:
    """Give each event the query of its search, and make impressions of results of queries that have none."""
    rows = sieve.rows
    queries = rows.filter(col("kind") == QUERY)
    if not queries.height:
        sieve.leave("no partner query", col("query") == NONE)
        return
    shown = rows.filter(col("kind") == IMPRESSION)["search"].unique()
    derived = (col("kind") == RESULT) & ~col("search").is_in(shown.implode())
    results = rows.filter(derived).unique(["search", "document"], keep="first", maintain_order=True)
    results = results.with_columns(kind=polars.lit(IMPRESSION, polars.Int16), line=polars.lit(_DERIVED, polars.UInt32))
    sieve.seen["of results"] += results.height
    events = polars.concat([rows.filter(~col("kind").is_in([QUERY, RESULT])), results])
    first = queries.unique("search", keep="first", maintain_order=True)
    useful = int(first["search"].is_in(events.filter(col("kind") == IMPRESSION)["search"].unique().implode()).sum())
    counts = {"second record of a query": queries.height - first.height, "nothing shown": first.height - useful}
    account = sieve.account
    account.used["query"] += useful
    account.left_out["a further record of a query"] += counts["second record of a query"]
    account.left_out["a query for which nothing was shown"] += counts["nothing shown"]
    named = events.join(first.select("search", col("query").alias("record")), on="search", how="left")
    own = polars.when(col("query") != NONE).then("query")
    text = polars.coalesce("record", own, own.first().over("search")).fill_null(NONE)
    sieve.rows = named.with_columns(text.alias("query")).drop("record")
    sieve.leave("no partner query", col("query") == NONE)


def _joined(impressions: Frame, events: Frame, rules: Rules, sieve: Sieve) -> Frame:
    """Return impressions with the weights of their events: the latest impression before an event is its own."""
    impressions = impressions.with_row_index("place")
    people = impressions.group_by("search").agg((col("session").n_unique() > 1).alias("shared"))
    partner = polars.when(col("shared")).then("session").otherwise(NONE).alias("person")

    def keyed(frame: Frame) -> Frame:
        return frame.join(people, on="search", how="left").with_columns(partner).sort("time", maintain_order=True)

    key = ["search", "person", "document"]
    targets = keyed(impressions).select(*key, "time", "place")
    events = keyed(events)
    before, after = (
        events.join_asof(targets, on="time", by=key, strategy=strategy, check_sortedness=False)["place"]
        for strategy in ("backward", "forward")
    )
    events = events.with_columns(
        before.fill_null(after).alias("place"), (before.is_null() & after.is_not_null()).alias("early")
    )
    at_place = keyed(impressions).select("search", "person", "position").unique().with_columns(other=True)
    events = events.join(at_place, on=["search", "person", "position"], how="left", maintain_order="left")
    sieve.rows = events
    sieve.leave("no impression in its search", col("place").is_null() & col("other").is_null())
    sieve.leave("another document was shown at its position", col("place").is_null())
    sieve.leave("repeated for its impression", ~polars.struct("place", "kind").is_first_distinct())
    found = sieve.rows
    sieve.seen["early"] += int(found["early"].sum())
    weights = [rules.weights.get(kind, 0.0) for kind in rules.kinds]
    kinds = found["kind"].to_numpy()
    for number in np.unique(kinds).tolist():
        what = rules.kinds[number] + ("" if weights[number] else " (weight 0)")
        sieve.account.used[what] += int((kinds == number).sum())
    happened: Array = impressions["click"].to_numpy().copy()
    amount, place = np.array(weights)[kinds] + found["click"].to_numpy(), found["place"].to_numpy()
    np.add.at(happened, place, amount)
    settled: Array = impressions["time"].to_numpy().copy()
    np.maximum.at(settled, place[amount > 0.0], found["time"].to_numpy()[amount > 0.0])
    return impressions.with_columns(polars.Series("click", happened), polars.Series("settled", settled))


def _compare_places(impressions: Frame, seen: Counter[str]) -> None:
    """Count impressions at a place of a list where another document was shown at the same time."""
    place = ["search", "query", "session", "position", "time"]
    documents = impressions.group_by(place).agg(col("document").n_unique().alias("n"))
    seen["at one place"] += int((documents["n"] - 1).sum())
