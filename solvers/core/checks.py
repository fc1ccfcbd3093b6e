"""Checks of parameter values, whose messages say what was given and the rule."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias, TypeGuard

import numpy as np

from ranktune.solvers.core.errors import ParameterError, nearest

RandomState: TypeAlias = int | np.random.Generator | None
"""A seed, a generator, or None."""


def _number(rule: str, holds: Callable[[float], bool]) -> Callable[[str, object], None]:
    """Return the function that raises ParameterError unless the value of a parameter is a number as the rule says."""

    def check(name: str, value: object) -> None:
        if not (_is_number(value) and holds(value)):
            raise ParameterError(f"{name}={value!r}: it must be a {rule}.")

    return check


check_positive = _number("positive number", lambda value: 0.0 < value < np.inf)
check_not_negative = _number("number of at least 0. Use 0 to do without", lambda value: 0.0 <= value < np.inf)
check_finite = _number("finite number", lambda value: -np.inf < value < np.inf)
check_part = _number("share of at least 0 and below 1", lambda value: 0.0 <= value < 1.0)


def check_count(name: str, value: object) -> None:
    """Raise ParameterError unless value is a whole number of at least one."""
    if isinstance(value, bool) or not (isinstance(value, int | np.integer) and value >= 1):
        raise ParameterError(f"{name}={value!r}: it must be a whole number of at least 1.")


def check_flag(name: str, value: object) -> None:
    """Raise ParameterError unless value is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise ParameterError(f"{name}={value!r}: it must be True or False.")


def check_choice(name: str, value: object, choices: Iterable[str]) -> None:
    """Raise ParameterError, with the nearest spelling, unless value is among known."""
    choices = tuple(choices)
    if not (isinstance(value, str) and value in choices):
        raise ParameterError(f"{name}={value!r} is unknown. {nearest(str(value), choices)}")


def check_random_state(value: object, without: str) -> None:
    """Raise ParameterError unless value is a seed, a numpy.random.Generator, or None; without says what None means."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool) and value >= 0
    if not (value is None or whole or isinstance(value, np.random.Generator)):
        raise ParameterError(
            f"random_state={value!r}: it must be a whole number of at least 0, a numpy.random.Generator, or None: "
            f"{without}."
        )


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)
