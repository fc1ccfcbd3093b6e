"""Queries in a folder on disk, whose arrays are mapped rather than read.

A folder holds features.npy, or data.npy, indices.npy and indptr.npy of a CSR array; grades.npy and starts.npy; where
there are such, query_ids.npy, documents.npy (ids), rows.npy and those of `columns.table.COLUMNS`; and
queries.json: the version, type, byte order, shape and checksum of each array, ids that no array can hold, feature
names, whether values are missing, how columns became features, and the source. Reading runs no code.

The container is .npy because every kernel takes rows of a C-ordered array, or the three arrays of CSR, as they are: a
mapped file is such an array. Arrow and Parquet hold columns, and zarr and HDF5 chunks, so that each would be copied
into rows at every start, and would take that memory; .npy files are read by NumPy everywhere, too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from ranktune.solvers.core.arrays import Array, Features, Json, as_objects
from ranktune.solvers.core.errors import DataError
from ranktune.solvers.core.files.archives import check_content, mapped
from ranktune.solvers.data.columns.encoding import TableEncoding
from ranktune.solvers.data.columns.table import COLUMNS
from ranktune.solvers.data.disk.writer import CSR_PARTS, FORMAT, INDEX, VERSION, QueriesWriter
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.query_columns import FEATURE, QUERY, columns_of
from ranktune.solvers.data.values import csr_of

CHECKED_ON_OPENING = 256 << 20
"""Bytes of arrays whose checksums are compared whenever they are opened; of larger ones on demand."""


def write_queries(
    queries: Queries, folder: Path, *, documents: bool = False, source: Json | None = None, described: bool = False
) -> None:
    """Write queries into a folder, in place of those that it holds; source says where they are from.

    Ids that are neither text nor whole numbers become text. The ids of documents, and the caller's row of each, are
    written only if `documents` is true, since there are many. Features are not written if they are described: then
    they are in the folder already.
    """
    features = None if described else queries.features
    dtype = None if features is None else features.dtype
    with QueriesWriter(folder, queries.n_features, dtype, is_sparse=queries.is_sparse) as writer:
        writer.add_queries(queries, features, documents=documents)
        writer.finish(
            queries.starts,
            queries.query_ids,
            columns=columns_of(queries, QUERY, FEATURE),
            feature_names=queries.feature_names,
            has_missing=queries.has_missing,
            dated=queries.dated,
            encoding=queries.encoding,
            rows=queries.rows if documents else None,
            source=source,
        )


def read_features(folder: Path, n_features: int) -> Features:
    """Return the features in folder, mapped; nothing else needs to be there."""
    names = ("features",) if (folder / "features.npy").exists() else CSR_PARTS
    return _features({name: mapped(folder / f"{name}.npy") for name in names}, n_features, folder)


def is_stored(path: Path) -> bool:
    """Return whether path is a folder of queries."""
    return path.is_dir() and (path / INDEX).is_file()


def read_queries(folder: Path, *, check: bool | None = None) -> Queries:
    """Return the queries in folder with their arrays mapped, not read: pages load when touched, and are shared.

    Types, byte order, shapes and sizes are compared with what was written before anything is mapped, and whatever
    kernels rely on. The checksums of the content are compared if check is true, and if it is None where the arrays
    have at most CHECKED_ON_OPENING bytes. Raises DataError where something differs.
    """
    about = _read_index(folder)
    try:
        declared = _declared(about, folder)
        arrays = {name: mapped(folder / f"{name}.npy", array) for name, array in declared.items()}
        size = sum(array.nbytes for array in arrays.values())
        if check or (check is None and size <= CHECKED_ON_OPENING):
            for name, array in arrays.items():
                check_content(folder / f"{name}.npy", array, declared[name])
        return _queries(about, arrays, folder)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        if isinstance(error, DataError):
            raise
        raise _damaged(folder, error) from None


def source_of(folder: Path) -> Json:
    """Return what a folder says of the file that its queries come from; nothing where it has no source."""
    source = _read_index(folder).get("source")
    return source if isinstance(source, dict) else {}


def _read_index(folder: Path) -> Json:
    """Return the content of queries.json."""
    try:
        about = json.loads((folder / INDEX).read_text(encoding="utf-8"))
        if not isinstance(about, dict) or about.get("format", FORMAT) != FORMAT:
            raise ValueError(f"it is no index of {FORMAT}")
    except (OSError, ValueError, RecursionError) as error:
        raise _damaged(folder, error) from None
    version = about.get("version", 1)
    if version not in (1, VERSION):
        raise DataError(
            f"{folder}: has version {str(version)[:20]} of the format, and this RankTune reads up to {VERSION}. "
            "Upgrade RankTune, or convert the source again."
        )
    return about


def _damaged(folder: Path, error: Exception) -> DataError:
    reason = getattr(error, "strerror", None) or f"{type(error).__name__}: {error}"
    return DataError(f"{folder / INDEX}: cannot be read ({str(reason)[:80]}). Convert the source again.")


def _declared(about: Json, folder: Path) -> Json:
    """Return what is declared of each array of a folder; the first version did not say it."""
    if about.get("version", 1) == 1:
        return {path.stem: None for path in folder.glob("*.npy")}
    declared: Json = about["arrays"]
    if not all(map(str.isidentifier, declared)):
        raise ValueError(f"its arrays are called {str(list(declared))[:40]}")
    return declared


def _queries(about: Json, arrays: Mapping[str, Array], folder: Path) -> Queries:
    n_documents, n_features = about["shape"]
    features = _features(arrays, n_features, folder)
    if features.shape[0] != n_documents:
        raise ValueError(f"{n_documents} documents, but {features.shape[0]} rows")
    names, encoding = about["feature_names"], about.get("encoding")
    documents = folder / "documents.json"
    document_ids = arrays.get("documents")
    if document_ids is None and documents.exists():
        document_ids = as_objects(json.loads(documents.read_text(encoding="utf-8")))
    return Queries(
        features,
        arrays["grades"],
        arrays["starts"],
        arrays["query_ids"] if "query_ids" in arrays else as_objects(about["query_ids"]),
        document_ids,
        feature_names=None if names is None else tuple(str(name) for name in names),
        rows=arrays.get("rows"),
        has_missing=bool(about.get("has_missing", False)),
        encoding=None if encoding is None else TableEncoding.from_json(encoding),
        columns=_columns(about, arrays),
        dated=bool(about.get("dated", False)),
        features_checked=about.get("version", 1) > 1,
    )


def _columns(about: Json, arrays: Mapping[str, Array]) -> dict[str, Array]:
    """Return the columns, those of features from the index."""
    columns = {}
    for name, column in ((name, entry.column) for name, entry in COLUMNS.items()):
        if column.of != FEATURE and (column.file or name) in arrays:
            columns[name] = arrays[column.file or name]
        elif column.of == FEATURE and about.get(name) is not None:
            columns[name] = np.array(about[name], dtype=column.dtype)
    return columns


def _features(arrays: Mapping[str, Array], n_features: int, folder: Path) -> Features:
    """Return the features; of a CSR array, numbers that kernels would use as addresses are checked."""
    if "features" in arrays:
        features = arrays["features"]
        if features.ndim != 2 or features.shape[1] != n_features:
            raise ValueError(f"features of shape {features.shape} for {n_features} columns")
        return features
    data, indices, indptr = (arrays[part] for part in CSR_PARTS)
    whole = data.ndim == 1 and indices.shape == data.shape and indices.dtype.kind == indptr.dtype.kind == "i"
    if not whole or len(indptr) < 2 or indptr[0] != 0 or indptr[-1] != len(data) or (indptr[1:] < indptr[:-1]).any():
        raise DataError(f"{folder}: is damaged: its row ends are not those of a CSR array. Convert the source again.")
    if len(indices) and indices.view(f"u{indices.itemsize}").max() >= n_features:  # negative ones are large so
        raise DataError(f"{folder}: is damaged: it has columns beyond its {n_features}. Convert the source again.")
    return csr_of(data, indices, indptr, n_features)
