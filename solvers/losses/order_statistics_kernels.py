"""Loops over queries and their sorted positions; the notation is that of order_statistics.

Kernels of few grades call no other but the sort, because numba compiles what a kernel calls again for each caller.
Those of the rest are compiled only where a query has more than MAX_TABLE_GRADES grades.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ranktune.solvers.core.arrays import Codes, Floats, Ints
from ranktune.solvers.core.compiled import compiled
from ranktune.solvers.data.grades import MAX_TABLE_GRADES, sort_with_order
from ranktune.solvers.losses.window_sums import (
    Counting,
    sum_adjacent,
    sum_all,
    sum_many,
)

STEP = np.triu(np.ones((8, 8)), 1)
"""STEP[c, g] is 1 where grade c is below grade g."""


class GradedLists(NamedTuple):
    """The grades of queries, numbered (see data.grades), and the weight of each query, (n_queries,).

    copies, (n_documents,), says how often each document counts: a pair weighs the product. Empty: each counts once.
    """

    starts: Ints
    codes: Codes
    n_grades: Codes
    weights: Floats
    copies: Floats

    def part(self, first: int, last: int) -> GradedLists:
        """Return those of the queries first to last - 1."""
        starts = self.starts[first : last + 1]
        a, b = starts[0], starts[-1]
        codes, n_grades, weights, copies = self[1:]
        return GradedLists(starts - a, codes[a:b], n_grades[first:last], weights[first:last], copies[a:b])


class Windows(NamedTuple):
    """The active pairs of one squared hinge, (n_documents,) each, by position but for slope, which is by document.

    degree is the number of active partners of a document, as often as they count, slope the gradient by score.
    """

    order: Codes
    low: Codes
    high: Codes
    codes: Codes
    degree: Floats
    slope: Floats

    def part(self, a: int, b: int) -> Windows:
        """Return those of the documents a to b - 1, which are whole queries."""
        order, low, high, codes, degree, slope = self
        return Windows(order[a:b], low[a:b], high[a:b], codes[a:b], degree[a:b], slope[a:b])


@compiled
def rank(
    scores: Floats, graded: GradedLists, margin: float, bucket: Codes, ends: Codes, windows: Windows, ranked: Floats
) -> None:
    """Fill windows, but for degree and slope, and overwrite ranked with the sorted scores less their mean.

    Only differences of scores matter, and small numbers round less in the sums. bucket (longest query,) and ends
    (2 * longest query + 1,) are scratch. Of a query with one grade, nothing is active and nothing is sorted.
    """
    starts, of_document, n_grades, _, _ = graded
    order, low, high, codes, _, _ = windows
    for q in range(len(starts) - 1):
        a, b = starts[q], starts[q + 1]
        n, s, o, t, c, lo, hi = b - a, scores[a:b], order[a:b], ranked[a:b], codes[a:b], low[a:b], high[a:b]
        grade = of_document[a:b]
        if n_grades[q] < 2:
            for r in range(n):
                o[r], lo[r], hi[r], c[r], t[r] = r, 0, 0, 0, 0.0
            continue
        sort_with_order(s, o, t, bucket, ends)
        for r in range(n):
            c[r] = grade[o[r]]
        # One merge; both ends use the same difference, so that a pair is active from both or neither. The position
        # that advances is unpredictable, so there is no branch: both are written, and the last value stays.
        r = at_high = 0
        while r < n:
            far = t[r] - t[at_high] >= margin
            lo[r], hi[at_high] = at_high, r
            at_high += far
            r += 1 - far
        for r in range(at_high, n):
            hi[r] = n
        mean = 0.0
        for r in range(n):
            mean += t[r]
        mean /= n
        for r in range(n):
            t[r] -= mean


@compiled
def slopes_few(
    graded: GradedLists, margin: float, adjacent: bool, windows: Windows, ranked: Floats, table: Floats
) -> tuple[float, float]:
    """Return the weighted losses, and overwrite degree and slope, of queries with up to MAX_TABLE_GRADES grades.

    table, (longest query + 1, 16), is scratch: row r has the sum, and from 8 on the count, of the positions before r
    with grades below g. Half the degrees is the number of pairs.
    """
    starts, _, n_grades, weights, copies = graded
    order, low, high, codes, degree, slope = windows
    squared, linear = 0.0, 0.0
    for q in range(len(starts) - 1):
        a, b, weight = starts[q], starts[q + 1], weights[q]
        if n_grades[q] < 2:
            for r in range(a, b):
                degree[r], slope[r] = 0.0, 0.0
            continue
        if n_grades[q] > MAX_TABLE_GRADES:
            continue
        n, t, c, lo, hi, o = b - a, ranked[a:b], codes[a:b], low[a:b], high[a:b], order[a:b]
        degrees, slopes, value, hinge, often = degree[a:b], slope[a:b], 0.0, 0.0, copies[a:b]
        for g in range(16):
            table[0, g] = 0.0
        for r in range(n):
            x = often[o[r]] if len(often) > 0 else 1.0
            for g in range(8):
                table[r + 1, g] = table[r, g] + x * t[r] * STEP[c[r], g]
            for g in range(8):
                table[r + 1, 8 + g] = table[r, 8 + g] + x * STEP[c[r], g]
        for r in range(n):
            g, x, y = c[r], lo[r], hi[r]
            total = (table[n, g] - table[x, g]) + (table[y, 7] - table[y, g + 1])
            worse = table[n, 8 + g] - table[x, 8 + g]
            better = table[y, 15] - table[y, 9 + g]
            if adjacent:
                f, h = g - 1 if g > 0 else 0, g + 2 if g < 6 else 7
                total -= (table[n, f] - table[x, f]) + (table[y, 7] - table[y, h])
                worse -= table[n, 8 + f] - table[x, 8 + f]
                better -= table[y, 15] - table[y, 8 + h]
            d, m, x = better + worse, better - worse, often[o[r]] if len(often) > 0 else 1.0
            quadratic = d * t[r] - total
            value += x * (t[r] * (quadratic + 2.0 * margin * m) + 0.5 * margin * margin * d)
            hinge += x * (t[r] * m + 0.5 * margin * d)
            degrees[r] = d
            slopes[o[r]] = x * (2.0 * weight * (quadratic + margin * m))
        if not value < 0.0:  # only by rounding; NaN must stay
            squared += weight * value
        if not hinge < 0.0:
            linear += weight * hinge
    return squared, linear


@compiled
def multiply_few(
    graded: GradedLists,
    adjacent: bool,
    windows: Windows,
    by_document: Floats,
    table: Floats,
    ranked: Floats,
    out: Floats,
) -> None:
    """Overwrite out, of queries with up to MAX_TABLE_GRADES grades, with the second derivative times by_document.

    table and ranked are scratch, see slopes_few.
    """
    starts, _, n_grades, weights, copies = graded
    order, low, high, codes, degree, _ = windows
    for q in range(len(starts) - 1):
        a, b, twice = starts[q], starts[q + 1], 2.0 * weights[q]
        if n_grades[q] < 2:
            for r in range(a, b):
                out[r] = 0.0
            continue
        if n_grades[q] > MAX_TABLE_GRADES:
            continue
        n, v, c, lo, hi, o = b - a, by_document[a:b], codes[a:b], low[a:b], high[a:b], order[a:b]
        degrees, result, mean, often = degree[a:b], out[a:b], 0.0, copies[a:b]
        for r in range(n):
            ranked[r] = v[o[r]]
            mean += ranked[r]
        mean /= n
        for g in range(8):
            table[0, g] = 0.0
        for r in range(n):
            ranked[r] -= mean
            x = often[o[r]] if len(often) > 0 else 1.0
            for g in range(8):
                table[r + 1, g] = table[r, g] + x * ranked[r] * STEP[c[r], g]
        for r in range(n):
            g, x, y = c[r], lo[r], hi[r]
            total = (table[n, g] - table[x, g]) + (table[y, 7] - table[y, g + 1])
            if adjacent:
                f, h = g - 1 if g > 0 else 0, g + 2 if g < 6 else 7
                total -= (table[n, f] - table[x, f]) + (table[y, 7] - table[y, h])
            result[o[r]] = twice * (degrees[r] * ranked[r] - total)
        for i in range(len(often)):
            result[i] *= often[i]


@compiled
def slopes_rest(
    graded: GradedLists,
    margin: float,
    adjacent: bool,
    windows: Windows,
    ranked: Floats,
    sums: Floats,
    counts: Floats,
    total: Floats,
    excess: Floats,
    counted: Floats,
    weighed: Floats,
) -> tuple[float, float]:
    """Do what slopes_few does for the other queries; the last arrays are scratch."""
    starts, _, n_grades, weights, copies = graded
    order, low, high, codes, degree, slope = windows
    squared, linear = 0.0, 0.0
    for q in range(len(starts) - 1):
        a, b, k, weight = starts[q], starts[q + 1], n_grades[q], weights[q]
        if k <= MAX_TABLE_GRADES:
            continue
        n, t, c, lo, hi, o = b - a, ranked[a:b], codes[a:b], low[a:b], high[a:b], order[a:b]
        d, slopes, value, hinge, g, m = degree[a:b], slope[a:b], 0.0, 0.0, total[: b - a], excess[: b - a]
        x, v = counted[:n], weighed[:n]
        counting = Counting(x, counts, d, m)
        for r in range(n):
            x[r] = copies[a + o[r]] if len(copies) > 0 else 1.0
            v[r] = x[r] * t[r]
        if adjacent:
            sum_adjacent(v, c, k, lo, hi, sums, g, counting)
        elif lo[n - 1] == 0 and hi[0] == n:
            sum_all(v, c, k, sums, g, counting)
        else:
            sum_many(v, c, k, lo, hi, sums, g, counting)
        for r in range(n):
            quadratic = d[r] * t[r] - g[r]
            value += x[r] * (t[r] * (quadratic + 2.0 * margin * m[r]) + 0.5 * margin * margin * d[r])
            hinge += x[r] * (t[r] * m[r] + 0.5 * margin * d[r])
            slopes[o[r]] = x[r] * (2.0 * weight * (quadratic + margin * m[r]))
        if not value < 0.0:
            squared += weight * value
        if not hinge < 0.0:
            linear += weight * hinge
    return squared, linear


@compiled
def multiply_rest(
    graded: GradedLists,
    adjacent: bool,
    windows: Windows,
    by_document: Floats,
    sums: Floats,
    ranked: Floats,
    total: Floats,
    weighed: Floats,
    out: Floats,
) -> None:
    """Do what multiply_few does for the other queries; sums, ranked, total and weighed are scratch."""
    starts, _, n_grades, weights, copies = graded
    order, low, high, codes, degree, _ = windows
    for q in range(len(starts) - 1):
        a, b, k, twice = starts[q], starts[q + 1], n_grades[q], 2.0 * weights[q]
        if k <= MAX_TABLE_GRADES:
            continue
        n, v, c, lo, hi, o = b - a, by_document[a:b], codes[a:b], low[a:b], high[a:b], order[a:b]
        d, result, mean, t, g = degree[a:b], out[a:b], 0.0, ranked[: b - a], total[: b - a]
        for r in range(n):
            t[r] = v[o[r]]
            mean += t[r]
        mean /= n
        u, often = weighed[:n], copies[a:b]
        for r in range(n):
            t[r] -= mean
            u[r] = t[r] * often[o[r]] if len(often) > 0 else t[r]
        if adjacent:
            sum_adjacent(u, c, k, lo, hi, sums, g)
        elif lo[n - 1] == 0 and hi[0] == n:
            sum_all(u, c, k, sums, g)
        else:
            sum_many(u, c, k, lo, hi, sums, g)
        for r in range(n):
            result[o[r]] = twice * (d[r] * t[r] - g[r])
        for i in range(len(often)):
            result[i] *= often[i]
