"""NumPy archives (.npz) to Queries, without unpickling, and with every header checked against its data.

An archive holds X, (n_documents, n_features), or data, indices, indptr and shape of a CSR matrix, and y and qid,
(n_documents,). group (sizes) may replace qid; feature_names and document_ids are optional.
"""

from __future__ import annotations

import math
import zipfile
import zlib
from pathlib import Path

import numpy as np
from scipy import sparse

from ranktune.solvers.core.arrays import Array, Features
from ranktune.solvers.core.errors import DataError
from ranktune.solvers.core.memory import check_room
from ranktune.solvers.data.queries import Queries
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
