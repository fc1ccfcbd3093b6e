"""Days of queries whose grades follow a truth that moves from day to day in a known way, over real or drawn features.

The truth of the first day is linear. What it moves to depends on products and thresholds of the features: another
solver, or other parameters, become the best, and not only other weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse
from scipy.stats import rankdata

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.data.queries import Queries
from ranktune.studies.benchmarks.tasks import KINDS

FEATURES, LENGTH, POOL, PERIOD = 8, 12, 800, 7
MOST = 30
"""Documents of a query at most."""
NOISE = 0.7
"""Standard deviation of the noise of a grade, where that of the truth is 1."""
SHARES = (0.6, 0.25, 0.1, 0.05)
"""Shares of the grades 0 to 3."""
AFTER = ("interactions", "shallow")
"""The forms of the truth that it moves to, one after the other by seed."""

MOVES = ("none", "slow", "sudden", "seasonal")
"""How the truth moves: not at all; by a quarter turn over all days; by that at once in the middle; to and fro."""


def turn_of(move: str, day: int, days: int) -> float:
    """Return by how much of a quarter turn the truth of a day differs from that of the first."""
    if move == "slow":
        return day / max(days - 1, 1)
    if move == "sudden":
        return float(day >= days / 2)
    return 0.5 - 0.5 * float(np.cos(2.0 * np.pi * day / PERIOD)) if move == "seasonal" else 0.0


def normal_pool(generator: np.random.Generator) -> Queries:
    """Return queries with independent normal features."""
    X = generator.normal(size=(POOL * LENGTH, FEATURES))
    return Queries.from_arrays(X, np.zeros(len(X)), qid=np.repeat(np.arange(POOL), LENGTH))


@dataclass(frozen=True, eq=False)
class World:
    """A pool of queries, half of them for learning and half that judge, and the two ends of the truth.

    Attributes
    ----------
    pool : Queries
        Their features, of which the days are made; their grades are not used.
    seed : int
        It draws both ends of the truth.
    """

    pool: Queries
    seed: int

    @classmethod
    def of(cls, pool: Queries, seed: int) -> World:
        """Return a world over the ranks of the features of a pool."""
        place = np.arange(pool.n_documents) - pool.starts[:-1][pool.query_of_document]
        X = pool.features.toarray() if isinstance(pool.features, sparse.csr_array) else pool.features
        Z = _spread(np.asarray(X[place < MOST], dtype=np.float64))
        Z = Z[:, Z.std(axis=0) > 0.0].astype(np.float32)
        return cls(Queries.from_arrays(Z, np.zeros(len(Z)), group=np.minimum(pool.lengths, MOST)), seed)

    def day(self, turn: float, count: int, generator: np.random.Generator, judging: bool = False) -> Queries:
        """Return so many queries made of a half of the pool, whose grades follow the truth after a part of a turn.

        Half of the features of each document are those of another one of the query: the same documents with other noise
        would be harder for a model that was fitted to them than for others.
        """
        half = np.arange(int(judging), self.pool.n_queries, 2)
        queries = self.pool.select(generator.choice(half, count, replace=count > len(half)))
        number, Z = queries.query_of_document, np.asarray(queries.features)
        lengths, place = queries.lengths[number], np.arange(len(Z)) - queries.starts[number]
        steps = 1 + (generator.random(len(Z)) * (lengths - 1)).astype(np.int64)
        others = queries.starts[number] + (place + steps) % lengths
        Z = np.where(generator.random(Z.shape) < 0.5, Z, Z[others])
        worth = self._worth(Z, turn) + NOISE * generator.normal(size=len(Z))
        return Queries.from_arrays(Z, np.searchsorted(self._cuts(turn), worth), group=queries.lengths)

    def _worth(self, Z: Floats, turn: float) -> Floats:
        """Return what documents are worth, (n,), about with standard deviation 1 within a query."""
        angle = 0.5 * np.pi * turn
        before, after = (self._end(k, Z) / self._scales[k] for k in range(2))
        worth: Floats = np.cos(angle) * before + np.sin(angle) * after
        return worth

    def _end(self, end: int, Z: Floats) -> Floats:
        kind = KINDS["linear" if end == 0 else AFTER[self.seed % len(AFTER)]]
        return kind.truth(Z.astype(np.float64), np.zeros((len(Z), 1)), np.random.default_rng([self.seed, end]))

    @cached_property
    def _scales(self) -> tuple[float, float]:
        """Standard deviations within a query of both ends over the pool."""
        number = self.pool.query_of_document
        ends = [self._end(k, np.asarray(self.pool.features)) for k in range(2)]
        before, after = (end - (np.bincount(number, end) / self.pool.lengths)[number] for end in ends)
        return float(before.std()), float(after.std())

    def _cuts(self, turn: float) -> Floats:
        """Return the limits of the grades, (len(SHARES) - 1,), which keep their shares whatever the truth."""
        worth = self._worth(np.asarray(self.pool.features), turn)
        worth += NOISE * np.random.default_rng(0).normal(size=len(worth))
        cuts: Floats = np.quantile(worth, np.cumsum(SHARES[:-1]))
        return cuts


def _spread(X: Floats) -> Floats:
    """Return the ranks of the values of each feature, centred with standard deviation 1; 0 where it is constant."""
    ranks = rankdata(X, axis=0) / len(X)
    spread = ranks.std(axis=0)
    scores: Floats = (ranks - ranks.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)
    return scores
