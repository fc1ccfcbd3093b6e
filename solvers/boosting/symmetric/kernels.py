"""The kernels of symmetric trees: histograms of derivatives by leaf and bin, and the best split of a level.

A leaf is numbered by its splits, the first of them in the highest bit: 0 where the bin is at most the number of the
split. The score of a split is the sum over the leaves that it makes of G^2 / (H + l2), G and H the sums of gradients
and curvatures there.
"""

from __future__ import annotations

import numpy as np

from ranktune.solvers.boosting.bins import Bytes
from ranktune.solvers.core.arrays import Floats, Ints
from ranktune.solvers.core.compiled import compiled
from ranktune.solvers.models.trees import Int32s


@compiled
def count(bins: Bytes, rows: Int32s, leaves: Int32s, gradient: Floats, curvature: Floats, out: Floats) -> None:
    """Overwrite out, (n_leaves, n_bins, 2), with the sums of derivatives by leaf and bin.

    leaves and derivatives, (n,), are those of the documents in rows.
    """
    flat = out.reshape(-1)
    flat[:] = 0.0
    width = out.shape[1]
    for k in range(len(rows)):
        at = 2 * (leaves[k] * width + bins[rows[k]])
        flat[at] += gradient[k]
        flat[at + 1] += curvature[k]


@compiled
def score_splits(sums: Floats, n_bins: int, l2: float, least: float, scores: Floats) -> None:
    """Overwrite the first n_bins - 1 scores: of the splits behind each bin but the last, of all leaves together.

    least is the curvature of a leaf with documents at least; leaves of less are rounding errors, and add nothing.
    """
    scores[: n_bins - 1] = 0.0
    for leaf in range(len(sums)):
        G = H = 0.0
        for b in range(n_bins):
            G += sums[leaf, b, 0]
            H += sums[leaf, b, 1]
        if least >= H:
            continue
        left_G = left_H = 0.0
        for b in range(n_bins - 1):
            left_G += sums[leaf, b, 0]
            left_H += sums[leaf, b, 1]
            right_G, right_H = G - left_G, H - left_H
            if left_H > least:
                scores[b] += left_G * left_G / (left_H + l2)
            if right_H > least:
                scores[b] += right_G * right_G / (right_H + l2)


@compiled
def grow_tree(
    values: Bytes,
    n_bins: Ints,
    features: Ints,
    rows: Int32s,
    gradient: Floats,
    curvature: Floats,
    l2: float,
    splits: Ints,
) -> int:
    """Overwrite splits, (depth, 2), with the feature and the bin of each level; return the number of levels.

    values are (n_features, n_documents). The splits are of features, ascending, and by the derivatives of rows,
    ascending. Of equal splits the first is taken.
    """
    depth = len(splits)
    g, h, leaves = gradient[rows], curvature[rows], np.zeros(len(rows), dtype=np.int32)
    total_g, total_h = g.sum(), h.sum()
    least = 1e-12 * total_h
    before = total_g * total_g / (total_h + l2) if total_h > 0.0 else 0.0
    width = n_bins.max()
    scores = np.empty(width)
    for level in range(depth):
        sums = np.empty((2**level, width, 2))
        best = -1.0
        for f in features:
            count(values[f], rows, leaves, g, h, sums)
            score_splits(sums, n_bins[f], l2, least, scores)
            b = int(np.argmax(scores[: n_bins[f] - 1]))
            if scores[b] > max(best, before * (1.0 + 1e-12)):
                best = scores[b]
                splits[level, 0], splits[level, 1] = f, b
        if best < 0.0:
            return level
        before = best
        f, b = splits[level, 0], splits[level, 1]
        for k in range(len(rows)):
            leaves[k] = 2 * leaves[k] + (values[f, rows[k]] > b)
    return depth


@compiled
def fill_leaves(
    values: Bytes,
    splits: Ints,
    gradient: Floats,
    curvature: Floats,
    l2: float,
    rate: float,
    leaf_values: Floats,
    scores: Floats,
) -> None:
    """Overwrite leaf_values, (2^n_splits,), with Newton steps times rate, and add to each score that of its leaf."""
    leaves = np.zeros(len(scores), dtype=np.int32)
    for level in range(len(splits)):
        column, b = values[splits[level, 0]], splits[level, 1]
        for i in range(len(scores)):
            leaves[i] = 2 * leaves[i] + (column[i] > b)
    G, H = np.zeros(len(leaf_values)), np.zeros(len(leaf_values))
    for i in range(len(scores)):
        G[leaves[i]] += gradient[i]
        H[leaves[i]] += curvature[i]
    for leaf in range(len(leaf_values)):
        leaf_values[leaf] = -rate * G[leaf] / (H[leaf] + l2) if H[leaf] > 0.0 else 0.0
    for i in range(len(scores)):
        scores[i] += leaf_values[leaves[i]]
