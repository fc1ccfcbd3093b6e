"""Features cut into at most 256 bins, a byte per value.

cuts[f]   the thresholds of feature f, ascending, (n_bins - 1,) float64; a value is in bin b if b of them are below it
Missing values have a separate bin, the first, below -ANY_VALUE, besides the max_bins of the others.
Thresholds lie midway between adjacent values, on a float32 number, so that data of either precision get the same bins.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ranktune.solvers.core.arrays import Features, Floats, Ints
from ranktune.solvers.core.errors import DataError
from ranktune.solvers.data.origins import origin_of
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.models.trees import ANY_VALUE

Bytes: TypeAlias = NDArray[np.uint8]

MAX_BINS = 256
MAX_DENSE_BYTES = 2**32
"""The most bytes of dense bins of sparse features."""
MIN_SHARE = 0.05
"""The least share of the documents of a data set that shares its bins: bins of fewer documents are made faster."""


@dataclass(frozen=True, eq=False)
class Bins:
    """Binned features: values (n_features, n_documents), or CSC columns with the bin of zero of each, (n_features,)."""

    cuts: tuple[Floats, ...]
    values: Bytes | sparse.csc_array
    zero: Bytes

    @property
    def counts(self) -> Ints:
        """Number of bins of each feature, (n_features,)."""
        return np.array([len(cuts) + 1 for cuts in self.cuts], dtype=np.int64)

    def dense(self) -> Bins:
        """Return the bins with all values. Raises DataError where they are too many."""
        if isinstance(self.values, np.ndarray):
            return self
        rows, columns = self.values.shape
        if rows * columns > MAX_DENSE_BYTES:
            raise DataError(
                f"{rows:,} documents of {columns:,} sparse features are too many for trees of dense features: "
                "take LambdaMART or GBDTRanker."
            )
        values = np.repeat(self.zero[:, None], rows, axis=1)
        for f in range(columns):
            a, b = self.values.indptr[f], self.values.indptr[f + 1]
            values[f, self.values.indices[a:b]] = self.values.data[a:b]
        return Bins(self.cuts, values, self.zero)


def shared_by(queries: Queries) -> tuple[Queries, Ints]:
    """Return the queries whose bins are also those of queries, and the numbers of queries among them.

    Bins depend on features alone: those of queries that were selected from others are the bins of these, unless they
    are few. Folds, samples and trials of one data set share them.
    """
    origin, numbers = origin_of(queries)
    if queries.n_documents < MIN_SHARE * origin.n_documents or (np.diff(numbers) < 0).any():
        return queries, np.arange(queries.n_queries)
    return origin, numbers


def binned(features: Features, max_bins: int = MAX_BINS, by_row: Floats | None = None) -> Bins:
    """Return features in at most max_bins bins each, cut at quantiles of features with more values.

    by_row, (n_documents,), is the weight of each row, 1 where it is None.
    """
    n_documents, n_features = features.shape
    if isinstance(features, np.ndarray):
        values = np.empty((n_features, n_documents), dtype=np.uint8)
        all_cuts = []
        for f, column in _columns(features):
            cuts, values[f] = _cut(column, 0.0, max_bins, by_row)
            all_cuts.append(cuts)
        return Bins(tuple(all_cuts), values, np.zeros(n_features, dtype=np.uint8))
    by_column = sparse.csc_array(features)
    data = np.empty(len(by_column.data), dtype=np.uint8)
    all_cuts, zero = [], np.zeros(n_features, dtype=np.uint8)
    total = n_documents if by_row is None else by_row.sum()
    for f in range(n_features):
        a, b = by_column.indptr[f], by_column.indptr[f + 1]
        column = by_column.data[a:b].astype(np.float64)
        weights = None if by_row is None else by_row[by_column.indices[a:b]]
        stored = b - a if weights is None else weights.sum()
        cuts, data[a:b] = _cut(column, float(total - stored), max_bins, weights)
        all_cuts.append(cuts)
        zero[f] = np.searchsorted(cuts, 0.0, side="left")
    return Bins(
        tuple(all_cuts), sparse.csc_array((data, by_column.indices, by_column.indptr), shape=features.shape), zero
    )


def _cut(column: Floats, zeros: float, max_bins: int, weights: Floats | None) -> tuple[Floats, Ints]:
    """Return the thresholds of a column with additional zeros, and the bin of each value."""
    missing = np.isnan(column)
    if not missing.any():
        cuts = thresholds(column, zeros, max_bins, weights)
        return cuts, np.searchsorted(cuts, column, side="left")
    present = ~missing
    of_known = thresholds(column[present], zeros, max_bins, None if weights is None else weights[present])
    cuts = np.concatenate([[-ANY_VALUE], of_known])
    return cuts, np.where(missing, 0, np.searchsorted(cuts, column, side="left"))


def _columns(features: Features) -> Iterator[tuple[int, Floats]]:
    """Yield each column, contiguous; read by blocks of 16, which share cache lines."""
    for first in range(0, features.shape[1], 16):
        block = np.ascontiguousarray(features[:, first : first + 16].T)
        for at, column in enumerate(block):
            yield first + at, column.astype(np.float64)


def thresholds(column: Floats, zeros: float, max_bins: int, weights: Floats | None = None) -> Floats:
    """Return at most max_bins - 1 thresholds that separate the values of column and additional zeros.

    weights, (n,), is the weight of each value, 1 where it is None; zeros is the weight of the zeros.
    """
    levels, counts = _levels(column, weights)
    if zeros > 0.0:
        at = int(np.searchsorted(levels, 0.0))
        if at < len(levels) and levels[at] == 0.0:
            counts[at] += zeros
        else:
            levels, counts = np.insert(levels, at, 0.0), np.insert(counts, at, zeros)
    if len(levels) < 2:
        return np.zeros(0)
    places = np.arange(1, len(levels))
    if len(levels) > max_bins:  # where the running count passes the next quantile
        wanted = np.arange(1, max_bins) * (counts.sum() / max_bins)
        places = np.unique(np.clip(np.searchsorted(np.cumsum(counts), wanted) + 1, 1, len(levels) - 1))
    low, high = levels[places - 1], levels[places]
    with np.errstate(over="ignore"):  # beyond single precision the middle is not taken
        middle = (0.5 * low + 0.5 * high).astype(np.float32).astype(np.float64)
    return np.unique(np.where((middle >= low) & (middle < high), middle, low))


def _levels(column: Floats, weights: Floats | None) -> tuple[Floats, Floats]:
    """Return the distinct values, ascending, and the weight of each."""
    if weights is None:
        levels, counts = np.unique(column, return_counts=True)
        return levels, counts.astype(np.float64)
    levels, place = np.unique(column, return_inverse=True)
    return levels, np.bincount(place, weights, len(levels)).astype(np.float64)
