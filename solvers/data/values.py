"""What callers give as features, as arrays of numbers."""

from __future__ import annotations

from os import PathLike

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from ranktune.solvers.core.arrays import Array, Features, Indices, Matrix, stored_values
from ranktune.solvers.core.errors import DataError
from ranktune.solvers.data.columns.grammar import without_largest
from ranktune.solvers.data.query_columns import numeric

_BLOCK = 1 << 20  # values that are looked at together


def as_features(X: Features | ArrayLike) -> Features:
    """Return X as a C-ordered array, or a CSR array in canonical form. Raises DataError where it cannot be."""
    check_shape(X)
    if isinstance(X, sparse.sparray | sparse.spmatrix):
        matrix = sparse.csr_array(X)
        matrix.data = without_largest(matrix.data, "X")
        check_layout(matrix)
        if matrix.dtype.kind == "c":
            raise DataError(f"Complex data not supported: X is {matrix.dtype}. Pass real numbers.")
        if matrix.dtype not in (np.float32, np.float64):
            matrix = matrix.astype(np.float64)
        if not matrix.has_canonical_format:
            matrix = matrix.copy()  # the caller's matrix stays as it is
            matrix.sum_duplicates()
        return _with_short_indices(matrix)
    array = without_largest(numeric(X, "X"), "X")
    check_shape(array)
    return np.ascontiguousarray(array)


def check_shape(X: object) -> None:
    """Raise DataError for a path, and for an array that has not two dimensions."""
    if isinstance(X, str | PathLike):
        raise DataError(
            f"X={str(X)!r} is a path, and X must hold features. ranktune.predict(MODEL, {str(X)!r}) scores a file; "
            f"ranktune.read({str(X)!r}) returns what X may be."
        )
    shape = getattr(X, "shape", (0, 0))
    if len(shape) != 2:
        give = f"X.reshape(-1, {shape[-1]}), with qid= or group= for the queries" if shape[1:] else "X.reshape(1, -1)"
        raise DataError(
            f"X has shape {shape}: it must be two-dimensional, a row per document, a column per feature. Reshape your "
            f"data: give {give}."
        )


def csr_of(data: Matrix, indices: Indices, indptr: Indices, n_features: int) -> sparse.csr_array:
    """Return the CSR array of these very arrays, canonical as they are; row ends become 32 bits wide if they fit.

    The constructor would copy arrays that are views of larger ones, and indices that are narrower than row ends.
    """
    matrix = sparse.csr_array((len(indptr) - 1, n_features), dtype=data.dtype)
    narrow = indices.dtype == np.int32 and indptr[-1] <= np.iinfo(np.int32).max
    matrix.data, matrix.indices, matrix.indptr = (
        data,
        indices,
        indptr.astype(np.int32, copy=False) if narrow else indptr,
    )
    matrix.has_canonical_format = True
    return matrix


def widened(features: Features, n_features: int, is_sparse: bool) -> Features:
    """Return features in a layout, with columns of zeros added up to n_features."""
    if isinstance(features, np.ndarray):
        if features.shape[1] < n_features:
            wide = np.zeros((len(features), n_features), dtype=features.dtype)
            wide[:, : features.shape[1]] = features
            features = wide
        return sparse.csr_array(features) if is_sparse else features
    parts = (features.data, features.indices, features.indptr)
    wider = sparse.csr_array(parts, shape=(features.shape[0], n_features))
    return wider if is_sparse else wider.toarray()


def check_layout(matrix: sparse.csr_array) -> None:
    """Raise DataError for a CSR array whose indices or row ends lie outside it."""
    try:
        matrix.check_format(full_check=True)
    except (ValueError, TypeError, IndexError) as error:
        raise DataError(f"the features are no valid CSR array ({error}).") from None


def _with_short_indices(matrix: sparse.csr_array) -> sparse.csr_array:
    """Return the CSR array with indices of 32 bits where they suffice: a third fewer bytes in every pass over it."""
    if matrix.indices.dtype == np.int32 or max(matrix.shape[1], matrix.indptr[-1]) > np.iinfo(np.int32).max:
        return matrix
    parts = (matrix.data, matrix.indices.astype(np.int32), matrix.indptr.astype(np.int32))
    return sparse.csr_array(parts, shape=matrix.shape)


def has_missing_values(features: Features) -> bool:
    """Return whether a feature is NaN."""
    return any(np.isnan(block).any() for block in blocks(stored_values(features)))


def blocks(values: Array) -> list[Array]:
    """Return the values, one after another, as arrays that are looked at together."""
    flat = values.reshape(-1)
    return [flat[first : first + _BLOCK] for first in range(0, len(flat), _BLOCK)]
