"""The kernels of symmetric trees: sums of derivatives by leaf and bin, and the best split of a level.

The score of a split is the sum over the leaves that it makes of G^2 / (H + l2), G and H the sums of gradients and
curvatures there. Documents are sorted by leaf as the tree grows: of the two leaves that a split makes of one, only the
documents of the smaller are counted, and the sums of the other are the difference.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ranktune.solvers.boosting.bins import Bytes
from ranktune.solvers.core.arrays import Floats, Ints
from ranktune.solvers.core.compiled import compiled, inlined

Rows: TypeAlias = NDArray[np.uint32]

ALIKE = 1e-12
"""Scores of a smaller relative difference are equal; curvatures of a smaller share of the whole are rounding errors."""
N_REPEATS = 10
"""How often the values of leaves are ordered by weight."""
AT_ONCE = 4
"""Features that are counted together, so that an addition need not wait for the one before."""


@compiled
def count(
    values: Bytes, group: Ints, n_bins: int, rows: Rows, pairs: Floats, span: Ints, buffer: Floats, out: Floats
) -> None:
    """Overwrite the first n_bins of out, (AT_ONCE, 2, width), with the sums of derivatives up to each bin of a group.

    group are AT_ONCE features. span holds the first and behind the last place of the documents in rows, whose
    gradients and curvatures lie in pairs, (2 n,), one after the other. buffer is (AT_ONCE, 2 width).
    """
    if span[0] == span[1]:
        for j in range(AT_ONCE):
            for b in range(n_bins):
                out[j, 0, b] = out[j, 1, b] = 0.0
        return
    bins_a, bins_b, bins_c, bins_d = values[group[0]], values[group[1]], values[group[2]], values[group[3]]
    first, second, third, fourth = buffer[0], buffer[1], buffer[2], buffer[3]
    for j in range(AT_ONCE):
        for b in range(2 * n_bins):
            buffer[j, b] = 0.0
    for k in range(span[0], span[1]):
        row, g, h = rows[k], pairs[2 * k], pairs[2 * k + 1]
        a, b, c, d = 2 * bins_a[row], 2 * bins_b[row], 2 * bins_c[row], 2 * bins_d[row]
        first[a] += g
        first[a + 1] += h
        second[b] += g
        second[b + 1] += h
        third[c] += g
        third[c + 1] += h
        fourth[d] += g
        fourth[d + 1] += h
    for j in range(AT_ONCE):
        G = H = 0.0
        for b in range(n_bins):
            G += buffer[j, 2 * b]
            H += buffer[j, 2 * b + 1]
            out[j, 0, b], out[j, 1, b] = G, H


@inlined
def subtract(sums: Floats, n_bins: int, out: Floats) -> None:
    """Subtract the first n_bins of sums from those of out, both (AT_ONCE, 2, width)."""
    for j in range(AT_ONCE):
        for side in range(2):
            part, whole = sums[j, side], out[j, side]
            for b in range(n_bins):
                whole[b] -= part[b]


@inlined
def add_scores(G: Floats, H: Floats, last: int, l2: float, least: float, sign: int, scores: Floats) -> None:
    """Add to the scores of the splits behind each bin up to the last, which is left out, those of a leaf.

    G and H are the sums up to each bin. least is the curvature of a leaf with documents at least; leaves of less are
    rounding errors, and add nothing. A split whose values go against sign adds as much as none.
    """
    all_G, all_H = G[last], H[last]
    if all_H <= least:
        return
    whole = all_G * all_G / (all_H + l2)
    for b in range(last):
        left_G, left_H = G[b], H[b]
        right_G, right_H = all_G - left_G, all_H - left_H
        left = np.divide(left_G, left_H + l2) if left_H > least else 0.0
        right = np.divide(right_G, right_H + l2) if right_H > least else 0.0
        scores[b] += whole if sign * (right - left) > 0.0 else left_G * left + right_G * right


@inlined
def partition(column: Bytes, limit: int, rows: Rows, pairs: Floats, span: Ints, spare_rows: Rows, spare: Floats) -> int:
    """Sort the documents of a part: those of bins up to limit, then the others; return the first place of the others.

    Both keep their order. spare_rows and spare have the sizes of rows and pairs.
    """
    to, others = int(span[0]), 0
    for k in range(span[0], span[1]):
        row, g, h = rows[k], pairs[2 * k], pairs[2 * k + 1]
        rows[to], pairs[2 * to], pairs[2 * to + 1] = row, g, h
        spare_rows[others], spare[2 * others], spare[2 * others + 1] = row, g, h
        right = int(column[row] > limit)
        to += 1 - right
        others += right
    for k in range(others):
        rows[to + k] = spare_rows[k]
        pairs[2 * (to + k)], pairs[2 * (to + k) + 1] = spare[2 * k], spare[2 * k + 1]
    return to


@compiled
def grow_tree(
    values: Bytes,
    n_bins: Ints,
    signs: Ints,
    groups: Ints,
    rows: Rows,
    pairs: Floats,
    l2: float,
    sums: Floats,
    splits: Ints,
) -> int:
    """Overwrite splits, (depth, 2), with the feature and the bin of each level; return the number of levels.

    values are (n_features, n_documents). The splits are of the features in groups, (n_groups, AT_ONCE), ascending, and
    by the documents in rows, whose gradients and curvatures are pairs, (2 n,); both are sorted by leaf. Of equal splits
    the first is taken. sums, (n_kept + 1, 2^(depth - 1), AT_ONCE, 2, width), holds those of the first n_kept groups;
    all documents are counted for the others.
    """
    spare_rows, spare = np.empty_like(rows), np.empty_like(pairs)
    buffer, scores = np.empty((AT_ONCE, 2 * sums.shape[4])), np.empty(sums.shape[4])
    parts = np.zeros((2 * sums.shape[1], 2), dtype=np.int64)
    parts[0, 1] = len(rows)
    G = H = 0.0
    for k in range(len(rows)):
        G += pairs[2 * k]
        H += pairs[2 * k + 1]
    least = ALIKE * H
    best = G * G / (H + l2) if H > 0.0 else 0.0
    for level in range(len(splits)):
        n_leaves = 1 << level  # a power would be a kernel of its own
        half = n_leaves // 2
        splits[level, 0] = -1
        for number in range(len(groups)):
            group, of_group = groups[number], sums[min(number, len(sums) - 1)]
            widest = n_bins[group[0]]
            for j in range(1, AT_ONCE):
                widest = max(widest, n_bins[group[j]])
            is_kept = number < len(sums) - 1
            for leaf in range(half if is_kept else 0, n_leaves):
                count(values, group, widest, rows, pairs, parts[leaf], buffer, of_group[leaf])
                if is_kept and level > 0:
                    subtract(of_group[leaf], widest, of_group[leaf - half])
            for j in range(AT_ONCE):
                f = group[j]
                last = n_bins[f] - 1
                for b in range(last):
                    scores[b] = 0.0
                for leaf in range(n_leaves):
                    add_scores(of_group[leaf, j, 0], of_group[leaf, j, 1], last, l2, least, signs[f], scores)
                for b in range(last):
                    if scores[b] > best * (1.0 + ALIKE):
                        best = scores[b]
                        splits[level, 0], splits[level, 1] = f, b
        if splits[level, 0] < 0:
            return level
        column = values[splits[level, 0]]
        for leaf in range(n_leaves if level < len(splits) - 1 else 0):
            first, end = parts[leaf, 0], parts[leaf, 1]
            middle = partition(column, splits[level, 1], rows, pairs, parts[leaf], spare_rows, spare)
            smaller = leaf + n_leaves
            left_is_smaller = 2 * middle < first + end
            parts[smaller, 0], parts[smaller, 1] = (first, middle) if left_is_smaller else (middle, end)
            parts[leaf, 0], parts[leaf, 1] = (middle, end) if left_is_smaller else (first, middle)
    return len(splits)


@compiled
def fill_leaves(
    values: Bytes,
    splits: Ints,
    signs: Ints,
    gradient: Floats,
    curvature: Floats,
    l2: float,
    rate: float,
    leaf_values: Floats,
    scores: Floats,
) -> None:
    """Overwrite leaf_values, (2^n_splits,), with Newton steps times rate, and add to each score that of its leaf.

    A leaf is numbered by its splits, the first in the highest bit: 0 where the bin is at most the number of the split.
    """
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
    level_signs = np.zeros(len(splits), dtype=np.int64)
    for level in range(len(splits)):
        level_signs[level] = signs[splits[level, 0]]
    order_leaves(level_signs, H, leaf_values)
    for i in range(len(scores)):
        scores[i] += leaf_values[leaves[i]]


@compiled
def order_leaves(signs: Ints, weights: Floats, values: Floats) -> None:
    """Change the values of leaves, (2^n_levels,), so that they rise or fall with the levels of a sign, (n_levels,).

    Two leaves that only such a level tells apart, and whose values are in the wrong order, get their mean, by weight.
    This is repeated, because later means can undo earlier ones. The last time they get the middle, which undoes none:
    middles and ordered pairs of values that are higher by pair are higher.
    """
    for repeat in range(N_REPEATS + 1):
        for level in range(len(signs)):
            step = 2 ** (len(signs) - 1 - level)
            for leaf in range(len(values)):
                low, high = (leaf, leaf + step) if signs[level] > 0 else (leaf + step, leaf)
                if signs[level] == 0 or leaf // step % 2 or values[low] <= values[high]:
                    continue
                a, b = weights[low], weights[high]
                if repeat == N_REPEATS or a + b == 0.0:
                    a = b = 1.0
                mean = (a * values[low] + b * values[high]) / (a + b)
                values[low] = values[high] = min(max(mean, values[high]), values[low])
