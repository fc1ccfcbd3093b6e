"""Counts and sums over the active pairs of a squared hinge, without a list of pairs.

The documents of a query, sorted by score; a pair (i, j) with y_i > y_j is active while s_i - s_j < 1. The active
partners of a document are then an interval of the sorted positions, cut by grade:

    worse partners    grade below, position >= low    (those that come closer than 1 from below)
    better partners   grade above, position < high    (those that do not lead by 1)

n       documents of the query        k   its distinct grades, numbered 0 .. k - 1 from the lowest: codes
order   position -> document of the query, low, high: (n,) uint32, counted from the query's first document

Both intervals only move up with the position, so two running ends find them. The sum of any v over the partners of all
documents then costs n steps with prefix sums a grade (k <= 7, FEW), or n log k with a Fenwick tree over the grades,
one upward sweep for the better partners and one downward for the worse. Sums and counts are float64: counts are exact
up to 2^53. Positions and codes are uint32: an index that cannot be negative spares numba a test for wrapping around.

Source: Lee & Lin 2014, "Large-scale linear RankSVM", Neural Computation 26, sections 3 and 4.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ranktune.solvers.arrays import Floats, Ints
from ranktune.solvers.compiled import compiled

FEW = 7
"""Up to so many grades, prefix sums by grade (a row of 8 numbers, one cache line, a document) beat a tree."""


@compiled
def number_grades(grades: Floats, starts: Ints, codes: Any, n_grades: Any) -> None:
    """Overwrite codes with each grade's number among the distinct ones of its query, and n_grades with their count."""
    levels = np.empty(FEW)
    for q in range(len(starts) - 1):
        a, b = starts[q], starts[q + 1]
        k = 0
        for i in range(a, b):
            at = 0
            while at < k and levels[at] < grades[i]:
                at += 1
            if at < k and levels[at] == grades[i]:
                continue
            if k == FEW:
                k += 1
                break
            for later in range(k, at, -1):
                levels[later] = levels[later - 1]
            levels[at] = grades[i]
            k += 1
        if k <= FEW:
            for i in range(a, b):
                at = 0
                while levels[at] < grades[i]:
                    at += 1
                codes[i] = at
        else:
            by_grade = np.argsort(grades[a:b])
            k = 1
            codes[a + by_grade[0]] = 0
            for r in range(1, b - a):
                k += grades[a + by_grade[r]] > grades[a + by_grade[r - 1]]
                codes[a + by_grade[r]] = k - 1
        n_grades[q] = k


@compiled
def evaluate_ties(starts: Ints, codes: Any, n_grades: Any, weights: Floats, pairs: Floats, slope: Floats) -> None:
    """Overwrite pairs with the pairs of each query, and slope with the gradient by score where all scores are equal."""
    for q in range(len(starts) - 1):
        a, b = starts[q], starts[q + 1]
        below = np.zeros(n_grades[q] + 1)
        for i in range(a, b):
            below[codes[i] + 1] += 1.0
        pairs[q] = 0.0
        for c in range(1, n_grades[q] + 1):
            pairs[q] += below[c] * below[c - 1]
            below[c] += below[c - 1]
        for i in range(a, b):
            better, worse = (b - a) - below[codes[i] + 1], below[codes[i]]
            slope[i] = 2.0 * weights[q] * (better - worse)


@compiled
def evaluate(
    scores: Floats, first: int, last: int, starts: Ints, codes: Any, n_grades: Any, weights: Floats, windows: Any
) -> float:
    """Return the weighted loss of queries first to last; fill their windows, the last being the gradient by score."""
    order, low, high, sorted_codes, degree, slope = windows
    longest = _longest(starts, first, last)
    ranked, total, better_less_worse = np.empty(longest), np.empty(longest), np.empty(longest)
    bucket, ends = np.empty(longest, dtype=np.uint32), np.empty(2 * longest + 1, dtype=np.uint32)
    table, step = np.empty((longest + 1, 16)), _steps()
    loss = 0.0
    for q in range(first, last):
        a, b = starts[q], starts[q + 1]
        n, k = b - a, n_grades[q]
        if k < 2:
            order[a:b] = np.arange(n)
            low[a:b], high[a:b], sorted_codes[a:b] = 0, 0, 0
            degree[a:b], slope[a:b] = 0.0, 0.0
            continue
        s, o, lo, hi, c = ranked[:n], order[a:b], low[a:b], high[a:b], sorted_codes[a:b]
        _rank(scores[a:b], o, s, bucket, ends)
        of_document = codes[a:b]
        for r in range(n):
            c[r] = of_document[o[r]]
        _find_windows(s, lo, hi)
        _centre(s)
        d, m, g = degree[a:b], better_less_worse[:n], total[:n]
        if k <= FEW:
            _sum_and_count_few(s, c, lo, hi, table, step, g, d, m)
        else:
            _sum_many(s, c, k, lo, hi, g)
            _count_many(c, k, lo, hi, d, m)
        part, slopes, weight = 0.0, slope[a:b], weights[q]
        for r in range(n):
            quadratic = d[r] * s[r] - g[r]
            part += s[r] * (quadratic + 2.0 * m[r]) + 0.5 * d[r]  # half the degrees is the number of pairs
            slopes[o[r]] = 2.0 * weight * (quadratic + m[r])
        if not part < 0.0:  # only by rounding; NaN must stay
            loss += weight * part
    return loss


