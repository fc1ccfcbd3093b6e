"""Times of a log as milliseconds since 1970 in UTC: dates, ISO 8601 text, and numbers; and lengths of time."""

from __future__ import annotations

import re

import polars

from ranktune.solvers.core.errors import ParameterError

_ISO = (
    (r"^(\d{4}-\d\d-\d\d)$", "${1}T00:00:00"),
    (r"^(\d{4}-\d\d-\d\d) ", "${1}T"),
    (r"^(.*T\d\d:\d\d)(Z|z|[+-].*)?$", "${1}:00${2}"),
    (r"[Zz]$", "+00:00"),
    (r"([+-]\d\d)(\d\d)$", "${1}:${2}"),
    (r"(T.*[+-]\d\d)$", "${1}:00"),
    (r"(T[\d:.]+)$", "${1}+00:00"),  # without a zone: UTC
)
"""Rewritings of the forms of ISO 8601 to one, in this order."""
_UNITS = {"ms": 1, "": 1e3, "s": 1e3, "m": 6e4, "h": 3.6e6, "d": 8.64e7, "w": 6.048e8}


def milliseconds(column: polars.Series) -> polars.Series:
    """Return the times of a column, (n,): Int64, null where a value is missing or is no time.

    The size of a number tells its unit, of the numbers from 1973 to 5138: seconds below 1e11, milliseconds below 1e14,
    microseconds below 1e17, else nanoseconds.
    """
    if column.dtype.is_temporal():
        return column.cast(polars.Datetime("ms")).dt.epoch("ms")
    numbers = column.cast(polars.Float64, strict=False)
    numbers = numbers.set(numbers.is_infinite() | numbers.is_nan() | (numbers.abs() > 1e20), None)
    size = numbers.abs()
    scale = size.to_frame("size").select(
        polars.when(polars.col("size") < 1e11)
        .then(1e3)
        .when(polars.col("size") < 1e14)
        .then(1.0)
        .when(polars.col("size") < 1e17)
        .then(1e-3)
        .otherwise(1e-6)
    )
    whole = (numbers * scale.to_series()).round().cast(polars.Int64)
    if column.dtype != polars.String or whole.null_count() == column.null_count():
        return whole
    text = column.str.strip_chars()
    for form, same in _ISO:
        text = text.str.replace(form, same)
    dates = text.str.to_datetime("%Y-%m-%dT%H:%M:%S%.f%:z", strict=False, time_unit="ms")
    return whole.zip_with(whole.is_not_null(), dates.dt.epoch("ms"))


def is_number(column: polars.Series) -> polars.Series:
    """Return whether each time is a number, not text or a date."""
    return column.cast(polars.Float64, strict=False).is_not_null() & (not column.dtype.is_temporal())


def span_of(name: str, value: str | float) -> int:
    """Return a length of time in milliseconds: text such as "30m", or a number of seconds.

    Raises ParameterError for what is none.

    Examples
    --------
    >>> span_of("gap", "1h"), span_of("gap", 90)
    (3600000, 90000)
    """
    found = re.fullmatch(r"\s*(\d+\.?\d*)\s*(ms|s|m|h|d|w|)\s*", str(value))
    if found is None:
        raise ParameterError(f"{name}={value!r} is no length of time. Give a number of seconds, or text such as '1h'.")
    return round(float(found[1]) * _UNITS[found[2]])
