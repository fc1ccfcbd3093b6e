"""Stopping before the training data are learnt by heart: queries held out, patience with rounds that do not help."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ranktune.solvers.core.arrays import Ints
from ranktune.solvers.core.errors import DataError
from ranktune.solvers.data.queries import Queries


def held_out(queries: Queries, share: float, generator: np.random.Generator) -> tuple[Queries, Queries]:
    """Return the queries to learn from and those to stop by: share of them, at least one, drawn by generator.

    Both keep the order of queries, and both have pairs: queries with different grades are dealt apart from the others.
    Raises DataError where fewer than two queries have different grades.
    """
    learnt, aside = dealt(queries, share, generator)
    return queries.select(learnt), queries.select(aside)


def dealt(queries: Queries, share: float, generator: np.random.Generator) -> tuple[Ints, Ints]:
    """Return what held_out does as numbers of queries, (n,), rising."""
    useful = with_pairs(queries)
    if np.count_nonzero(useful) < 2:
        raise DataError(
            f"{np.count_nonzero(useful)} of {queries.n_queries} queries have documents of different grades: "
            "none can be held out to stop by. Give more queries, or a fixed number of rounds."
        )
    aside = np.zeros(queries.n_queries, dtype=bool)
    for kind in (np.flatnonzero(useful), np.flatnonzero(~useful)):
        least = 1 if useful[kind].any() else 0
        taken = min(max(round(share * len(kind)), least), max(len(kind) - least, 0))
        aside[generator.permutation(kind)[:taken]] = True
    return np.flatnonzero(~aside), np.flatnonzero(aside)


def with_pairs(queries: Queries) -> NDArray[np.bool_]:
    """Return which queries have documents of different grades, (n_queries,)."""
    lowest = np.minimum.reduceat(queries.grades, queries.starts[:-1])
    useful: NDArray[np.bool_] = np.maximum.reduceat(queries.grades, queries.starts[:-1]) > lowest
    return useful


class Patience:
    """Remembers the best round so far (values: higher is better), and says when too many have passed since."""

    def __init__(self, rounds: int) -> None:
        self.rounds = rounds
        self.best_round = 0
        self.best_value = -np.inf
        self._last = 0

    def told(self, round_number: int, value: float) -> bool:
        """Note the value of a round and return whether it is the best so far; an equal one later is not."""
        self._last = round_number
        if not value > self.best_value:
            return False
        self.best_round, self.best_value = round_number, value
        return True

    @property
    def over(self) -> bool:
        """Whether the last rounds have brought nothing."""
        return self._last - self.best_round >= self.rounds
