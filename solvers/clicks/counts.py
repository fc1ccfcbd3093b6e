"""Impressions of a click log, and their counts by query, document and position: what most click models need of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self

import numpy as np

from ranktune.solvers.core.arrays import Floats, Ints, Mask, as_floats, as_ints
from ranktune.solvers.core.errors import DataError


@dataclass(frozen=True, eq=False)
class Impressions:
    """Impressions of a log, (n,) each; numbers of queries, documents and sessions are places in their names.

    query, document  what was shown
    position         the rank at which it was shown, from 1
    click            the weight of what happened: 0 where nothing did, 1 for a click, other weights for other events
    session          the session or user
    time             milliseconds since 1970 in UTC, or None where the log has no times
    propensity       the probability that what was shown was shown there, or None where the log does not say
    settled          when the last of what happened to it did, in milliseconds; None: at its own time
    search           numbers that tell searches apart, None where sessions do
    further          (n, n_further) the numbers in other columns of the log, NaN where there is none
    further_names    their titles
    further_texts    title -> the texts of a column whose numbers are places in them
    queries, documents, sessions: the names; they may grow from batch to batch, and never change place
    """

    query: Ints
    document: Ints
    position: Ints
    click: Floats
    session: Ints
    time: Ints | None
    propensity: Floats | None
    queries: Sequence[str]
    documents: Sequence[str]
    sessions: Sequence[str]
    settled: Ints | None = None
    search: Ints | None = None
    further: Floats | None = None
    further_names: Sequence[str] = ()
    further_texts: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class ClickCounts:
    """How often a document was shown for a query at a position, and clicked, (n,) each, in rising order of the three.

    shown: impressions; clicks: the sum of their weights; queries, documents: the names.
    """

    query: Ints
    document: Ints
    position: Ints
    shown: Floats
    clicks: Floats
    queries: Sequence[str]
    documents: Sequence[str]

    @classmethod
    def of(cls, batches: Iterable[Impressions]) -> Self:
        """Return the counts of all batches of a log; the memory is that of the counts and one batch.

        Counts of batches are merged with those of about their size, so that each is merged a few times only.
        Raises DataError where there are no impressions.
        """
        parts: list[_Part] = []
        queries: Sequence[str] = ()
        documents: Sequence[str] = ()
        for batch in batches:
            queries, documents = batch.queries, batch.documents
            rows = as_ints(np.stack([batch.query, batch.document, batch.position]))
            parts.append(_summed(rows, np.stack([np.ones(rows.shape[1]), batch.click])))
            while len(parts) > 1 and parts[-2][0].shape[1] <= 2 * parts[-1][0].shape[1]:
                parts[-2:] = [_merged(parts[-2:])]
        if not sum(keys.shape[1] for keys, _ in parts):
            raise DataError("the log has no impressions: clicks can be judged only beside what was shown.")
        (query, document, position), (shown, clicks) = _merged(parts)
        return cls(query, document, position, shown, clicks, queries, documents)

    @cached_property
    def firsts(self) -> Ints:
        """The first row of each pair of query and document, (n_pairs,)."""
        changed = (np.diff(self.query) != 0) | (np.diff(self.document) != 0)
        return np.flatnonzero(np.concatenate([[True], changed]))

    @cached_property
    def pair(self) -> Ints:
        """The number of the pair of query and document of each row, (n,)."""
        return np.repeat(np.arange(len(self.firsts)), np.diff(np.append(self.firsts, len(self.query))))

    def by_pair(self, values: Floats) -> Floats:
        """Return the sums over the rows of each pair, (n_pairs,), of values, (n,)."""
        return sums(self.pair, values, len(self.firsts))

    def select(self, rows: Mask) -> Self:
        """Return the counts of some rows, (n,)."""
        parts = {name: getattr(self, name)[rows] for name in ("query", "document", "position", "shown", "clicks")}
        return replace(self, **parts)

    def places_of(self, other: ClickCounts) -> tuple[Ints, Ints, Ints]:
        """Return the query, the document and the pair of each row of other here, by their names; -1 for a new one."""
        query = places(self.queries, other.queries)[other.query]
        document = places(self.documents, other.documents)[other.document]
        return query, document, self.pairs_at(query, document)

    def pairs_at(self, query: Ints, document: Ints) -> Ints:
        """Return the numbers of the pairs of queries and documents, -1 for a new one."""
        width = len(self.documents) + 1
        pairs = self.query[self.firsts] * width + self.document[self.firsts]
        wanted = query * width + document
        found = np.minimum(np.searchsorted(pairs, wanted), len(pairs) - 1)
        return np.where((pairs[found] == wanted) & (query >= 0) & (document >= 0), found, -1)

    def rows_of(self, batch: Impressions) -> Ints:
        """Return the row of each impression, (n_impressions,), of a batch of the log that was counted."""
        width = [len(self.documents), int(self.position.max()) + 1]

        def codes(part: ClickCounts | Impressions) -> Ints:
            return (part.query * width[0] + part.document) * width[1] + part.position

        return as_ints(np.searchsorted(codes(self), codes(batch)))


def sums(group: Ints, values: Floats, n: int) -> Floats:
    """Return the sums of values by group, (n,)."""
    return as_floats(np.bincount(group, values, n))


def added(total: Floats, session: Ints, values: Floats, n_sessions: int) -> Floats:
    """Return total, (..., n), with room for all sessions, after values, (..., n_impressions), were added to theirs."""
    total = np.pad(total, [(0, 0)] * (total.ndim - 1) + [(0, n_sessions - total.shape[-1])])
    np.add.at(np.moveaxis(total, -1, 0), session, np.moveaxis(values, -1, 0))
    return total


def places(names: Sequence[str], wanted: Sequence[str]) -> Ints:
    """Return where each of the given names is among the known ones, -1 where it is not."""
    if wanted is names:
        return np.arange(len(names))
    place = {name: number for number, name in enumerate(names)}
    return np.array([place.get(name, -1) for name in wanted], dtype=np.int64)


_Part = tuple[Ints, Floats]


def _merged(parts: Sequence[_Part]) -> _Part:
    return _summed(*(np.concatenate(arrays, axis=1) for arrays in zip(*parts, strict=True)))


def _summed(rows: Ints, values: Floats) -> _Part:
    """Return the distinct rows, (3, n), in rising order, and the sums of values, (2, n), of the rows that are alike."""
    if not rows.size:
        return rows, values
    if rows.min() < 0:
        raise DataError(
            f"an impression has the number {rows.min()}: queries, documents and positions must not be below 0."
        )
    width = [int(top) + 1 for top in rows.max(axis=1)]
    if width[0] * width[1] * width[2] >= 2**63:
        raise DataError(
            f"position {width[2] - 1} is too large to count: leave out the impressions that are on no page."
        )
    codes, place = np.unique(np.ravel_multi_index(tuple(rows), width), return_inverse=True)
    total = [sums(as_ints(place), each, len(codes)) for each in values]
    return as_ints(np.stack(np.unravel_index(codes, width))), np.stack(total)
