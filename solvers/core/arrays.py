"""Names for the types that pass between modules: arrays, features and JSON objects."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Array: TypeAlias = NDArray[Any]
"""Any dtype."""

Floats: TypeAlias = NDArray[np.float64]
"""float64, C-contiguous."""

Ints: TypeAlias = NDArray[np.int64]
"""int64, C-contiguous."""

Codes: TypeAlias = NDArray[np.uint32]
"""uint32: numbers of grades, and positions within a query. Unsigned indices spare numba a test for wrapping around."""

Indices: TypeAlias = NDArray[np.integer[Any]]
"""Integers of any width: the indices and indptr of a CSR array."""

Matrix: TypeAlias = NDArray[np.floating[Any]]
"""float32 or float64, C-contiguous: dense features, or the data of a CSR array."""

Mask: TypeAlias = NDArray[np.bool_]
"""bool."""

Features: TypeAlias = "Matrix | csr_array"
"""(n_documents, n_features): a C-ordered float32 or float64 array, or a scipy.sparse.csr_array of them."""

Ids: TypeAlias = Sequence[Hashable] | Array
"""One id per row, such as qid or document_ids."""

Sizes: TypeAlias = Sequence[int] | Array
"""The number of rows of each query, such as group."""

Json: TypeAlias = dict[str, Any]
"""A JSON object. Code that reads it from a file checks the types of its values."""

JsonView: TypeAlias = Mapping[str, Any]
"""A JSON object that is only read."""


def as_floats(values: ArrayLike) -> Floats:
    """Return values as a writable C-ordered float64 array, copied only if needed.

    To numba a read-only array, such as a mapped file, is another type, for which it compiles a kernel once more.
    """
    return np.require(values, np.float64, ["C", "A", "W", "E"])


def as_ints(values: ArrayLike) -> Ints:
    """Return values as a writable C-ordered int64 array, copied only if needed."""
    return np.require(values, np.int64, ["C", "A", "W", "E"])


def as_objects(values: Collection[object]) -> Array:
    """Return values as they are, each of them one item of a flat array."""
    return np.fromiter(values, np.object_, len(values))


def put_back(values: Array, rows: Ints | None) -> Array:
    """Return values in the order that they had before rows, (n,), put them in theirs; as they are for None."""
    if rows is None:
        return values
    back = np.empty_like(values)
    back[rows] = values
    return back


def dense(features: Features) -> Matrix:
    """Return features as a dense array; a dense array is not copied."""
    return features if isinstance(features, np.ndarray) else features.toarray()


def stored_values(features: Features) -> Matrix:
    """Return the values that are stored: of a CSR array its data."""
    return features if isinstance(features, np.ndarray) else features.data


def stored_arrays(features: Features) -> tuple[Array, ...]:
    """Return the arrays that hold features: itself, or data, indices and indptr of a CSR array."""
    return (features,) if isinstance(features, np.ndarray) else (features.data, features.indices, features.indptr)


def python_value(value: object) -> object:
    """Return a NumPy scalar as the Python value that it holds, anything else as it is."""
    return value.item() if isinstance(value, np.generic) else value
