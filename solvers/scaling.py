"""What each feature is multiplied by so that penalties treat all alike; features themselves are never copied.

A ranker whose loss does not change when a query's features shift needs no centre, only these factors: weights v on
the raw features and w = v / factor on the scaled ones rank alike, so w is penalised and v = factor * w is the model.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from ranktune.solvers.arrays import Features, Floats
from ranktune.solvers.errors import ParameterError, nearest

SCALINGS = ("none", "minmax", "standard")

ROWS = 4096
"""Rows of a block: small enough that the differences from the mean stay in cache."""


def check_scaling(scaling: str) -> None:
    """Raise ParameterError where scaling is not one of SCALINGS."""
    if scaling not in SCALINGS:
        raise ParameterError(f"scaling={scaling!r} is unknown. {nearest(str(scaling), SCALINGS)}")


def factors(features: Features, scaling: str, by_row: Floats | None = None) -> Floats:
    """Return the factor of each feature, (n_features,); 0 for one that has a single value, 1 for "none".

    minmax divides by the range, standard by the standard deviation, both over all rows, zeros of sparse rows included.
    by_row, (n_documents,), is how often each row counts, once where it is None.
    """
    if scaling == "none":
        return np.ones(features.shape[1])
    spread = _ranges(features) if scaling == "minmax" else deviations(features, by_row)
    return np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > np.finfo(np.float64).tiny * 1e8)


def _ranges(features: Features) -> Floats:
    if sparse.issparse(features):
        low, high = _extremes(features)
    else:
        low, high = features.min(axis=0), features.max(axis=0)
    return np.asarray(high, dtype=np.float64) - np.asarray(low, dtype=np.float64)


def deviations(features: Features, by_row: Floats | None = None) -> Floats:
    """Return the standard deviation of each feature, (n_features,), 0 where the column is constant.

    by_row, (n_documents,), is how often each row counts, once where it is None.
    """
    spread = _ranges(features)
    if sparse.issparse(features):
        return np.where(spread > 0.0, np.sqrt(_variances(features, by_row)), 0.0)
    rows = features.shape[0]
    mean = features.mean(axis=0, dtype=np.float64) if by_row is None else by_row @ features / by_row.sum()
    squares = np.zeros(features.shape[1])
    for start in range(0, rows, ROWS):  # about the mean and by blocks: no cancellation, no copy of X
        difference = features[start : start + ROWS] - mean
        if by_row is None:
            squares += np.einsum("ij,ij->j", difference, difference)
        else:
            squares += np.einsum("i,ij,ij->j", by_row[start : start + ROWS], difference, difference)
    total = rows if by_row is None else by_row.sum()
    return np.where(spread > 0.0, np.sqrt(squares / total), 0.0)  # rounding must not give a constant column a spread


def _extremes(features: Features) -> tuple[Floats, Floats]:
    """Return the lowest and highest value of each column of a CSR array, (n_features,), zeros included."""
    full = np.bincount(features.indices, minlength=features.shape[1]) == features.shape[0]
    low, high = np.where(full, np.inf, 0.0), np.where(full, -np.inf, 0.0)
    np.minimum.at(low, features.indices, features.data)
    np.maximum.at(high, features.indices, features.data)
    return low, high


def _variances(features: Features, by_row: Floats | None) -> Floats:
    """Return the variance of each column of a CSR array, (n_features,), zeros included, about the mean."""
    n_rows, n_features = features.shape
    weights = np.ones(n_rows) if by_row is None else by_row
    of_value = np.repeat(weights, np.diff(features.indptr))
    total, held = weights.sum(), np.bincount(features.indices, of_value, minlength=n_features)
    empty = np.where(np.bincount(features.indices, minlength=n_features) == n_rows, 0.0, total - held)
    mean = np.bincount(features.indices, of_value * features.data, minlength=n_features) / total
    from_mean = of_value * (features.data - mean[features.indices]) ** 2
    squares = np.bincount(features.indices, from_mean, minlength=n_features) + empty * mean**2
    variances: Floats = np.maximum(squares, 0.0) / total
    return variances
