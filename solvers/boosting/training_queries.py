"""The queries that trees are grown on: in memory, or in blocks, of which a library keeps the features in bins.

Labels, weights and metrics need no features, so that those of blocks are read a block at a time: into bins, to score
them by the model that boosting starts from, and, of some queries, to hold them out or to fit that model.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from ranktune.solvers.blocks.blocked import BlockedQueries, LocalBlocks, OpenBlock
from ranktune.solvers.boosting.within import N_KINDS, NONE, widened
from ranktune.solvers.core.arrays import Array, Floats, Ints
from ranktune.solvers.core.errors import DataError, ParameterError
from ranktune.solvers.data.grades import with_pairs
from ranktune.solvers.data.queries import Queries, concatenate
from ranktune.solvers.models.base import Model
from ranktune.solvers.models.within.columns import signs_within


@dataclass(frozen=True)
class InMemory:
    """Queries in memory, or mapped as a whole."""

    given: Queries
    within: str = NONE

    @cached_property
    def queries(self) -> Queries:
        """The queries with all columns."""
        return widened(self.given, self.within)

    def select(self, numbers: Ints) -> Queries:
        """Return the queries of these numbers."""
        return self.given.select(numbers)

    def scores(self, model: Model) -> Floats:
        """Return the scores of all documents by a model, (n_documents,)."""
        return scores_of(model, self.given)


class InBlocks:
    """Queries in blocks of this process; only those with documents of different grades if pairs is true.

    monotone has the constraints of all columns, which queries, without features, does not have.
    Raises DataError for sparse features, and ParameterError where other processes hold the blocks.
    """

    def __init__(self, data: BlockedQueries, *, pairs: bool, within: str = NONE) -> None:
        if not isinstance(data.workers, LocalBlocks):
            raise ParameterError(
                "trees are grown in one process, from the bins of all blocks: leave workers out. On a Dask cluster "
                "lightgbm.DaskLGBMRanker and xgboost.dask grow them."
            )
        if data.extent.is_sparse:
            raise DataError("blocks of sparse features cannot be binned block by block: call fit on all documents.")
        self._workers, self._pairs, self.within = data.workers, pairs, within
        parts = data.workers.map(_without_features, pairs)
        self._first = np.cumsum([0, *(0 if part is None else part.n_queries for part in parts)])
        self.queries = concatenate([part for part in parts if part is not None])
        self.monotone = None if data.monotone is None else signs_within(data.monotone, N_KINDS[within])

    def select(self, numbers: Ints) -> Queries:
        """Return the queries of these numbers, ascending, with their features, in memory."""
        ends = np.searchsorted(numbers, self._first)
        of_blocks = [numbers[a:b] - first for (a, b), first in zip(pairwise(ends), self._first[:-1], strict=True)]
        following = iter(of_blocks)
        parts = self._workers.map(lambda block: _selected(block, self._pairs, next(following)))
        return concatenate([part for part in parts if part is not None])

    def scores(self, model: Model) -> Floats:
        """Return the scores of all documents by a model, (n_documents,)."""
        return np.concatenate(self._workers.map(_scored, self._pairs, model))

    def features(self) -> Iterator[Array]:
        """Yield the columns of a block after the other."""
        yield from self._workers.each(_features, self._pairs, self.within)


TrainingQueries: TypeAlias = InMemory | InBlocks
"""Queries to grow trees on: queries has their grades, weights and lengths, and not always their features."""


def scores_of(model: Model, queries: Queries) -> Floats:
    """Return the scores of the documents in the order that they have in queries."""
    scores = model.predict(queries)
    return scores if queries.rows is None else scores[queries.rows]


def _numbers(block: OpenBlock, pairs: bool) -> Ints:
    return np.flatnonzero(with_pairs(block.queries)) if pairs else np.arange(block.queries.n_queries)


def _without_features(block: OpenBlock, pairs: bool) -> Queries | None:
    """Return the queries of a block with a column of zeros as features; None without any."""
    numbers = _numbers(block, pairs)
    if len(numbers) == 0:
        return None
    part = block.queries.without_features().select(numbers)
    return replace(part, encoding=None, document_ids=None).replaced(baseline=None, monotone=None)


def _selected(block: OpenBlock, pairs: bool, numbers: Ints) -> Queries | None:
    return block.queries.select(_numbers(block, pairs)[numbers]) if len(numbers) else None


def _scored(block: OpenBlock, pairs: bool, model: Model) -> Floats:
    scores = scores_of(model, block.queries)
    return scores[block.queries.documents_of(_numbers(block, pairs))]


def _features(block: OpenBlock, pairs: bool, within: str) -> Array:
    queries = widened(block.queries, within)
    rows: Array = np.asarray(queries.features[queries.documents_of(_numbers(block, pairs))])
    return rows
