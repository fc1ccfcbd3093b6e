"""What each feature is multiplied by so that penalties treat all alike; features themselves are never copied.

A ranker whose loss does not change when a query's features shift needs no centre, only these factors: weights v on
the raw features and w = v / factor on the scaled ones rank alike, so w is penalised and v = factor * w is the model.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse
from sklearn.utils.sparsefuncs import mean_variance_axis, min_max_axis

from ranktune.solvers.arrays import Features, Floats
from ranktune.solvers.errors import ParameterError, nearest

SCALINGS = ("none", "minmax", "standard")

ROWS = 4096
"""Rows of a block: small enough that the differences from the mean stay in cache."""


def check_scaling(scaling: str) -> None:
    """Raise ParameterError where scaling is not one of SCALINGS."""
    if scaling not in SCALINGS:
        raise ParameterError(f"scaling={scaling!r} is unknown. {nearest(str(scaling), SCALINGS)}")


def factors(features: Features, scaling: str) -> Floats:
    """Return the factor of each feature, (n_features,); 0 for one that has a single value, 1 for "none".

    minmax divides by the range, standard by the standard deviation, both over all rows, zeros of sparse rows included.
    """
    if scaling == "none":
        return np.ones(features.shape[1])
    spread = _ranges(features) if scaling == "minmax" else deviations(features)
    return np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > np.finfo(np.float64).tiny * 1e8)


def _ranges(features: Features) -> Floats:
    if sparse.issparse(features):
        low, high = min_max_axis(sparse.csr_matrix(features), axis=0)
    else:
        low, high = features.min(axis=0), features.max(axis=0)
    return np.asarray(high, dtype=np.float64) - np.asarray(low, dtype=np.float64)


def deviations(features: Features) -> Floats:
    """Return the standard deviation of each feature, (n_features,), 0 where the column is constant."""
    spread = _ranges(features)
    if sparse.issparse(features):
        _, variance = mean_variance_axis(sparse.csr_matrix(features, dtype=np.float64), axis=0)
        return np.where(spread > 0.0, np.sqrt(variance), 0.0)
    rows = features.shape[0]
    mean = features.mean(axis=0, dtype=np.float64)
    squares = np.zeros(features.shape[1])
    for start in range(0, rows, ROWS):  # about the mean and by blocks: no cancellation, no copy of X
        difference = features[start : start + ROWS] - mean
        squares += np.einsum("ij,ij->j", difference, difference)
    return np.where(spread > 0.0, np.sqrt(squares / rows), 0.0)  # rounding must not give a constant column a spread
