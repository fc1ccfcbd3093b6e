"""Sums and counts over the active partners of every document of a query, for many grades, adjacent grades or all pairs.

Documents are sorted by score (notation: order_statistics). The worse partners of r have a grade below its own and a
position >= low[r], the better ones a grade above and a position < high[r]. All kernels overwrite out:

out  (n,) the sums of v over all partners

Where their numbers are counted too, a document counts as often as Counting.x says; v is multiplied by it already.

Sums over many grades are in a tree of 32 children per node:

tree  1-dimensional float64, level after level, whole nodes

Level 0 holds a number per grade, from 0, each level above a number per 32 of the level below; a number is the sum of
the siblings BEFORE it. Adding to a grade therefore changes the later siblings on every level, and the sum below a grade
is one number per level: two for 1,000 grades, four for a million. A Fenwick tree needs 5 to 10 dependent steps for
both, and where it outgrows the cache each is a miss.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ranktune.solvers.core.arrays import Codes, Floats, Ints
from ranktune.solvers.core.compiled import compiled, inlined


class Counting(NamedTuple):
    """What counts partners: kernels overwrite cells, a room as that of the sums, degree and excess.

    x  (n,) how often each document counts    degree  (n,) the number of partners    excess  (n,) better less worse
    """

    x: Floats
    cells: Floats
    degree: Floats
    excess: Floats


@compiled
def sum_many(
    v: Floats,
    codes: Codes,
    k: int,
    low: Codes,
    high: Codes,
    tree: Floats,
    out: Floats,
    counting: Counting | None = None,
) -> None:
    """Overwrite out with the sums of v over all active partners."""
    n, ends = len(v), offsets(k)
    tree[: ends[-1]] = 0.0
    if counting is not None:
        x, cells, degree, excess = counting
        cells[: ends[-1]] = 0.0
    total, counted, at_low, at_high = 0.0, 0.0, 0, 0
    for p in range(n + 1):
        while at_low < n and low[at_low] == p:
            c = np.int64(codes[at_low])
            out[at_low] = -below(tree, ends, c)
            if counting is not None:
                degree[at_low] = -below(cells, ends, c)  # worse partners, but for those that are still to come
            at_low += 1
        while at_high < n and high[at_high] == p:  # never ahead of at_low
            c = np.int64(codes[at_high]) + 1
            out[at_high] += total - below(tree, ends, c)
            if counting is not None:
                excess[at_high] = counted - below(cells, ends, c)
            at_high += 1
        if p < n:
            total += v[p]
            add(tree, ends, np.int64(codes[p]), v[p])
            if counting is not None:
                counted += x[p]
                add(cells, ends, np.int64(codes[p]), x[p])
    for r in range(n):
        c = np.int64(codes[r])
        out[r] += below(tree, ends, c)
        if counting is not None:
            worse, better = degree[r] + below(cells, ends, c), excess[r]
            degree[r], excess[r] = better + worse, better - worse


@compiled
def sum_all(v: Floats, codes: Codes, k: int, cells: Floats, out: Floats, counting: Counting | None = None) -> None:
    """Do what sum_many does where all pairs are active: all documents of other grades; cells[c] sums grade c."""
    total = 0.0
    cells[:k] = 0.0
    for r in range(len(v)):
        cells[codes[r]] += v[r]
        total += v[r]
    for r in range(len(v)):
        out[r] = total - cells[codes[r]]
    if counting is not None:
        x, counts, degree, excess = counting
        counts[: k + 1] = 0.0
        for r in range(len(v)):
            counts[codes[r] + 1] += x[r]
        for c in range(k):
            counts[c + 1] += counts[c]  # those of grades below c + 1
        for r in range(len(v)):
            before, up_to = counts[codes[r]], counts[codes[r] + 1]
            degree[r], excess[r] = counts[k] - up_to + before, counts[k] - up_to - before


@compiled
def sum_adjacent(
    v: Floats,
    codes: Codes,
    k: int,
    low: Codes,
    high: Codes,
    cells: Floats,
    out: Floats,
    counting: Counting | None = None,
) -> None:
    """Overwrite out with the sums of v over the active partners one grade away; cells[c + 1] sums grade c."""
    n = len(v)
    cells[: k + 2] = 0.0
    if counting is not None:
        x, counts, degree, excess = counting
        counts[: k + 2] = 0.0
    at_low = at_high = 0
    for p in range(n + 1):
        while at_low < n and low[at_low] == p:
            out[at_low] = -cells[codes[at_low]]
            if counting is not None:
                degree[at_low] = -counts[codes[at_low]]
            at_low += 1
        while at_high < n and high[at_high] == p:
            out[at_high] += cells[codes[at_high] + 2]
            if counting is not None:
                excess[at_high] = counts[codes[at_high] + 2]
            at_high += 1
        if p < n:
            cells[codes[p] + 1] += v[p]
            if counting is not None:
                counts[codes[p] + 1] += x[p]
    for r in range(n):
        out[r] += cells[codes[r]]
        if counting is not None:
            worse, better = degree[r] + counts[codes[r]], excess[r]
            degree[r], excess[r] = better + worse, better - worse


BITS = 5
WIDTH = 1 << BITS


@compiled
def offsets(n_grades: int) -> Ints:
    """Return where levels 1, 2, ... begin, the last being the length of the tree for grades 0 to n_grades inclusive."""
    result = np.zeros(8, dtype=np.int64)
    size, levels = n_grades + 1, 0
    while True:
        nodes = (size + WIDTH - 1) // WIDTH
        result[levels + 1] = result[levels] + nodes * WIDTH
        levels += 1
        if nodes == 1:
            return result[1 : levels + 1]
        size = nodes


@compiled
def add(tree: Floats, ends: Ints, grade: int | np.int64, value: float) -> None:
    """Add value to grade; ends is what offsets returned."""
    _add_to_later(tree, grade, value)
    for level in range(len(ends) - 1):
        grade >>= BITS
        _add_to_later(tree[ends[level] :], grade, value)


@inlined
def _add_to_later(numbers: Floats, place: int | np.int64, value: float) -> None:
    """Add value to the numbers after place within its node."""
    for later in range(place + 1, (place & -WIDTH) + WIDTH):
        numbers[later] += value


@compiled
def below(tree: Floats, ends: Ints, grade: int | np.int64) -> float:
    """Return the sum of what was added to the grades below grade."""
    total = tree[np.uint64(grade)]
    for level in range(len(ends) - 1):
        grade >>= BITS
        total += tree[np.uint64(ends[level] + grade)]
    return float(total)
