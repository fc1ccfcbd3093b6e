"""The gain of a grade and the discount of a rank: the two factors of every discounted cumulative gain."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.errors import DataError, ParameterError, nearest

GAINS = ("exp2", "linear")
AUTO = "auto"
"""The gain that the grades decide: exp2 for whole numbers from 0 to 30, else linear."""
DISCOUNTS = ("log2", "letor")
HIGHEST_GRADE = 30
"""Under exp2: the gain doubles with every grade, and 2^31 is where the common tools stop as well."""


def gains(grades: Floats, kind: str = "auto") -> Floats:
    """Return the gain of each grade: 2^grade - 1 (exp2) or the grade itself (linear: the same array).

    "auto" is exp2 if all grades are whole numbers from 0 to 30, else linear. Raises DataError for a negative grade,
    and under exp2 for one above 30.
    """
    if kind not in (AUTO, *GAINS):
        raise ParameterError(f"gain '{kind}' is unknown. {nearest(kind, (AUTO, *GAINS))}")
    grades = np.ascontiguousarray(grades, dtype=np.float64)
    _refuse(grades, ~(grades >= 0), f"gain={kind} needs grades of at least 0. Add a constant to all grades")
    if kind == "linear" or (kind == AUTO and not can_double(grades)):
        return grades
    rule = "gain=exp2 (2^grade - 1) needs"
    high = grades > HIGHEST_GRADE
    _refuse(grades, high, f"{rule} grades of at most {HIGHEST_GRADE}. Use gain=linear, or number the grades from 0 up")
    gain: Floats = np.exp2(grades) - 1.0
    return gain


def relative_gains(grades: Floats) -> Floats:
    """Return gains(grades, "auto"), where grades may be negative: then, and above 30, less the lowest grade."""
    return gains(grades) if can_double(grades) else grades - grades.min()


def stop_probabilities(grades: Floats, highest: float) -> Floats:
    """Return the probability that a user stops at a document of each grade, (2^grade - 1) / 2^highest.

    Raises DataError for a grade that is negative or above highest. Source: Chapelle et al. 2009, "Expected reciprocal
    rank for graded relevance".
    """
    _refuse(grades, grades < 0.0, "err needs grades of at least 0. Add a constant to all grades")
    rule = f"err has grades up to highest={highest:g}. Give the highest grade of the scale, such as"
    _refuse(grades, grades > highest, f"{rule} err@10:highest={grades.max():g}")
    stops: Floats = (np.exp2(grades) - 1.0) / np.exp2(highest)
    return stops


def can_double(grades: Floats) -> bool:
    """Return whether the gain "auto" of the grades is 2^grade - 1: whether all are whole numbers from 0 to 30."""
    return bool(grades.min() >= 0.0 and grades.max() <= HIGHEST_GRADE and not (grades % 1.0).any())


def deciding(grades: Floats) -> Floats:
    """Return the few grades that conventions depend on: the lowest, the highest, and one with a fraction, if any."""
    fractions = grades % 1.0 != 0.0
    return np.concatenate([[grades.min(), grades.max()], grades[fractions][:1]])


def discounts(n: int, kind: str = "log2") -> Floats:
    """Return what ranks 1..n count: 1 / log2(rank + 1) (log2), or 1, then 1 / log2(rank) from rank 2 on (letor)."""
    if kind not in DISCOUNTS:
        raise ParameterError(f"discount '{kind}' is unknown. {nearest(kind, DISCOUNTS)}")
    rank = np.arange(1.0, n + 1.0)
    counts: Floats = 1.0 / np.log2(rank + 1.0 if kind == "log2" else np.maximum(rank, 2.0))
    return counts


def _refuse(grades: Floats, bad: NDArray[np.bool_], rule: str) -> None:
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise DataError(f"document {row} has grade {grades[row]:g}: {rule}.")
