"""The columns of data frames as numbers, in all libraries that narwhals supports.

Empty text is a missing value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal

import narwhals as nw
import numpy as np

from ranktune.solvers.core.arrays import Array, Ints, Matrix
from ranktune.solvers.core.errors import DataError
from ranktune.solvers.data.columns.amounts import Amount
from ranktune.solvers.data.columns.dates import dates
from ranktune.solvers.data.columns.encoding import DAY, Age, Category, Encoding, Kind, check_features
from ranktune.solvers.data.columns.grammar import LARGE, bits_of, number_of, warn_of_rounding, without_largest
from ranktune.solvers.data.columns.texts import MISSING, Frame, Series, numbered, places_among, values_of

_CELLS = 1 << 20
"""Cells that are converted at a time: 8 MB."""


def encoded_of(frame: object, feature_names: Sequence[str], encoding: Encoding) -> Matrix:
    """Return features of the rows of a data frame of any library, (n_rows, n_features)."""
    table = nw.from_native(frame, eager_only=True, pass_through=True)
    if not isinstance(table, nw.DataFrame):
        raise DataError(
            f"categories and dates of a {type(frame).__name__} are not known: give a pandas or polars frame."
        )
    return encoded(table, feature_names, encoding, encoding.missing)


def encoded(frame: Frame, feature_names: Sequence[str], encoding: Encoding, missing: str) -> Matrix:
    """Return features of the rows of a frame, (n_rows, n_features): float32 if all columns are, else float64.

    missing is "keep", "error" or "zero". Raises DataError for a column that is not there or cannot be encoded.
    """
    sources = encoding.sources(feature_names)
    columns = list(dict.fromkeys(sources.values()))
    labels = {str(label): label for label in frame.columns}
    check_features(list(labels), columns, exact=False)
    schema = frame.schema
    plain = [schema[labels[name]] for name in columns if not isinstance(encoding.columns.get(name), Category)]
    dtype = np.float32 if plain and all(kind == nw.Float32 for kind in plain) else np.float64
    where = {name: k for k, name in enumerate(feature_names)}
    made = np.zeros if encoding.columns else np.empty  # most features of categories are 0
    matrix = made((len(frame), len(feature_names)), dtype=dtype)
    together = frame.implementation.is_polars()
    floats = {
        name: where[name]
        for name in columns
        if together and name in where and name not in encoding.columns and schema[labels[name]].is_float()
    }
    _fill(matrix, floats, frame, missing)
    for name in columns:
        if name in floats:
            continue
        column, kind = frame.get_column(labels[name]), encoding.columns.get(name)
        if kind is None or isinstance(kind, Amount):
            read = number_of if kind is None or (is_numeric(column) and not kind.unit) else kind.value
            matrix[:, where[name]] = numbers(column, "feature", missing, read)
            continue
        places = np.array([where.get(feature, -1) for feature in encoding.features_of(name)])
        if isinstance(kind, Category):
            rows, taken = _ones(column, kind, places, missing)
            matrix[rows, taken] = 1.0
        elif places[0] >= 0:
            ages = (kind.microseconds - dates(column)) / DAY
            matrix[:, places[0]] = finite(ages, column.name, "feature", missing)
    return matrix


def contents(frame: Frame, encoding: Encoding) -> Array | None:
    """Return 64 bits for each cell of the columns of an encoding, (n_rows, n_columns): the same wherever they are read.

    They do not depend on other rows, as features do. None without such columns; 0 for a missing cell or column.
    """
    labels, nothing = {str(label): label for label in frame.columns}, np.zeros(len(frame), dtype=np.uint64)
    columns = [
        _contents(frame.get_column(labels[name]), kind) if name in labels else nothing
        for name, kind in encoding.columns.items()
    ]
    return np.column_stack(columns) if columns else None


def _contents(column: Series, kind: Kind) -> Array:
    if isinstance(kind, Age):
        return np.nan_to_num(dates(column)).astype(np.int64).view(np.uint64)
    codes, texts = numbered(column)
    return np.array([*map(bits_of, texts), 0], dtype=np.uint64)[codes]  # the last is that of -1


def _fill(matrix: Matrix, where: Mapping[str, int], frame: Frame, missing: str) -> None:
    """Copy columns of floating-point numbers to their places in a matrix, as many rows at a time as fit a cache."""
    if not where:
        return
    names, places = list(where), list(where.values())
    rows, adjacent = max(_CELLS // len(names), 1), places == list(range(places[0], places[0] + len(places)))
    taken = slice(places[0], places[-1] + 1) if adjacent else places
    strange = np.zeros(len(names), dtype=bool)
    for first in range(0, len(frame), rows):
        given = frame[first : first + rows, names].to_numpy()
        matrix[first : first + rows, taken] = given
        bad = ~(np.abs(given) <= LARGE)
        if bad.any():
            strange |= bad.any(axis=0)
    for k in np.flatnonzero(strange):
        values = matrix[:, places[k]]
        values[:] = finite(values, names[k], "feature", missing)


def _ones(column: Series, kind: Category, places: Ints, missing: str) -> tuple[Ints, Ints]:
    """Return the cells that are 1 of the features of a category: their rows, and the places of their features."""
    values = _codes(column, kind.levels)
    if missing == "error":
        finite(np.where(values == MISSING, np.nan, 0.0), column.name, "feature", missing)
    if kind.has_missing:
        values[values == MISSING] = len(kind.levels)
    rows = np.flatnonzero(values >= 0)
    taken = places[values[rows]]
    return rows[taken >= 0], taken[taken >= 0]


def _codes(column: Series, levels: Sequence[str]) -> Ints:
    """Return the number of the level of each row."""
    if not _is_countable(column):
        raise DataError(
            f"the column {column.name!r} held categories in the training data, such as {levels[0]!r}, and here it "
            f"holds {column.dtype}. Give what the training data had."
        )
    return places_among(column, levels)


def _is_countable(column: Series) -> bool:
    """Return whether the values of a column can be those of a category."""
    dtype = column.dtype
    if dtype.is_float():
        values = column.to_numpy()
        return bool((np.isnan(values) | (values == np.round(values))).all())
    return is_text(column) or dtype.is_integer() or dtype == nw.Boolean or is_empty(column)


def is_text(column: Series) -> bool:
    """Return whether a column holds text or categories."""
    dtype = column.dtype
    if isinstance(dtype, nw.Categorical | nw.Enum | nw.String):
        return True
    return dtype == nw.Object and _holds(column, (str, int)) and not _holds(column, (bool, int))


def is_numeric(column: Series) -> bool:
    """Return whether a column holds numbers or truth values, or nothing at all."""
    dtype = column.dtype
    if dtype.is_numeric() or dtype == nw.Boolean or is_empty(column):
        return True
    return bool(dtype == nw.Object and _holds(column, (bool, int, float, Decimal)))


def is_empty(column: Series) -> bool:
    """Return whether all values are missing, whatever type the column has."""
    return bool(column.null_count() == len(column))


def _holds(column: Series, kinds: tuple[type, ...]) -> bool:
    """Return whether all values of a column that are not missing are of these types."""
    return all(isinstance(value, kinds) for value in values_of(column) if value is not None)


def kinds_in(column: Series) -> str:
    """Return the types of the values of a column of Python objects, in words, with one that is no number if any is."""
    values = [value for value in values_of(column) if value is not None]
    example = next((value for value in values if not isinstance(value, int | float)), values[0])
    kinds = " and ".join(sorted({type(value).__name__ for value in values}))
    return f"values of type {kinds}, such as {example!r:.40}; a missing value is None or NaN"


def numbers(
    column: Series, what: str, missing: str = "error", read: Callable[[str], float | None] = number_of
) -> Matrix:
    """Return the numbers of a column, finite but for missing ones that are kept, which are NaN.

    read returns the number in a text, None for others.
    """
    name, dtype = column.name, column.dtype
    if read is not number_of or not is_numeric(column):
        codes, texts = numbered(column)
        others = [text for text in texts if read(text) is None]
        if others:
            raise DataError(
                f"the {what} column {name!r} holds {dtype}, not numbers: {others[0][:40]!r}. Write it as a number, as "
                "in the training data."
            )
        return finite(np.array([*map(read, texts), np.nan], dtype=np.float64)[codes], name, what, missing)
    if is_empty(column):
        values = np.full(len(column), np.nan)
    elif dtype == nw.Object:
        try:
            values = np.array([np.nan if value is None else float(value) for value in values_of(column)])  # type: ignore[arg-type]
        except OverflowError:
            raise DataError(
                f"the {what} column {name!r} holds a whole number beyond 1e308. Correct it, or leave the column out."
            ) from None
    else:
        values = (column if dtype in (nw.Float32, nw.Float64) else column.cast(nw.Float64)).to_numpy()
    if values.dtype not in (np.float32, np.float64):
        values = values.astype(np.float64)
    if not dtype.is_float():
        warn_of_rounding(column.__getitem__, values, f"the {what} column {name!r}")
    return finite(values, name, what, missing)


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
