"""The base of rankers that learn from pairs drawn at random."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ranktune.solvers.base.ranker import Step
from ranktune.solvers.core.arrays import Floats, Ints
from ranktune.solvers.core.checks import check_choice, check_count
from ranktune.solvers.data.products import scores as scores_of
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.online.base import OnlineRanker
from ranktune.solvers.online.pair_sampling import SAMPLINGS, draw, draw_from, pair_table
from ranktune.solvers.online.rows import Rows, rows_of

BLOCK = 1 << 17
"""Pairs between two steps that are reported."""


class SampledPairsRanker(OnlineRanker):
    """A linear ranker that learns from pairs drawn at random; a subclass defines _begin_pairs and _learn_pairs.

    fit draws steps pairs, or pairs_per_document for each document, from all queries; partial_fit and progressive draw
    pairs_per_document for each document from one query after the other.
    """

    steps: int | None
    pairs_per_document: int
    sampling: str

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.steps is not None:
            check_count("steps", self.steps)
        check_count("pairs_per_document", self.pairs_per_document)
        check_choice("sampling", self.sampling, SAMPLINGS)

    def _begin_pairs(self, stretch: Floats) -> None:
        """Set the state before the first pair."""
        raise NotImplementedError

    def _learn_pairs(self, rows: Rows, better: Ints, worse: Ints) -> float:
        """Learn from the pairs, better[t] to rank above worse[t]; return the sum of the losses before each step."""
        raise NotImplementedError

    def _current(self) -> Floats:
        """Return a copy of the current weights, (n_features,)."""
        raise NotImplementedError

    def _start(self, queries: Queries, stretch: Floats) -> None:
        self.n_pairs_seen_ = 0
        self._begin_pairs(stretch)

    def _steps(self, queries: Queries) -> Iterator[Step]:
        self._begin(queries)
        rows, table = rows_of(queries.features), pair_table(queries)
        left = self.pairs_per_document * int(table.before[-1]) if self.steps is None else int(self.steps)
        while left > 0:
            count = min(left, BLOCK)
            loss = self._learn_pairs(rows, *draw(table, count, self.sampling, self._generator))
            left -= count
            yield self._publish(count, loss)

    def _learn(self, queries: Queries, order: Ints, scores: Floats) -> Iterator[Step]:
        rows, table = rows_of(queries.features), pair_table(queries)
        useful = np.zeros(queries.n_queries, dtype=bool)
        useful[table.useful] = True
        for q in order:
            a, b = int(queries.starts[q]), int(queries.starts[q + 1])
            if len(scores):
                scores[a:b] = scores_of(queries.features[a:b], self._current())
            if useful[q]:
                count = self.pairs_per_document * (b - a)
                loss = self._learn_pairs(rows, *draw_from(table, q, count, self._generator))
                self.n_queries_seen_ += 1
                yield self._publish(count, loss)

    def _publish(self, count: int, loss: float) -> Step:
        self.coef_ = self._current()
        self.n_pairs_seen_ += count
        self._check_finite()
        return Step(self.n_pairs_seen_, loss / count)
