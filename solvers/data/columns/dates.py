"""Times as microseconds since 1970 in UTC: dates, text in ISO 8601 or as 31.01.2026, and numbers that count from 1970.

All tables read times here. With dots the day is always first; with slashes it depends on the country, so that such text
is no date.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ranktune.solvers.core.arrays import Array, Floats
from ranktune.solvers.core.errors import DataError
from ranktune.solvers.data.columns.arrow import TableColumn, cast_or_none, encoded_values, is_dated
from ranktune.solvers.data.columns.encoding import DAY
from ranktune.solvers.data.columns.grammar import number_of

_DATE = (
    r"^\s*(?:(?P<y>[0-9]{4})-(?P<m>[0-9]{2})-(?P<d>[0-9]{2})"
    r"|(?P<d2>[0-9]{1,2})\.(?P<m2>[0-9]{1,2})\.(?P<y2>[0-9]{4}))"
    r"(?:[Tt ](?P<hour>[0-9]{2})(?::?(?P<minute>[0-9]{2})(?::?(?P<second>[0-9]{2})(?:[.,](?P<part>[0-9]{1,9}))?)?)?"
    r"(?:[Zz]|(?P<sign>[+-])(?P<zh>[0-9]{2})(?::?(?P<zm>[0-9]{2}))?)?)?\s*$"
)
_FIRST = -62_135_596_800_000_000
"""The first of January of the year 1."""
_HEAD = 100
_SECOND = 1_000_000


def microseconds_of(values: pa.ChunkedArray, *, count: bool = False) -> Floats:
    """Return times in microseconds since 1970, (n_rows,), NaN where one is missing or is no time.

    Times without a zone are in UTC. count: numbers are times too, whose size tells the unit of those from 1973 to 5138:
    seconds below 1e11, milliseconds below 1e14, microseconds below 1e17, else nanoseconds.
    """
    kind = values.type
    if is_dated(kind):
        usual = pa.timestamp("us", getattr(kind, "tz", None))
        whole = pc.cast(values, options=pc.CastOptions(usual, allow_time_truncate=True))
        times = _floats(whole.cast(pa.int64()))
        return np.where(times < _FIRST, np.nan, times)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        for usual in (pa.timestamp("us"), pa.timestamp("us", "UTC"), *([pa.float64()] * count)):
            whole = cast_or_none(values, usual)  # of most columns all values have one form, which Arrow takes apart
            if whole is not None:
                return microseconds_of(whole, count=count)
        codes, texts = encoded_values(values)
        read = _of_texts(texts.cast(pa.string()))
        if count and np.isnan(read).any():
            read = np.where(np.isnan(read), _counted(_numbers(texts.to_pylist())), read)
        return np.append(read, np.nan)[codes]
    if count and (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        return _counted(_floats(values))
    return np.full(len(values), np.nan)


def dates_or_none(column: TableColumn) -> Floats | None:
    """Return what `dates` does, None for a column that holds no dates."""
    values = column.values
    if column.is_text and np.isnan(microseconds_of(head := values.slice(0, _HEAD)))[_present(head)].any():
        return None  # most other text is known by its first values
    if not (column.is_text or is_dated(values.type)):
        return None
    found = microseconds_of(values)
    present = _present(values)
    return found if present.any() and not np.isnan(found[present]).any() else None


def dates(column: TableColumn) -> Floats:
    """Return the dates in a column in microseconds since 1970, NaN where one is missing, or raise DataError."""
    found = microseconds_of(column.values)
    wrong = np.flatnonzero(np.isnan(found) & _present(column.values))
    if len(wrong):
        row = int(wrong[0])
        raise DataError(
            f"the column {column.name!r} held dates in the training data, and here it holds "
            f"{str(column.values[row].as_py())[:40]!r} in row {row}. Dates are of a type of dates, or text such as "
            "2026-01-31T12:00 (ISO 8601) or 31.01.2026."
        )
    return found


def with_dates(table: pa.Table, names: Sequence[str]) -> pa.Table:
    """Return a table with those of its columns of text that hold dates as such: they are parsed once."""
    for name in names:
        place, column = table.schema.get_field_index(name), table.column(name)
        if pa.types.is_string(column.type):
            times = dates_or_none(TableColumn(name, column, table.schema.field(name)))
            if times is not None:
                whole = pa.array(times, from_pandas=True).cast(pa.int64()).cast(pa.timestamp("us"))
                table = table.set_column(place, name, whole)
    return table


def _present(values: pa.ChunkedArray) -> Array:
    """Return which values are not missing, (n_rows,); empty text is."""
    present = values.is_valid()
    if pa.types.is_string(values.type):
        present = pc.and_(present, pc.fill_null(pc.not_equal(values, ""), False))
    return np.asarray(present)


def _floats(values: pa.ChunkedArray) -> Floats:
    return np.asarray(values.cast(pa.float64(), safe=False).to_numpy())


def _of_texts(texts: pa.Array) -> Floats:
    """Return the times in texts in microseconds since 1970, NaN for what is none, (n_texts,)."""
    found = pc.extract_regex(texts, _DATE)
    if found.null_count == len(found):
        return np.full(len(texts), np.nan)

    def field(name: str, absent: int = 0) -> Array:
        digits = pc.struct_field(found, name)
        numbers = pc.if_else(pc.equal(digits, ""), None, digits).cast(pa.int64())
        return np.asarray(pc.fill_null(numbers, absent))

    year, month, day = (field(name) + field(f"{name}2") for name in "ymd")
    hour, minute, second = field("hour"), field("minute"), field("second")
    months = ((year - 1970) * 12 + month - 1).astype("datetime64[M]")
    days = months.astype("datetime64[D]") + (day - 1)
    good = (year >= 1) & (month >= 1) & (month <= 12) & (day >= 1) & (days < (months + 1).astype("datetime64[D]"))
    good &= (hour < 24) & (minute < 60) & (second < 60) & np.asarray(found.is_valid())
    fraction = pc.utf8_slice_codeunits(pc.utf8_rpad(pc.struct_field(found, "part"), 6, "0"), 0, 6).cast(pa.int64())
    behind = np.where(np.asarray(pc.fill_null(pc.equal(pc.struct_field(found, "sign"), "-"), False)), -1, 1)
    seconds = 3600 * hour + 60 * minute + second - behind * (3600 * field("zh") + 60 * field("zm"))
    times = days.astype(np.int64) * DAY + seconds * _SECOND + np.asarray(pc.fill_null(fraction, 0))
    return np.where(good, times.astype(np.float64), np.nan)


def _numbers(texts: list[object]) -> Floats:
    numbers = (number_of(str(text).strip()) if text is not None and str(text).strip() else None for text in texts)
    return np.array([np.nan if number is None else number for number in numbers])


def _counted(numbers: Floats) -> Floats:
    """Return numbers that count from 1970 as microseconds, by their size; NaN beyond 1e20."""
    size = np.abs(numbers)
    unit = np.select([size < 1e11, size < 1e14, size < 1e17, size <= 1e20], [1e6, 1e3, 1.0, 1e-3], np.nan)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.round(numbers * unit))
