"""Checks of parameter values, whose messages say what was given and the rule."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias, TypeGuard

import numpy as np

from ranktune.solvers.core.errors import ParameterError, nearest

RandomState: TypeAlias = int | np.random.Generator | None
"""A seed, a generator, or None."""


def check_positive(name: str, value: object) -> None:
    """Raise ParameterError unless value is a finite number above zero."""
    if not (_is_number(value) and 0.0 < value < np.inf):
        raise ParameterError(f"{name}={value!r}: it must be a positive number.")


def check_not_negative(name: str, value: object) -> None:
    """Raise ParameterError unless value is a finite number of at least zero."""
    if not (_is_number(value) and 0.0 <= value < np.inf):
        raise ParameterError(f"{name}={value!r}: it must be a number of at least 0. Use 0 to do without.")


def check_finite(name: str, value: object) -> None:
    """Raise ParameterError unless value is a finite number."""
    if not (_is_number(value) and np.isfinite(value)):
        raise ParameterError(f"{name}={value!r}: it must be a finite number.")


def check_count(name: str, value: object) -> None:
    """Raise ParameterError unless value is a whole number of at least one."""
    if isinstance(value, bool) or not (isinstance(value, int | np.integer) and value >= 1):
        raise ParameterError(f"{name}={value!r}: it must be a whole number of at least 1.")


def check_flag(name: str, value: object) -> None:
    """Raise ParameterError unless value is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise ParameterError(f"{name}={value!r}: it must be True or False.")


def check_choice(name: str, value: object, known: Iterable[str]) -> None:
    """Raise ParameterError, with the nearest spelling, unless value is among known."""
    known = tuple(known)
    if not (isinstance(value, str) and value in known):
        raise ParameterError(f"{name}={value!r} is unknown. {nearest(str(value), known)}")


def check_part(name: str, value: object) -> None:
    """Raise ParameterError unless value is a share that leaves some: at least 0, below 1."""
    if not (_is_number(value) and 0.0 <= value < 1.0):
        raise ParameterError(f"{name}={value!r}: it must be a share of at least 0 and below 1.")


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
