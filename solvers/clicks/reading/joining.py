"""The events of a part of a log to impressions: what is left out, and which impression each event belongs to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ranktune.solvers.clicks.reading.account import ReadingAccount
from ranktune.solvers.clicks.reading.store import IMPRESSION, NO_TIME, NONE, QUERY, RESULT, first_of, mixed
from ranktune.solvers.core.arrays import Array, Ints, Mask

PAGE = 1000
"""The highest position, from 1."""


@dataclass(frozen=True)
class LogRules:
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

    rows: Array
    account: ReadingAccount
    seen: Counter[str]

    def leave(self, reasons: Mapping[str, Mask]) -> Mask:
        """Leave rows out by the first reason that each has, and return which stay. A result of a query is no line."""
        used = self.account.sift(reasons.items(), self.rows["kind"] != RESULT)
        self.rows = self.rows[used]
        return used


def impressions_of(rows: Array, rules: LogRules, account: ReadingAccount, seen: Counter[str]) -> tuple[Array, Ints]:
    """Return the impressions in the rows of a part, with the weights of what happened in "click", and when it last did.

    The rows are changed.
    """
    by_id = rows["query"] < NONE
    rows["query"][by_id] = NONE if rules.has_queries else NONE - 1 - rows["query"][by_id]
    sieve = Sieve(rows, account, seen)
    _clean(sieve, rules)
    _name_queries(sieve)
    shown = np.isin(sieve.rows["kind"], (IMPRESSION, RESULT))
    impressions, events = sieve.rows[shown], sieve.rows[~shown]
    account.used["impression"] += int((impressions["kind"] == IMPRESSION).sum())
    settled = impressions["time"].copy()
    if len(events):
        _join(impressions, settled, events, rules, sieve)
    if rules.has_time:
        place = [impressions[name] for name in ("search", "query", "session", "position", "time")]
        seen["at one place"] += int(first_of(*place, impressions["document"]).sum() - first_of(*place).sum())
    return impressions, settled


def _clean(sieve: Sieve, rules: LogRules) -> None:
    """Leave out what is wrong with an event, or with its session."""
    rows = sieve.rows
    event, session = rows["kind"] != QUERY, rows["session"]
    same = (rows[name] for name in ("search", "session", "query", "document", "position", "time", "kind", "click"))
    sieve.leave(
        {
            "a session that begins at another time": event & rules.outside[session],
            "bots": event & rules.bots[session],
            "a duplicate": event & ~first_of(*same) & rules.unique,
            "no time": event & (rows["time"] == NO_TIME) & rules.has_time,
        }
    )
    rows = sieve.rows
    if rules.has_time:
        order = np.argsort(rows["session"], kind="stable")
        time, same_session = rows["time"][order], np.diff(rows["session"][order]) == 0
        late = same_session & (time[1:] < time[:-1]) & (rows["kind"][order][1:] != QUERY)
        sieve.seen["out of order"] += int(late.sum())
    result, logged = rows["kind"] == RESULT, rows["position"] != NONE
    first = np.array([rules.first[source] for source in sorted(rules.first)])[rows["source"] - NONE]
    rows["position"][logged] += 1 - np.where(result, 0, first)[logged]
    shown = result | (rows["kind"] == IMPRESSION)
    sieve.leave(
        {
            "impossible position": shown & (rows["position"] < 1),
            "a position above the page": shown & (rows["position"] > PAGE),
        }
    )


def _name_queries(sieve: Sieve) -> None:
    """Give each event the query of its search, and leave out results of queries whose impressions are logged."""
    rows, account = sieve.rows, sieve.account
    queries, shown = rows[rows["kind"] == QUERY], rows["kind"] == IMPRESSION
    if len(queries):
        derived = (rows["kind"] == RESULT) & ~np.isin(rows["search"], rows["search"][shown])
        derived[derived] = first_of(rows["search"][derived], rows["document"][derived])
        sieve.seen["of results"] += int(derived.sum())
        first = first_of(queries["search"])
        account.left_out["a further record of a query"] += int((~first).sum())
        queries = queries[first]
        useful = int(np.isin(queries["search"], rows["search"][shown | derived]).sum())
        account.used["query"] += useful
        account.left_out["a query for which nothing was shown"] += len(queries) - useful
        rows = rows[~np.isin(rows["kind"], (QUERY, RESULT)) | derived]
        named = rows[rows["query"] != NONE]
        _take_queries(rows, queries, np.ones(len(rows), dtype=bool))
        _take_queries(rows, named[first_of(named["search"])], rows["query"] == NONE)
        sieve.rows = rows
    sieve.leave({"no partner query": sieve.rows["query"] == NONE})


def _take_queries(rows: Array, records: Array, which: Mask) -> None:
    """Give some of the rows the query of the record of their search, where there is one."""
    records = records[np.argsort(records["search"])]
    place = np.searchsorted(records["search"], rows["search"])
    query = np.append(records["query"], NONE)[place]
    found = which & (query != NONE) & (np.append(records["search"], 0)[place] == rows["search"])
    rows["query"][found] = query[found]


def _join(impressions: Array, settled: Ints, events: Array, rules: LogRules, sieve: Sieve) -> None:
    """Add the weights of events to their impressions: the latest one before an event is its own."""
    events = events[np.argsort(events["time"], kind="stable")]
    searches, counts = np.unique(
        impressions["search"][first_of(impressions["search"], impressions["session"])], return_counts=True
    )
    shared = searches[counts > 1]

    def key(rows: Array, name: str) -> Array:
        person = np.where(np.isin(rows["search"], shared), rows["session"], NONE)
        return mixed(rows["search"], person, rows[name])

    n = len(impressions)
    keys, times = (
        np.unique(np.concatenate(both), return_inverse=True)[1]
        for both in (
            (key(impressions, "document"), key(events, "document")),
            (impressions["time"], events["time"]),
        )
    )
    moment = keys * (int(times.max()) + 1) + times
    order = np.argsort(moment[:n], kind="stable")
    after = np.searchsorted(moment[order], moment[n:], side="right")
    at = np.concatenate([[NONE], keys[order], [NONE]])  # of the impression before and after each place
    is_before, is_after = at[after] == keys[n:], at[after + 1] == keys[n:]
    place = np.where(is_before | is_after, np.append(order, NONE)[after - is_before], NONE)
    elsewhere = np.isin(key(events, "position"), key(impressions, "position"))
    sieve.rows = events
    used = sieve.leave(
        {
            "no impression in its search": (place == NONE) & ~elsewhere,
            "another document was shown at its position": place == NONE,
            "repeated for its impression": ~first_of(place, events["kind"]),
        }
    )
    events, place = sieve.rows, place[used]
    sieve.seen["early"] += int((is_after & ~is_before)[used].sum())
    weights = np.array([rules.weights.get(kind, 0.0) for kind in rules.kinds])
    for number, count in enumerate(np.bincount(events["kind"])):
        if count:
            what = rules.kinds[number] + ("" if weights[number] else " (weight 0)")
            sieve.account.used[what] += int(count)
    amount = weights[events["kind"]] + events["click"]
    np.add.at(impressions["click"], place, amount)
    np.maximum.at(settled, place[amount > 0.0], events["time"][amount > 0.0])
