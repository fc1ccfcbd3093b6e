"""The columns of a table as numbers. Empty text is a missing value."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ranktune.solvers.core.arrays import Array, Ints, Matrix
from ranktune.solvers.core.errors import DataError
from ranktune.solvers.data.columns.arrow import TableColumn, as_arrow, is_frame, numbered, table_column
from ranktune.solvers.data.columns.dates import dates
from ranktune.solvers.data.columns.encoding import DAY, Age, Category, Kind, TableEncoding, check_features
from ranktune.solvers.data.columns.grammar import EXACT, Amount, bits_of, number_of, warn_of_rounding, without_largest

_CELLS = 1 << 20
"""Cells that are copied at a time: 8 MB."""
OTHER, MISSING = -1, -2
"""Places among levels of values that are none of them."""


def encoded_of(frame: object, feature_names: Sequence[str], encoding: TableEncoding) -> Matrix:
    """Return features of the rows of a data frame of any library, (n_rows, n_features)."""
    if not is_frame(frame):
        raise DataError(
            f"categories and dates of a {type(frame).__name__} are not known: give a pandas or polars frame."
        )
    return encoded(as_arrow(frame), feature_names, encoding, encoding.missing)


def encoded(table: pa.Table, feature_names: Sequence[str], encoding: TableEncoding, missing: str) -> Matrix:
    """Return features of the rows of a table, (n_rows, n_features): float32 if all columns are, else float64.

    missing is "keep", "error" or "zero". Raises DataError for a column that is not there or cannot be encoded.
    """
    names = list(dict.fromkeys(encoding.sources(feature_names).values()))
    check_features(table.column_names, names, exact=False)
    columns = {name: table_column(table, name) for name in names}
    numeric = [
        column.dtype for column in columns.values() if not isinstance(encoding.columns.get(column.name), Category)
    ]
    dtype = np.float32 if numeric and all(kind == pa.float32() for kind in numeric) else np.float64
    where = {name: k for k, name in enumerate(feature_names)}
    made = np.zeros if encoding.columns else np.empty  # most features of categories are 0
    matrix = made((table.num_rows, len(feature_names)), dtype=dtype)
    plain = [name for name, column in columns.items() if name not in encoding.columns and column.is_numeric]
    _fill(matrix, {where[name]: _floats(columns[name], "feature") for name in plain})
    for name in plain:
        matrix[:, where[name]] = finite(matrix[:, where[name]], name, "feature", missing)
    for name, column in columns.items():
        kind = encoding.columns.get(name)
        if kind is None or isinstance(kind, Amount):
            if name not in plain:
                read = number_of if kind is None or (column.is_numeric and not kind.unit) else kind.value
                matrix[:, where[name]] = numbers(column, "feature", missing, read)
            continue
        places = np.array([where.get(feature, -1) for feature in encoding.features_of(name)])
        if isinstance(kind, Category):
            rows, places_of_ones = _ones(column, kind, places, missing)
            matrix[rows, places_of_ones] = 1.0
        elif places[0] >= 0:
            ages = (kind.microseconds - dates(column)) / DAY
            matrix[:, places[0]] = finite(ages, name, "feature", missing)
    return matrix


def contents(table: pa.Table, encoding: TableEncoding) -> Array | None:
    """Return 64 bits for each cell of the columns of an encoding, (n_rows, n_columns): the same wherever they are read.

    They do not depend on other rows, as features do. None without such columns; 0 for a missing cell or column.
    """
    present, nothing = set(table.column_names), np.zeros(table.num_rows, dtype=np.uint64)
    columns = [
        _contents(table_column(table, name), kind) if name in present else nothing
        for name, kind in encoding.columns.items()
    ]
    return np.column_stack(columns) if columns else None


def _contents(column: TableColumn, kind: Kind) -> Array:
    if isinstance(kind, Age):
        return np.nan_to_num(dates(column)).astype(np.int64).view(np.uint64)
    codes, texts = numbered(column)
    return np.array([*map(bits_of, texts), 0], dtype=np.uint64)[codes]  # the last is that of -1


def _fill(matrix: Matrix, columns: Mapping[int, pa.ChunkedArray]) -> None:
    """Copy columns of floating-point numbers to their places in a matrix, as many rows at a time as fit a cache."""
    rows = max(_CELLS // max(len(columns), 1), 1)
    for first in range(0, len(matrix), rows):
        for place, values in columns.items():
            matrix[first : first + rows, place] = values.slice(first, rows).to_numpy()


def _floats(column: TableColumn, what: str) -> pa.ChunkedArray:
    """Return the numbers of a column as floating-point numbers, with a warning of whole ones that are rounded."""
    values = column.values
    if pa.types.is_floating(column.dtype):
        return values
    doubles = values.cast(pa.float64(), safe=False)
    if pa.types.is_integer(column.dtype) and not column.is_empty:
        span = pc.min_max(values).as_py()
        if max(-span["min"], span["max"]) >= EXACT:
            warn_of_rounding(lambda row: values[row].as_py(), doubles.to_numpy(), f"the {what} column {column.name!r}")
    return doubles


def _ones(column: TableColumn, kind: Category, places: Ints, missing: str) -> tuple[Ints, Ints]:
    """Return the cells that are 1 of the features of a category: their rows, and the places of their features."""
    values = _places(column, kind.levels)
    if missing == "error":
        finite(np.where(values == MISSING, np.nan, 0.0), column.name, "feature", missing)
    if kind.has_missing:
        values[values == MISSING] = len(kind.levels)
    rows = np.flatnonzero(values >= 0)
    columns = places[values[rows]]
    return rows[columns >= 0], columns[columns >= 0]


def _places(column: TableColumn, levels: Sequence[str]) -> Ints:
    """Return the place among levels of the value of each row as text, else OTHER or MISSING, (n_rows,).

    A level that is a number or a truth value is found as Python writes it too, 7 as 7.0 and true as True.
    """
    kind = column.dtype
    is_whole = pa.types.is_floating(kind) and not (np.mod(column.values.to_numpy(), 1.0) > 0.0).any()
    if not (column.is_text or is_whole or pa.types.is_integer(kind) or pa.types.is_boolean(kind) or column.is_empty):
        raise DataError(
            f"the column {column.name!r} held categories in the training data, such as {levels[0]!r}, and here it "
            f"holds {column.what}. Give what the training data had."
        )
    codes, values = numbered(column)
    written = {"true": "True", "false": "False"} | {level: f"{level}.0" for level in levels if level.isdecimal()}
    names = [*(written.get(level, level) for level in levels), *levels]  # of two places the last counts
    places = {text: place % len(levels) for place, text in enumerate(names)}
    return np.array([*(places.get(value, OTHER) for value in values), MISSING])[codes]  # the last is that of -1


def numbers(
    column: TableColumn, what: str, missing: str = "error", read: Callable[[str], float | None] = number_of
) -> Matrix:
    """Return the numbers of a column, finite but for missing ones that are kept, which are NaN.

    read returns the number in a text, None for others.
    """
    if read is number_of and column.is_numeric:
        return finite(_floats(column, what).to_numpy(), column.name, what, missing)
    codes, texts = numbered(column) if column.is_text or column.is_numeric else (np.zeros(0, np.int64), [column.what])
    others = [text for text in texts if read(text) is None]
    if others:
        raise DataError(
            f"the {what} column {column.name!r} holds {column.what}, not numbers: {others[0][:40]!r}. Write it as a "
            "number, as in the training data."
        )
    return finite(np.array([*map(read, texts), np.nan], dtype=np.float64)[codes], column.name, what, missing)


def finite(values: Matrix, name: str, what: str, missing: str) -> Matrix:
    """Return the values of the column of that name, all finite but for missing ones that are kept, which are NaN."""
    values = without_largest(values, f"the {what} column {name!r}")
    bad = ~np.isfinite(values)
    if not bad.any():
        return values
    infinite, absent = np.flatnonzero(np.isinf(values)), np.flatnonzero(np.isnan(values))
    of_feature = what == "feature"
    if len(infinite) and missing != "zero":
        remedy = ', or read it as 0: missing="zero"' if of_feature else ""
        raise DataError(
            f"the {what} column {name!r} is {values[infinite[0]]} in row {infinite[0]}. Every value must be finite: "
            f"correct it, or remove the row{remedy}."
        )
    if missing == "error":
        remedies = {"feature": ', or keep them: missing="keep"', "grade": ". A grade of 0 says: not relevant"}
        raise DataError(
            f"the {what} column {name!r} has missing values: {len(absent)}, the first in row {absent[0]}. "
            f"Fill them in, or remove those rows{remedies.get(what, '')}."
        )
    return values if missing == "keep" else np.where(bad, values.dtype.type(0), values)