@compiled
def multiply(
    by_document: Floats, first: int, last: int, starts: Ints, n_grades: Any, weights: Floats, windows: Any, out: Floats
) -> None:
    """Overwrite out with the second derivative by score, at the windows that evaluate left, times by_document."""
    order, low, high, sorted_codes, degree, _ = windows
    longest = _longest(starts, first, last)
    ranked, total = np.empty(longest), np.empty(longest)
    table, step = np.empty((longest + 1, 8)), _steps()
    for q in range(first, last):
        a, b = starts[q], starts[q + 1]
        n, k = b - a, n_grades[q]
        if k < 2:
            out[a:b] = 0.0
            continue
        t, o, g = ranked[:n], order[a:b], total[:n]
        v, result, d = by_document[a:b], out[a:b], degree[a:b]
        for r in range(n):
            t[r] = v[o[r]]
        _centre(t)
        if k <= FEW:
            _sum_few(t, sorted_codes[a:b], low[a:b], high[a:b], table, step, g)
        else:
            _sum_many(t, sorted_codes[a:b], k, low[a:b], high[a:b], g)
        twice = 2.0 * weights[q]
        for r in range(n):
            result[o[r]] = twice * (d[r] * t[r] - g[r])


@compiled
def _longest(starts: Ints, first: int, last: int) -> int:
    """Return the documents of the longest query from first to last."""
    longest = 0
    for q in range(first, last):
        longest = max(longest, starts[q + 1] - starts[q])
    return longest


@compiled
def _steps() -> Floats:
    """Return step[c, g] = 1 where grade c is below grade g."""
    step = np.zeros((8, 8))
    for c in range(8):
        step[c, c + 1 :] = 1.0
    return step


@compiled
def _centre(values: Floats) -> None:
    """Subtract the mean from values: only their differences matter, and small numbers round less in the sums."""
    mean = 0.0
    for r in range(len(values)):
        mean += values[r]
    mean /= len(values)
    for r in range(len(values)):
        values[r] -= mean


@compiled
def _rank(scores: Floats, order: Any, ranked: Floats, bucket: Any, ends: Any) -> None:
    """Overwrite order with the documents by rising score, and ranked with their scores.

    Scores spread over 2 n buckets of equal width are nearly sorted, and insertion ends it: about n steps, a sixth of a
    comparison sort. Where the buckets fill too unevenly for that (one score far from all others), compare after all.
    bucket (n,) and ends (2 n + 1,) uint32 are scratch.
    """
    n = len(scores)
    least = most = scores[0]
    for i in range(n):
        least = min(least, scores[i])
        most = max(most, scores[i])
    width = (2 * n - 1) / (most - least) if most > least else 0.0
    if not np.isfinite(width) or not np.isfinite(scores.sum()):  # beyond float64: keep memory safe, the loss says NaN
        width = 0.0
    ends[: 2 * n + 1] = 0
    for i in range(n):
        bucket[i] = np.uint32((scores[i] - least) * width) if width > 0.0 else 0
        ends[bucket[i] + 1] += 1
    for b in range(2 * n):
        ends[b + 1] += ends[b]
    for i in range(n):
        at = ends[bucket[i]]
        ends[bucket[i]] = at + 1
        ranked[at] = scores[i]
        order[at] = i
    if not _insertion_sort(ranked, order, 8 * n):
        order[:] = np.argsort(scores)
        for r in range(n):
            ranked[r] = scores[order[r]]


