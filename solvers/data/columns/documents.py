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

from ranktune.solvers.core.arrays import Array, Floats, Ints, Mask
from ranktune.solvers.core.errors import DataError

LAST_POSITION = 2**31 - 1
"""The largest position: libraries take 32 bits."""


def check_weights(weights: Floats, count: int, kind: str) -> None:
    """Raise DataError unless there is one positive, finite weight for each query or document."""
    many = {"query": "queries", "document": "documents"}[kind]
    if weights.shape != (count,):
        raise DataError(f"{kind}_weights has shape {weights.shape} for {count} {many}: give one weight per {kind}.")
    bad = ~(np.isfinite(weights) & (weights > 0.0))
    if bad.any():
        at = int(np.flatnonzero(bad)[0])
        raise DataError(
            f"the weight of {kind} number {at} is {weights[at]}: weights must be positive and finite. "
            f"Leave out {many} that should not count."
        )


def _any_number(values: Array, n_documents: int) -> None:
    pass


def _check_document_weights(values: Array, n_documents: int) -> None:
    check_weights(values, n_documents, "document")


def _check_positions(values: Array, n_documents: int) -> None:
    if values.shape != (n_documents,):
        raise DataError(f"positions has shape {values.shape} for {n_documents} documents: give one position each.")
    bad: Mask = ~((values >= 0) & (values <= LAST_POSITION) & (values == np.floor(values)))
    if bad.any():
        at = int(np.flatnonzero(bad)[0])
        raise DataError(
            f"the position of document number {at} is {values[at]}: positions are whole numbers from 0 to "
            f"{LAST_POSITION}. Give those at which documents were shown."
        )


def _check_times(values: Array, n_documents: int) -> None:
    if values.shape != (n_documents,):
        raise DataError(f"times has shape {values.shape} for {n_documents} documents: give one time each.")
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        raise DataError(
            f"the time of document number {bad[0]} is {values[bad[0]]}: times are finite numbers or dates. Give each "
            "document one."
        )


@dataclass(frozen=True)
class DocumentColumn:
    """What each document has, mostly a number.

    absent    the value of documents without one, where others have one
    option    the option that names its column in tables; empty where none does
    what      what it is, in messages
    check     raises DataError for values, (n_documents,), that it cannot have
    is_void   whether values say no more than None does
    is_digested   whether data that differ in it are other data
    """

    absent: float
    option: str = ""
    what: str = ""
    dtype: DTypeLike = np.float64
    check: Callable[[Array, int], None] = _any_number
    is_void: Callable[[Array], bool] = lambda values: False
    is_digested: bool = True


COLUMNS: Mapping[str, DocumentColumn] = {
    "document_weights": DocumentColumn(
        1.0,
        "document_weight",
        "document weight",
        check=_check_document_weights,
        is_void=lambda values: bool((values == 1.0).all()),
    ),
    "positions": DocumentColumn(
        0,
        "position",
        "position",
        np.int64,
        check=_check_positions,
        is_void=lambda values: bool((values == values[0]).all()),
    ),
    "times": DocumentColumn(np.nan, "time", "time", check=_check_times),
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
