"""What a click log knew of documents before each search: impressions, clicks and their rates, less a gap.

An event is known from its time plus the gap, and counts for the searches that begin after that; the clicks of an
impression are known once all of them are. An impression is expected to be clicked as its position was before it. Then
clicks over expected clicks are a rate that is corrected for positions, and shrunken to 1, which is the rate of the
positions where the document was shown (`prior.shrunken`).

The log is read in the order of time: sorted runs on the disk, one a batch, are merged in windows of time.
"""

from __future__ import annotations

import re
import shutil
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ranktune.solvers.clicks.counts import ClickCounts, Impressions
from ranktune.solvers.core.arrays import Array, Floats, Ints, as_floats, as_ints
from ranktune.solvers.core.compiled import compiled
from ranktune.solvers.core.errors import DataError, ParameterError
from ranktune.solvers.core.files.atomic import temporary_folder

FEATURES = (
    "document_shown",
    "document_clicks",
    "document_ratio",
    "pair_shown",
    "pair_clicks",
    "pair_ratio",
    "document_recent",
    "document_age",
)
"""Of a document, and of the pair of a query and a document: impressions, clicks, and clicks over expected clicks; the
clicks of a document, each halved every HALF_LIFE since it was known; the hours since its first impression was known, 0
before that."""
STRENGTH = 2.0
"""Expected clicks that the prior of a ratio counts for: those of factors whose standard deviation is 0.7."""
HALF_LIFE = 7 * 86_400_000.0
"""Milliseconds in which a click counts for half in "document_recent"."""
_LAST = np.iinfo(np.int64).max
_HOUR = 3_600_000.0


@dataclass(frozen=True, eq=False)
class SearchEvents:
    """Impressions in the order of time, those of a search together, and what was known before each.

    time      (n,) when its search began, in milliseconds
    rows      (n,) with the fields search, query, document, pair, position, session, click and further
    features  (n, 8) by `FEATURES`
    """

    time: Ints
    rows: Array
    features: Floats


class ClickHistory:
    """The impressions of a log with features as of their searches, in windows of time. It can be iterated repeatedly.

    Parameters
    ----------
    log : iterable of Impressions
        It is read twice.
    gap : str or float, default="1h"
        How long events take to arrive, as text such as "30m" or in seconds. An impression that is more than this before
        a search is known, and its clicks if they are more than this before it too.

    Raises
    ------
    DataError
        The log has no times, or no impressions.
    ParameterError
        gap is no length of time.

    Notes
    -----
    Memory is that of six numbers a document and three a pair of query and document, besides the counts of the log.

    Examples
    --------
    >>> import numpy as np
    >>> n = np.arange(3)
    >>> log = [Impressions(0 * n, 0 * n, 0 * n + 1, n % 2.0, n, 1000 * n, None, ["q"], ["d"], ["a", "b", "c"])]
    >>> (events,) = ClickHistory(log, gap=0.5)
    >>> events.features[:, :2].tolist()
    [[0.0, 0.0], [1.0, 0.0], [2.0, 1.0]]
    """

    def __init__(self, log: Iterable[Impressions], *, gap: str | float = "1h") -> None:
        self.gap = span_of("gap", gap)
        self.counts = ClickCounts.of(log)
        self.runs = Runs(log, self.counts)

    def __iter__(self) -> Iterator[SearchEvents]:
        """Yield the impressions in windows."""
        counts = self.counts
        documents, pairs = np.zeros((len(counts.documents), 6)), np.zeros((len(counts.firsts), 3))
        positions = np.zeros((int(counts.position.max()) + 1, 2))
        documents[:, 5] = np.nan
        for time, rows, happened, events in self.runs.windows(self.gap):
            features = np.empty((len(time), len(FEATURES)))
            asked = as_ints(np.stack([time, rows["document"], rows["pair"]]))
            fields = (events[name] for name in ("document", "pair", "position", "shown"))
            columns = as_ints(np.stack([happened, *fields]))
            state = documents, pairs, positions
            _follow(asked, columns, as_floats(events["amount"]), *state, HALF_LIFE, features)
            yield SearchEvents(time, rows, features)