@compiled
def _insertion_sort(keys: Floats, order: Any, budget: int) -> bool:
    """Sort keys and order with them; give up after budget moves."""
    for r in range(1, len(keys)):
        key, document = keys[r], order[r]
        p = r
        while p > 0 and keys[p - 1] > key:
            keys[p] = keys[p - 1]
            order[p] = order[p - 1]
            p -= 1
        keys[p] = key
        order[p] = document
        budget -= r - p
        if budget < 0:
            return False
    return True


@compiled
def _find_windows(ranked: Floats, low: Any, high: Any) -> None:
    """Fill low and high; both ask the same difference, so that a pair is active from both of its ends or neither."""
    n = len(ranked)
    at_low = at_high = 0
    for r in range(n):
        while ranked[r] - ranked[at_low] >= 1.0:
            at_low += 1
        while at_high < n and ranked[at_high] - ranked[r] < 1.0:
            at_high += 1
        low[r] = at_low
        high[r] = at_high


@compiled
def _sum_few(v: Floats, codes: Any, low: Any, high: Any, table: Floats, step: Floats, out: Floats) -> None:
    """Overwrite out with the sums of v over all active partners; table[r, g] sums the grades below g before r."""
    n = len(v)
    for g in range(8):
        table[0, g] = 0.0
    for r in range(n):
        for g in range(8):
            table[r + 1, g] = table[r, g] + v[r] * step[codes[r], g]
    for r in range(n):
        c = codes[r]
        worse = table[n, c] - table[low[r], c]
        better = table[high[r], 7] - table[high[r], c + 1]
        out[r] = worse + better


@compiled
def _sum_and_count_few(
    v: Floats,
    codes: Any,
    low: Any,
    high: Any,
    table: Floats,
    step: Floats,
    total: Floats,
    degree: Floats,
    excess: Floats,
) -> None:
    """Do what _sum_few does, and overwrite degree with the number of active partners, excess with better less worse."""
    n = len(v)
    for g in range(16):
        table[0, g] = 0.0
    for r in range(n):
        c = codes[r]
        for g in range(8):
            table[r + 1, g] = table[r, g] + v[r] * step[c, g]
        for g in range(8):
            table[r + 1, 8 + g] = table[r, 8 + g] + step[c, g]
    for r in range(n):
        c, lo, hi = codes[r], low[r], high[r]
        total[r] = (table[n, c] - table[lo, c]) + (table[hi, 7] - table[hi, c + 1])
        worse = table[n, 8 + c] - table[lo, 8 + c]
        better = table[hi, 15] - table[hi, 9 + c]
        degree[r] = better + worse
        excess[r] = better - worse


@compiled
def _sum_many(v: Floats, codes: Any, k: int, low: Any, high: Any, out: Floats) -> None:
    """Overwrite out with the sums of v over all active partners."""
    n = len(v)
    tree = np.zeros(k + 1)
    added = 0
    for r in range(n):  # upwards: codes count from the top, so that a prefix of the tree is the better grades
        while added < high[r]:
            _add(tree, k - codes[added], v[added])
            added += 1
        out[r] = _prefix(tree, k - 1 - codes[r])
    tree[:] = 0.0
    added = n
    for r in range(n - 1, -1, -1):
        while added > low[r]:
            added -= 1
            _add(tree, codes[added] + 1, v[added])
        out[r] += _prefix(tree, codes[r])


@compiled
def _count_many(codes: Any, k: int, low: Any, high: Any, degree: Floats, excess: Floats) -> None:
    """Overwrite degree with the number of active partners, and excess with the better less the worse ones."""
    n = len(codes)
    tree = np.zeros(k + 1)
    added = 0
    for r in range(n):
        while added < high[r]:
            _add(tree, k - codes[added], 1.0)
            added += 1
        degree[r] = excess[r] = _prefix(tree, k - 1 - codes[r])
    tree[:] = 0.0
    added = n
    for r in range(n - 1, -1, -1):
        while added > low[r]:
            added -= 1
            _add(tree, codes[added] + 1, 1.0)
        worse = _prefix(tree, codes[r])
        degree[r] += worse
        excess[r] -= worse


@compiled
def _add(tree: Floats, at: int, value: float) -> None:
    while at < len(tree):
        tree[at] += value
        at += at & -at


@compiled
def _prefix(tree: Floats, at: int) -> float:
    total = 0.0
    while at > 0:
        total += tree[at]
        at &= at - 1
    return total
