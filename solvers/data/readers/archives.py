"""Data in arrays to Queries: NumPy archives (.npz), arrays, and the data sets of LightGBM and XGBoost.

An archive holds X, (n_documents, n_features), or data, indices, indptr and shape of a CSR matrix, and y and qid,
(n_documents,). group (sizes) may replace qid; feature_names and document_ids are optional. It is read without
unpickling, and every header is checked against its data.
"""

from __future__ import annotations

import math
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from ranktune.solvers.core.arrays import Array, Features
from ranktune.solvers.core.errors import DataError, warn
from ranktune.solvers.core.memory import check_room
from ranktune.solvers.data.columns.arrow import is_frame
from ranktune.solvers.data.grouping import check_no_query_column
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.readers.frames import FrameTable
from ranktune.solvers.data.readers.parsing.feature_rows import DENSE_SHARE
from ranktune.solvers.data.readers.parsing.streams import FREE_EXPANSION, MAX_EXPANSION

_CSR = ("data", "indices", "indptr", "shape")
_KNOWN = ("X", *_CSR, "y", "qid", "group", "feature_names", "document_ids")


def read_npz(path: str | Path) -> Queries:
    """Return the queries of an archive that numpy.savez wrote.

    Parameters
    ----------
    path : str or Path
        The archive. It holds X, or data, indices, indptr and shape of a CSR matrix; y; qid or group; optionally
        feature_names and document_ids. Other members are ignored.

    Returns
    -------
    Queries
        The documents grouped by query.

    Raises
    ------
    DataError
        The archive is damaged, members are missing or inconsistent, an array holds objects, or a header declares
        another size than its data have; the latter is checked before any memory of that size is allocated.
    """
    path = Path(path)
    try:
        with zipfile.ZipFile(path) as archive:
            infos = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
            parts = {name: _member(path, archive, infos[name]) for name in _KNOWN if name in infos}
    except DataError:
        raise
    except FileNotFoundError:
        raise DataError(f"{path}: there is no such file.") from None
    except (OSError, ValueError, EOFError, NotImplementedError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
        raise DataError(f"{path}: is not a readable .npz archive ({error}). Write it anew by numpy.savez.") from error
    try:
        return _queries(parts)
    except DataError as error:
        raise DataError(f"{path}: {error}") from None


def _member(path: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Array:
    """Return one array, after its header was checked against the size of the member."""
    if info.file_size > max(FREE_EXPANSION, MAX_EXPANSION * info.compress_size):
        raise DataError(
            f"{path}: {info.filename} unpacks to more than {MAX_EXPANSION} times its size: that looks like a "
            "decompression bomb. If it is not, write it by numpy.savez, which does not pack."
        )
    with archive.open(info) as stream:
        version = np.lib.format.read_magic(stream)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = read(stream)
        header = stream.tell()
    if dtype.hasobject:
        raise DataError(
            f"{path}: {info.filename} holds Python objects, which are not loaded because that could run code. "
            "Save numbers, or text as a NumPy text array."
        )
    if math.prod(shape) * dtype.itemsize != info.file_size - header:
        raise DataError(
            f"{path}: {info.filename} declares shape {shape} of {dtype}, {math.prod(shape) * dtype.itemsize} bytes, "
            f"but holds {info.file_size - header}. It is damaged; write it anew by numpy.savez."
        )
    size = math.prod(shape) * (dtype.itemsize if dtype.kind == "f" else max(dtype.itemsize, 8))
    check_room(f"{path}: {info.filename} of shape {shape}", size)
    with archive.open(info) as stream:
        array: Array = np.lib.format.read_array(stream, allow_pickle=False)
    return array


def _queries(parts: dict[str, Array]) -> Queries:
    if "X" not in parts and not all(name in parts for name in _CSR):
        raise DataError("needs X, or data, indices, indptr and shape of a CSR matrix.")
    if "y" not in parts:
        raise DataError("needs y, one grade per row of X.")
    if "qid" not in parts and "group" not in parts:
        raise DataError("needs qid, the query of each row, or group, the number of rows of each query.")
    X = parts["X"] if "X" in parts else _csr(parts)
    names = parts.get("feature_names")
    return Queries.from_arrays(
        X,
        parts["y"],
        qid=parts.get("qid"),
        group=parts.get("group"),
        document_ids=parts.get("document_ids"),
        feature_names=None if names is None else names.tolist(),
    )


def _csr(parts: dict[str, Array]) -> Features:
    shape = parts["shape"]
    if shape.shape != (2,) or not np.issubdtype(shape.dtype, np.integer):
        raise DataError(f"shape is {shape!r}: it must be two whole numbers, rows and columns.")
    try:
        matrix = sparse.csr_array((parts["data"], parts["indices"], parts["indptr"]), shape=tuple(shape.tolist()))
        matrix.check_format(full_check=True)
    except (ValueError, TypeError, IndexError) as error:
        raise DataError(f"data, indices, indptr and shape are not a CSR matrix ({error}).") from error
    return matrix


def as_it_is(queries: Queries) -> Queries:
    """Return queries."""
    return queries


def are_arrays(source: object) -> bool:
    """Return whether source is (X, y, qid)."""
    return isinstance(source, tuple) and len(source) == 3


def from_arrays(parts: tuple[Any, Any, Any]) -> Queries:
    """Return the queries of (X, y, qid)."""
    X, y, qid = parts
    return Queries.from_arrays(X, y, qid=qid)


def are_parts(source: object) -> bool:
    """Return whether source is (X, y, qid) with a data frame of features."""
    return isinstance(source, tuple) and len(source) == 3 and is_frame(source[0])


def table_of_parts(parts: tuple[Any, Any, Any]) -> FrameTable:
    """Return the table of a data frame of features, grades and query ids."""
    frame, grades, qid = parts
    check_no_query_column(frame, grouped=True)
    return FrameTable(frame, grades=grades, ids=qid)


def from_lightgbm(dataset: Any) -> Queries:
    """Return the queries of a lightgbm.Dataset that keeps its raw data and has groups."""
    X, y, group = dataset.data, dataset.label, dataset.group
    if X is None:
        raise DataError(
            "the lightgbm.Dataset has freed its raw data. Make it with free_raw_data=False, or give X, y and qid."
        )
    if isinstance(X, str) or not hasattr(X, "shape"):
        raise DataError(f"the lightgbm.Dataset holds {type(X).__name__}, not a matrix. Give the file or X, y and qid.")
    if y is None or group is None:
        raise DataError(
            f"the lightgbm.Dataset has no {'labels' if y is None else 'groups'}. Set them, or give X, y and qid."
        )
    names = dataset.feature_name if isinstance(dataset.feature_name, list) else None
    if names == [f"Column_{number}" for number in range(X.shape[1])]:  # the default names of a data set of LightGBM
        names = None
    if names is None and hasattr(X, "columns"):
        names = [str(name) for name in X.columns]
    queries = Queries.from_arrays(X, y, group=np.asarray(group), feature_names=names)
    return _weighted(queries, dataset.weight)


def from_xgboost(matrix: Any) -> Queries:
    """Return the queries of an xgboost.DMatrix that has groups.

    A value that it lacks is missing to XGBoost, and so it is here; in a matrix that lacks most values it is read as 0.
    """
    if type(matrix).__name__ == "QuantileDMatrix":
        raise DataError("the xgboost.QuantileDMatrix holds bins instead of values. Give a DMatrix, or X, y and qid.")
    y, ends = matrix.get_label(), matrix.get_uint_info("group_ptr")
    if len(y) == 0 or len(ends) == 0:
        raise DataError(
            f"the xgboost.DMatrix has no {'labels' if len(y) == 0 else 'groups'}. Set them, or give X, y and qid."
        )
    X = matrix.get_data()
    share = X.nnz / max(X.shape[0] * X.shape[1], 1)
    if share >= DENSE_SHARE:
        X = _dense(X)
    else:
        warn(
            f"the xgboost.DMatrix lacks {1.0 - share:.0%} of the values: they are read as 0, as of a sparse matrix. "
            "Where they are missing, give X, y and qid."
        )
    queries = Queries.from_arrays(X, y, group=np.diff(ends.astype(np.int64)), feature_names=matrix.feature_names)
    return _weighted(queries, matrix.get_weight())


def _dense(X: sparse.csr_matrix) -> Array:
    """Return X with NaN where it stores nothing."""
    dense = np.full(X.shape, np.nan, dtype=X.dtype)
    dense[np.repeat(np.arange(X.shape[0]), np.diff(X.indptr)), X.indices] = X.data
    return dense


def _weighted(queries: Queries, weights: Array | None) -> Queries:
    """Return queries with the weights of a data set: one a query, or one a document that is the same in each query."""
    return queries if weights is None or len(weights) == 0 else queries.weighted_by(np.asarray(weights))
