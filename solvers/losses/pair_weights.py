"""How much a pair of documents matters: alike, or by what the measure loses when the two swap places.

A measure of the form sum over the first K ranks r of v_r u_(r) / Z changes by |u_i - u_j| |v_rank(i) - v_rank(j)| / Z
when i and j swap. So a weight is told by u, what a document is worth, and v, what a rank counts; Z and any other factor
of a whole list cancels, because a loss is the weighted mean over the pairs of a list.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.checks import check_choice, check_count
from ranktune.solvers.core.errors import DataError
from ranktune.solvers.metrics.gains import GAINS, can_double, discounts, gains

RELEVANT = 1.0
"""The lowest grade that recall counts as relevant."""


class PairWeight(Protocol):
    """What every pair weight has."""

    def worths(self, grades: Floats) -> Floats:
        """Return u, (n_documents,), not falling with the grade. Raises DataError for grades that cannot be."""

    def ranks(self, longest: int) -> Floats:
        """Return v, (K,), not rising, all above zero, K at most longest; empty where all pairs weigh 1."""


@dataclass(frozen=True)
class Uniform:
    """Every pair weighs 1."""

    def worths(self, grades: Floats) -> Floats:
        """Return the grades; uniform weights do not look at them."""
        return grades

    def ranks(self, longest: int) -> Floats:
        """Return an empty array: no rank counts more than another."""
        return np.zeros(0)


@dataclass(frozen=True)
class DeltaNDCG:
    """How much NDCG@at changes when the two documents swap places (discount 1 / log2(rank + 1)).

    gain "exp2" is 2^grade - 1 and needs whole grades from 0 to 30, "linear" the grade itself, at least 0. "auto" is
    "exp2" where the grades allow it; else the grade less the lowest of all, so that any finite grades will do. at=None
    means the whole list, whose pairs then all count.
    Source: Burges, Ragno & Le 2006, "Learning to Rank with Nonsmooth Cost Functions" (LambdaRank).
    """

    at: int | None = 10
    gain: str = "exp2"

    def __post_init__(self) -> None:
        """Check the cutoff and the gain."""
        if self.at is not None:
            check_count("at", self.at)
        check_choice("gain", self.gain, (*GAINS, "auto"))

    def worths(self, grades: Floats) -> Floats:
        """Return the gain of each grade."""
        if self.gain == "auto":
            return gains(grades) if can_double(grades) else grades - grades.min()
        try:
            return gains(grades, self.gain)
        except DataError as error:
            raise DataError(f"{error} Pairs can also be weighed otherwise: weight='uniform' or 'recall'.") from None

    def ranks(self, longest: int) -> Floats:
        """Return 1 / log2(rank + 1)."""
        return discounts(longest if self.at is None else min(self.at, longest))


@dataclass(frozen=True)
class DeltaRecall:
    """How much recall@at changes: not at all unless one of the two is relevant (grade >= 1) and one in the top at."""

    at: int = 10

    def __post_init__(self) -> None:
        """Check the cutoff."""
        check_count("at", self.at)

    def worths(self, grades: Floats) -> Floats:
        """Return 1 where the grade is at least 1, else 0."""
        return (grades >= RELEVANT).astype(np.float64)

    def ranks(self, longest: int) -> Floats:
        """Return ones."""
        return np.ones(min(self.at, longest))
