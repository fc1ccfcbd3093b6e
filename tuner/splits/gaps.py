"""The gap between what is fitted to and what is scored: a number, or a length of time."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING

from ranktune.solvers.core.errors import ParameterError
from ranktune.solvers.data.columns.grammar import number_of

if TYPE_CHECKING:
    from ranktune.solvers.data.queries import Queries

_LENGTH = re.compile(r"(\d+\.?\d*)(s|m|h|d|w)")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def check_gap(gap: str) -> None:
    """Raise ParameterError unless gap is a number that is not negative, or a length of time such as 7d."""
    number = number_of(gap)
    if _LENGTH.fullmatch(gap) is None and (number is None or not 0.0 <= number < float("inf")):
        raise ParameterError(
            f"gap='{gap[:40]}' is no gap. Give a number in the units of the times, such as 7, or of dates a length of "
            "time: 90s, 30m, 12h, 7d or 2w."
        )


def gap_of(gap: str, queries: Queries) -> float:
    """Return a gap in the units of the times of queries; 0 where they have none. Raises ParameterError."""
    check_gap(gap)
    length, number = _LENGTH.fullmatch(gap), number_of(gap)
    if queries.times is None or number == 0.0:
        return 0.0
    if queries.dated != (length is not None):
        kind, right = ("dates", "a length of time, such as 7d") if queries.dated else ("numbers", "a number")
        raise ParameterError(f"gap='{gap}', and the times are {kind}: give {right}.")
    if length is None:
        return float(number or 0.0)
    return timedelta(**{_UNITS[length[2]]: float(length[1])}) / timedelta(microseconds=1)
