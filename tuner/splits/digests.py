"""Digests of queries by content: equal for equal documents and grades, in any order.

Ids do not identify a query: unrelated files count their queries from 1, and joined data may hold a query twice under
different ids.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ranktune.solvers.core.arrays import Features, Ints
from ranktune.solvers.data.queries import Queries

Bits: TypeAlias = NDArray[np.uint64]

NOTHING = 0
"""The digest of queries whose documents all have one grade."""
BLOCK = 1 << 20
"""Values that are processed together."""
_ODD = np.uint64(0x9E3779B97F4A7C15)


def distinct(queries: Queries) -> Ints:
    """Return the number of the content of each query, (n_queries,), counted from 0 in order of first occurrence.

    Each query whose documents all have one grade counts as distinct.
    """
    numbers: dict[int, int] = {}
    result = np.empty(queries.n_queries, dtype=np.int64)
    for place, digest in enumerate(query_digests(queries)):
        result[place] = numbers.setdefault(-1 - place if digest == NOTHING else digest, len(numbers))
    return result


def query_digests(queries: Queries) -> list[int]:
    """Return 64 bits for each query, the same for the same documents and grades in any order; NOTHING for one grade."""
    bits = _mixed(_row_digests(queries.features) * _ODD + _mixed(_as_bits(queries.grades)) + _ODD)
    digests = np.add.reduceat(bits, queries.starts[:-1])
    lowest = np.minimum.reduceat(queries.grades, queries.starts[:-1])
    digests[np.maximum.reduceat(queries.grades, queries.starts[:-1]) == lowest] = NOTHING
    result: list[int] = digests.tolist()
    return result


def _row_digests(features: Features) -> Bits:
    """Return 64 bits for each row: a sum over its values that are not zero, so dense and sparse rows agree."""
    n_rows, n_features = int(features.shape[0]), int(features.shape[1])
    of_column = np.random.default_rng(0).integers(0, 2**63, n_features, dtype=np.uint64) * 2 + 1
    if not isinstance(features, np.ndarray):
        running = np.zeros(len(features.data) + 1, dtype=np.uint64)  # sums wrap around, and so do their differences
        np.cumsum(_mixed(_as_bits(features.data)) * of_column[features.indices], out=running[1:])
        return np.asarray(running[features.indptr[1:]] - running[features.indptr[:-1]])
    digests = np.empty(n_rows, dtype=np.uint64)
    rows = max(BLOCK // max(n_features, 1), 1)
    for a in range(0, n_rows, rows):
        digests[a : a + rows] = (_mixed(_as_bits(features[a : a + rows])) * of_column).sum(axis=1, dtype=np.uint64)
    return digests


def _as_bits(values: NDArray[np.floating]) -> Bits:
    return np.asarray((values.astype(np.float64) + 0.0).view(np.uint64))  # + 0.0 makes -0.0 zero


def _mixed(bits: Bits) -> Bits:
    """Return bits with every bit spread over all others; 0 stays 0."""
    half: Bits = (bits ^ (bits >> np.uint64(32))) * _ODD
    mixed: Bits = half ^ (half >> np.uint64(29))
    return mixed
