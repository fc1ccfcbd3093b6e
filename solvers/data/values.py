"""What callers give as features, grades and weights, as arrays of numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from ranktune.solvers.core.arrays import Array, Features, Floats, Indices, Ints, Matrix, stored_values
from ranktune.solvers.core.errors import DataError
from ranktune.solvers.data.columns.documents import COLUMNS, ByDocument, Given
from ranktune.solvers.data.columns.grammar import warn_of_rounding, without_largest

if TYPE_CHECKING:
    from ranktune.solvers.data.queries import Queries

Weights: TypeAlias = Sequence[float] | Array | Mapping[Any, float]

KINDS = {"c": "complex numbers", "V": "records", "m": "durations", "M": "dates", "U": "text", "S": "bytes"}
"""Kinds of arrays that hold no numbers."""
_BLOCK = 1 << 20  # values that are looked at together


def numeric(values: object, name: str) -> Array:
    """Return values as an array of float32 (if they are) or float64, or say why that cannot be."""
    try:
        array = np.asarray(values)
        if array.dtype == object and any(isinstance(value, str | bytes) for value in array.flat):
            raise DataError(f"{name} is not numeric: it holds text. Encode text as numbers before.")
        if array.dtype == object and hasattr(values, "to_numpy"):  # nullable types of pandas, whose NA is no number
            array = values.to_numpy(dtype=np.float64, na_value=np.nan)
        if array.dtype.kind not in KINDS:
            if array.dtype in (np.float32, np.float64):
                return array
            doubles = array.astype(np.float64)
            if array.dtype.kind in "iuO":
                warn_of_rounding(array.ravel().__getitem__, doubles.ravel(), name)
            return doubles
    except (TypeError, ValueError, OverflowError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{name} is not numeric ({error}). Encode text as numbers before.") from None
    if array.dtype.kind == "c":
        raise DataError(f"Complex data not supported: {name} is {array.dtype}. Pass real numbers.")
    what = KINDS[array.dtype.kind]
    raise DataError(
        f"{name} is not numeric: it is {array.dtype}, and must hold numbers, not {what}. Convert it before."
    )


def as_features(X: Features | ArrayLike) -> Features:
    """Return X as a C-ordered array, or a CSR array in canonical form. Raises DataError where it cannot be."""
    if isinstance(X, sparse.sparray | sparse.spmatrix):
        if X.ndim != 2:
            raise DataError(
                f"X has shape {X.shape}: it must be two-dimensional, a row per document, a column per feature."
            )
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
    if array.ndim != 2:
        raise DataError(
            f"X has shape {array.shape}: it must be two-dimensional, a row per document, a column per feature."
        )
    return np.ascontiguousarray(array)


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


def query_weights_of(given: Weights, ids: Array) -> Floats:
    """Return the weights of queries, (n_queries,), which are given in their order or by id."""
    if not isinstance(given, Mapping):
        return np.ascontiguousarray(numeric(given, "query_weights"), dtype=np.float64)
    known = set(ids.tolist())
    strange = [name for name in given if name not in known]
    if strange:
        raise DataError(f"query_weights names the query {strange[0]!r}, which the data do not hold.")
    return np.array([given.get(name, 1.0) for name in ids.tolist()], dtype=np.float64)


def columns_of(columns: Mapping[str, ArrayLike | None], n_documents: int, rows: Ints | None = None) -> Given:
    """Return the columns that are given, in the order of rows. Raises DataError for values that one cannot have."""
    checked: dict[str, object] = {}
    for name, given in columns.items():
        if given is not None:
            is_date = name == "times" and np.asarray(given).dtype.kind == "M"
            if name == "times":
                checked["dated"] = is_date
            values = _microseconds(np.asarray(given)) if is_date else numeric(given, name)
            COLUMNS[name].check(values, name, n_documents)
            values = np.ascontiguousarray(values, dtype=COLUMNS[name].dtype)
            checked[name] = values if rows is None else values[rows]
    return cast(Given, checked)


def _microseconds(dates: Array) -> Floats:
    """Return dates as microseconds since 1970, NaN where there is none."""
    return np.where(np.isnat(dates), np.nan, dates.astype("datetime64[us]").astype(np.int64).astype(np.float64))


def joined_columns(parts: Sequence[tuple[Queries, Ints | slice]]) -> ByDocument:
    """Return the columns of rows of parts, one part after another, that some part has."""
    joined: dict[str, Array] = {}
    for name, known in COLUMNS.items():
        had: list[Array | None] = [getattr(part, name) for part, _ in parts]
        shapes = {column.shape[1:] for column in had if column is not None}
        if len(shapes) != 1:  # of tables that do not fit together, contents differ
            continue
        absent = np.full(shapes.pop(), known.absent, known.dtype)
        joined[name] = np.concatenate([
            (np.broadcast_to(absent, (part.n_documents, *absent.shape)) if column is None else column)[rows]
            for (part, rows), column in zip(parts, had, strict=True)
        ])  # fmt: skip
    return cast(ByDocument, joined)
