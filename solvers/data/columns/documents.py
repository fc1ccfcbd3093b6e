"""The numbers that each document has besides its features and its grade.

Each is a field of Queries, None where documents have none. Whatever reads, selects, joins, stores or digests queries
goes over COLUMNS: a further column is an entry here, a field of Queries, and an option that names it in tables.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypedDict

import numpy as np
from numpy.typing import DTypeLike

from ranktune.solvers.core.arrays import Array, Floats, Ints
from ranktune.solvers.core.errors import DataError

LAST_POSITION = 2**31 - 1
"""The largest position: libraries take 32 bits."""


def check_each(
    values: Array, name: str, what: str, count: int, kind: str, good: Callable[[Array], Array], rule: str
) -> None:
    """Raise DataError unless there is one good value for each query or document, which is its kind."""
    many = {"query": "queries", "document": "documents"}[kind]
    if values.shape != (count,):
        raise DataError(f"{name} has shape {values.shape} for {count} {many}: give one {what} per {kind}.")
    bad = np.flatnonzero(~good(values))
    if len(bad):
        raise DataError(f"the {what} of {kind} number {bad[0]} is {values[bad[0]]}: {rule}")


def check_query_weights(weights: Floats, n_queries: int) -> None:
    """Raise DataError unless there is one positive, finite weight for each query."""
    rule = _POSITIVE.format("queries")
    check_each(weights, "query_weights", "weight", n_queries, "query", _is_positive, rule)


_POSITIVE = "weights must be positive and finite. Leave out {} that should not count."


def _is_positive(weights: Array) -> Array:
    return np.asarray(np.isfinite(weights) & (weights > 0.0))


def _is_position(values: Array) -> Array:
    return np.asarray((values >= 0) & (values <= LAST_POSITION) & (values == np.floor(values)))


@dataclass(frozen=True)
class DocumentColumn:
    """What each document has, mostly a number.

    absent    the value of documents without one, where others have one
    option    the option that names its column in tables; empty where none does
    what      what it is, in messages
    good      whether values can be its own, where not all can; rule says which
    is_void   whether values say no more than None does
    is_digested   whether data that differ in it are other data
    """

    absent: float
    option: str = ""
    what: str = ""
    dtype: DTypeLike = np.float64
    good: Callable[[Array], Array] | None = None
    rule: str = ""
    is_void: Callable[[Array], bool] = lambda values: False
    is_digested: bool = True

    def check(self, values: Array, name: str, n_documents: int) -> None:
        """Raise DataError for values, (n_documents,), that it cannot have; name is that of the field of Queries."""
        if self.good is not None:
            what = self.what.removeprefix("document ")
            check_each(values, name, what, n_documents, "document", self.good, self.rule)


COLUMNS: Mapping[str, DocumentColumn] = {
    "document_weights": DocumentColumn(
        1.0,
        "document_weight",
        "document weight",
        good=_is_positive,
        rule=_POSITIVE.format("documents"),
        is_void=lambda values: bool((values == 1.0).all()),
    ),
    "positions": DocumentColumn(
        0,
        "position",
        "position",
        np.int64,
        good=_is_position,
        rule=f"positions are whole numbers from 0 to {LAST_POSITION}. Give those at which documents were shown.",
        is_void=lambda values: bool((values == values[0]).all()),
    ),
    "times": DocumentColumn(
        np.nan, "time", "time", good=np.isfinite, rule="times are finite numbers or dates. Give each document one."
    ),
    "baseline": DocumentColumn(np.nan, is_digested=False),
    "clicks": DocumentColumn(np.nan),
    "contents": DocumentColumn(0, dtype=np.uint64, is_digested=False),
}
"""By the names of the fields of Queries."""


class ByDocument(TypedDict, total=False):
    """Some of the columns, (n_documents,) each, as fields of Queries."""

    document_weights: Floats | None
    positions: Ints | None
    times: Floats | None
    baseline: Floats | None
    contents: Array | None


class Given(ByDocument, total=False):
    """The same as a caller gives them, with whether the times are dates."""

    dated: bool


DATA_COLUMNS: Mapping[str, DocumentColumn] = {name: column for name, column in COLUMNS.items() if column.option}
"""Those that tables have."""
