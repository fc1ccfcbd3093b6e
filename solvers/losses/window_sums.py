"""Sums and counts over the active partners of every document of a query: structures for many grades, or few to look at.

Documents are sorted by score (notation: order_statistics). The worse partners of r have a grade below its own and a
position >= low[r], the better ones a grade above and a position < high[r]. All kernels overwrite their last arrays:

cells        sums by grade: the tree of grade_tree, or where only partners one grade away count, cells[c + 1] of grade c
out, total   (n,) the sums of v over all partners      degree   (n,) their number      excess   (n,) better less worse
"""

from __future__ import annotations

import numpy as np

from ranktune.solvers.core.arrays import Codes, Floats, Ints
from ranktune.solvers.core.compiled import compiled
from ranktune.solvers.core.grade_tree import add, below, offsets


@compiled
def sum_below(cells: Floats, ends: Ints, c: np.int64, adjacent: bool) -> float:
    """Return the sum of grade c - 1 if adjacent, else of all grades below c."""
    return float(cells[c]) if adjacent else below(cells, ends, c)


@compiled
def sum_above(cells: Floats, ends: Ints, c: np.int64, total: float, adjacent: bool) -> float:
    """Return the sum of grade c + 1 if adjacent, else of all grades above c, where total is that of all grades."""
    return float(cells[c + 2]) if adjacent else total - below(cells, ends, c + 1)


@compiled
def add_value(cells: Floats, ends: Ints, c: np.int64, value: float, adjacent: bool) -> None:
    """Add value to grade c."""
    if adjacent:
        cells[c + 1] += value
    else:
        add(cells, ends, c, value)


@compiled
def sum_windows(
    v: Floats, codes: Codes, k: int, low: Codes, high: Codes, adjacent: bool, cells: Floats, out: Floats
) -> None:
    """Overwrite out with the sums of v over all active partners."""
    n, ends = len(v), offsets(k)
    cells[: k + 2 if adjacent else ends[-1]] = 0.0
    total, at_low, at_high = 0.0, 0, 0
    for p in range(n + 1):
        while at_low < n and low[at_low] == p:
            out[at_low] = -sum_below(cells, ends, np.int64(codes[at_low]), adjacent)
            at_low += 1
        while at_high < n and high[at_high] == p:  # never ahead of at_low
            out[at_high] += sum_above(cells, ends, np.int64(codes[at_high]), total, adjacent)
            at_high += 1
        if p < n:
            total += v[p]
            add_value(cells, ends, np.int64(codes[p]), v[p], adjacent)
    for r in range(n):
        out[r] += sum_below(cells, ends, np.int64(codes[r]), adjacent)


@compiled
def sum_and_count_windows(
    v: Floats,
    codes: Codes,
    k: int,
    low: Codes,
    high: Codes,
    adjacent: bool,
    sums: Floats,
    counts: Floats,
    total: Floats,
    degree: Floats,
    excess: Floats,
) -> None:
    """Do as sum_windows, and overwrite degree with the number of active partners, excess with better less worse."""
    n, ends = len(v), offsets(k)
    sums[: k + 2 if adjacent else ends[-1]] = 0.0
    counts[: k + 2 if adjacent else ends[-1]] = 0.0
    added, at_low, at_high = 0.0, 0, 0
    for p in range(n + 1):
        while at_low < n and low[at_low] == p:
            c = np.int64(codes[at_low])
            total[at_low] = -sum_below(sums, ends, c, adjacent)
            degree[at_low] = -sum_below(counts, ends, c, adjacent)  # worse partners, but for those still to come
            at_low += 1
        while at_high < n and high[at_high] == p:
            c = np.int64(codes[at_high])
            total[at_high] += sum_above(sums, ends, c, added, adjacent)
            excess[at_high] = sum_above(counts, ends, c, float(p), adjacent)
            at_high += 1
        if p < n:
            added += v[p]
            add_value(sums, ends, np.int64(codes[p]), v[p], adjacent)
            add_value(counts, ends, np.int64(codes[p]), 1.0, adjacent)
    for r in range(n):
        c = np.int64(codes[r])
        total[r] += sum_below(sums, ends, c, adjacent)
        worse, better = degree[r] + sum_below(counts, ends, c, adjacent), excess[r]
        degree[r], excess[r] = better + worse, better - worse


@compiled
def sum_all(v: Floats, codes: Codes, k: int, cells: Floats, out: Floats) -> None:
    """Do as sum_windows does where all pairs are active: whatever is not of the own grade; cells[c] sums grade c."""
    total = 0.0
    cells[:k] = 0.0
    for r in range(len(v)):
        cells[codes[r]] += v[r]
        total += v[r]
    for r in range(len(v)):
        out[r] = total - cells[codes[r]]


@compiled
def sum_and_count_all(
    v: Floats, codes: Codes, k: int, sums: Floats, counts: Floats, total: Floats, degree: Floats, excess: Floats
) -> None:
    """Do as sum_and_count_windows does where all pairs are active."""
    n = len(v)
    sum_all(v, codes, k, sums, total)
    counts[: k + 1] = 0.0
    for r in range(n):
        counts[codes[r] + 1] += 1.0
    for c in range(k):
        counts[c + 1] += counts[c]  # those of grades below c + 1
    for r in range(n):
        below, up_to = counts[codes[r]], counts[codes[r] + 1]
        degree[r], excess[r] = n - up_to + below, n - up_to - below
