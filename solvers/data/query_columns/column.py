"""A column of queries: what each document, query or feature has besides its features, grades and names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
from numpy.typing import DTypeLike

from ranktune.solvers.core.arrays import Array, Ints
from ranktune.solvers.core.errors import DataError
from ranktune.solvers.data.columns.encoding import time_text
from ranktune.solvers.data.columns.grammar import warn_of_rounding
from ranktune.solvers.data.columns.table import COLUMNS, column_of

if TYPE_CHECKING:
    from ranktune.solvers.data.queries import Queries

T = TypeVar("T")

Rows = Ints | slice
"""Numbers of documents or queries."""
DOCUMENT, QUERY, FEATURE = "document", "query", "feature"
_MANY = {DOCUMENT: "documents", QUERY: "queries", FEATURE: "features"}


@dataclass(frozen=True)
class Column:
    """What each document has, or each query or feature, mostly a number.

    what         what a value is called in messages
    absent       the value of those without one, where others have one
    good         whether values can be its own, where not all can; rule says which
    is_void      whether values say no more than their absence
    is_digested  whether data that differ in it are other data
    weighs       whether each document counts as often as its value says in fitting, besides its document weight
    has_dates    whether values may be dates: microseconds since 1970 where queries are dated
    of           what has a value: DOCUMENT, QUERY or FEATURE
    file         what its file is called where queries are stored, if not as the column
    """

    what: str = "value"
    absent: float = np.nan
    dtype: DTypeLike = np.float64
    good: Callable[[Array], Array] | None = None
    rule: str = ""
    is_void: Callable[[Array], bool] = lambda values: False
    is_digested: bool = True
    weighs: bool = False
    has_dates: bool = False
    of: str = DOCUMENT
    file: str = ""

    def check(self, values: Array, name: str, queries: Queries) -> None:
        """Raise DataError for values that the column of that name cannot have."""
        many = _MANY[self.of]
        count = getattr(queries, f"n_{many}")
        if values.shape[:1] != (count,) or (self.good is not None and values.ndim != 1):
            raise DataError(f"{name} has shape {values.shape} for {count} {many}: give one {self.what} per {self.of}.")
        bad = np.flatnonzero(np.zeros(count) if self.good is None else ~self.good(values))
        if len(bad):
            raise DataError(f"the {self.what} of {self.of} number {bad[0]} is {values[bad[0]]}: {self.rule}")

    def given(self, values: Any, name: str, queries: Queries) -> Array | None:
        """Return values that a caller gives, of documents in the order of the caller's rows."""
        if self.has_dates and is_dates(values):
            moments = np.asarray(values)
            microseconds = moments.astype("datetime64[us]").astype(np.int64).astype(np.float64)
            values = np.where(np.isnat(moments), np.nan, microseconds)
        array = numeric(values, name)
        self.check(array, name, queries)
        array = np.ascontiguousarray(array, dtype=self.dtype)
        return array if queries.rows is None else array[queries.rows]

    def selected(self, values: Array, queries: Rows, documents: Rows) -> Array:
        """Return the values of some queries and their documents."""
        return values if self.of == FEATURE else values[queries if self.of == QUERY else documents]

    def described(self, values: Array, columns: Ints) -> Array:
        """Return the values where documents have the features of these numbers, and none where one is -1."""
        if self.of != FEATURE:
            return values
        return np.where(columns < 0, self.absent, values[columns]).astype(self.dtype)

    def joined(self, parts: Sequence[tuple[Queries, Rows]], held: Sequence[Array | None]) -> Array | None:
        """Return the values of rows of parts, one part after another; None where parts do not fit together."""
        present = [values for values in held if values is not None]
        if self.of == FEATURE:
            return present[0]
        if len({values.shape[1:] for values in present}) > 1:  # of tables that do not fit together, contents differ
            return None
        joined = []
        for (part, rows), values in zip(parts, held, strict=True):
            shape = (getattr(part, f"n_{_MANY[self.of]}"), *present[0].shape[1:])
            absent = np.broadcast_to(np.array(self.absent, self.dtype), shape)
            joined.append((absent if values is None else values)[rows])
        return np.concatenate(joined)

    def shown(self, values: Array, queries: Queries) -> str:
        """Return a text about the values of queries, for a summary of the data."""
        lowest, highest = values.min(), values.max()
        if self.has_dates:
            return " to ".join(time_text(time, dated=queries.dated) for time in (lowest, highest))
        return f"{lowest:g} to {highest:g}"


class HeldColumn(Generic[T]):
    """A column as an attribute of Queries: its values, or None."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, queries: Queries | None, owner: type) -> T | None:
        return None if queries is None else queries.columns.get(self.name)  # type: ignore[return-value]


def is_dates(values: Any) -> bool:
    """Return whether values are dates."""
    return np.asarray(values).dtype.kind == "M"


def joined_columns(parts: Sequence[tuple[Queries, Rows]], *of: str) -> dict[str, Array]:
    """Return the columns of these kinds, or of all, of rows of parts, one part after another, that some part has."""
    joined = {}
    for name, entry in COLUMNS.items():
        held = [part.columns.get(name) for part, _ in parts]
        if any(values is not None for values in held) and entry.column.of in (of or _MANY):
            joined[name] = entry.column.joined(parts, held)
    return {name: values for name, values in joined.items() if values is not None}


def columns_of(queries: Queries, *of: str) -> dict[str, Array]:
    """Return the columns of queries of these kinds."""
    return {name: values for name, values in queries.columns.items() if COLUMNS[name].column.of in of}


def for_fitting(queries: Queries) -> Queries:
    """Return the same queries without columns that say nothing, and with what weighs documents as their weights."""
    weighing = [name for name in queries.columns if column_of(name).weighs]
    if weighing:
        weights = np.prod([queries.copies, *(queries.columns[name] for name in weighing)], axis=0)
        queries = queries.replaced(**dict.fromkeys(weighing), document_weights=weights)
    void = [name for name, values in queries.columns.items() if column_of(name).is_void(values)]
    return queries.replaced(**dict.fromkeys(void)) if void else queries


KINDS = {"c": "complex numbers", "V": "records", "m": "durations", "M": "dates", "U": "text", "S": "bytes"}
"""Kinds of arrays that hold no numbers."""


def numeric(values: object, name: str) -> Array:
    """Return values as an array of float32 (if they are) or float64, or say why that cannot be."""
    try:
        array = np.asarray(values)
        if array.dtype == object and any(isinstance(value, str | bytes) for value in array.flat):
            raise DataError(f"{name} is not numeric: it holds text. Encode text as numbers before.")
        if array.dtype == object and hasattr(values, "to_numpy"):  # nullable types of pandas, whose NA is no number
            array = values.to_numpy(dtype=np.float64, na_value=np.nan)
        if array.dtype.kind not in KINDS:
            if array.dtype in (np.float32, np.float64):
                return array
            doubles = array.astype(np.float64)
            if array.dtype.kind in "iuO":
                warn_of_rounding(array.ravel().__getitem__, doubles.ravel(), name)
            return doubles
    except (TypeError, ValueError, OverflowError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{name} is not numeric ({error}). Encode text as numbers before.") from None
    if array.dtype.kind == "c":
        raise DataError(f"Complex data not supported: {name} is {array.dtype}. Pass real numbers.")
    what = KINDS[array.dtype.kind]
    raise DataError(
        f"{name} is not numeric: it is {array.dtype}, and must hold numbers, not {what}. Convert it before."
    )
