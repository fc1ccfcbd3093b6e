"""Features cut into at most 256 bins: all that a learner of thresholds needs to see of them, a byte a value.

cuts[f]   the thresholds of feature f, rising, (n_bins - 1,) float64; a value is in bin b if b of them are below it
Thresholds lie midway between values that occur, on a number that float32 holds, so that data of either precision fall
into the same bins.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from ranktune.solvers.core.arrays import Features, Floats, Ints

MOST = 256


@dataclass(frozen=True, eq=False)
class Bins:
    """Binned features: values (n_features, n_documents) uint8, or CSC columns of them with the bin of zero."""

    cuts: tuple[Floats, ...]
    values: Any
    zero: Any

    @property
    def counts(self) -> Ints:
        """Number of bins of each feature, (n_features,)."""
        return np.array([len(cuts) + 1 for cuts in self.cuts], dtype=np.int64)

    @property
    def is_sparse(self) -> bool:
        """Whether only values that are not zero are stored."""
        return self.zero is not None


def binned(features: Features, most: int = MOST, by_row: Floats | None = None) -> Bins:
    """Return features in at most so many bins each, cut at quantiles where more values than that differ.

    by_row, (n_documents,), is how often each row counts, once where it is None.
    """
    n_documents, n_features = features.shape
    if not sparse.issparse(features):
        values = np.empty((n_features, n_documents), dtype=np.uint8)
        all_cuts = []
        for f, column in _columns(features):
            all_cuts.append(thresholds(column, 0.0, most, by_row))
            values[f] = np.searchsorted(all_cuts[f], column, side="left")
        return Bins(tuple(all_cuts), values, None)
    by_column = sparse.csc_array(features)
    data = np.empty(len(by_column.data), dtype=np.uint8)
    all_cuts, zero = [], np.zeros(n_features, dtype=np.uint8)
    total = n_documents if by_row is None else by_row.sum()
    for f in range(n_features):
        a, b = by_column.indptr[f], by_column.indptr[f + 1]
        column = by_column.data[a:b].astype(np.float64)
        weights = None if by_row is None else by_row[by_column.indices[a:b]]
        stored = b - a if weights is None else weights.sum()
        all_cuts.append(thresholds(column, float(total - stored), most, weights))
        data[a:b] = np.searchsorted(all_cuts[f], column, side="left")
        zero[f] = np.searchsorted(all_cuts[f], 0.0, side="left")
    return Bins(
        tuple(all_cuts), sparse.csc_array((data, by_column.indices, by_column.indptr), shape=features.shape), zero
    )


def _columns(features: Features) -> Iterator[tuple[int, Floats]]:
    """Yield each column, contiguous; read by blocks of 16, which share the lines of memory."""
    for first in range(0, features.shape[1], 16):
        block = np.ascontiguousarray(features[:, first : first + 16].T)
        for at, column in enumerate(block):
            yield first + at, column.astype(np.float64)


def thresholds(column: Floats, zeros: float, most: int, weights: Floats | None = None) -> Floats:
    """Return at most most - 1 thresholds that tell the values of column, and so many zeros more, apart.

    weights, (n,), is how often each value counts, once where it is None.
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
    if len(levels) > most:  # where the running count passes the next quantile
        wanted = np.arange(1, most) * (counts.sum() / most)
        places = np.unique(np.clip(np.searchsorted(np.cumsum(counts), wanted) + 1, 1, len(levels) - 1))
    low, high = levels[places - 1], levels[places]
    middle = (0.5 * low + 0.5 * high).astype(np.float32).astype(np.float64)
    return np.unique(np.where((middle >= low) & (middle < high), middle, low))


def _levels(column: Floats, weights: Floats | None) -> tuple[Floats, Floats]:
    """Return the values that differ, rising, and how often each occurs."""
    if weights is None:
        levels, counts = np.unique(column, return_counts=True)
        return levels, counts.astype(np.float64)
    levels, place = np.unique(column, return_inverse=True)
    return levels, np.bincount(place, weights, len(levels)).astype(np.float64)
