"""Documents that arrive in blocks, written to disk as they come.

Whether features are dense, and how many there are, may turn out late. Documents are written as it seems so far, into a
segment, and into a new one from where that was wrong. The segments are joined at the end, block by block, and put in
order where the documents of a query were not adjacent. A single segment is the result as it is.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self, Unpack, cast

import numpy as np
from numpy.typing import DTypeLike
from scipy import sparse

from ranktune.solvers.core.arrays import Array, Features, Floats, Ints
from ranktune.solvers.data.blocks import rows_of
from ranktune.solvers.data.disk.stored import read_queries
from ranktune.solvers.data.disk.writer import Known, QueriesWriter
from ranktune.solvers.data.grouping import Grouping
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.values import joined_columns, widened

JOINED = 1 << 22
"""Values of features that are held at a time, at most, while segments are joined."""


class Segments:
    """Documents on disk in folder, which becomes a folder of queries when they are finished."""

    def __init__(self, folder: Path, dtype: DTypeLike, *, sync: bool = True) -> None:
        self.folder, self.dtype, self.sync = folder, np.dtype(dtype), sync
        self._writers: list[QueriesWriter] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for writer in self._writers:
            writer.__exit__(kind, error, at)

    def add(
        self,
        features: Features,
        grades: Floats,
        document_ids: Array | None = None,
        columns: Mapping[str, Array] | None = None,
    ) -> None:
        """Append documents; later ones may have more features, or the other layout."""
        is_sparse, width = not isinstance(features, np.ndarray), features.shape[1]
        last = self._writers[-1] if self._writers else None
        if last is None or last.is_sparse != is_sparse or (width > last.n_features and not is_sparse):
            last = self._segment(width, is_sparse)
        last.n_features = max(last.n_features, width)
        last.add(widened(features, last.n_features, is_sparse), grades, document_ids, columns)

    def finish(self, grouping: Grouping, n_features: int, *, is_sparse: bool, **known: Unpack[Known]) -> None:
        """Make the folder hold the queries of grouping, with so many features in one layout."""
        writer = self._writers[-1]
        whole = len(self._writers) == 1 and writer.is_sparse == is_sparse and grouping.rows is None
        if whole and (is_sparse or writer.n_features == n_features):
            writer.n_features = n_features
        else:
            writer = self._joined(grouping.rows, n_features, is_sparse)
        known["rows"] = grouping.rows
        writer.finish(grouping.starts, grouping.ids, **known)
        if writer.folder != self.folder:
            self._take_from(writer.folder)

    def _segment(self, width: int, is_sparse: bool) -> QueriesWriter:
        folder = self.folder / f"segment{len(self._writers)}" if self._writers else self.folder
        folder.mkdir(exist_ok=True)
        self._writers.append(QueriesWriter(folder, width, self.dtype, is_sparse=is_sparse, sync=self.sync))
        return self._writers[-1]

    def _joined(self, order: Ints | None, n_features: int, is_sparse: bool) -> QueriesWriter:
        """Return a writer of all documents, in that order."""
        for writer in self._writers:
            writer.finish(np.array([0, writer.n_documents]), np.zeros(1, dtype=np.int64), has_missing=True)
        parts = [read_queries(writer.folder, check=False) for writer in self._writers]
        joined = self._segment(n_features, is_sparse)
        n_rows = sum(part.n_documents for part in parts)
        step = max(JOINED // n_features, 1)
        for first in range(0, n_rows, step):
            numbers = np.arange(first, min(first + step, n_rows)) if order is None else order[first : first + step]
            joined.add(*_documents(parts, numbers, n_features, is_sparse))
        return joined

    def _take_from(self, folder: Path) -> None:
        """Replace the files of the folder by those of a folder in it."""
        for path in self.folder.iterdir():
            if path.is_file():
                path.unlink()
            elif path != folder:
                shutil.rmtree(path)
        for path in list(folder.iterdir()):
            os.rename(path, self.folder / path.name)
        folder.rmdir()


def _documents(
    parts: Sequence[Queries], numbers: Ints, n_features: int, is_sparse: bool
) -> tuple[Features, Floats, Array | None, Mapping[str, Array]]:
    """Return what `Segments.add` takes of the documents of these numbers, counted through all parts."""
    ends = np.cumsum([part.n_documents for part in parts])
    of_part = np.searchsorted(ends, numbers, side="right")
    features, taken = [], []
    for k in np.unique(of_part):
        places = np.flatnonzero(of_part == k)
        rows = numbers[places] - (ends[k] - parts[k].n_documents)
        features.append(widened(_rows(parts[k].features, rows), n_features, is_sparse))
        taken.append((parts[k], rows, places))
    back = np.argsort(np.concatenate([places for _, _, places in taken]), kind="stable")
    joined = features[0]
    if len(features) > 1:
        stack = sparse.vstack(features, format="csr") if is_sparse else np.concatenate(features)
        joined = stack[back]
    elif len(numbers) > 1 and (np.diff(back) != 1).any():
        joined = joined[back]
    grades = np.concatenate([part.grades[rows] for part, rows, _ in taken])[back]
    ids = None
    if any(part.document_ids is not None for part in parts):
        named = ((part.document_ids, rows) for part, rows, _ in taken)
        ids = np.concatenate([np.full(len(rows), "") if known is None else known[rows] for known, rows in named])[back]
    columns = cast(Mapping[str, Array], joined_columns([(part, rows) for part, rows, _ in taken]))
    return joined, grades, ids, {name: values[back] for name, values in columns.items()}


def _rows(features: Features, rows: Ints) -> Features:
    """Return rows of features, as views where they are consecutive."""
    if (np.diff(rows) == 1).all():
        return rows_of(features, int(rows[0]), int(rows[-1]) + 1)
    chosen: Features = features[rows]
    return chosen
