"""Documents that arrive in blocks, written to disk as they come.

Whether features are dense, and how many there are, may turn out late. Documents are written as it seems so far, into a
segment, and into a new one from where that was wrong. The segments are joined at the end, block by block, and put in
order where the documents of a query were not adjacent. A single segment is the result as it is.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Self, Unpack

import numpy as np
from numpy.typing import DTypeLike

from ranktune.solvers.core.arrays import Array, Features, Floats, Ints, Json
from ranktune.solvers.data.disk.stored import read_queries
from ranktune.solvers.data.disk.writer import QueriesWriter, StoredColumns
from ranktune.solvers.data.grouping import Grouping
from ranktune.solvers.data.queries import Queries, concatenate
from ranktune.solvers.data.values import widened

JOINED = 1 << 22
"""Values of features that are held at a time, at most, while segments are joined."""


@dataclass
class Segments:
    """Documents on disk in folder, which becomes a folder of queries when they are finished.

    source is kept with the queries; with sync all files are written through to the disk. on_share is called with the
    share of the source that was read.
    """

    folder: Path
    source: Json
    on_share: Callable[[float], object] | None = None
    sync: bool = True
    _writers: list[QueriesWriter] = field(default_factory=list)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for writer in self._writers:
            writer.__exit__(kind, error, at)
            shutil.rmtree(writer.folder, ignore_errors=True)

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
            last = self._segment(width, features.dtype, is_sparse)
        last.n_features = max(last.n_features, width)
        last.add(widened(features, last.n_features, is_sparse), grades, document_ids, columns)

    def finish(self, grouping: Grouping, n_features: int, *, is_sparse: bool, **stored: Unpack[StoredColumns]) -> None:
        """Make the folder hold the queries of grouping, with so many features in one layout."""
        writer = self._writers[-1]
        whole = len(self._writers) == 1 and writer.is_sparse == is_sparse and grouping.rows is None
        if whole and (is_sparse or writer.n_features == n_features):
            writer.n_features = n_features
        else:
            writer = self._joined(grouping.rows, n_features, is_sparse)
        stored["rows"], stored["source"] = grouping.rows, self.source
        writer.finish(grouping.starts, grouping.ids, **stored)
        for path in list(writer.folder.iterdir()):
            path.rename(self.folder / path.name)

    def _segment(self, width: int, dtype: DTypeLike, is_sparse: bool) -> QueriesWriter:
        folder = self.folder / f"segment{len(self._writers)}"
        self._writers.append(QueriesWriter(folder, width, dtype, is_sparse=is_sparse, sync=self.sync))
        return self._writers[-1]

    def _joined(self, order: Ints | None, n_features: int, is_sparse: bool) -> QueriesWriter:
        """Return a writer of all documents, in that order."""
        for writer in self._writers:  # each document is a query
            writer.finish(*(np.arange(writer.n_documents + more) for more in (1, 0)), has_missing=True)
        parts = [read_queries(writer.folder, check=False) for writer in self._writers]
        if any(part.document_ids is not None for part in parts):
            ids = (np.full(part.n_documents, "") if part.document_ids is None else part.document_ids for part in parts)
            parts = [
                replace(part, document_ids=each, features_checked=True) for part, each in zip(parts, ids, strict=True)
            ]
        joined = self._segment(n_features, parts[0].features.dtype, is_sparse)
        ends = np.cumsum([part.n_documents for part in parts])
        step = max(JOINED // n_features, 1)
        for first in range(0, int(ends[-1]), step):
            numbers = np.arange(first, min(first + step, ends[-1])) if order is None else order[first : first + step]
            block = _documents(parts, ends, numbers, n_features, is_sparse)
            joined.add_queries(block, block.features)
        return joined


def _documents(parts: Sequence[Queries], ends: Ints, numbers: Ints, n_features: int, is_sparse: bool) -> Queries:
    """Return the documents of these numbers, counted through all parts, which end there."""
    of_part = np.searchsorted(ends, numbers, side="right")
    chosen, places = list[Queries](), list[Ints]()
    for k in np.unique(of_part):
        places.append(np.flatnonzero(of_part == k))
        some = parts[k].select(numbers[places[-1]] - (ends[k] - parts[k].n_documents))
        chosen.append(replace(some, features=widened(some.features, n_features, is_sparse), features_checked=True))
    return chosen[0] if len(chosen) == 1 else concatenate(chosen).select(np.argsort(np.concatenate(places)))
