"""Queries in blocks together with those who compute on them: what a solver that adds up over blocks learns from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ranktune.solvers.blocks.extent import Extent, extent_of
from ranktune.solvers.blocks.workers import (
    BlockFunction,
    BlockWorkers,
    LocalBlocks,
    OpenBlock,
    P,
    Source,
    T,
    factors_of_blocks,
    is_better_divided,
)
from ranktune.solvers.core.arrays import Floats, Ints
from ranktune.solvers.core.errors import ParameterError
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.scaling import factors, query_factors


@dataclass(frozen=True, eq=False)
class BlockedQueries:
    """All blocks of workers; monotone is as in Queries."""

    workers: BlockWorkers
    extent: Extent
    monotone: Ints | None = None

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.extent.n_features


Data: TypeAlias = Queries | BlockedQueries
"""Queries in memory, or in blocks."""


class OneBlock:
    """All queries as one block, in this process."""

    def __init__(self, queries: Queries) -> None:
        self._block = OpenBlock(queries)

    def open(self, sources: Sequence[Source]) -> None:
        """Refuse: the block is given."""
        raise ParameterError("this block is given: take LocalBlocks for others.")

    def map(self, function: BlockFunction[P, T], *arguments: P.args, **named: P.kwargs) -> list[T]:
        """Return function(block, *arguments) in a list."""
        return [function(self._block, *arguments, **named)]


def blocked(data: Data) -> BlockedQueries:
    """Return data in blocks: queries in memory are one."""
    if isinstance(data, BlockedQueries):
        return data
    return BlockedQueries(OneBlock(data), extent_of(data), data.monotone)


def better_divided(queries: Queries) -> Data:
    """Return queries as they are, or in blocks where they are mapped and so many that blocks take much less memory."""
    if not is_better_divided(queries):
        return queries
    workers = LocalBlocks()
    workers.open([queries])
    return BlockedQueries(workers, extent_of(queries), queries.monotone)


def factors_of(data: Data, scaling: str, *, within_queries: bool = False) -> Floats:
    """Return the factor of each feature, (n_features,), as `factors` or `query_factors` does."""
    if isinstance(data, BlockedQueries):
        return factors_of_blocks(data.workers, scaling, data.n_features, within_queries=within_queries)
    return query_factors(data, scaling) if within_queries else factors(data, scaling)
