"""Shapley values of trees: how much each feature contributes to the difference of the scores of two documents.

The game: a coalition of features has its values from a document, all other features theirs from a document of the
background, and its value is the score. A leaf is reached by a coalition that holds the p features of its path where
only the document takes the way to the leaf, and none of the q features where only the other does. So a leaf of value v
gives each of the first v (p - 1)! q! / (p + q)!, and takes v p! (q - 1)! / (p + q)! from each of the others. The search
goes down both ways only where the two documents part. Source: Laberge & Pequignot 2022, "Understanding interventional
TreeSHAP"; Lundberg et al. 2020.

The contributions of a document add up to its score less that of the other document, or less the mean of several.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ranktune.solvers.core.arrays import Floats, Ints, Mask, Matrix
from ranktune.solvers.core.compiled import compiled
from ranktune.solvers.models.trees import Int32s, Trees

Owners: TypeAlias = NDArray[np.int8]

BLOCK = 20_000_000
"""Ways of documents at splits that are held at once."""
OWN, OTHERS = 1, 2
"""Whose value of a feature the search has taken on its way."""


def tree_contributions(trees: Trees, X: Matrix, documents: Ints, background: Ints) -> Floats:
    """Return each column's contribution to the score of the rows in documents, (len(documents), n_columns).

    The score is that above the mean score of the rows in background. X is dense, (n_rows, n_columns). Cost: for each
    pair of rows and each tree, the splits at which they part, and the ways to them.
    """
    total = np.zeros((len(documents), X.shape[1]))
    longest = int(np.diff(trees.starts).max())
    most = max(BLOCK // max(len(X), 1), longest)
    first = 0
    while first < trees.n_trees:
        last = int(np.searchsorted(trees.starts, trees.starts[first] + most, side="right")) - 1
        last = max(last, first + 1)
        splits = slice(trees.starts[first], trees.starts[last])
        goes_right = _ways(trees, X, splits)
        add_contributions(
            goes_right, documents, background, trees.feature, trees.children, trees.value, trees.starts,
            first, last, longest, total,
        )  # fmt: skip
        first = last
    return total / len(background)


def _ways(trees: Trees, X: Matrix, splits: slice) -> Mask:
    """Return whether each row goes right at each split of a slice, (n_rows, n_splits)."""
    values = np.take(X, trees.feature[splits], axis=1)
    right: Mask = ~(values <= trees.threshold[splits])
    if trees.missing_left is not None:
        right &= ~(np.isnan(values) & trees.missing_left[splits])
    return right


@compiled
def add_contributions(
    goes_right: Mask,
    documents: Ints,
    background: Ints,
    column: Int32s,
    children: Int32s,
    value: Floats,
    starts: Ints,
    first: int,
    last: int,
    longest: int,
    total: Floats,
) -> None:
    """Add to total the contributions of the trees first to last to each document, summed over the background.

    goes_right has the ways at their splits, longest is the greatest number of splits of a tree.
    """
    owners = np.zeros(total.shape[1], dtype=np.int8)  # whose value of each column, 0 where both go one way so far
    path = np.empty(longest + 1, dtype=np.int64)  # the columns that are taken, in the order of the way
    waiting = np.empty(longest + 1, dtype=np.int64)  # nodes that remain to be visited, as if their parent's column
    lengths = np.empty(longest + 1, dtype=np.int64)  # were taken from the other document; lengths of the path there
    offset = starts[first]
    for t in range(first, last):
        if starts[t] == starts[t + 1]:
            continue
        for k in range(len(documents)):
            a = goes_right[documents[k]]
            for z in background:
                b = goes_right[z]
                node, length, size = starts[t], 0, 0
                while True:
                    while node >= 0:
                        j = column[node]
                        of_document = children[node, np.int64(a[node - offset])]
                        of_background = children[node, np.int64(b[node - offset])]
                        if of_document == of_background or owners[j] == OWN:
                            node = of_document
                        elif owners[j] == OTHERS:
                            node = of_background
                        else:
                            waiting[size], lengths[size] = of_background, length
                            size += 1
                            owners[j], path[length] = OWN, j
                            length += 1
                            node = of_document
                    _add_leaf(value[~node], owners, path[:length], total[k])
                    if size == 0:
                        break
                    size -= 1
                    while length > lengths[size] + 1:
                        length -= 1
                        owners[path[length]] = 0
                    owners[path[length - 1]] = OTHERS
                    node = waiting[size]
                for p in range(length):
                    owners[path[p]] = 0


@compiled
def _add_leaf(value: float, owners: Owners, path: Ints, total: Floats) -> None:
    """Add what a leaf of this value gives to the columns of its path, and takes from them."""
    p = 0
    for j in path:
        if owners[j] == OWN:
            p += 1
    q = len(path) - p
    coalitions = 1.0  # p + q over p
    for i in range(1, min(p, q) + 1):
        coalitions *= (p + q + 1 - i) / i
    for j in path:
        if owners[j] == OWN:
            total[j] += value / (p * coalitions)
        else:
            total[j] -= value / (q * coalitions)
