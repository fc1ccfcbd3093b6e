"""The size of data, as it is known before they are read in full, or of all blocks together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ranktune.solvers.data.queries import Queries


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
