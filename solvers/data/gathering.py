"""Selected and joined queries whose features are gathered into a file block by block, and mapped.

Queries.select and concatenate make the same in memory, where the features are then held twice.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ranktune.solvers.core.arrays import Features, Ints, stored_arrays, stored_values
from ranktune.solvers.core.files.archives import write_array
from ranktune.solvers.data.blocks import query_ranges
from ranktune.solvers.data.disk.stored import read_features
from ranktune.solvers.data.origins import note_selection
from ranktune.solvers.data.queries import Queries, concatenate
from ranktune.solvers.data.query_columns import FEATURE, joined_columns

BLOCK_BYTES = 16 << 20
"""Of features that are held in memory at a time."""
MIN_BYTES = 32 << 20
"""Smaller features are gathered in memory, which is faster."""


@dataclass(frozen=True)
class Gathering:
    """Where the features of selected queries go: into new folders below folder, or with None into memory."""

    folder: Path | None = None

    def select(self, queries: Queries, numbers: Ints) -> Queries:
        """Return the queries of these numbers, as `Queries.select` does."""
        return self._gathered([(queries, numbers)])

    def concatenate(self, parts: Sequence[Queries]) -> Queries:
        """Return the queries of all parts, as `concatenate` does."""
        return self._gathered([(part, np.arange(part.n_queries)) for part in parts])

    def _gathered(self, parts: Sequence[tuple[Queries, Ints]]) -> Queries:
        like = {(part.is_sparse, part.n_features) for part, _ in parts}
        size = sum(n_bytes(part, numbers) for part, numbers in parts)
        if self.folder is None or len(like) > 1 or size < MIN_BYTES or _is_view(parts):
            selected = [
                part if len(numbers) == part.n_queries and is_run(numbers) else part.select(numbers)
                for part, numbers in parts
            ]
            return selected[0] if len(selected) == 1 else concatenate(selected)
        self.folder.mkdir(parents=True, exist_ok=True)
        return gathered(parts, Path(tempfile.mkdtemp(dir=self.folder)))


def gathered(parts: Sequence[tuple[Queries, Ints]], folder: Path) -> Queries:
    """Return the queries of these numbers of each part, one part after another, their features mapped.

    The features, which are all dense or all sparse, are written into folder as `stored` writes them. Raises OSError
    where that fails.
    """
    write_gathered(parts, folder)
    first, light = parts[0][0], [part.without_features().select(numbers) for part, numbers in parts]
    whole = light[0] if len(light) == 1 else concatenate(light)
    features = read_features(folder, first.n_features)
    columns = {**whole.columns, **joined_columns([(part, slice(None)) for part, _ in parts], FEATURE)}
    result = replace(
        whole, features=features, feature_names=first.feature_names, columns=columns, features_checked=True
    )
    if len(parts) == 1:
        note_selection(result, *parts[0])
    return result


def write_gathered(parts: Sequence[tuple[Queries, Ints]], folder: Path) -> None:
    """Write the features of these queries of each part into folder, one part after another."""
    first = parts[0][0]
    dtype = np.result_type(*(stored_values(part.features).dtype for part, _ in parts))
    counts = [_lengths_of_rows(part, numbers) for part, numbers in parts] if first.is_sparse else []
    if not first.is_sparse:
        write_array(folder / "features.npy", dtype, (first.n_features,), _blocks(parts))
        return
    ends = np.concatenate([[0], *counts]).cumsum(dtype=np.int64)
    short = max(int(ends[-1]), first.n_features) <= np.iinfo(np.int32).max
    index = np.dtype(np.int32 if short else np.int64)
    write_array(folder / "indptr.npy", index, (), [ends])
    write_array(folder / "data.npy", dtype, (), (stored_arrays(block)[0] for block in _blocks(parts)))
    write_array(folder / "indices.npy", index, (), (stored_arrays(block)[1] for block in _blocks(parts)))


def n_bytes(queries: Queries, numbers: Ints) -> int:
    """Return about how many bytes the features of these queries take."""
    whole = sum(array.nbytes for array in stored_arrays(queries.features))
    return int(whole * (queries.lengths[numbers].sum() / queries.n_documents))


def is_run(numbers: Ints) -> bool:
    """Return whether numbers are those of consecutive queries, in their order."""
    return bool((np.diff(numbers) == 1).all())


def _blocks(parts: Sequence[tuple[Queries, Ints]]) -> Iterator[Features]:
    """Yield the features of these queries of each part, a block of whole queries at a time."""
    for part, numbers in parts:
        size = sum(array.nbytes for array in stored_arrays(part.features))
        starts = np.concatenate([[0], np.cumsum(part.lengths[numbers])])
        for a, b in query_ranges(starts, max(BLOCK_BYTES * part.n_documents // max(size, 1), 1)):
            yield part.features[part.documents_of(numbers[a:b])]


def _lengths_of_rows(part: Queries, numbers: Ints) -> Ints:
    """Return how many values the rows of these queries of a CSR array have."""
    *_, ends = stored_arrays(part.features)
    lengths: Ints = np.diff(ends)[part.documents_of(numbers)]
    return lengths


def _is_view(parts: Sequence[tuple[Queries, Ints]]) -> bool:
    """Return whether the selection of a single part needs no copy of its features."""
    (part, numbers), *others = parts
    return not others and not part.is_sparse and is_run(numbers)
