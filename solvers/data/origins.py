"""Which queries others were selected from, so that what depends on features alone is computed once for all of them."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

import numpy as np

from ranktune.solvers.core.arrays import Ints

if TYPE_CHECKING:
    from ranktune.solvers.data.queries import Queries

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
