"""Growing trees round by round: all of them, those up to some numbers of rounds, or until a metric stops rising.

Where growing stops early, queries are held out, and a number of rounds may pass without an improvement of the metric.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, Self

import numpy as np

from ranktune.solvers.core.arrays import Floats, Ints
from ranktune.solvers.core.errors import DataError
from ranktune.solvers.data.grades import with_pairs
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.metrics.metrics import Metric
from ranktune.solvers.models.trees import Trees, joined


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
        count = min(max(round(share * len(kind)), least), max(len(kind) - least, 0))
        aside[generator.permutation(kind)[:count]] = True
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


MAX_BLOCK = 8
"""Rounds between two evaluations of a model that is watched."""


class Growth(Protocol):
    """Trees that a library grows."""

    def grow(self) -> bool:
        """Grow one more round; return False, and add nothing, where no further split improves the fit."""

    def trees(self, first: int, last: int) -> Trees:
        """Return the trees of the rounds from number first, counted from 0, up to but without last."""


@dataclass(frozen=True, eq=False)
class TrainingData(ABC):
    """Queries that a library grows trees on, with the target and the first score of each document, (n_documents,).

    start is None where all first scores are 0.
    """

    queries: Queries
    targets: Floats
    start: Floats | None

    def part(self, numbers: Ints) -> Self:
        """Return the data of the queries of these numbers, ascending."""
        rows = self.queries.documents_of(numbers)
        start = None if self.start is None else self.start[rows]
        return replace(self, queries=self.queries.select(numbers), targets=self.targets[rows], start=start)

    @abstractmethod
    def growth(self, seed: int) -> Growth:
        """Return the growth of trees on the data, before its first round."""


def grown(growth: Growth, n_rounds: int) -> Iterator[Trees]:
    """Grow n_rounds rounds at most; yield after each of them.

    The trees that are yielded are those up to an earlier round, brought up to date from time to time and at the end.
    """
    done = 0
    trees: Trees | None = None
    for number in range(1, n_rounds + 1):
        over = not growth.grow()
        last = number - over
        if last > done and (over or number == n_rounds or number >= 1.25 * done):  # each round would be quadratic
            part = growth.trees(done, last)
            trees, done = part if trees is None else joined([trees, part]), last
        assert trees is not None
        yield trees
        if over:
            return


def in_parts(growth: Growth, ends: Sequence[int]) -> Iterator[Trees]:
    """Yield the trees up to the first of ends, ascending, then those from there to the next, as far as trees grow."""
    done = number = 0
    for end in ends:
        while number < end and growth.grow():
            number += 1
        if number > done:
            yield growth.trees(done, number)
        done = number


def watched(
    growth: Growth, n_rounds: int, vali: Queries, metric: Metric, patience: Patience, start: Floats
) -> Iterator[tuple[Trees, float]]:
    """Grow until patience is over, n_rounds rounds at most; yield after each round the best trees, and their metric.

    start, (n_documents,), are the scores of vali before the first tree. The metric is computed after each of the first
    rounds, then after another eighth of them, MAX_BLOCK at most: scoring several trees at once is faster.
    """
    scores = start.copy()
    best: Trees | None = None
    later: list[Trees] = []  # trees grown since the best round
    number = done = 0
    over = False
    while not (over or patience.over):
        if growth.grow():
            number += 1
        else:
            over = True
        over = over or number == n_rounds
        if number > done and (over or number - done >= min(max(1, done // 8), MAX_BLOCK)):
            part = growth.trees(done, number)
            done = number
            later.append(part)
            scores += part.scores(vali.features)
            if patience.update(number, metric.mean(scores, vali)):
                best = joined([*([] if best is None else [best]), *later])
                later = []
        assert best is not None
        yield best, patience.best_value
