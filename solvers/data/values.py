"""Checks of what callers give as features and grades."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from ranktune.solvers.core.arrays import Array, Features, Floats, stored_values
from ranktune.solvers.core.errors import DataError


def numeric(values: object, name: str) -> Array:
    """Return values as an array of float32 (if they are) or float64, or say why that cannot be."""
    try:
        array = np.asarray(values)
        if array.dtype.kind != "c":
            return array if array.dtype in (np.float32, np.float64) else array.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{name} is not numeric ({error}). Encode text as numbers before.") from None
    raise DataError(f"Complex data not supported: {name} is {array.dtype}. Pass real numbers.")


def as_features(X: Features | ArrayLike) -> Features:
    """Return X as a C-ordered array, or a CSR array in canonical form. Raises DataError where it cannot be."""
    if isinstance(X, sparse.sparray | sparse.spmatrix):
        if X.ndim != 2:
            raise DataError(f"X has shape {X.shape}: it must be two-dimensional, a row a document, a column a feature.")
        matrix = sparse.csr_array(X)
        if matrix.dtype.kind == "c":
            raise DataError(f"Complex data not supported: X is {matrix.dtype}. Pass real numbers.")
        if matrix.dtype not in (np.float32, np.float64):
            matrix = matrix.astype(np.float64)
        if not matrix.has_canonical_format:
            matrix = matrix.copy()  # the caller's matrix stays as it is
            matrix.sum_duplicates()
        return _with_short_indices(matrix)
    array = numeric(X, "X")
    if array.ndim != 2:
        raise DataError(f"X has shape {array.shape}: it must be two-dimensional, a row a document, a column a feature.")
    return np.ascontiguousarray(array)


def _with_short_indices(matrix: sparse.csr_array) -> sparse.csr_array:
    """Return the CSR array with indices of 32 bits where they suffice: a third fewer bytes in every pass over it."""
    if matrix.indices.dtype == np.int32 or max(matrix.shape[1], matrix.indptr[-1]) > np.iinfo(np.int32).max:
        return matrix
    parts = (matrix.data, matrix.indices.astype(np.int32), matrix.indptr.astype(np.int32))
    return sparse.csr_array(parts, shape=matrix.shape)


def check_values(features: Features, grades: Floats) -> bool:
    """Return whether a feature is missing (NaN). Raises DataError for infinite features and non-finite grades."""
    if not np.isfinite(grades).all():
        row = int(np.flatnonzero(~np.isfinite(grades))[0])
        raise DataError(f"the grade in row {row} is {grades[row]}: grades must be finite. Remove or fix that row.")
    values = stored_values(features)
    with np.errstate(over="ignore", invalid="ignore"):
        total = values.sum()  # one pass, no temporary; where a sum of finite numbers overflows, we look closer
    if np.isfinite(total):
        return False
    infinite = np.isinf(values)
    if not infinite.any():
        return bool(np.isnan(values).any())
    if isinstance(features, np.ndarray):
        row, column = (int(i) for i in np.argwhere(infinite)[0])
        value = values[row, column]
    else:
        at = int(np.flatnonzero(infinite)[0])
        row, column = int(np.searchsorted(features.indptr, at, side="right")) - 1, int(features.indices[at])
        value = values[at]
    raise DataError(
        f"the feature in row {row}, column {column} is {value}: features must be finite, or NaN where the value is "
        "missing. Correct it."
    )
