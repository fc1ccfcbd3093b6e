"""The numbers that each document has besides its features and its grade.

Each is a field of Queries, None where documents have none. Whatever reads, selects, joins, stores or digests queries
goes over COLUMNS: a further column is an entry here, a field of Queries, and an option that names it in tables.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from ranktune.solvers.core.arrays import Array, Ints, Mask
from ranktune.solvers.core.errors import DataError
from ranktune.solvers.data.values import check_weights, numeric

if TYPE_CHECKING:
    from ranktune.solvers.data.queries import Queries

LAST_POSITION = 2**31 - 1
"""The largest position: libraries take 32 bits."""


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


@dataclass(frozen=True)
class DocumentColumn:
    """A number per document.

    absent    the value of documents without one, where others have one
    option    the option that names its column in tables; empty where it is no part of the data, and not digested
    what      what it is, in messages
    check     raises DataError for values, (n_documents,), that it cannot have
    is_void   whether values say no more than None does
    """

    absent: float
    option: str = ""
    what: str = ""
    dtype: DTypeLike = np.float64
    check: Callable[[Array, int], None] = _any_number
    is_void: Callable[[Array], bool] = lambda values: False


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
    "baseline": DocumentColumn(np.nan),
}
"""By the names of the fields of Queries."""

DATA_COLUMNS: Mapping[str, DocumentColumn] = {name: column for name, column in COLUMNS.items() if column.option}
"""Those that are part of the data."""


def checked_columns(
    columns: Mapping[str, ArrayLike | None], n_documents: int, rows: Ints | None = None
) -> dict[str, Any]:
    """Return the columns that are given, in the order of rows. Raises DataError for values that one cannot have."""
    checked = {}
    for name, given in columns.items():
        if given is not None:
            values = numeric(given, name)
            COLUMNS[name].check(values, n_documents)
            values = np.ascontiguousarray(values, dtype=COLUMNS[name].dtype)
            checked[name] = values if rows is None else values[rows]
    return checked


def void_columns(queries: Queries) -> dict[str, Any]:
    """Return None by name for the columns of queries that say no more than that."""
    columns = ((name, getattr(queries, name)) for name in COLUMNS)
    return {name: None for name, values in columns if values is not None and COLUMNS[name].is_void(values)}


def joined_columns(parts: Sequence[tuple[Queries, Ints | slice]]) -> dict[str, Any]:
    """Return the columns of rows of parts, one part after another, that some part has."""

    def values(part: Queries, rows: Ints | slice, name: str) -> Array:
        column: Array | None = getattr(part, name)
        if column is None:
            column = np.broadcast_to(np.array(COLUMNS[name].absent, COLUMNS[name].dtype), part.n_documents)
        return column[rows]

    had = [name for name in COLUMNS if any(getattr(part, name) is not None for part, _ in parts)]
    return {name: np.concatenate([values(part, rows, name) for part, rows in parts]) for name in had}