@compiled
def _follow(
    asked: Ints,
    columns: Ints,
    amount: Floats,
    documents: Floats,
    pairs: Floats,
    positions: Floats,
    half_life: float,
    features: Floats,
) -> None:
    """Fill the features of impressions, and bring the state up to date.

    asked       (3, n) times in rising order, documents and pairs of impressions
    known       (5, n) times, in rising order, from which events are known, their documents, pairs and positions, and
                whether each is an impression; amount: (n,) what their clicks weigh
    documents   (n, 6) impressions, clicks, expected clicks, recent clicks, the time of these, and the first time
    pairs       (n, 3) impressions, clicks, expected clicks
    positions   (n, 2) impressions and clicks; in place of position 0 those of all
    """
    happened, of_document, of_pair, position, shown = columns
    expected = np.empty(len(happened))
    event = 0
    for row in range(asked.shape[1] + 1):
        until = asked[0, row] if row < asked.shape[1] else _LAST
        while event < len(happened) and happened[event] < until:
            now, end = happened[event], event
            while end < len(happened) and happened[end] == now:  # events of one time do not know each other
                mean = (positions[0, 1] + 0.5) / (positions[0, 0] + 1.0)
                at = positions[position[end]]
                expected[end] = shown[end] * mean * (at[1] + STRENGTH) / (at[0] * mean + STRENGTH)
                end += 1
            for k in range(event, end):
                d, p = documents[of_document[k]], pairs[of_pair[k]]
                for state in (d, p, positions[position[k]], positions[0]):
                    state[0] += shown[k]
                    state[1] += amount[k]
                d[2] += expected[k]
                p[2] += expected[k]
                d[3] = d[3] * 0.5 ** ((now - d[4]) / half_life) + amount[k]
                d[4] = now
                if np.isnan(d[5]):
                    d[5] = now
            event = end
        if row < asked.shape[1]:
            d, p, out = documents[asked[1, row]], pairs[asked[2, row]], features[row]
            out[0], out[1], out[2] = d[0], d[1], (d[1] + STRENGTH) / (d[2] + STRENGTH)
            out[3], out[4], out[5] = p[0], p[1], (p[1] + STRENGTH) / (p[2] + STRENGTH)
            out[6] = d[3] * 0.5 ** ((until - d[4]) / half_life)
            out[7] = 0.0 if np.isnan(d[5]) else (until - d[5]) / _HOUR


WINDOW, STEP = 1 << 17, 32
"""Impressions of a window, about, and every how many of them its ends are looked for."""
BREAK = 1_800_000
"""Milliseconds without an impression after which the same query in a session is another search."""
_KEYS = ("search", "query", "document", "pair", "position", "session")
_EVENT = np.dtype([(name, np.int64) for name in ("document", "pair", "position", "shown")] + [("amount", np.float64)])


