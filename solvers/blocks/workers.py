"""Data in blocks of whole queries, and who computes on them: this process, one block at a time, or workers elsewhere.

A computation is a function of one block and of small arguments, such as weights. Its results, one a block, are added up
by the caller in the order of the blocks, so that they do not depend on who computed which of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, Protocol, TypeAlias, TypeVar

import numpy as np

from ranktune.solvers.blocks.buckets import SCHEME, fetched
from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.data.blocks import block_of, query_ranges
from ranktune.solvers.data.disk.stored import read_queries
from ranktune.solvers.data.products import scores
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.scaling import check_scaling, factors_from, joined, moments, query_moments, weighted_sums

P = ParamSpec("P")
T = TypeVar("T")

Source: TypeAlias = Queries | str | Path
"""Queries, or the folder of stored ones, or s3://BUCKET/PREFIX of its files."""

MAX_ROWS = 1_000_000
"""Documents of a block in this process: what is computed for each takes some 60 bytes besides its features."""

MAX_WHOLE_ROWS = 2 * MAX_ROWS
"""Documents of mapped data that are better divided into blocks than learned from at once."""


@dataclass(eq=False)
class OpenBlock:
    """A block on the worker that computes with it.

    queries   its documents
    kept      what functions keep from one call to the next. It may be lost between any two calls.
    """

    queries: Queries
    kept: dict[str, Any] = field(default_factory=dict)
    _scored: tuple[Floats, Floats] | None = None

    def scores(self, weights: Floats) -> Floats:
        """Return the scores of the documents by weights of the raw features; those of the last weights are kept."""
        if self._scored is None or not np.array_equal(self._scored[0], weights):
            self._scored = weights, scores(self.queries.features, weights)
        return self._scored[1]


BlockFunction: TypeAlias = Callable[Concatenate[OpenBlock, P], T]


class BlockWorkers(Protocol):
    """Computes functions of blocks."""

    def open(self, sources: Sequence[Source]) -> None:
        """Make these the blocks, in this order, in place of former ones."""
        ...

    def map(self, function: BlockFunction[P, T], *arguments: P.args, **named: P.kwargs) -> list[T]:
        """Return function(block, *arguments) of each block, in their order."""
        ...


class LocalBlocks:
    """Computes in this process, one block after the other; of the features only those of one block are in use.

    Of what functions keep, only scores stay from call to call: memory grows with the data by 8 bytes a document.

    Parameters
    ----------
    max_rows : int, default=1_000_000
        The documents of a block, where that many are whole queries: larger sources are divided.
    """

    def __init__(self, max_rows: int = MAX_ROWS) -> None:
        self.max_rows = max_rows
        self._blocks: list[OpenBlock] = []

    def open(self, sources: Sequence[Source]) -> None:
        """Make these the blocks, in this order."""
        self._blocks = [
            OpenBlock(block_of(queries, first, last))
            for queries in map(opened, sources)
            for first, last in query_ranges(queries.starts, self.max_rows)
        ]

    def map(self, function: BlockFunction[P, T], *arguments: P.args, **named: P.kwargs) -> list[T]:
        """Return function(block, *arguments) of each block, in their order."""
        return list(self.each(function, *arguments, **named))

    def each(self, function: BlockFunction[P, T], *arguments: P.args, **named: P.kwargs) -> Iterator[T]:
        """Yield function(block, *arguments) of one block after the other."""
        for block in self._blocks:
            yield self._computed(block, function, *arguments, **named)

    @staticmethod
    def _computed(block: OpenBlock, function: BlockFunction[P, T], *arguments: P.args, **named: P.kwargs) -> T:
        try:
            return function(block, *arguments, **named)
        finally:
            block.kept.clear()


def opened(source: Source) -> Queries:
    """Return the queries of a source; those in a folder are mapped, those in a bucket downloaded into one."""
    if isinstance(source, Queries):
        return source
    return read_queries(fetched(source) if isinstance(source, str) and source.startswith(SCHEME) else Path(source))


def is_better_divided(queries: Queries) -> bool:
    """Whether the features are mapped from a file, and so many that what is computed for each document adds up."""
    if queries.n_documents <= MAX_WHOLE_ROWS:
        return False
    array = queries.features if isinstance(queries.features, np.ndarray) else queries.features.data
    while array is not None and not isinstance(array, np.memmap):
        array = getattr(array, "base", None)
    return array is not None


def factors_of_blocks(workers: BlockWorkers, scaling: str, n_features: int, *, within_queries: bool = False) -> Floats:
    """Return the factor of each feature, (n_features,), as `factors` or `query_factors` does of all blocks together."""
    check_scaling(scaling)
    if scaling == "none":
        return np.ones(n_features)
    if within_queries:
        return factors_from(joined(workers.map(_query_moments)), scaling)
    about = np.zeros(n_features)
    if scaling == "standard":
        sums = workers.map(_sums)
        about = np.sum([part for part, _ in sums], axis=0) / sum(weight for _, weight in sums)
    return factors_from(joined(workers.map(_moments, about)), scaling)


def _sums(block: OpenBlock) -> tuple[Floats, float]:
    return weighted_sums(block.queries)


def _moments(block: OpenBlock, about: Floats) -> Any:
    return moments(block.queries, about)


def _query_moments(block: OpenBlock) -> Any:
    return query_moments(block.queries)
