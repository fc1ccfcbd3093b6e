"""Whether trees keep monotone constraints: an exact check of each tree, without data.

A tree rises with a feature if any two leaves that documents reach by other values of that feature alone have rising
values. Such leaves lie on the two sides of a split on the feature, and their boxes, the values of all other features
that lead there, have values in common. First the values of each side are bounded: where all of the left are at most
those of the right, nothing is left to compare. Where every tree rises, their sum does.

Missing values of the feature are exempt: a leaf that only documents without it reach is not compared.
"""

from __future__ import annotations

import numpy as np

from ranktune.solvers.core.arrays import Floats, Ints, Mask, Matrix
from ranktune.solvers.core.compiled import compiled
from ranktune.solvers.models.trees import ANY_VALUE, Int32s, Trees


def tree_violation(trees: Trees, signs: Ints) -> int | None:
    """Return a feature with which a tree falls or rises against its sign, (n_features,); None if none does."""
    if not signs[trees.features].any():
        return None
    suspects = np.zeros(trees.n_splits, dtype=np.bool_)
    _mark_by_bounds(trees.feature, trees.threshold, trees.children, trees.value, signs, suspects)
    sides = trees.zero_left if trees.missing_left is None else trees.missing_left
    for tree in np.unique(np.searchsorted(trees.starts, np.flatnonzero(suspects), side="right") - 1).tolist():
        a, b = int(trees.starts[tree]), int(trees.starts[tree + 1])
        features, place = np.unique(trees.feature[a:b], return_inverse=True)
        tree_arrays = trees.threshold[a:b], trees.children[a:b], sides[a:b], place.astype(np.int64)
        low, high, missing = _boxes(*tree_arrays, a, a + tree, len(features))
        leaves = trees.value[a + tree : b + tree + 1]
        for split in np.flatnonzero(suspects[a:b]).tolist():
            sign = int(signs[trees.feature[a + split]])
            left, right = (_leaves_below(int(child), trees.children, a + tree) for child in trees.children[a + split])
            if _contradict(left, right, low, high, missing, sign * leaves, int(place[split])):
                return int(trees.feature[a + split])
    return None


@compiled
def _mark_by_bounds(
    feature: Int32s, threshold: Floats, children: Int32s, value: Floats, signs: Ints, out: Mask
) -> None:
    """Mark the splits on features with a sign whose sides have values that overlap or are in the wrong order."""
    S = len(feature)
    lowest, highest = np.empty(S), np.empty(S)
    for s in range(S - 1, -1, -1):
        left, right = children[s, 0], children[s, 1]
        low_left, high_left = (lowest[left], highest[left]) if left >= 0 else (value[~left], value[~left])
        low_right, high_right = (lowest[right], highest[right]) if right >= 0 else (value[~right], value[~right])
        lowest[s], highest[s] = min(low_left, low_right), max(high_left, high_right)
        sign = signs[feature[s]]
        if threshold[s] < ANY_VALUE:
            out[s] = (sign > 0 and high_left > low_right) or (sign < 0 and low_left < high_right)


@compiled
def _boxes(
    threshold: Floats, children: Int32s, sides: Mask, place: Ints, first: int, first_leaf: int, size: int
) -> tuple[Matrix, Matrix, Matrix]:
    """Return the bounds of each leaf of a tree, and 1 where it takes missing values, (n_leaves, size) each.

    place is the number of the feature of each split among the `size` features of the tree; first and first_leaf are
    the numbers of the first split and leaf.
    """
    S = len(threshold)
    low, high, missing = (
        np.full((2 * S + 1, size), -np.inf),
        np.full((2 * S + 1, size), np.inf),
        np.ones((2 * S + 1, size)),
    )
    for s in range(S):
        limit = threshold[s] if threshold[s] < ANY_VALUE else np.inf
        for side in range(2):
            child = children[s, side]
            to = child - first if child >= 0 else S + ~child - first_leaf
            low[to], high[to], missing[to] = low[s], high[s], missing[s]
            if side == 0:
                high[to, place[s]] = min(high[s, place[s]], limit)
            else:
                low[to, place[s]] = max(low[s, place[s]], limit)
            if sides[s] != (side == 0):
                missing[to, place[s]] = 0.0
    return low[S:], high[S:], missing[S:]


def _leaves_below(node: int, children: Int32s, first_leaf: int) -> Ints:
    """Return the numbers in their tree of the leaves below a node."""
    waiting, leaves = [node], []
    while waiting:
        node = waiting.pop()
        if node < 0:
            leaves.append(~node - first_leaf)
        else:
            waiting += children[node].tolist()
    return np.array(leaves, dtype=np.int64)


@compiled
def _contradict(left: Ints, right: Ints, low: Matrix, high: Matrix, missing: Matrix, value: Floats, at: int) -> bool:
    """Return whether a left leaf has a larger value than a right one that feature number `at` alone leads to."""
    for a in left:
        for b in right:
            if value[a] <= value[b] or low[a, at] >= high[a, at] or low[b, at] >= high[b, at]:
                continue
            meets = True
            for f in range(low.shape[1]):
                if f != at and not (
                    max(low[a, f], low[b, f]) < min(high[a, f], high[b, f]) or missing[a, f] * missing[b, f] > 0.0
                ):
                    meets = False
                    break
            if meets:
                return True
    return False
