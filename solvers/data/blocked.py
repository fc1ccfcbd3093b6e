"""Queries in blocks together with those who compute on them: what a solver that adds up over blocks learns from.

Stored queries in a bucket of S3 are downloaded once into the cache of the user of a worker.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, Protocol, TypeAlias, TypeVar

import numpy as np

from ranktune.solvers.core.arrays import Floats, Ints
from ranktune.solvers.core.errors import DataError, ParameterError
from ranktune.solvers.core.files.buckets import SCHEME, Bucket, Unreachable
from ranktune.solvers.core.files.private import cached, private_folder
from ranktune.solvers.data.blocks import block_of, query_ranges
from ranktune.solvers.data.disk.stored import read_queries
from ranktune.solvers.data.disk.writer import INDEX
from ranktune.solvers.data.products import scores
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.query_columns import for_fitting
from ranktune.solvers.data.scaling import (
    check_scaling,
    factors,
    factors_from,
    joined,
    moments,
    query_factors,
    query_moments,
    weighted_sums,
)

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
    cache     what functions keep from one call to the next. It may be lost between any two calls.
    """

    queries: Queries
    cache: dict[str, Any] = field(default_factory=dict)
    _scored: tuple[Floats, Floats] | None = None

    def __post_init__(self) -> None:
        """Weigh documents by all that weighs them."""
        self.queries = for_fitting(self.queries)

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
            try:
                found = function(block, *arguments, **named)
            finally:
                block.cache.clear()
            yield found


def opened(source: Source) -> Queries:
    """Return the queries of a source; those in a folder are mapped, those in a bucket downloaded into one."""
    if isinstance(source, Queries):
        return source
    return read_queries(fetched(source))


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
        return factors_from(joined(workers.map(_of_queries, query_moments)), scaling)
    about = np.zeros(n_features)
    if scaling == "standard":
        sums = workers.map(_of_queries, weighted_sums)
        about = np.sum([part for part, _ in sums], axis=0) / sum(weight for _, weight in sums)
    return factors_from(joined(workers.map(_of_queries, moments, about)), scaling)


def _of_queries(
    block: OpenBlock, function: Callable[Concatenate[Queries, P], T], *arguments: P.args, **named: P.kwargs
) -> T:
    return function(block.queries, *arguments, **named)


@dataclass(frozen=True)
class Extent:
    """Documents, those of the longest query, features, and bytes that the features of a document take."""

    n_documents: int
    longest: int
    n_features: int
    row_bytes: float
    is_sparse: bool = False


def row_bytes(queries: Queries) -> float:
    """Return the bytes that the features of a document take, on average."""
    features = queries.features
    size = 2 * features.data.nbytes if queries.is_sparse else features.nbytes
    return float(size / queries.n_documents)


def extent_of(queries: Queries) -> Extent:
    """Return the size of queries."""
    longest = int(queries.lengths.max())
    return Extent(queries.n_documents, longest, queries.n_features, row_bytes(queries), queries.is_sparse)


def total_extent(parts: Sequence[Extent]) -> Extent:
    """Return the size of all parts together, which have the same features."""
    n_documents = sum(part.n_documents for part in parts)
    size = sum(part.row_bytes * part.n_documents for part in parts)
    longest, is_sparse = max(part.longest for part in parts), any(part.is_sparse for part in parts)
    return Extent(n_documents, longest, parts[0].n_features, size / n_documents, is_sparse)


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


def fetched(source: str | Path) -> Path:
    """Return a folder of stored queries; those at s3://BUCKET/PREFIX are downloaded unless the cache has them.

    The checksums of all arrays are compared after the download. Other content of the bucket gets another folder.
    Raises DataError where the queries cannot be read.
    """
    url = str(source)
    if not url.startswith(SCHEME):
        return Path(source)
    try:
        bucket = Bucket(url)
        if not bucket.prefix:
            raise ParameterError(f"{url!r} names no stored data set: it must be s3://BUCKET/PREFIX.")
        files = bucket.names()
        if not files:
            raise DataError(f"{url}: there is nothing. Give the prefix of the files of one stored data set.")
        for name, _, _ in files:
            if name != Path(name).name:
                raise DataError(
                    f"{url} holds {name[:80]!r}, which is no file of a stored data set: give the prefix of one, which "
                    "ranktune.convert made."
                )
        about = bucket.read(INDEX)  # with the checksums of all arrays
        digest = hashlib.blake2b(repr((url, files, about)).encode(), digest_size=16).hexdigest()
        return cached(private_folder("blocks") / digest, Path, lambda folder: _download(bucket, files, folder))
    except Unreachable as error:
        raise DataError(f"{url}: {error}") from None
    except OSError as error:
        raise DataError(f"{url}: cannot be kept in the cache ({error}). RANKTUNE_CACHE names another folder.") from None


def _download(bucket: Bucket, files: list[tuple[str, int, int]], folder: Path) -> None:
    """Download files into a new folder."""
    for name, _, _ in files:
        bucket.download(name, folder / name)
    read_queries(folder, check=True)
