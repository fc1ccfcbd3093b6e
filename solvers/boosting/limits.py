"""Checks of the training data and the parameters of trees, and the parameters that several rankers share."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import numpy as np

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.checks import check_not_negative, check_positive
from ranktune.solvers.core.errors import DataError, ParameterError
from ranktune.solvers.core.parameters import Check, Param
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.metrics.judgements import gains, relative_gains


def gains_of(grades: Floats, gain: str) -> Floats:
    """Return the gain of each grade, at least 0, (n_documents,); "auto" is exponential for whole grades from 0 to 30.

    For other grades (negative, fractional, above 30), auto is linear in the difference to the lowest grade. Raises
    DataError for grades that the given gain does not allow.
    """
    if gain == "auto":
        return relative_gains(grades)
    try:
        return gains(grades, "exp2" if gain == "exponential" else "linear")
    except DataError as error:
        message = str(error).replace("gain=exp2", "gain='exponential'").replace("gain=linear", "gain='linear'")
        raise DataError(message) from None


def check_share(name: str, value: float) -> None:
    """Raise ParameterError unless value is a share: above 0, at most 1."""
    check_positive(name, value)
    if value > 1.0:
        raise ParameterError(f"{name}={value!r}: it must be a share of at most 1.")


def check_penalty(name: str, value: float) -> None:
    """Raise ParameterError unless value is at least 0 and far below the largest single-precision number."""
    check_not_negative(name, value)
    if value > 1e30:
        raise ParameterError(f"{name}={value!r}: it must be at most 1e30.")


def whole(low: int, high: int) -> Check:
    """Return the check that a value is a whole number from low to high."""

    def check(name: str, value: object) -> None:
        if isinstance(value, bool) or not (isinstance(value, int | np.integer) and low <= value <= high):
            raise ParameterError(f"{name}={value!r}: it must be a whole number from {low} to {high}.")

    return check


TINY, HUGE = float(np.finfo(np.float32).tiny), float(np.finfo(np.float32).max)


def check_single(values: Floats, what: str) -> None:
    """Raise DataError where values, which the libraries keep in single precision, would become 0 or infinite."""
    size = np.abs(values[values != 0.0])
    limits = np.finfo(np.float32)
    beyond = (size > float(limits.max)) | (size < float(limits.tiny))
    if beyond.any():
        raise DataError(
            f"{what} of {size[beyond][0]:.3g} is beyond single precision, in which trees are grown: "
            f"from {limits.tiny:.2g} to {limits.max:.2g}. Multiply all of them by the same factor."
        )


def check_single_features(queries: Queries, solver: str, least: float = TINY, most: float = HUGE) -> None:
    """Raise DataError where a feature is beyond what a library keeps, or has only values that are 0 to it."""
    X = queries.features
    by_feature = X if isinstance(X, np.ndarray) else X.data[:, None]
    high, low = (np.fmax, np.fmin) if queries.has_missing else (np.maximum, np.minimum)  # the first two pass over NaN
    ends = high.reduce(by_feature, axis=0, initial=0.0), -low.reduce(by_feature, axis=0, initial=0.0)
    sizes = np.maximum(*ends).astype(np.float64)
    beyond = sizes[(sizes > most) | ((sizes > 0.0) & (sizes < least))]
    if len(beyond):
        raise DataError(
            f"the largest value of a feature is {beyond[0]:.3g}: {solver} rounds features to single precision, or cuts "
            f"them off, and keeps {least:.2g} to {most:.2g}. Scale the features."
        )


Gain: TypeAlias = Annotated[
    str,
    Param(
        'The gain of a grade: "exponential": 2^grade - 1, for grades from 0 to 30; "linear": the grade, at least 0; '
        '"auto": exponential for whole grades from 0 to 30, else the difference to the lowest grade.',
        choices=("auto", "exponential", "linear"),
        searched=(),
    ),
]
L2: TypeAlias = Annotated[
    float, Param("Penalty on the values of leaves.", low=1e-2, high=100.0, log=True, check=check_penalty)
]
RowShare: TypeAlias = Annotated[
    float, Param("The share of the documents that is drawn for each tree.", low=0.4, high=1.0, check=check_share)
]
"""Parameters of several rankers."""
