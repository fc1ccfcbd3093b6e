"""What a click log says of any ranking: gains by query and document, of which the expected clicks are a discounted sum.

Under a position-based model a search earns, by a ranking that shows document d at rank r(d), the sum over documents of
examination(r(d)) times attraction(d). The estimates differ in what stands for the attraction:

ips     (Joachims, Swaminathan & Schnabel 2017) clicks, each over the examination of its position, for each search of
        the query. A document that a search did not show was not clicked there.
snips   clicks over the examination of all impressions of the document: its weights are normalised by their own sum and
        not by the searches, so that what was shown in few searches is not taken to be bad.
dr      (Dudík, Langford & Li 2011) the attraction by the click model, and the mean over searches of the clicks less
        those that the model expects, each over the examination of its position.

All have one form, with an expected attraction m and weights v:  m + sum over impressions of v (click - examination m) /
searches, where m = 0 under ips, and under snips v is the same for all impressions of a document. No weight is above
CLIP: examination is taken to be at least 1 / CLIP. Clicks at positions whose examination the log does not tell do not
count, nor does what is ranked there or below the last position of the log.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np

from ranktune.solvers.clicks.counts import ClickCounts, Impressions, places, sums
from ranktune.solvers.clicks.examination import CLIP, Examination
from ranktune.solvers.clicks.position_based import PositionBased
from ranktune.solvers.core.arrays import Array, Floats, Ints, Json, Mask, as_ints
from ranktune.solvers.core.errors import DataError
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.metrics.means import mean_of
from ranktune.solvers.metrics.presets import CLICK_COLUMNS, CLICK_METRICS

SHARE = CLICK_COLUMNS.index("share")


@dataclass(frozen=True, eq=False)
class ClickGains:
    """What a log says of any ranking of its queries; the first axis is that of CLICK_METRICS.

    counts        impressions and clicks; what follows is by its rows, its pairs of query and document, and its queries
    examination   by position, relative to the first one
    expected      m, (3, n_pairs)
    weights       v, (3, n_rows); 0 at positions of unknown examination
    searches      (n_queries,) how often the query was asked: the most impressions at one of its positions
    counted_at    (n_queries,) that position
    clipped       (3,) the share of clicks whose weight is clipped
    """

    counts: ClickCounts
    examination: Examination
    expected: Floats
    weights: Floats
    searches: Floats
    counted_at: Ints
    clipped: Floats

    @classmethod
    def of(cls, log: Iterable[Impressions], propensities: Examination | None = None) -> Self:
        """Return the gains of a log; propensities are examination that is known, else the log tells it.

        Raises DataError where the log cannot be read, or is too small for a click model.
        """
        counts = ClickCounts.of(clicked(log))
        fitted = PositionBased(propensities=propensities).fit(counts)
        return cls.by(counts, fitted.examination, np.nan_to_num(fitted.judgments().relevance))

    @classmethod
    def by(cls, counts: ClickCounts, examination: Examination, attraction: Floats) -> Self:
        """Return the gains by examination, and by the attraction of each pair, (n_pairs,), which dr alone looks at."""
        searches, counted_at = _searches(counts)
        seen, is_seen = _seen(counts.position, examination)
        asked = searches[counts.query[counts.firsts]]
        inverse = np.where(is_seen, 1.0 / np.maximum(seen, 1.0 / CLIP), 0.0)
        share = counts.by_pair(np.where(is_seen, counts.shown * seen, 0.0)) / asked
        of_pair, clicks = 1.0 / np.maximum(share, 1.0 / CLIP), counts.by_pair(np.where(is_seen, counts.clicks, 0.0))
        rare, low = share < 1.0 / CLIP, is_seen & (seen < 1.0 / CLIP)
        rate = np.where(rare, 0.0, of_pair * clicks / asked)  # a weight that is clipped does not normalise
        expected = np.stack([np.zeros(len(asked)), rate, attraction])
        weights = np.stack([inverse, np.where(is_seen, of_pair[counts.pair], 0.0), inverse])
        total = max(float(counts.clicks.sum()), 1e-300)
        clipped = [float(counts.clicks[rows].sum()) / total for rows in (low, is_seen & rare[counts.pair], low)]
        return cls(counts, examination, expected, weights, searches, counted_at, np.array(clipped))

    @cached_property
    def seen(self) -> Floats:
        """The examination of the position of each row, (n_rows,)."""
        return _seen(self.counts.position, self.examination)[0]

    @cached_property
    def gains(self) -> Floats:
        """The clicks that each pair would get at the first position, for each search of its query, (3, n_pairs)."""
        counts, asked = self.counts, self.searches[self.counts.query[self.counts.firsts]]
        rest = counts.clicks - counts.shown * self.seen * self.expected[:, counts.pair]
        added = [counts.by_pair(weights * factors) for weights, factors in zip(self.weights, rest, strict=True)]
        return np.asarray(self.expected + np.stack(added) / asked)

    def examined(self, n: int) -> Floats:
        """Return the examination of the ranks 1 to n, 0 where the log does not tell it."""
        value, is_seen = _seen(np.arange(1, n + 1), self.examination)
        return np.where(is_seen, value, 0.0)

    def places_of(self, queries: Queries) -> tuple[Ints, Ints]:
        """Return the query of each of some queries, and the pair of each document, -1 for those not in the log.

        Raises DataError where the documents have no ids.
        """
        if queries.document_ids is None:
            raise DataError(
                "a click log is joined by query and document ids, and the data have no column of document ids. Name "
                'it: document="COLUMN".'
            )
        query = places(self.counts.queries, _texts(queries.query_ids))
        document = places(self.counts.documents, _texts(queries.document_ids))
        return query, self.counts.pairs_at(query[queries.query_of_document], document)

    def on(self, queries: Queries) -> Queries:
        """Return queries with what the log tells of them. Raises DataError where their documents have no ids."""
        query, pair = self.places_of(queries)
        gains = np.where(pair >= 0, self.gains[:, pair], 0.0)
        asked = np.where(query >= 0, self.searches[query], 0.0)
        share = np.where(asked > 0.0, asked if queries.query_weights is None else 1.0, np.nan)
        rank = np.arange(queries.n_documents) - queries.starts[queries.query_of_document]
        examined = self.examined(int(queries.lengths.max()))[rank]
        columns = np.stack([*gains, examined, share[queries.query_of_document]], axis=1)
        return by_searches(queries.replaced(clicks=columns))

    def about(self, parts: Sequence[Queries]) -> Json:
        """Return what the log has and lacks of all documents of a study, and how much is clipped, as plain values."""
        found = [self.places_of(part) for part in parts]
        asked = [place >= 0 for place, _ in found]
        shown = [pair >= 0 for _, pair in found]
        of_asked = [searches[part.query_of_document] for searches, part in zip(asked, parts, strict=True)]
        searches = np.unique(np.concatenate([place[place >= 0] for place, _ in found]))
        counts = self.counts
        left_out = ~_seen(counts.position, self.examination)[1]
        return {
            "searches": int(self.searches.sum()),
            "searches_of_data": int(self.searches[searches].sum()),
            "queries": sum(part.n_queries for part in parts),
            "queries_in_log": int(sum(each.sum() for each in asked)),
            "documents": int(sum(each.sum() for each in of_asked)),
            "never_shown": int(sum((each & ~here).sum() for each, here in zip(of_asked, shown, strict=True))),
            "matched": int(sum(each.sum() for each in shown)),
            "unknown": int(counts.shown[left_out].sum()),
            "clip": CLIP,
            "clipped": dict(zip(CLICK_METRICS, self.clipped.tolist(), strict=True)),
        }

    def check(self, about: Json, queries: Queries, name: str) -> None:
        """Raise DataError where the log has shown none of the documents, by what `about` has found."""
        if about["matched"]:
            return
        counts, ids = self.counts, queries.document_ids
        assert ids is not None
        remedy = "Query and document ids must be the same text in both."
        if counts.queries == [""]:
            remedy = "The log has no column of queries. Name it: click_columns={'query': 'NAME'}."
        raise DataError(
            f"{name} has shown none of the documents: it has document {counts.documents[counts.document[0]]} of query "
            f"{counts.queries[counts.query[0]]} first, and the data document {ids[0]} of query {queries.query_ids[0]}. "
            f"{remedy}"
        )


def by_searches(queries: Queries, among: Ints | None = None) -> Queries:
    """Return queries whose shares of searches have the mean 1 among some of them, by default all.

    So the mean of a metric of clicks over these queries is the one over their searches, and the metric of a query is
    its part of it.
    """
    if queries.clicks is None:
        return queries
    share, weights = queries.clicks[queries.starts[:-1], SHARE], queries.query_weights
    numbers = np.arange(len(share)) if among is None else among
    mean = mean_of(share[numbers], None if weights is None else weights[numbers])
    if np.isnan(mean):
        return queries
    clicks = queries.clicks.copy()
    clicks[:, SHARE] /= mean
    return queries.replaced(clicks=clicks)


def clicked(log: Iterable[Impressions]) -> Iterator[Impressions]:
    """Yield the batches of a log; an impression is clicked or not, however often."""
    for batch in log:
        yield replace(batch, click=np.minimum(batch.click, 1.0))


def _seen(position: Ints, examination: Examination) -> tuple[Floats, Mask]:
    """Return the examination of positions, and whether it is known."""
    return examination.at(position), np.isin(position, examination.position[examination.known])


def _searches(counts: ClickCounts) -> tuple[Floats, Ints]:
    """Return by query the most impressions at one position, and the first position that has as many."""
    width = int(counts.position.max()) + 1
    codes, row = np.unique(counts.query * width + counts.position, return_inverse=True)
    shown, query, position = sums(as_ints(row), counts.shown, len(codes)), codes // width, codes % width
    order = np.lexsort((-position, shown, query))
    last = order[np.flatnonzero(np.diff(query[order], append=-1))]
    searches, counted_at = np.zeros(len(counts.queries)), np.zeros(len(counts.queries), dtype=np.int64)
    searches[query[last]], counted_at[query[last]] = shown[last], position[last]
    return searches, counted_at


def _texts(ids: Array) -> list[str]:
    return [str(value) for value in ids.tolist()]
