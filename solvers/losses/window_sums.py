"""Sums and counts over the active partners of every document of a query, for many grades, adjacent grades or all pairs.

Documents are sorted by score (notation: order_statistics). The worse partners of r have a grade below its own and a
position >= low[r], the better ones a grade above and a position < high[r]. All kernels overwrite their last arrays:

out, total   (n,) the sums of v over all partners      degree   (n,) their number      excess   (n,) better less worse

In numbers a document counts as often as x says, (n,); v is multiplied by it already.
"""

from __future__ import annotations

import numpy as np

from ranktune.solvers.core.arrays import Codes, Floats
from ranktune.solvers.core.compiled import compiled
from ranktune.solvers.core.grade_tree import add, below, offsets


@compiled
def sum_many(v: Floats, codes: Codes, k: int, low: Codes, high: Codes, tree: Floats, out: Floats) -> None:
    """Overwrite out with the sums of v over all active partners."""
    n, ends = len(v), offsets(k)
    tree[: ends[-1]] = 0.0
    total, at_low, at_high = 0.0, 0, 0
    for p in range(n + 1):
        while at_low < n and low[at_low] == p:
            out[at_low] = -below(tree, ends, np.int64(codes[at_low]))
            at_low += 1
        while at_high < n and high[at_high] == p:  # never ahead of at_low
            out[at_high] += total - below(tree, ends, np.int64(codes[at_high]) + 1)
            at_high += 1
        if p < n:
            total += v[p]
            add(tree, ends, np.int64(codes[p]), v[p])
    for r in range(n):
        out[r] += below(tree, ends, np.int64(codes[r]))


@compiled
def sum_and_count_many(
    v: Floats,
    x: Floats,
    codes: Codes,
    k: int,
    low: Codes,
    high: Codes,
    sums: Floats,
    counts: Floats,
    total: Floats,
    degree: Floats,
    excess: Floats,
) -> None:
    """Do what sum_many does, and overwrite degree with the number of active partners, excess with better less worse."""
    n, ends = len(v), offsets(k)
    sums[: ends[-1]] = 0.0
    counts[: ends[-1]] = 0.0
    added, counted, at_low, at_high = 0.0, 0.0, 0, 0
    for p in range(n + 1):
        while at_low < n and low[at_low] == p:
            c = np.int64(codes[at_low])
            total[at_low] = -below(sums, ends, c)
            degree[at_low] = -below(counts, ends, c)  # worse partners, but for those that are still to come
            at_low += 1
        while at_high < n and high[at_high] == p:
            c = np.int64(codes[at_high]) + 1
            total[at_high] += added - below(sums, ends, c)
            excess[at_high] = counted - below(counts, ends, c)
            at_high += 1
        if p < n:
            added += v[p]
            counted += x[p]
            add(sums, ends, np.int64(codes[p]), v[p])
            add(counts, ends, np.int64(codes[p]), x[p])
    for r in range(n):
        c = np.int64(codes[r])
        total[r] += below(sums, ends, c)
        worse, better = degree[r] + below(counts, ends, c), excess[r]
        degree[r], excess[r] = better + worse, better - worse


@compiled
def sum_all(v: Floats, codes: Codes, k: int, cells: Floats, out: Floats) -> None:
    """Do what sum_many does where all pairs are active: all documents of other grades; cells[c] sums grade c."""
    total = 0.0
    cells[:k] = 0.0
    for r in range(len(v)):
        cells[codes[r]] += v[r]
        total += v[r]
    for r in range(len(v)):
        out[r] = total - cells[codes[r]]


@compiled
def sum_and_count_all(
    v: Floats,
    x: Floats,
    codes: Codes,
    k: int,
    sums: Floats,
    counts: Floats,
    total: Floats,
    degree: Floats,
    excess: Floats,
) -> None:
    """Do what sum_and_count_many does where all pairs are active."""
    n = len(v)
    sum_all(v, codes, k, sums, total)
    counts[: k + 1] = 0.0
    for r in range(n):
        counts[codes[r] + 1] += x[r]
    for c in range(k):
        counts[c + 1] += counts[c]  # those of grades below c + 1
    for r in range(n):
        below, up_to = counts[codes[r]], counts[codes[r] + 1]
        degree[r], excess[r] = counts[k] - up_to + below, counts[k] - up_to - below


@compiled
def sum_adjacent(v: Floats, codes: Codes, k: int, low: Codes, high: Codes, cells: Floats, out: Floats) -> None:
    """Overwrite out with the sums of v over the active partners one grade away; cells[c + 1] sums grade c."""
    n = len(v)
    cells[: k + 2] = 0.0
    at_low = at_high = 0
    for p in range(n + 1):
        while at_low < n and low[at_low] == p:
            out[at_low] = -cells[codes[at_low]]
            at_low += 1
        while at_high < n and high[at_high] == p:
            out[at_high] += cells[codes[at_high] + 2]
            at_high += 1
        if p < n:
            cells[codes[p] + 1] += v[p]
    for r in range(n):
        out[r] += cells[codes[r]]


@compiled
def sum_and_count_adjacent(
    v: Floats,
    x: Floats,
    codes: Codes,
    k: int,
    low: Codes,
    high: Codes,
    sums: Floats,
    counts: Floats,
    total: Floats,
    degree: Floats,
    excess: Floats,
) -> None:
    """Do for partners one grade away what sum_and_count_many does for all."""
    n = len(v)
    sums[: k + 2] = 0.0
    counts[: k + 2] = 0.0
    at_low = at_high = 0
    for p in range(n + 1):
        while at_low < n and low[at_low] == p:
            total[at_low], degree[at_low] = -sums[codes[at_low]], -counts[codes[at_low]]
            at_low += 1
        while at_high < n and high[at_high] == p:
            total[at_high] += sums[codes[at_high] + 2]
            excess[at_high] = counts[codes[at_high] + 2]
            at_high += 1
        if p < n:
            sums[codes[p] + 1] += v[p]
            counts[codes[p] + 1] += x[p]
    for r in range(n):
        total[r] += sums[codes[r]]
        worse, better = degree[r] + counts[codes[r]], excess[r]
        degree[r], excess[r] = better + worse, better - worse
