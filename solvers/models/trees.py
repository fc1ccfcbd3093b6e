"""Regression trees as flat arrays: what every tree learner is turned into, and all that is kept of it.

T trees, S splits of all trees together, S + T leaves. Tree t has the splits starts[t] to starts[t + 1] and the leaves
starts[t] + t to starts[t + 1] + t + 1, one more; its first split is its root. A document goes to the left child where
its feature is at most the threshold, else to the right. A child k >= 0 is the split k, and a child k < 0 the leaf ~k.
Splits stand before their children, so that going down ends; every split but the roots and every leaf is a child once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ranktune.solvers.core.arrays import Features, Floats, Ints
from ranktune.solvers.core.errors import DataError
from ranktune.solvers.models import tree_kernels as kernels


@dataclass(frozen=True, eq=False)
class Trees:
    """Trees whose answers are added up.

    feature    (S,) int32, the column that a split looks at
    threshold  (S,) float64, the highest value that goes left
    children   (S, 2) int32, left and right
    value      (S + T,) float64, what each leaf adds to the score
    starts     (T + 1,) int64

    Raises DataError where the arrays are not trees as described above.
    """

    feature: NDArray[np.int32]
    threshold: Floats
    children: NDArray[np.int32]
    value: Floats
    starts: Ints

    def __post_init__(self) -> None:
        """Check everything that going down the trees relies on."""
        wrong = _what_is_wrong(self)
        if wrong:
            raise DataError(f"these are not trees: {wrong}.")

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return len(self.starts) - 1

    @property
    def n_splits(self) -> int:
        """Number of splits of all trees together."""
        return len(self.feature)

    @cached_property
    def features(self) -> Ints:
        """The columns that any split looks at, rising."""
        return np.unique(self.feature).astype(np.int64)

    def scores(self, X: Features) -> Floats:
        """Return the sum of the answers to each row of X, (n_rows,), added in the order of the trees.

        X is dense float32 or float64, or CSR; it must have all the columns that splits look at. Memory beyond X: a
        block of rows. Cost: one path down each tree a row.
        """
        out = np.zeros(X.shape[0])
        shape = (self.threshold, self.children, self.value, self.starts)
        if not sparse.issparse(X):
            kernels.add_dense(X, self.feature, *shape, out)
            return out
        used = self.features
        place = np.full(X.shape[1], -1, dtype=np.int32)
        place[used] = np.arange(len(used), dtype=np.int32)
        kernels.add_csr(X.data, X.indices, X.indptr, place, len(used), place[self.feature], *shape, out)
        return out

    def scaled(self, factor: float) -> Trees:
        """Return trees whose answers are factor times as large."""
        return replace(self, value=self.value * factor)


def joined(parts: Sequence[Trees]) -> Trees:
    """Return the trees of all parts, one part after another."""
    if len(parts) == 1:
        return parts[0]
    splits = np.cumsum([0, *(part.n_splits for part in parts)])
    trees = np.cumsum([0, *(part.n_trees for part in parts)])
    children = [
        np.where(part.children >= 0, part.children + s, part.children - (s + t))
        for part, s, t in zip(parts, splits, trees, strict=False)
    ]
    starts = [np.zeros(1, dtype=np.int64), *(part.starts[1:] + s for part, s in zip(parts, splits, strict=False))]
    return Trees(
        np.concatenate([np.zeros(0, dtype=np.int32), *(part.feature for part in parts)]),
        np.concatenate([np.zeros(0), *(part.threshold for part in parts)]),
        np.concatenate([np.zeros((0, 2), dtype=np.int32), *children]).astype(np.int32),
        np.concatenate([np.zeros(0), *(part.value for part in parts)]),
        np.concatenate(starts),
    )


def one_tree(feature: Any, threshold: Any, left: Any, right: Any, value: Any) -> Trees:
    """Return one tree from plain sequences: S splits with their children, and S + 1 leaves."""
    children = np.column_stack([np.asarray(left, dtype=np.int32), np.asarray(right, dtype=np.int32)])
    return Trees(
        np.asarray(feature, dtype=np.int32),
        np.asarray(threshold, dtype=np.float64),
        np.ascontiguousarray(children.reshape(-1, 2)),
        np.asarray(value, dtype=np.float64),
        np.array([0, len(children)], dtype=np.int64),
    )


def stumps(features: Any, thresholds: Any, weights: Any) -> Trees:
    """Return a tree of one split for each weak ranker: 0 where x <= threshold, its weight where x > threshold."""
    count = len(features)
    leaves = np.arange(2 * count, dtype=np.int32).reshape(count, 2)
    value = np.zeros((count, 2))
    value[:, 1] = weights
    return Trees(
        np.asarray(features, dtype=np.int32),
        np.asarray(thresholds, dtype=np.float64),
        ~leaves,
        value.ravel(),
        np.arange(count + 1, dtype=np.int64),
    )


def _what_is_wrong(trees: Trees) -> str:
    """Return what keeps the arrays from being trees, or nothing."""
    S, starts = len(trees.feature), trees.starts
    if starts.ndim != 1 or len(starts) < 2 or starts[0] != 0 or starts[-1] != S or (np.diff(starts) < 0).any():
        return f"starts must rise from 0 to the number of splits, {S}, with at least one tree"
    T = len(starts) - 1
    if trees.threshold.shape != (S,) or trees.children.shape != (S, 2) or trees.value.shape != (S + T,):
        shapes = f"{trees.threshold.shape}, {trees.children.shape} and {trees.value.shape}"
        return f"{S} splits in {T} trees have thresholds, children and leaves of shapes {shapes}"
    if not (np.isfinite(trees.threshold).all() and np.isfinite(trees.value).all()):
        return "a threshold or a leaf is not finite"
    if S and trees.feature.min() < 0:
        return "a split looks at a column below 0"
    tree = np.repeat(np.arange(T), np.diff(starts))
    last, own = starts[tree + 1][:, None], np.arange(S)[:, None]
    leaf = -1 - trees.children.astype(np.int64)
    first_leaf, last_leaf = (starts[tree] + tree)[:, None], last + tree[:, None]
    inside = np.where(
        leaf < 0, (trees.children > own) & (trees.children < last), (leaf >= first_leaf) & (leaf <= last_leaf)
    )
    if not inside.all():
        return f"split {int(np.flatnonzero(~inside.all(axis=1))[0])} has a child outside its tree or before itself"
    # As many children as splits that are no roots and leaves of trees with splits: none twice, none left out.
    if len(np.unique(trees.children)) != 2 * S:
        return "a split or a leaf is the child of two splits"
    return ""
