"""Features cut into at most 256 bins, a byte per value.

cuts[f]   the thresholds of feature f, ascending, (n_bins - 1,) float64; a value is in bin b if b of them are below it
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

Bytes: TypeAlias = NDArray[np.uint8]

MAX_BINS = 256


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


def binned(features: Features, max_bins: int = MAX_BINS, by_row: Floats | None = None) -> Bins:
    """Return features in at most max_bins bins each, cut at quantiles of features with more values.

    by_row, (n_documents,), is the weight of each row, 1 where it is None.
    """
    n_documents, n_features = features.shape
    if isinstance(features, np.ndarray):
        values = np.empty((n_features, n_documents), dtype=np.uint8)
        all_cuts = []
        for f, column in _columns(features):
            all_cuts.append(thresholds(column, 0.0, max_bins, by_row))
            values[f] = np.searchsorted(all_cuts[f], column, side="left")
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
        all_cuts.append(thresholds(column, float(total - stored), max_bins, weights))
        data[a:b] = np.searchsorted(all_cuts[f], column, side="left")
        zero[f] = np.searchsorted(all_cuts[f], 0.0, side="left")
    return Bins(
        tuple(all_cuts), sparse.csc_array((data, by_column.indices, by_column.indptr), shape=features.shape), zero
    )


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
    middle = (0.5 * low + 0.5 * high).astype(np.float32).astype(np.float64)
    return np.unique(np.where((middle >= low) & (middle < high), middle, low))


def _levels(column: Floats, weights: Floats | None) -> tuple[Floats, Floats]:
    """Return the distinct values, ascending, and the weight of each."""
    if weights is None:
        levels, counts = np.unique(column, return_counts=True)
        return levels, counts.astype(np.float64)
    levels, place = np.unique(column, return_inverse=True)
    return levels, np.bincount(place, weights, len(levels)).astype(np.float64)
