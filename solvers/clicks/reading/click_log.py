"""A click log: files of events, read once, the impressions in them, and remarks on what was found or is suspicious."""

from __future__ import annotations

import time as clock
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

import numpy as np

from ranktune.solvers.clicks.counts import Impressions
from ranktune.solvers.clicks.reading.account import ReadingAccount
from ranktune.solvers.clicks.reading.events import DAY
from ranktune.solvers.clicks.reading.joining import LogRules, impressions_of
from ranktune.solvers.clicks.reading.opening import bots_of, check_store, checked_weights, first_positions, read_store
from ranktune.solvers.clicks.reading.roles import ROLES, check_roles
from ranktune.solvers.clicks.reading.store import LATEST, NONE, Store
from ranktune.solvers.core.arrays import Array, Floats, Ints, as_floats, as_ints
from ranktune.solvers.core.errors import DataError, ParameterError, listed


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


def remarks_of(store: Store, rules: LogRules, seen: Seen, *, begin: int | None) -> Iterator[str]:
    """Yield the remarks on a log; given is the first position that the user gave."""
    yield from _on_columns(store, rules)
    yield from _on_positions(store, rules, seen, begin)
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


def _on_positions(store: Store, rules: LogRules, seen: Seen, begin: int | None) -> Iterator[str]:
    origin = "as given" if begin is not None else "by the positions seen"
    for first in (0, 1):
        sources = [source for source in sorted(store.starts) if rules.first[source] == first]
        if sources:
            where = [store.sources.names[source] for source in sources if source != NONE]
            of = f" in {listed(where)}" if where else ""
            yield f"Positions begin at {first}{of}, {origin}."
    if len(seen.positions) == 1:
        (position,) = seen.positions
        yield f"All impressions are at position {position}: the log says nothing of the effect of positions."
    elif seen.positions and min(seen.positions) > 1:
        yield f"The first position with an impression is {min(seen.positions)}, counted from 1."


