"""Scores of trees: by a walk down each tree, or split by split for a block of documents, whichever takes less time.

Both give the same bits; the second is many times as fast, once enough rows are scored that preparing the trees pays.
Thresholds become positions among all thresholds of a feature, those of all trees together, and trees become programs of
`ranktune.solvers.models.tree_kernels`. A feature has a column for each side that its missing values go to, and for each
255 thresholds. Sources: Lucchese et al., "QuickScorer" (SIGIR 2015), and Ye et al., "RapidScorer" (KDD 2018), for
scoring split by split instead of document by document, and for codes of one byte.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ranktune.solvers.core.arrays import Array, Features, Floats, Indices, Ints, Mask, Matrix
from ranktune.solvers.core.compiled import compiled
from ranktune.solvers.models.tree_kernels import (
    GROUP,
    MAX_LEAVES,
    MIN_LEVELS,
    Program,
    ThresholdColumns,
    program_scores,
    schedule,
)

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from ranktune.solvers.models.trees import Trees


MAX_THRESHOLDS = 255
"""Thresholds of a column: a code, which counts those that a value exceeds, is a byte."""


@dataclass(frozen=True, eq=False)
class QuantisedTrees:
    """Trees of at most MAX_LEAVES leaves each, as a program and the columns that it compares."""

    columns: ThresholdColumns
    program: Program

    def scores(self, X: Matrix, place: Ints | None = None) -> Floats:
        """Return the sum of the trees' values for each row; place, (n_features,), are the columns of X of features."""
        out = np.empty(len(X))
        columns = self._single if X.dtype == np.float32 else self.columns
        if place is not None:
            columns = columns._replace(feature=place[columns.feature])
        program_scores(X, columns, self.program, out)
        return out

    @cached_property
    def _single(self) -> ThresholdColumns:
        """The columns for features in single precision."""
        return self.columns._replace(thresholds=_rounded_down(self.columns.thresholds))


def quantised(trees: Trees) -> QuantisedTrees:
    """Return trees prepared for scoring. Cost: that of sorting the thresholds."""
    columns, column, cut = _columns(trees)
    S, starts = trees.n_splits, trees.starts
    counts = np.diff(starts)
    n_leaves = int(counts.max()) + 1
    order, rows = np.empty(S, dtype=np.int64), np.empty((S, 3), dtype=np.uint16)
    roots = np.empty(trees.n_trees, dtype=np.uint16)
    n_rows = schedule(trees.children, starts, n_leaves, order, rows, roots)
    added = -trees.n_trees % GROUP  # trees of one leaf that add 0
    leaves = starts + np.arange(len(starts))
    program = Program(
        column=column[order],
        cut=cut[order],
        rows=rows,
        starts=np.append(starts, np.full(added, S)).astype(np.uint64),
        roots=np.append(roots, np.zeros(added, dtype=np.uint16)),
        leaves=np.append(leaves[:-1], np.full(added, leaves[-1])).astype(np.uint64),
        value=np.append(trees.value, 0.0),
        n_leaves=n_leaves,
        n_rows=n_rows,
    )
    return QuantisedTrees(columns, program)


def can_be_quantised(trees: Trees) -> bool:
    """Return whether no tree has more than MAX_LEAVES leaves."""
    return bool(np.diff(trees.starts).max() < MAX_LEAVES)


def _columns(trees: Trees) -> tuple[ThresholdColumns, Array, Array]:
    """Return the columns of trees, and for each split its column and the highest code that goes left."""
    S = trees.n_splits
    side = np.zeros(S, dtype=bool) if trees.missing_left is None else trees.missing_left
    by_threshold = np.lexsort((trees.threshold, side, trees.feature))
    feature, side, threshold = trees.feature[by_threshold], side[by_threshold], trees.threshold[by_threshold]
    new_group = np.append(True, (feature[1:] != feature[:-1]) | (side[1:] != side[:-1]))[:S]
    new = new_group | np.append(True, threshold[1:] != threshold[:-1])[:S]
    number = np.cumsum(new) - 1  # of the threshold among all, then among those of its group
    number -= np.maximum.accumulate(np.where(new_group, number, 0))
    new_column = new & (number % MAX_THRESHOLDS == 0)
    column, cut = np.empty(S, dtype=np.uint32), np.empty(S, dtype=np.uint8)
    column[by_threshold], cut[by_threshold] = np.cumsum(new_column) - 1, number % MAX_THRESHOLDS
    heads = np.flatnonzero(new_column)
    counts = np.add.reduceat(new, heads) if S else np.zeros(0, dtype=np.int64)
    levels = np.maximum(MIN_LEVELS, np.ceil(np.log2(counts + 1.0))).astype(np.int64)
    first = np.append(0, np.cumsum(2**levels))
    thresholds = np.full(first[-1], np.inf)
    thresholds[np.repeat(first[:-1], counts) + (number % MAX_THRESHOLDS)[new]] = threshold[new]
    missing = np.where(side[heads], -np.inf, np.inf)
    return ThresholdColumns(feature[heads].astype(np.int64), missing, levels, first[:-1], thresholds), column, cut


def _rounded_down(thresholds: Matrix) -> Matrix:
    """Return the highest number of single precision at most each threshold: the same numbers of that precision pass."""
    with np.errstate(over="ignore"):
        single = thresholds.astype(np.float32)
        return np.where(single > thresholds, np.nextafter(single, np.float32(-np.inf)), single)


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
    state = trees.preparation
    state.n_scored += n_rows
    if together < MIN_ROWS:
        return None
    if state.trees is None and state.n_scored * trees.n_trees >= WALKS_TO_PREPARE + WALKS_A_SPLIT * trees.n_splits:
        if trees.n_splits >= SPLITS_A_FEATURE * len(trees.features) and can_be_quantised(trees):
            state.trees = quantised(trees)
    return state.trees


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
