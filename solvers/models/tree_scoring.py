"""Scores of trees: by a walk down each tree, or split by split for a block of documents, whichever takes less time.

Both give the same bits. Trees are prepared for the second way, `ranktune.solvers.models.quantised_trees`, once enough
rows were scored that it pays.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ranktune.solvers.core.arrays import Array, Features, Floats, Indices, Ints, Mask, Matrix
from ranktune.solvers.core.compiled import compiled

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from ranktune.solvers.models.quantised_trees import QuantisedTrees
    from ranktune.solvers.models.trees import Trees

Sides: TypeAlias = "Mask | None"

WALK_ROWS = 256
"""Rows that pass one tree after another, so that both stay in cache."""
SPARSE_ROWS = 1024
"""Sparse rows that are made dense at a time, fewer where splits compare many features."""
SPARSE_VALUES = 2**20
"""Values that they have at most."""
MIN_ROWS = 32
"""Fewer rows take less time by walks: the other way pays for a whole step of rows."""
WALKS_TO_PREPARE, WALKS_A_SPLIT = 5000, 8
"""Preparing trees takes as long as that many walks of a row down a tree, and so many more for each split."""
SPLITS_A_FEATURE = 2
"""Comparing a feature with all its thresholds at once pays from so many splits of it on."""


class Preparation:
    """What scoring keeps of trees: the number of rows scored so far, and the prepared trees. A copy starts anew."""

    def __init__(self) -> None:
        self.n_scored = 0
        self.trees: QuantisedTrees | None = None

    def __reduce__(self) -> tuple[type[Preparation], tuple[()]]:
        return Preparation, ()


def scores_of(trees: Trees, X: Features) -> Floats:
    """Return the sum of the trees' values for each row of X, (n_rows,), added in the order of the trees."""
    if isinstance(X, np.ndarray):
        prepared = _prepared(trees, len(X), len(X))
        return walked(trees, X) if prepared is None else prepared.scores(X)
    used = trees.features
    n_rows = max(1, min(X.shape[0], SPARSE_ROWS, SPARSE_VALUES // max(len(used), 1)))
    prepared = _prepared(trees, X.shape[0], n_rows)
    place = np.full(X.shape[1], -1, dtype=np.int64)
    place[used] = np.arange(len(used))
    out = np.zeros(X.shape[0])
    for first, block in _dense_blocks(X, place, n_rows):
        part = walked(trees, block, place) if prepared is None else prepared.scores(block, place)
        out[first : first + len(block)] = part
    return out


def walked(trees: Trees, X: Matrix, place: Ints | None = None) -> Floats:
    """Return scores of dense rows by a walk down each tree; place, (n_features,), are the columns of X of features."""
    out = np.zeros(len(X))
    feature = trees.feature if place is None else place[trees.feature].astype(np.int32)
    add_walks(X, feature, trees.threshold, trees.children, trees.value, trees.starts, trees.missing_left, out)
    return out


def _prepared(trees: Trees, n_rows: int, together: int) -> QuantisedTrees | None:
    """Return the trees prepared for scoring n_rows rows, so many at a time, or None where walks take less time."""
    kept = trees.preparation
    kept.n_scored += n_rows
    if together < MIN_ROWS:
        return None
    if kept.trees is None and kept.n_scored * trees.n_trees >= WALKS_TO_PREPARE + WALKS_A_SPLIT * trees.n_splits:
        from ranktune.solvers.models.quantised_trees import can_be_quantised, quantised

        if trees.n_splits >= SPLITS_A_FEATURE * len(trees.features) and can_be_quantised(trees):
            kept.trees = quantised(trees)
    return kept.trees


def _dense_blocks(X: csr_array, place: Ints, n_rows: int) -> Iterator[tuple[int, Matrix]]:
    """Yield the first row of each block of n_rows rows of X, and its values in the columns that have a place."""
    block = np.zeros((n_rows, place.max(initial=0) + 1))
    for first in range(0, X.shape[0], n_rows):
        part = block[: X.shape[0] - first]
        part[:] = 0.0
        _fill(X.data, X.indices, X.indptr[first : first + len(part) + 1], place, part)
        yield first, part


@compiled
def _fill(data: Matrix, indices: Indices, indptr: Indices, place: Ints, block: Matrix) -> None:
    """Add to block, which is 0, the stored values that have a place in it."""
    for i in range(len(block)):
        for k in range(indptr[i], indptr[i + 1]):
            if place[indices[k]] >= 0:
                block[i, place[indices[k]]] += data[k]


@compiled
def add_walks(
    X: Matrix,
    column: Array,
    threshold: Floats,
    children: Array,
    value: Floats,
    starts: Ints,
    missing_left: Sides,
    out: Floats,
) -> None:
    """Add to out, (n_rows,), the values of the leaves that the rows of X reach, tree by tree in their order."""
    for a in range(0, X.shape[0], WALK_ROWS):
        b = min(a + WALK_ROWS, X.shape[0])
        for t in range(len(starts) - 1):
            first = starts[t]
            if first == starts[t + 1]:
                for i in range(a, b):
                    out[i] += value[first + t]
                continue
            for i in range(a, b):
                node = first
                while node >= 0:
                    x = X[i, column[node]]
                    side = np.int64(not x <= threshold[node])
                    if missing_left is not None:  # numba compiles no test for None
                        side = np.int64(not missing_left[node]) if np.isnan(x) else side
                    node = children[node, side]
                out[i] += value[~node]
