"""Growing trees round by round: all of them, those up to some numbers of rounds, or until a metric stops rising."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, Self

from ranktune.solvers.boosting.early_stopping import Patience
from ranktune.solvers.core.arrays import Floats, Ints
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.metrics.metrics import Metric
from ranktune.solvers.models.trees import Trees, joined

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
