"""Regression trees as flat arrays, the common form of all tree learners.

T trees have S splits and S + T leaves. Tree t has the splits starts[t] to starts[t + 1] and the leaves starts[t] + t
to starts[t + 1] + t + 1, one more; its first split is its root. A document goes to the left child where its feature is
at most the threshold, else to the right; where it is missing (NaN), as the split says. A child k >= 0 is the split k,
and a child k < 0 is the leaf ~k. A split precedes its children, so that every path ends; every leaf, and every split
that is not a root, is a child exactly once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ranktune.solvers.core.arrays import Features, Floats, Ints, Mask
from ranktune.solvers.core.errors import DataError
from ranktune.solvers.models.tree_scoring import Preparation, scores_of

Int32s: TypeAlias = NDArray[np.int32]
Sides: TypeAlias = "Mask | None"

ANY_VALUE = 1e300
"""A threshold that every value is below: the split tells missing values from all others."""


@dataclass(frozen=True, eq=False)
class Trees:
    """An ensemble of trees whose values are added up.

    feature    (S,) int32, the column that a split compares
    threshold  (S,) float64, the highest value that goes left
    children   (S, 2) int32, left and right
    value      (S + T,) float64, what each leaf adds to the score
    starts     (T + 1,) int64
    missing_left  (S,) bool, whether a missing value goes left; None for trees of data without missing values

    Raises DataError where the arrays are not trees as the module describes them.
    """

    feature: Int32s
    threshold: Floats
    children: Int32s
    value: Floats
    starts: Ints
    missing_left: Sides = None
    preparation: Preparation = field(default_factory=Preparation, init=False, repr=False)

    def __post_init__(self) -> None:
        """Check everything that scoring relies on."""
        if defect := _defect(self):
            raise DataError(f"these are not trees: {defect}.")

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
        """The columns that splits compare, ascending."""
        return np.unique(self.feature).astype(np.int64)

    @property
    def zero_left(self) -> Mask:
        """Whether each split sends 0 left, (S,): what a missing value is to trees that have not learned from any."""
        return self.threshold >= 0.0

    @property
    def knows_missing(self) -> bool:
        """Whether some split sends a missing value elsewhere than 0."""
        return self.missing_left is not None and bool((self.missing_left != self.zero_left).any())

    def with_sides_of(self, with_missing: Mask | None) -> Trees:
        """Return the trees with their sides for the features of with_missing, (n_features,); those of others go with 0.

        None is for data without missing values: without sides.
        """
        if with_missing is None or self.missing_left is None:
            return replace(self, missing_left=None)
        return replace(self, missing_left=np.where(with_missing[self.feature], self.missing_left, self.zero_left))

    def on_columns(self, columns: Ints) -> Trees:
        """Return the trees with other columns: columns[k] where they compare k."""
        return replace(self, feature=columns[self.feature].astype(np.int32))

    def scores(self, X: Features) -> Floats:
        """Return the sum of the trees' values for each row of X, (n_rows,), added in the order of the trees.

        X is dense float32 or float64, or CSR, with all the columns that splits compare. Memory beyond X: a block of
        rows, and once many rows were scored, what `ranktune.solvers.models.tree_scoring` keeps of the trees.
        """
        return scores_of(self, X)

    def scaled(self, factor: float) -> Trees:
        """Return the trees with all values multiplied by factor."""
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
        np.concatenate([part.feature for part in parts]),
        np.concatenate([part.threshold for part in parts]),
        np.concatenate(children).astype(np.int32),
        np.concatenate([part.value for part in parts]),
        np.concatenate(starts),
        _joined_sides(parts),
    )


def _joined_sides(parts: Sequence[Trees]) -> Sides:
    """Return missing_left of all parts; trees of data without missing values send them where 0 goes."""
    if all(part.missing_left is None for part in parts):
        return None
    return np.concatenate([part.zero_left if part.missing_left is None else part.missing_left for part in parts])


def one_tree(
    feature: ArrayLike,
    threshold: ArrayLike,
    left: ArrayLike,
    right: ArrayLike,
    value: ArrayLike,
    missing_left: ArrayLike | None = None,
) -> Trees:
    """Return one tree of S splits, with the children of each, and S + 1 leaves."""
    children = np.column_stack([np.asarray(left, dtype=np.int32), np.asarray(right, dtype=np.int32)])
    return Trees(
        np.asarray(feature, dtype=np.int32),
        np.asarray(threshold, dtype=np.float64),
        np.ascontiguousarray(children.reshape(-1, 2)),
        np.asarray(value, dtype=np.float64),
        np.array([0, len(children)], dtype=np.int64),
        None if missing_left is None else np.asarray(missing_left, dtype=np.bool_),
    )


def symmetric_trees(trees: Sequence[tuple[Ints, Floats, Floats]]) -> Trees:
    """Return trees whose splits of each level are the same; missing values go left.

    Each is given by the features and thresholds of its levels, (n_levels,), the root first, and the values of its
    leaves from left to right, (2^n_levels,).
    """
    starts, children = [0], []
    for number, (_, _, values) in enumerate(trees):
        first, n_splits = starts[-1], len(values) - 1
        nodes = np.arange(1, 2 * n_splits + 1)  # in level order, the leaves last
        children.append(np.where(nodes < n_splits, nodes + first, ~(nodes - n_splits + first + number)))
        starts.append(first + n_splits)
    widths = [2 ** np.arange(len(feature)) for feature, _, _ in trees]
    return Trees(
        np.concatenate([np.repeat(tree[0], width) for tree, width in zip(trees, widths, strict=True)]).astype(np.int32),
        np.concatenate([np.repeat(tree[1], width) for tree, width in zip(trees, widths, strict=True)]).astype(float),
        np.concatenate(children).reshape(-1, 2).astype(np.int32),
        np.concatenate([values for _, _, values in trees]),
        np.array(starts, dtype=np.int64),
        np.ones(starts[-1], dtype=np.bool_),
    )


def last_below(limits: ArrayLike) -> Floats:
    """Return the largest doubles that round to single-precision numbers below limits, which are such numbers."""
    t = np.asarray(limits, dtype=np.float32)
    below = np.nextafter(t, np.float32(-np.inf))
    middle = below.astype(np.float64) / 2.0 + t.astype(np.float64) / 2.0  # exact: doubles have more bits
    belongs = middle.astype(np.float32) == below  # a tie goes to the even number of the two
    threshold: Floats = np.where(belongs, middle, np.nextafter(middle, -np.inf))
    return threshold


def stumps(features: Sequence[int] | Ints, thresholds: ArrayLike, weights: ArrayLike) -> Trees:
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


def _defect(trees: Trees) -> str:
    """Return what keeps the arrays from being trees, or an empty string."""
    S, starts = len(trees.feature), trees.starts
    if starts.ndim != 1 or len(starts) < 2 or starts[0] != 0 or starts[-1] != S or (np.diff(starts) < 0).any():
        return f"starts must rise from 0 to the number of splits, {S}, with at least one tree"
    T = len(starts) - 1
    if trees.threshold.shape != (S,) or trees.children.shape != (S, 2) or trees.value.shape != (S + T,):
        shapes = f"{trees.threshold.shape}, {trees.children.shape} and {trees.value.shape}"
        return f"{S} splits in {T} trees have thresholds, children and leaves of shapes {shapes}"
    if not (np.isfinite(trees.threshold).all() and np.isfinite(trees.value).all()):
        return "a threshold or a leaf is not finite"
    sides = trees.missing_left
    if sides is not None and (sides.shape != (S,) or sides.dtype != np.bool_):
        return f"{S} splits have {sides.shape} {sides.dtype} sides for missing values: there must be one bool each"
    if S and trees.feature.min() < 0:
        return "a split compares a column below 0"
    tree = np.repeat(np.arange(T), np.diff(starts))
    last, nodes = starts[tree + 1][:, None], np.arange(S)[:, None]
    leaf = -1 - trees.children.astype(np.int64)
    first_leaf, last_leaf = (starts[tree] + tree)[:, None], last + tree[:, None]
    inside = np.where(
        leaf < 0, (trees.children > nodes) & (trees.children < last), (leaf >= first_leaf) & (leaf <= last_leaf)
    )
    if not inside.all():
        return f"split {int(np.flatnonzero(~inside.all(axis=1))[0])} has a child outside its tree or before itself"
    # There are as many places for children as non-root splits and leaves of trees with splits: none twice, none absent.
    seen = np.zeros(2 * S + T, dtype=np.bool_)
    seen[trees.children + (S + T)] = True
    if np.count_nonzero(seen) != 2 * S:
        return "a split or a leaf is the child of two splits"
    return ""
