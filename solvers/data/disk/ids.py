"""Ids of queries and documents on disk: arrays of whole numbers or of short text, which can be mapped, else JSON."""

from __future__ import annotations

import json
from itertools import chain
from pathlib import Path
from typing import TextIO

import numpy as np

from ranktune.solvers.core.arrays import Array, Json
from ranktune.solvers.core.files.arrays import write_array
from ranktune.solvers.core.files.atomic import atomic_write

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
