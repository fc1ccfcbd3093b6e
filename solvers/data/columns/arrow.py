"""Data frames as Arrow tables, of few types: whole numbers, floating-point numbers, truth values, dates and text.

Categories are text. What is of another type, such as lists, stays so, and no feature can be made of it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ranktune.solvers.core.arrays import Floats, Ints
from ranktune.solvers.core.errors import DataError
from ranktune.solvers.data.columns.grammar import MISSING, text_of, warn_of_rounding

_WORDS = pa.array(filter(None, MISSING), pa.string())
KINDS, CATEGORY = b"kinds", b"category"
"""Metadata of a column: the types of Python objects in it, where they have no common one; that it is of categories."""


class TableColumn(NamedTuple):
    """A column of a table, and what it is called in messages."""

    name: str
    values: pa.ChunkedArray
    about: pa.Field

    @property
    def dtype(self) -> pa.DataType:
        """The type of the values."""
        return self.values.type

    @property
    def is_text(self) -> bool:
        """Whether it holds text or categories."""
        return bool(pa.types.is_string(self.dtype))

    @property
    def is_category(self) -> bool:
        """Whether its table says that it is of categories."""
        return CATEGORY in (self.about.metadata or {})

    @property
    def is_empty(self) -> bool:
        """Whether all values are missing, whatever type the column has."""
        return bool(self.values.null_count == len(self.values))

    @property
    def is_numeric(self) -> bool:
        """Whether it holds numbers or truth values, or nothing at all."""
        return is_number(self.dtype) or self.is_empty

    @property
    def what(self) -> str:
        """The type of the values, in words."""
        kinds = (self.about.metadata or {}).get(KINDS)
        return str(self.dtype) if kinds is None else str(kinds.decode())


def is_number(kind: pa.DataType) -> bool:
    """Return whether values of a type are numbers or truth values."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind))


def is_dated(kind: pa.DataType) -> bool:
    """Return whether values of a type are dates, with a time of the day or without."""
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind))


def table_column(table: pa.Table, name: str) -> TableColumn:
    """Return a column of a table."""
    return TableColumn(name, table.column(name), table.schema.field(name))


def is_frame(value: object) -> bool:
    """Return whether a value is a data frame: of pandas, one that gives Arrow's stream, or one that is collected."""
    return (
        _is_pandas(value)
        or (hasattr(value, "__arrow_c_stream__") and (hasattr(value, "columns") or hasattr(value, "schema")))
        or _collect(value) is not None
    )


def as_arrow(frame: object) -> pa.Table:
    """Return a data frame as a table. Raises DataError if it cannot be used, and for columns of the same name."""
    collect = _collect(frame)
    try:
        frame = collect() if collect is not None else frame  # type: ignore[operator]
        if _is_pandas(frame):
            table = _of_pandas(frame)
        elif hasattr(frame, "__arrow_c_stream__"):
            table = pa.table(frame)
        else:
            raise DataError(f"expected a data frame (pandas, polars, pyarrow ...), got {type(frame).__name__}.")
    except DataError:
        raise
    except Exception as error:  # libraries raise different errors, for example for equal names of columns
        raise DataError(f"the frame cannot be used: {' '.join(str(error).split())}") from error
    if len(set(table.column_names)) < table.num_columns:
        raise DataError("the frame has several columns of the same name. Rename them.")
    return of_few_types(table)


def of_few_types(table: pa.Table) -> pa.Table:
    """Return a table whose numbers, dates and texts are of types that all functions of this package take."""
    fields, columns = list[pa.Field](), list[pa.ChunkedArray]()
    for field, column in zip(table.schema, table.columns, strict=True):
        kind, metadata = field.type, {k: v for k, v in (field.metadata or {}).items() if k == KINDS}
        if pa.types.is_dictionary(kind):
            metadata[CATEGORY] = b""
            column, kind = _texts_of_categories(column), pa.string()
        elif pa.types.is_large_string(kind) or kind == pa.string_view() or pa.types.is_string(kind):
            kind = pa.string()
        elif pa.types.is_decimal(kind) or pa.types.is_float16(kind):
            kind = pa.float64()
        elif pa.types.is_date(kind) or (pa.types.is_timestamp(kind) and kind.unit != "us"):
            kind = pa.timestamp("us", getattr(kind, "tz", None))
        column = column if column.type == kind else _cast(column, kind)
        columns.append(_without_words(column) if kind == pa.string() else column)
        fields.append(pa.field(field.name, kind, metadata=metadata or None))
    return pa.table(columns, schema=pa.schema(fields))