@dataclass(eq=False)
class ClickLog:
    r"""The impressions of a log and what happened to them, in batches. `open` makes it.

    Iterating yields `Impressions`; sessions of a batch may continue in others, and the order is not that of the files.
    Memory is that of the names, three numbers a session, and one batch; the events are in temporary files.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> path = Path(mkdtemp()) / "log.csv"
    >>> _ = path.write_text("query,doc_id,rank,click\nshoes,a,1,0\nshoes,b,2,1\nshoes,c,,1\n")
    >>> log = ClickLog.open(path)
    >>> [(batch.documents[d], float(c)) for batch in log for d, c in zip(batch.document, batch.click)]
    [('a', 0.0), ('b', 1.0)]
    >>> log.account.left_out
    Counter({'no position': 1})
    """

    _store: Store
    _rules: LogRules
    _given: int | None
    _passed: tuple[ReadingAccount, Seen] | None = None

    @classmethod
    def open(
        cls,
        *paths: str | Path,
        columns: Mapping[str, str] | None = None,
        weights: Mapping[str, float] | None = None,
        first_position: int | None = None,
        further: bool = False,
    ) -> Self:
        """Read the files of a log.

        Parameters
        ----------
        *paths : str or Path
            csv, tsv, Parquet, Arrow and jsonl files, text packed or not. A row is an impression with a column of
            clicks, or an event, whose kind a column names. Events and queries, also in the schema of User Behavior
            Insights and as bulk requests, may be in one file or apart.
        columns : mapping of str to str, optional
            Role -> column, where names are not recognised: query, search (the id by which events are joined), document,
            position, session, time, kind, propensity, source, and kinds of events such as click.
        weights : mapping of str to float, optional
            Kind of event -> weight, besides a click of 1; "value" is multiplied by the value of an event. The weights
            of an impression's events are added, each kind once.
        first_position : {0, 1}, optional
            Where positions begin; by default found for each application in the log.
        further : bool, default=False
            Whether all other columns are read too, numbers and text. The first rows tell which a column is.

        Raises
        ------
        DataError
            A file cannot be read or lacks a column, or the log has no impressions, no clicks, or clicked ones only.
        ParameterError
            An argument is invalid.
        """
        named, weighted = dict(columns or {}), checked_weights(weights or {})
        check_roles(named, {**ROLES, **weighted})
        if first_position not in (None, 0, 1):
            raise ParameterError(
                f"first_position={first_position!r}: positions begin at 0 or 1. Leave it out to find it."
            )
        if not paths:
            raise ParameterError("no file is given. Give the files of a click log: csv, Parquet or jsonl.")
        now = int(clock.time() * 1000) + DAY
        store = read_store([Path(path) for path in paths], named, weighted, now, further=further)
        check_store(store, weighted, listed(paths))
        bots = bots_of(store)
        rules = LogRules(
            bots=bots,
            outside=np.zeros_like(bots),
            first=first_positions(store, first_position),
            has_time=bool(store.times.total()),
            unique=store.has_clock or "click" not in store.columns,
            kinds=store.kinds.names,
            has_queries=store.counted["query"] > 0,
            weights=weighted,
        )
        return cls(store, rules, first_position)

    def __iter__(self) -> Iterator[Impressions]:
        """Yield the impressions in batches."""
        store, rules = self._store, self._rules
        account, n_queries = store.account.copy(), len(store.queries.names)
        seen = Seen(np.zeros(n_queries), np.zeros(n_queries))
        for rows in store.read():
            batch = self._batch(*impressions_of(rows, rules, account, seen.counts))
            if len(batch.query):
                np.add.at(seen.shown, batch.query, 1.0)
                np.add.at(seen.clicks, batch.query, batch.click)
                places, counts = np.unique(batch.position, return_counts=True)
                seen.positions.update(dict(zip(places.tolist(), counts.tolist(), strict=True)))
                yield batch
        assert account.counted == account.lines
        self._passed = account.copy(), seen

    def _batch(self, rows: Array, settled: Ints) -> Impressions:
        store, has_time = self._store, self._rules.has_time
        return Impressions(
            query=as_ints(rows["query"]),
            document=as_ints(rows["document"]),
            position=as_ints(rows["position"]),
            click=as_floats(rows["click"]),
            session=as_ints(rows["session"]),
            time=as_ints(rows["time"]) if has_time else None,
            propensity=as_floats(rows["propensity"]) if store.has_propensity else None,
            queries=store.queries.names,
            documents=store.documents.names,
            sessions=store.session_names.names,
            settled=settled if has_time else None,
            search=as_ints(rows["search"].astype(np.int64)),
            further=as_floats(rows["further"]) if store.further else None,
            further_names=store.further,
            further_texts={name: texts.names for name, texts in store.texts.items()},
        )

    def _pass(self) -> tuple[ReadingAccount, Seen]:
        if self._passed is None:
            for _ in self:
                pass
        assert self._passed is not None
        return self._passed

    @property
    def has_times(self) -> bool:
        """Whether events have times."""
        return self._rules.has_time

    @property
    def columns(self) -> dict[str, list[str]]:
        """Role -> the columns that were taken for it."""
        return {role: list(names) for role, names in self._store.columns.items()}

    @property
    def account(self) -> ReadingAccount:
        """What became of every line."""
        return self._pass()[0]

    @property
    def remarks(self) -> list[str]:
        """The columns found, what was assumed, and what is suspicious."""
        return list(remarks_of(self._store, self._rules, self._pass()[1], begin=self._given))

    def parts(self, share: float) -> tuple[Self, Self]:
        """Return the sessions without a share of them, and that share: the latest ones by their first events.

        Sessions of equal times, or of a log without times, are in the order of the files. Raises DataError where they
        are too few.
        """
        first = self._store.sessions.first[: len(self._rules.bots)]
        first = first if self._rules.has_time else np.zeros_like(first)
        order = np.argsort(first, kind="stable")
        order = order[((first < LATEST) & ~self._rules.bots & ~self._rules.outside)[order]]
        place = np.full(len(first), LATEST)
        place[order] = np.arange(len(order))
        cut = len(order) - round(share * len(order))
        if not 0 < cut < len(order):
            raise DataError(f"sessions cannot be divided: there are {len(order):,}. Give more of the log.")
        return self._part(place, cut, earlier=True), self._part(place, cut, earlier=False)

    def _part(self, first: Ints, time: int, *, earlier: bool) -> Self:
        outside = self._rules.outside | ((first < time) != earlier)
        return type(self)(self._store, replace(self._rules, outside=outside), self._given)