class Runs:
    """The impressions of a log, and its events.

    Impressions have the time of the first of their search: the ranking was made then, so that a click on its first
    page tells nothing of its second. Events are impressions at their own time, and what happened to them once all of
    it had. Memory is that of a batch.

    Raises DataError where the log has no times.
    """

    def __init__(self, log: Iterable[Impressions], counts: ClickCounts) -> None:
        self.folder = temporary_folder()
        weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)
        self.further_names: tuple[str, ...] = ()
        self.further_texts: Mapping[str, Sequence[str]] = {}
        self.n_runs = n_searches = 0
        for batch in log:
            if batch.time is None:
                raise DataError(
                    "the log has no times, so that nothing says what was known before an impression. Name the column "
                    "of times: columns={'time': 'NAME'}."
                )
            self.further_names, self.further_texts = tuple(batch.further_names), batch.further_texts
            search, first = searches(batch)
            shown = np.empty(len(search), [*((key, np.int64) for key in _KEYS), ("click", np.float64), *self._further])
            for name in (*_KEYS[1:3], *_KEYS[4:], "click"):
                shown[name] = getattr(batch, name)
            shown["search"], shown["pair"] = search + n_searches, counts.pairs_at(batch.query, batch.document)
            if batch.further is not None and self.further_names:
                shown["further"] = batch.further
            order = np.lexsort((shown["position"], search, first))
            self._save("shown", first[order], shown[order])
            self._save("events", *_events(shown, batch.time, batch.settled))
            n_searches += int(search.max()) + 1
            self.n_runs += 1

    @property
    def _further(self) -> list[tuple[str, type, tuple[int]]]:
        return [("further", np.float64, (len(self.further_names),))]

    def _save(self, name: str, time: Ints, rows: Array) -> None:
        np.save(self.folder / f"{name}.{self.n_runs}.time.npy", time)
        np.save(self.folder / f"{name}.{self.n_runs}.npy", rows)

    def _mapped(self, name: str) -> list[Array]:
        paths = [self.folder / name.replace("*", str(number)) for number in range(self.n_runs)]
        return [np.load(path, mmap_mode="r") for path in paths]

    def windows(self, gap: int) -> Iterator[tuple[Ints, Array, Ints, Array]]:
        """Yield times and rows of impressions, and of the events that are known, gap milliseconds later, with them."""
        shown, events = self._mapped("shown.*.time.npy"), self._mapped("events.*.time.npy")
        rows, happened = self._mapped("shown.*.npy"), self._mapped("events.*.npy")
        times = np.sort(np.concatenate([time[::STEP] for time in shown]))
        ends = np.unique(times[:: WINDOW // STEP])[1:].tolist()
        for low, high in pairwise([None, *ends, None]):
            yield (*_merged(shown, rows, low, high, 0), *_merged(events, happened, low, high, gap))


def searches(batch: Impressions) -> tuple[Ints, Ints]:
    """Return the number of the search of each impression, (n,), and the time of the first one of that search."""
    assert batch.time is not None
    keys = (batch.time, batch.query, batch.session, batch.session if batch.search is None else batch.search)
    order = np.lexsort(keys)
    time = batch.time[order]
    new = np.logical_or.reduce([np.diff(key[order]) != 0 for key in keys[1:]]) | (np.diff(time) > BREAK)
    new = np.concatenate([[True], new])
    number = np.empty_like(order)
    number[order] = np.cumsum(new) - 1
    return number, time[new][number]


def _events(shown: Array, time: Ints, settled: Ints | None) -> tuple[Ints, Array]:
    """Return the times and rows of events: each impression, and each that was clicked once more."""
    clicked = np.flatnonzero(shown["click"] > 0.0)
    events = np.empty(len(shown) + len(clicked), _EVENT)
    for name in ("document", "pair", "position"):
        events[name] = np.concatenate([shown[name], shown[name][clicked]])
    events["shown"] = np.arange(len(events)) < len(shown)
    events["amount"] = np.concatenate([np.zeros(len(shown)), shown["click"][clicked]])
    when = np.concatenate([time, (time if settled is None else settled)[clicked]])
    order = np.argsort(when, kind="stable")
    return when[order], events[order]


def _merged(times: list[Array], rows: list[Array], low: int | None, high: int | None, gap: int) -> tuple[Ints, Array]:
    """Return what lies from low to below high, gap later, in the order of time; what is of one time in that of runs."""
    cuts = [
        slice(*(None if end is None else int(np.searchsorted(time, end - gap)) for end in (low, high)))
        for time in times
    ]
    time = np.concatenate([each[cut] for each, cut in zip(times, cuts, strict=True)])
    order = np.argsort(time, kind="stable")
    return time[order] + gap, np.concatenate([each[cut] for each, cut in zip(rows, cuts, strict=True)])[order]


_UNITS = {"ms": 1, "": 1e3, "s": 1e3, "m": 6e4, "h": 3.6e6, "d": 8.64e7, "w": 6.048e8}


def span_of(name: str, value: str | float) -> int:
    """Return a length of time in milliseconds: text such as "30m", or a number of seconds.

    Raises ParameterError for what is none.

    Examples
    --------
    >>> span_of("gap", "1h"), span_of("gap", 90)
    (3600000, 90000)
    """
    found = re.fullmatch(r"\s*(\d+\.?\d*)\s*(ms|s|m|h|d|w|)\s*", str(value))
    if found is None:
        raise ParameterError(f"{name}={value!r} is no length of time. Give a number of seconds, or text such as '1h'.")
    return round(float(found[1]) * _UNITS[found[2]])
