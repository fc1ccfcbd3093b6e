"""Kernels that score a block of documents with trees of up to 256 leaves, a split for all documents at a time.

The values of a column, which is a feature and the thresholds that it is compared with, become codes: how many of the
thresholds a value exceeds, a byte. A split then compares bytes and chooses bytes: for each document the leaf that its
left child leads to, or the one that its right child does. Children come before their parents, so that the root knows
the leaf of each document. No step depends on the path of a document, hence compilers make vectors of all of them.

The sum of a document is added in the order of the trees, in double precision, as a walk down each tree adds it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ranktune.solvers.core.arrays import Array, Floats, Ints, Matrix
from ranktune.solvers.core.compiled import compiled, inlined

BLOCK_ROWS = 256
"""Rows that pass all trees together: their codes, and the leaves of one tree, stay in cache."""
STEP_ROWS = 128
"""A block is filled up to a multiple of this, which is what the vectors of one iteration hold."""
MIN_LEVELS = 4
"""The first comparisons of the search for a code are made together."""
GROUP = 4
"""Trees whose values are added together, one after another."""
MAX_LEAVES = 256
"""Leaves of one tree are numbered by a byte."""


class ThresholdColumns(NamedTuple):
    """The thresholds of K columns.

    feature     (K,) int64, the column of X
    missing     (K,) what stands for a missing value: -inf goes left everywhere, inf right
    levels      (K,) int64: a column has 2 ** levels - 1 thresholds, ascending, inf at the end
    first       (K,) int64, where they start in thresholds
    thresholds  of the type of X: the highest values of that type that go left
    """

    feature: Ints
    missing: Floats
    levels: Ints
    first: Ints
    thresholds: Matrix


class Program(NamedTuple):
    """T trees and S splits, each after its children.

    column   (S,) uint32, whose codes a split compares
    cut      (S,) uint8, the highest code that goes left
    rows     (S, 3) uint16, where the leaves of the left and the right child are, and where those of the split go: row k
             below n_leaves is leaf k for all documents
    starts   (T + 1,) uint64
    roots    (T,) uint16, the row of each tree's leaves in the end
    leaves   (T,) uint64, where the values of each tree start
    value    what the leaves add
    n_leaves, n_rows  numbers of rows
    """

    column: Array
    cut: Array
    rows: Array
    starts: Array
    roots: Array
    leaves: Array
    value: Floats
    n_leaves: int
    n_rows: int


@compiled
def program_scores(X: Matrix, columns: ThresholdColumns, program: Program, out: Floats) -> None:
    """Write to out, (n_rows,), the sum of the trees' values for each row of X."""
    values = np.zeros(BLOCK_ROWS, X.dtype)
    position = np.zeros(BLOCK_ROWS, np.uint32)
    codes = np.zeros(len(columns.feature) * BLOCK_ROWS, np.uint8)
    rows = np.zeros(program.n_rows * BLOCK_ROWS, np.uint8)
    for leaf in range(program.n_leaves):
        rows[leaf * BLOCK_ROWS : (leaf + 1) * BLOCK_ROWS] = leaf
    sums = np.zeros(BLOCK_ROWS)
    for a in range(0, len(X), BLOCK_ROWS):
        n = min(BLOCK_ROWS, len(X) - a)
        steps = np.uint64((n + STEP_ROWS - 1) // STEP_ROWS)
        _encode(X[a : a + n], columns, steps, values, position, codes)
        sums[:] = 0.0
        _run(codes, program, steps, rows, sums)
        for i in range(n):  # numba takes a second to compile the assignment of one array to another
            out[a + i] = sums[i]


@compiled
def _encode(
    X: Matrix, columns: ThresholdColumns, steps: np.uint64, values: Matrix, position: Array, codes: Array
) -> None:
    """Write to codes how many thresholds of each column each row's value exceeds, by halving what is left."""
    n = steps * np.uint64(STEP_ROWS)
    for column in range(np.uint64(len(columns.feature))):
        feature, missing = np.uint64(columns.feature[column]), values.dtype.type(columns.missing[column])
        for i in range(np.uint64(len(X))):
            x = X[i, feature]
            values[i] = missing if np.isnan(x) else x
        first = np.uint64(columns.first[column])
        step = np.uint64(1) << np.uint64(columns.levels[column] - MIN_LEVELS)
        _compare_fifteen(columns.thresholds, first + step - np.uint64(1), step, n, values, position)
        while step > np.uint64(1):
            step >>= np.uint64(1)
            at, size = first + step - np.uint64(1), np.uint32(step)
            for i in range(n):
                k = position[i]
                position[i] = np.uint32(k + size * np.uint32(columns.thresholds[at + np.uint64(k)] < values[i]))
        code = column * np.uint64(BLOCK_ROWS)
        for i in range(n):
            codes[code + i] = position[i]


@compiled
def _compare_fifteen(
    thresholds: Matrix, at: np.uint64, step: np.uint64, n: np.uint64, values: Matrix, position: Array
) -> None:
    """Write to position step times the number of fifteen thresholds, step apart, that each of n values exceeds."""
    four = np.uint64(4) * step
    second, third, fourth = at + four, at + four + four, at + four + four + four
    a, b, c, d = _four(thresholds, at, step)
    e, f, g, h = _four(thresholds, second, step)
    k, m, o, p = _four(thresholds, third, step)
    q, r = thresholds[fourth], thresholds[fourth + step]
    s, size = thresholds[fourth + step + step], np.uint32(step)
    for i in range(n):
        x = values[i]
        count = np.uint32(np.uint32(a < x) + np.uint32(b < x) + np.uint32(c < x) + np.uint32(d < x))
        count = np.uint32(count + np.uint32(e < x) + np.uint32(f < x) + np.uint32(g < x) + np.uint32(h < x))
        count = np.uint32(count + np.uint32(k < x) + np.uint32(m < x) + np.uint32(o < x) + np.uint32(p < x))
        count = np.uint32(count + np.uint32(q < x) + np.uint32(r < x) + np.uint32(s < x))
        position[i] = np.uint32(size * count)


@inlined
def _four(thresholds: Matrix, at: np.uint64, step: np.uint64) -> tuple[float, float, float, float]:
    """Return four thresholds from at on, step apart."""
    return thresholds[at], thresholds[at + step], thresholds[at + step + step], thresholds[at + step + step + step]


@compiled
def _run(codes: Array, program: Program, steps: np.uint64, rows: Array, sums: Floats) -> None:
    """Add to sums the values of the leaves of so many steps of rows; the number of trees is a multiple of GROUP."""
    n, width = steps * np.uint64(STEP_ROWS), np.uint64(BLOCK_ROWS)
    for group in range(np.uint64(0), np.uint64(len(program.roots)), np.uint64(GROUP)):
        for split in range(program.starts[group], program.starts[group + np.uint64(GROUP)]):
            cut, code = program.cut[split], np.uint64(program.column[split]) * width
            left, right = np.uint64(program.rows[split, 0]) * width, np.uint64(program.rows[split, 1]) * width
            result = np.uint64(program.rows[split, 2]) * width
            for i in range(n):
                goes_left = np.uint8(codes[code + i] <= cut) * np.uint8(255)
                other = rows[right + i]
                rows[result + i] = other ^ ((rows[left + i] ^ other) & goes_left)
        _add_four(program, np.uint64(group), n, rows, sums)


@compiled
def _add_four(program: Program, group: np.uint64, n: np.uint64, rows: Array, sums: Floats) -> None:
    """Add to sums the values of the leaves of four trees, in their order."""
    one, two, three, width = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(BLOCK_ROWS)
    value, leaves, roots = program.value, program.leaves, program.roots
    first, second, third, fourth = leaves[group], leaves[group + one], leaves[group + two], leaves[group + three]
    a, b = np.uint64(roots[group]) * width, np.uint64(roots[group + one]) * width
    c, d = np.uint64(roots[group + two]) * width, np.uint64(roots[group + three]) * width
    for i in range(n):
        total = sums[i] + value[first + np.uint64(rows[a + i])]
        total += value[second + np.uint64(rows[b + i])]
        total += value[third + np.uint64(rows[c + i])]
        sums[i] = total + value[fourth + np.uint64(rows[d + i])]


@compiled
def schedule(children: Array, starts: Ints, n_leaves: int, order: Ints, rows: Array, roots: Array) -> int:
    """Write to order the splits of trees, children first, and to rows and roots those of a program; return n_rows.

    Of two children the one that needs more rows comes first, so that few rows are in use at once.
    """
    need, where = np.zeros(MAX_LEAVES, np.int64), np.zeros(MAX_LEAVES, np.int64)
    waiting, free = np.zeros(MAX_LEAVES + 1, np.int64), np.zeros(MAX_LEAVES, np.int64)
    n_rows = fixed = n_leaves + GROUP
    for tree in range(len(starts) - 1):
        first, last = starts[tree], starts[tree + 1]
        roots[tree] = 0
        for split in range(last - 1, first - 1, -1):
            left, right = children[split, 0], children[split, 1]
            a, b = need[left - first] if left >= 0 else 0, need[right - first] if right >= 0 else 0
            need[split - first] = a + 1 if a == b else max(a, b)
        waiting[0], n_waiting, place = first, np.int64(last > first), last
        while n_waiting:  # backwards: a split, its lighter child, its heavier child
            n_waiting -= 1
            split, place = waiting[n_waiting], place - 1
            order[place] = split
            left, right = children[split, 0], children[split, 1]
            a, b = need[left - first] if left >= 0 else 0, need[right - first] if right >= 0 else 0
            heavier, lighter = (left, right) if a >= b else (right, left)
            if heavier >= 0:
                waiting[n_waiting] = heavier
                n_waiting += 1
            if lighter >= 0:
                waiting[n_waiting] = lighter
                n_waiting += 1
        n_free, used = 0, fixed
        for k in range(first, last):
            split = order[k]
            if split == first:
                row = n_leaves + tree % GROUP
                roots[tree] = row
            elif n_free:
                n_free -= 1
                row = free[n_free]
            else:
                row, used = used, used + 1
            rows[k, 2] = row
            where[split - first] = row
            for side in range(2):
                child = children[split, side]
                rows[k, side] = where[child - first] if child >= 0 else ~child - (first + tree)
                if child >= 0:
                    free[n_free] = where[child - first]
                    n_free += 1
        n_rows = max(n_rows, used)
    return n_rows
