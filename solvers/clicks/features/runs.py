"""A log in the order of time: sorted runs on the disk, one a batch, which are merged in windows of time."""

from __future__ import annotations

import shutil
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np

from ranktune.solvers.clicks.counts import ClickCounts
from ranktune.solvers.clicks.impressions import Impressions
from ranktune.solvers.core.arrays import Array, Ints
from ranktune.solvers.core.errors import DataError
from ranktune.solvers.core.files.atomic import temporary_folder

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
