"""Trees prepared for scoring many documents: the same bits as a walk down each tree, many times as fast.

Thresholds become positions among all thresholds of a feature, those of all trees together, and trees become programs of
`ranktune.solvers.models.tree_kernels`. A feature has a column for each side that its missing values go to, and for each
255 thresholds. Sources: Lucchese et al., "QuickScorer" (SIGIR 2015), and Ye et al., "RapidScorer" (KDD 2018), for
scoring split by split instead of document by document, and for codes of one byte.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ranktune.solvers.core.arrays import Array, Floats, Ints, Matrix
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
