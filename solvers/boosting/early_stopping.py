"""Early stopping: queries that are held out, and patience with rounds that do not improve the metric."""

from __future__ import annotations

import numpy as np

from ranktune.solvers.core.arrays import Ints
from ranktune.solvers.core.errors import DataError
from ranktune.solvers.data.grades import with_pairs
from ranktune.solvers.data.queries import Queries


def held_out(queries: Queries, share: float, generator: np.random.Generator) -> tuple[Queries, Queries]:
    """Return training queries and held-out queries for early stopping, a random share of all, at least one.

    Where times are known, those that are held out are the latest. Both keep the order of queries, and both have pairs,
    since queries with and without pairs are divided separately.
    Raises DataError where fewer than two queries have pairs.
    """
    training, aside = held_out_numbers(queries, share, generator)
    return queries.select(training), queries.select(aside)


def held_out_numbers(queries: Queries, share: float, generator: np.random.Generator) -> tuple[Ints, Ints]:
    """Return the parts of held_out as numbers of queries, (n,), ascending."""
    useful = with_pairs(queries)
    if np.count_nonzero(useful) < 2:
        raise DataError(
            f"{np.count_nonzero(useful)} of {queries.n_queries} queries have documents of different grades: "
            "none can be held out for early stopping. Give more queries, or a fixed number of rounds."
        )
    if queries.times is not None:
        times = queries.time_of_query
        start = np.sort(times[useful])[-max(round(share * np.count_nonzero(useful)), 1)]
        if times[useful].min() < start:
            return np.flatnonzero(times < start), np.flatnonzero(times >= start)
    aside = np.zeros(queries.n_queries, dtype=bool)
    for kind in (np.flatnonzero(useful), np.flatnonzero(~useful)):
        least = 1 if useful[kind].any() else 0
        taken = min(max(round(share * len(kind)), least), max(len(kind) - least, 0))
        aside[generator.permutation(kind)[:taken]] = True
    return np.flatnonzero(~aside), np.flatnonzero(aside)


def queries_with_pairs(queries: Queries) -> Queries:
    """Return the queries that have documents of different grades."""
    useful = with_pairs(queries)
    return queries if useful.all() else queries.select(np.flatnonzero(useful))


class Patience:
    """The best round so far, by values that have to rise by more than tolerance, and the rounds since."""

    def __init__(self, rounds: int, tolerance: float = 0.0) -> None:
        self.rounds, self.tolerance = rounds, tolerance
        self.best_round = 0
        self.best_value = -np.inf
        self._last = 0

    def update(self, round_number: int, value: float) -> bool:
        """Record the value of a round and return whether it is the best so far; NaN and an equal value are not."""
        self._last = round_number
        if not value > self.best_value + self.tolerance:
            return False
        self.best_round, self.best_value = round_number, value
        return True

    @property
    def over(self) -> bool:
        """Whether too many rounds have passed since the best round."""
        return self._last - self.best_round >= self.rounds