def _texts_of_categories(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return categories as text, also those that are numbers."""
    parts = list[pa.Array]()
    for part in column.chunks:
        texts = pa.array(map(text_of, part.dictionary.to_pylist()), pa.string())
        parts.append(pa.DictionaryArray.from_arrays(part.indices, texts).cast(pa.string()))
    return pa.chunked_array(parts, pa.string())


def _without_words(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return text with null for the words for a missing value, as files have them."""
    words = pc.is_in(column, value_set=_WORDS)
    return pc.if_else(words, pa.scalar(None, pa.string()), column) if pc.any(words).as_py() else column


def _cast(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    return pc.cast(column, options=pc.CastOptions(kind, allow_time_truncate=True, allow_float_truncate=True))


def numbered(column: TableColumn) -> tuple[Ints, list[str]]:
    """Return the different values of a column as text, in the order of the rows, and the number of each row's.

    The numbers, (n_rows,), are -1 where the value is missing.
    """
    codes, values = encoded_values(column.values)
    numbers: dict[str | None, int] = {None: -1}
    places = [numbers.setdefault(value, len(numbers) - 1) for value in map(text_of, values.to_pylist())]
    return np.array([*places, -1])[codes], [value for value in numbers if value is not None]


def cast_or_none(values: pa.Array | pa.ChunkedArray, kind: pa.DataType) -> pa.Array | pa.ChunkedArray | None:
    """Return values as of another type, None where they are none; to fail is slow, so that the first ones are tried."""
    try:
        values.drop_null().slice(0, 4).cast(kind)
        return values.cast(kind)
    except pa.ArrowInvalid:
        return None


def encoded_values(values: pa.ChunkedArray) -> tuple[Ints, pa.Array]:
    """Return the different values of a column in the order of the rows, and the number of each row's, -1 for null."""
    encoded = values.dictionary_encode().unify_dictionaries().combine_chunks()
    if isinstance(encoded, pa.ChunkedArray):  # without chunks, or of several that are too large for one
        encoded = pa.concat_arrays(encoded.chunks) if encoded.num_chunks else pa.array([], encoded.type)
    codes = pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False).astype(np.int64)
    return codes, encoded.dictionary


def _is_pandas(value: object) -> bool:
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(value, pandas.DataFrame)


def _collect(value: object) -> object:
    """Return what makes a frame of a lazy one, of polars and Dask, None for any other value."""
    if hasattr(value, "collect_schema") or hasattr(value, "columns"):
        return next((getattr(value, name) for name in ("collect", "compute") if hasattr(value, name)), None)
    return None


def _of_pandas(frame: object) -> pa.Table:
    """Return a frame of pandas without its index, whose columns of objects may hold what Arrow has no type for."""
    names = map(str, frame.columns)  # type: ignore[attr-defined]
    made = [_series(frame.iloc[:, place], name) for place, name in enumerate(names)]  # type: ignore[attr-defined]
    return pa.table([values for values, _ in made], schema=pa.schema([field for _, field in made]))


def _series(series: object, name: str) -> tuple[pa.ChunkedArray, pa.Field]:
    try:
        values = pa.array(series, from_pandas=True)
    except (pa.ArrowException, TypeError, OverflowError, ValueError):
        return array_of([None if value != value else value for value in series.tolist()], name)  # type: ignore[attr-defined]
    values = values if isinstance(values, pa.ChunkedArray) else pa.chunked_array([values])
    return values, pa.field(name, values.type)


def array_of(values_given: Sequence[object], name: str) -> tuple[pa.ChunkedArray, pa.Field]:
    """Return Python objects as a column: of several types as numbers, or as text where one is; else by their types."""
    metadata = None
    try:
        values = pa.array(values_given)
    except (pa.ArrowException, TypeError, OverflowError, ValueError):
        present = [value for value in values_given if value is not None]
        if all(isinstance(value, bool | int | float | Decimal) for value in present):
            values = pa.array(_doubles(values_given, name), from_pandas=True)
        elif all(isinstance(value, str | int | float | date) for value in present):
            values = pa.array([text_of(value) for value in values_given], pa.string())
        else:
            example = next((value for value in present if not isinstance(value, int | float)), present[0])
            kinds = " and ".join(sorted({type(value).__name__ for value in present}))
            what = f"values of type {kinds}, such as {example!r:.40}; a missing value is None or NaN"
            values, metadata = (
                pa.array([None if x is None else b"" for x in values_given], pa.binary()),
                {KINDS: what.encode()},
            )
    return pa.chunked_array([values]), pa.field(name, values.type, metadata=metadata)


def _doubles(values: Sequence[object], name: str) -> Floats:
    try:
        doubles = np.array([np.nan if value is None else float(value) for value in values])  # type: ignore[arg-type]
    except OverflowError:
        raise DataError(
            f"the column {name!r} holds a whole number beyond 1e308. Correct it, or leave the column out."
        ) from None
    warn_of_rounding(values.__getitem__, doubles, f"the column {name!r}")  # type: ignore[arg-type]
    return doubles
