"""The dates in a column, as such or as text: ISO 8601, or 31.01.2026."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, datetime
from typing import TYPE_CHECKING

import narwhals as nw
import numpy as np

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.errors import DataError
from ranktune.solvers.data.columns.encoding import DAY, microseconds
from ranktune.solvers.data.columns.texts import Frame, Series, polars_text, values_of

if TYPE_CHECKING:
    import polars

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([T ]|$)")
_DAY_FIRST = re.compile(r"(\d{1,2})\.(\d{1,2})\.(\d{4})(?=[T ]|$)")
"""With dots the day is always first; with slashes it depends on the country, so that such text is no date."""
_USUAL = (
    r"^[1-9][0-9]{3}-[0-9]{2}-[0-9]{2}"
    r"(?:[T ](?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:\.[0-9]{1,6})?)?Z?)?$"
)
"""Text that polars takes apart, which is a date if its month has that day; other text is looked at one by one."""
_HEAD = 100


def dates_or_none(column: Series) -> Floats | None:
    """Return what `dates` does, None for a column that holds no dates."""
    is_typed = isinstance(column.dtype, nw.Date | nw.Datetime)
    if not is_typed and not isinstance(column.dtype, nw.String | nw.Object):
        return None
    try:
        dates(column.head(_HEAD))  # of most other text this is enough
        found = dates(column)
    except DataError:
        return None
    return found if is_typed or not np.isnan(found).all() else None


def dates(column: Series) -> Floats:
    """Return the dates in a column in microseconds since 1970, NaN where one is missing, or raise DataError."""
    if isinstance(column.dtype, nw.Datetime) and column.null_count() < len(column):
        times = column.dt.timestamp("us")
        absent = column.is_null().to_numpy()
        return np.where(absent, np.nan, times.fill_null(0).to_numpy().astype(np.float64))
    text = polars_text(column)
    found = np.full(len(column), np.nan) if text is None else _usual(text)
    rows = np.flatnonzero(np.isnan(found))
    if not len(rows):
        return found
    values = values_of(column) if text is None else text.gather(rows).to_list()
    known: dict[object, float] = {None: np.nan, "": np.nan}
    for row, value in zip(rows.tolist(), values, strict=True):
        if not isinstance(value, str | date | None):
            raise _no_date(value, column.name, row)
        if value not in known:
            known[value] = _microseconds(value, column.name, row)
    found[rows] = [known[value] for value in values]
    return found


def with_dates(frame: Frame, names: Sequence[str]) -> Frame:
    """Return a frame with those of the columns of text of polars that hold dates as such: they are parsed once."""
    columns = [column for name in names if polars_text(column := frame.get_column(name)) is not None]
    found = {column.name: times for column in columns if (times := dates_or_none(column)) is not None}
    if not found:
        return frame
    import polars

    whole = (polars.Series(name, times, nan_to_null=True).cast(polars.Int64) for name, times in found.items())
    typed = (nw.from_native(column.cast(polars.Datetime("us")), series_only=True) for column in whole)
    return frame.with_columns(*typed)


def _usual(text: polars.Series) -> Floats:
    """Return the dates in text of the usual form in microseconds since 1970, NaN for any other text, (n_rows,)."""
    import polars

    def part(first: int, length: int) -> polars.Series:
        return usual.str.slice(first, length).cast(polars.Int64, strict=False).fill_null(0)

    usual = text.set(~text.str.contains(_USUAL), None)
    time = usual.str.head(10).str.to_date("%Y-%m-%d", strict=False).cast(polars.Int64) * DAY
    lengths = usual.str.len_bytes()
    if (lengths > 10).any():
        time += (3600 * part(11, 2) + 60 * part(14, 2) + part(17, 2)) * 1_000_000
    if (lengths > 20).any():
        fraction = usual.str.slice(20, 6).str.strip_suffix("Z").str.pad_end(6, "0")
        time += fraction.cast(polars.Int64, strict=False)
    return time.cast(polars.Float64).fill_null(np.nan).to_numpy(writable=True)


def _microseconds(value: str | date | None, name: str, row: int) -> float:
    if isinstance(value, str):
        value = _DAY_FIRST.sub(lambda found: f"{found[3]}-{found[2]:0>2}-{found[1]:0>2}", value, count=1)
    try:
        time = datetime.fromisoformat(value) if isinstance(value, str) and _DATE.match(value) else value
    except ValueError:
        raise _no_date(value, name, row) from None
    if isinstance(time, date) and not isinstance(time, datetime):
        time = datetime(time.year, time.month, time.day)
    if not isinstance(time, datetime):
        raise _no_date(value, name, row)
    return float(microseconds(time))


def _no_date(value: object, name: str, row: int) -> DataError:
    return DataError(
        f"the column {name!r} held dates in the training data, and here it holds {str(value)[:40]!r} in row {row}. "
        "Dates are of a type of dates, or text such as 2026-01-31T12:00 (ISO 8601) or 31.01.2026."
    )
