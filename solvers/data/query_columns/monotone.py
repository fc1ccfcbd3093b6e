"""Monotone constraints: features with which a score may only rise, or only fall.

A constraint is 1 where the score must not fall as the feature rises, and -1 where it must not rise. Missing values are
exempt: a missing value is neither more nor less than a known one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TypeAlias

import numpy as np

from ranktune.solvers.core.arrays import Array, Floats, Ints
from ranktune.solvers.core.errors import ParameterError, nearest
from ranktune.solvers.data.columns.grammar import number_of, values_by_name

Monotone: TypeAlias = Mapping[str, int] | Mapping[int, int] | Mapping[str | int, int] | Sequence[int] | Array
"""Signs by the name or number of a feature, or one sign per feature."""

SIGNS = (-1, 0, 1)
_GIVE = "Give 1 (the score may only rise with the feature) or -1 (only fall)"


def signs_of(given: Monotone, n_features: int, names: Sequence[str] | None = None) -> Ints | None:
    """Return the sign of each feature, (n_features,), 0 for those without a constraint; None where none has one.

    Keys are names, globs such as "bm25*", or numbers of columns from 0, also as text; later ones replace earlier ones.
    Features without names are called f1, f2, ...

    Raises ParameterError for a feature that does not exist, and for a sign that is none.
    """
    signs = np.zeros(n_features, dtype=np.int64)
    if isinstance(given, Mapping):
        for key, sign in given.items():
            signs[_columns(key, n_features, names)] = _sign(key, sign)
    else:
        if len(given) != n_features:
            raise ParameterError(
                f"monotone has {len(given)} signs for {n_features} features: give one per feature, 0 where there is no "
                "constraint, or a mapping from name to sign."
            )
        signs[:] = [_sign(column, sign) for column, sign in enumerate(given)]
    return signs if signs.any() else None


def named_signs(signs: Ints, names: Sequence[str] | None) -> dict[str, int]:
    """Return the constraints of features by name; those without names are called f1, f2, ..."""
    columns = np.flatnonzero(signs).tolist()
    return {name_of(column, names): int(signs[column]) for column in columns}


def name_of(column: int, names: Sequence[str] | None) -> str:
    """Return the name of a column, f1 for the first of features without names."""
    return f"f{column + 1}" if names is None else names[column]


def within(weights: Floats, signs: Ints | None) -> Floats:
    """Return weights with 0 where they are of the other sign than a constraint."""
    return weights if signs is None else np.where(weights * signs < 0.0, 0.0, weights)


def constraints(given: object) -> dict[str, int]:
    """Return constraints that are given as a mapping, as a text such as "price=-1,bm25*=1", or as several texts.

    Raises ParameterError where they are none of these, or a sign is none.
    """
    pairs = values_by_name(given, f"monotone={{}}: {_GIVE} for each feature, such as price=-1,bm25=1.", number_of)
    return {name: _sign(name, sign) for name, sign in pairs.items()}


def _columns(key: str | int, n_features: int, names: Sequence[str] | None) -> list[int]:
    if isinstance(key, int | np.integer) and not isinstance(key, bool):
        if 0 <= key < n_features:
            return [int(key)]
        raise ParameterError(
            f"monotone names column {key}: the data have {n_features} features, numbered from 0 to {n_features - 1}."
        )
    known = [name_of(column, names) for column in range(n_features)]
    exact = [column for column, name in enumerate(known) if name == key]
    if not exact and str(key).isdecimal() and int(key) < n_features:
        return [int(key)]
    columns = exact or [column for column, name in enumerate(known) if fnmatchcase(name, str(key))]
    if not columns:
        raise ParameterError(
            f"monotone names the feature '{key}', which the data do not have. {nearest(str(key), known)}"
        )
    return columns


def _sign(key: object, sign: object) -> int:
    if isinstance(sign, bool) or not isinstance(sign, int | float | np.number) or sign not in SIGNS:
        raise ParameterError(f"monotone: the sign of '{key}' is {sign!r}. {_GIVE}, or 0 for no constraint.")
    return int(sign)
