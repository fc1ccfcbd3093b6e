"""Which queries others were selected from, so that what depends on features alone is computed once for all of them."""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np

from ranktune.solvers.core.arrays import Ints

if TYPE_CHECKING:
    from ranktune.solvers.data.queries import Queries

T = TypeVar("T")

_ORIGINS: weakref.WeakKeyDictionary[Queries, tuple[weakref.ref[Queries], Ints]] = weakref.WeakKeyDictionary()
"""Selected queries -> the queries that they were selected from, and their numbers there."""


def origin_of(queries: Queries) -> tuple[Queries, Ints]:
    """Return the queries that queries were selected from, however often, and their numbers there, (n_queries,).

    For queries that were not selected, or whose origin is no longer in memory, these are they themselves.
    """
    reference, numbers = _ORIGINS.get(queries, (None, None))
    origin = None if reference is None else reference()
    if origin is None or numbers is None:
        return queries, np.arange(queries.n_queries)
    return origin, numbers


def note_selection(selected: Queries, source: Queries, numbers: Ints) -> None:
    """Note that selected has the documents of these queries of source, with the same features."""
    origin, of_source = origin_of(source)
    _ORIGINS[selected] = weakref.ref(origin), of_source[numbers]


class Kept(Generic[T]):
    """What was computed of the last data sets, the latest last."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: OrderedDict[tuple[int, str], T] = OrderedDict()
        self._lock = Lock()

    def of(self, queries: Queries, key: str, compute: Callable[[], T]) -> T:
        """Return what is kept of queries by key, until they are gone; computed where it is not."""
        place = id(queries), key
        with self._lock:
            if place not in self._kept:
                self._kept[place] = compute()
                weakref.finalize(queries, self._kept.pop, place, None)
                while len(self._kept) > self._most:
                    self._kept.popitem(last=False)
            self._kept.move_to_end(place)
            return self._kept[place]

    def __len__(self) -> int:
        """Return the number of data sets."""
        return len(self._kept)
