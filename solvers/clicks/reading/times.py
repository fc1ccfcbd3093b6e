"""Lengths of time."""

from __future__ import annotations

import re

from ranktune.solvers.core.errors import ParameterError

_UNITS = {"ms": 1, "": 1e3, "s": 1e3, "m": 6e4, "h": 3.6e6, "d": 8.64e7, "w": 6.048e8}


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
