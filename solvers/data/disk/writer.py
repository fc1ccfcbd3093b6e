"""The writer of a folder of queries (see `stored`): documents come in blocks, in constant memory.

Ids of queries and documents are arrays of whole numbers or of short text, which can be mapped, else JSON.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import Self, TextIO, TypedDict, Unpack

import numpy as np
from numpy.typing import DTypeLike

from ranktune.solvers.core.arrays import Array, Features, Floats, Ints, Json
from ranktune.solvers.core.files.archives import GrowingArray, declared, mapped, write_array
from ranktune.solvers.core.files.atomic import atomic_write
from ranktune.solvers.data.columns.encoding import TableEncoding
from ranktune.solvers.data.columns.table import column_of
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.query_columns import DOCUMENT, FEATURE, columns_of

FORMAT, VERSION, INDEX = "ranktune queries", 2, "queries.json"
CSR_PARTS = ("data", "indices", "indptr")


class StoredColumns(TypedDict, total=False):
    """What is known of queries when all are written, see `Queries`; source says where they come from."""

    feature_names: tuple[str, ...] | None
    has_missing: bool
    columns: Mapping[str, Array]
    dated: bool
    encoding: TableEncoding | None
    rows: Ints | None
    source: Json | None


class QueriesWriter:
    """Writes queries into a folder, whose index comes last: without it a folder holds none.

    Use it as a context manager, which closes the files of a writer that fails.
    """

    def __init__(
        self, folder: Path, n_features: int, dtype: DTypeLike | None, *, is_sparse: bool, sync: bool = True
    ) -> None:
        """Make the files of features of that type, and the folder; without one they are in the folder already.

        With sync all files are written through to the disk.
        """
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.n_features, self.is_sparse, self.sync = folder, n_features, is_sparse, sync
        self.n_documents = self.n_values = 0
        self._arrays: dict[str, GrowingArray] = {}
        self._declared: Json = {}
        self._documents = DocumentIds(folder)
        if dtype is None:
            parts = CSR_PARTS if is_sparse else ("features",)
            arrays = {part: mapped(folder / f"{part}.npy") for part in parts}
            self._declared = {part: declared(array.dtype, array.shape) for part, array in arrays.items()}
        elif is_sparse:
            self._array("data", dtype)
            self._array("indices", np.int32)
            self._array("indptr", np.int64).append(np.zeros(1, dtype=np.int64))
        else:
            self._array("features", dtype, (n_features,))
        self._array("grades", np.float64)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for array in self._arrays.values():
            array.abandon()
        self._documents.abandon()

    def add(
        self,
        features: Features | None,
        grades: Floats,
        document_ids: Array | None = None,
        columns: Mapping[str, Array] | None = None,
    ) -> None:
        """Append documents, which need not be whole queries; columns are those of documents, of all, in each block."""
        if features is not None:
            self._add_features(features)
        self._arrays["grades"].append(grades)
        for name, values in (columns or {}).items():
            self._array(name, column_of(name).dtype, values.shape[1:]).append(values)
        self._documents.add(len(grades), document_ids)
        self.n_documents += len(grades)

    def add_queries(self, queries: Queries, features: Features | None, *, documents: bool = True) -> None:
        """Append all documents of queries, with their ids if `documents` is true."""
        columns = columns_of(queries, DOCUMENT)
        self.add(features, queries.grades, queries.document_ids if documents else None, columns)

    def finish(self, starts: Ints, query_ids: Array, **stored: Unpack[StoredColumns]) -> None:
        """Write what is known at the end."""
        ids, encoding = as_array(query_ids), stored.get("encoding")
        arrays = {"starts": starts, "query_ids": ids, "rows": stored.get("rows")}
        of_features = {}
        for name, column in stored.get("columns", {}).items():
            if column_of(name).of == FEATURE:
                of_features[name] = column.tolist()
            else:
                arrays[column_of(name).file or name] = column
        for name, values in arrays.items():
            if values is not None:
                self._array(name, values.dtype).append(values)
        whole = self._declared | {name: array.close(sync=self.sync) for name, array in self._arrays.items()}
        documents = self._documents.finish()
        if documents is not None:
            whole["documents"] = documents
        about = {
            "format": FORMAT,
            "version": VERSION,
            "shape": [self.n_documents, self.n_features],
            "queries": len(starts) - 1,
            "arrays": whole,
            "query_ids": as_json(query_ids) if ids is None else None,
            "feature_names": stored.get("feature_names"),
            "has_missing": stored.get("has_missing", False),
            "dated": stored.get("dated", False),
            "encoding": None if encoding is None else encoding.as_json(),
            "source": stored.get("source"),
            **of_features,
        }
        atomic_write(self.folder / INDEX, json.dumps(about))

    def _add_features(self, features: Features) -> None:
        if isinstance(features, np.ndarray):
            assert not self.is_sparse
            self._arrays["features"].append(features)
            return
        assert self.is_sparse
        self._arrays["data"].append(features.data)
        self._arrays["indices"].append(features.indices)
        self._arrays["indptr"].append(features.indptr[1:].astype(np.int64) + self.n_values)
        self.n_values += len(features.data)

    def _array(self, name: str, dtype: DTypeLike, row_shape: tuple[int, ...] = ()) -> GrowingArray:
        if name not in self._arrays:
            self._arrays[name] = GrowingArray(self.folder / f"{name}.npy", dtype, row_shape)
        return self._arrays[name]


WIDEST = 64
"""Characters of text in an array: one long id would widen every row."""
_FITS_INT64 = range(-(2**63), 2**63)


def as_array(ids: Array) -> Array | None:
    """Return ids as an array that can be mapped, None where there is none: for long text, and values of other types."""
    if ids.dtype.kind == "i":
        return ids.astype(np.int64, copy=False)
    if ids.dtype.kind == "U":
        return ids if ids.dtype.itemsize <= 4 * WIDEST else None
    dtype = _dtype_of(ids.tolist()) if ids.dtype == object else None
    return None if dtype is None else ids.astype(dtype)


def as_json(ids: Array) -> list[int | str]:
    """Return ids as JSON values; those that are neither text nor whole numbers become text."""
    return [value if type(value) is int or isinstance(value, str) else str(value) for value in ids.tolist()]


def _dtype_of(ids: list[object]) -> np.dtype[np.generic] | None:
    """Return the type of an array of these ids, None where there is none."""
    if all(type(value) is int and value in _FITS_INT64 for value in ids):
        return np.dtype(np.int64)
    if all(isinstance(value, str) and len(value) <= WIDEST and not value.endswith("\0") for value in ids):
        return np.dtype(f"<U{max((len(str(value)) for value in ids), default=1) or 1}").newbyteorder("=")
    return None


class DocumentIds:
    """The ids of documents, which come in blocks: kept as lines of JSON until their type and width are known."""

    def __init__(self, folder: Path) -> None:
        self._path, self._draft = folder / "documents", folder / "documents.draft"
        self._file: TextIO | None = None
        self._dtypes: list[np.dtype[np.generic] | None] = []
        self._without = 0  # documents before the first block that has ids

    def add(self, n_documents: int, ids: Array | None) -> None:
        """Add the ids of a block, None where its documents have none: they get empty ones if others have ids."""
        if ids is None and self._file is None:
            self._without += n_documents
            return
        if self._file is None:
            self._file = open(self._draft, "w", encoding="utf-8")
            self._add([""] * self._without)
        self._add([""] * n_documents if ids is None else as_json(ids))

    def _add(self, ids: list[int | str]) -> None:
        assert self._file is not None
        if ids:
            self._file.write(f"{json.dumps(ids)}\n")
            self._dtypes.append(_dtype_of(list(ids)))

    def finish(self) -> Json | None:
        """Write documents.npy and return what it is; or documents.json, for ids that no array holds. None: no array."""
        if self._file is None:
            return None
        self._file.close()
        dtype, declared = self._dtype(), None
        with open(self._draft, encoding="utf-8") as lines:
            blocks = map(json.loads, lines)
            if dtype is None:
                atomic_write(self._path.with_suffix(".json"), json.dumps(list(chain.from_iterable(blocks))))
            else:
                arrays = (np.array(block, dtype=dtype) for block in blocks)
                declared = write_array(self._path.with_suffix(".npy"), dtype, (), arrays, sync=True)
        self._draft.unlink()
        return declared

    def abandon(self) -> None:
        """Close the file, which will be removed."""
        if self._file is not None:
            self._file.close()

    def _dtype(self) -> np.dtype[np.generic] | None:
        kinds = {None if dtype is None else dtype.kind for dtype in self._dtypes}
        if len(kinds) != 1 or None in kinds:
            return None
        return max((dtype for dtype in self._dtypes if dtype is not None), key=lambda dtype: dtype.itemsize)
