"""Counts and sums over the active pairs of a squared hinge, without a list of pairs.

The documents of a query, sorted by score; a pair (i, j) with y_i > y_j is active while s_i - s_j < margin. The active
partners of a document are then an interval of the sorted positions, cut by grade:

    worse partners    grade below, position >= low    (those that come closer than the margin from below)
    better partners   grade above, position < high    (those that do not lead by the margin)

n       documents of the query        k   its distinct grades, numbered 0 .. k - 1 from the lowest: codes
order   position -> document of the query, low, high: (n,) uint32, counted from the query's first document
adjacent   only grades next to each other among the query's make pairs

Both intervals only move up with the position, so one upward sweep finds both: it adds one document after the other to a
structure that returns the sum below a grade, and reads it for document r at position low[r] and again at high[r]. The
structure is a table of prefix sums with a row a position while k <= MAX_TABLE_GRADES (no branch depends on the data),
the tree of grade_tree for more grades, and one number a grade where pairs are of adjacent grades or all pairs of the
query are active. Sums and counts are float64: counts are exact up to 2^53. Positions and codes are uint32: an index
that cannot be negative spares numba a test for wrapping around.

Source: Lee & Lin 2014, "Large-scale linear RankSVM", Neural Computation 26, sections 3 to 5.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ranktune.solvers.core.arrays import Codes, Floats, Ints
from ranktune.solvers.core.compiled import compiled
from ranktune.solvers.core.grade_tree import offsets
from ranktune.solvers.data.grades import MAX_TABLE_GRADES, documents_below, sort_with_order
from ranktune.solvers.losses.window_sums import (
    steps,
    sum_adjacent,
    sum_all,
    sum_and_count_adjacent,
    sum_and_count_all,
    sum_and_count_few,
    sum_and_count_many,
    sum_few,
    sum_many,
)


class Judged(NamedTuple):
    """The grades of queries, numbered (see data.grades), and the weight of each query, (n_queries,)."""

    starts: Ints
    codes: Codes
    n_grades: Codes
    weights: Floats


class Windows(NamedTuple):
    """The active pairs of one squared hinge, (n_documents,) each, by position but for slope, which is by document.

    degree is the number of active pairs of a document, slope the gradient by score. For several hinges, each array has
    a row a hinge.
    """

    order: Codes
    low: Codes
    high: Codes
    codes: Codes
    degree: Floats
    slope: Floats


@compiled
def windows_of(windows: Windows, term: int) -> Windows:
    """Return the windows of one of several hinges."""
    order, low, high, codes, degree, slope = windows
    return Windows(order[term], low[term], high[term], codes[term], degree[term], slope[term])


@compiled
def slopes_of_ties(judged: Judged, adjacent: bool, slope: Floats) -> None:
    """Overwrite slope with better less worse partners of each document, weighted, where all scores are equal.

    That is half the gradient by score of the squared hinge of margin 1.
    """
    starts, codes, n_grades, weights = judged
    for q in range(len(starts) - 1):
        a, b = starts[q], starts[q + 1]
        k = int(np.int64(n_grades[q]))
        up_to = documents_below(codes[a:b], k)
        of_grade = np.empty(k)
        for c in range(k):
            last, first = (min(c + 2, k), max(c, 1) - 1) if adjacent else (k, 0)
            better, worse = up_to[last] - up_to[c + 1], up_to[c] - up_to[first]
            of_grade[c] = weights[q] * (better - worse)
        for i in range(a, b):
            slope[i] = of_grade[codes[i]]


@compiled
def windows_of_ties(judged: Judged, adjacent: bool, windows: Windows) -> None:
    """Fill windows as evaluate does where all scores are equal, but for the slopes. Cost: no sorting."""
    starts, codes, n_grades, _ = judged
    order, low, high, sorted_codes, degree, _ = windows
    for q in range(len(starts) - 1):
        a, b, k = starts[q], starts[q + 1], n_grades[q]
        count = np.zeros(k + 2)  # count[c + 1]: documents of grade c
        for i in range(a, b):
            count[codes[i] + 1] += 1.0
        for i in range(a, b):
            c = codes[i]
            order[i], low[i], high[i], sorted_codes[i] = i - a, 0, b - a, c
            degree[i] = count[c] + count[c + 2] if adjacent else b - a - count[c + 1]


@compiled
def evaluate(
    scores: Floats, first: int, last: int, judged: Judged, margin: float, adjacent: bool, windows: Windows
) -> tuple[float, float]:
    """Return the weighted losses of queries first to last, the squared hinge and the hinge, of margin.

    Fills their windows, the last being the gradient of the squared hinge by score: it may be the very array of scores.
    """
    starts, codes, n_grades, weights = judged
    order, low, high, sorted_codes, degree, slope = windows
    longest, longest_few, most = _extremes(starts, n_grades, first, last)
    ranked, total, better_less_worse = np.empty(longest), np.empty(longest), np.empty(longest)
    bucket, ends = np.empty(longest, dtype=np.uint32), np.empty(2 * longest + 1, dtype=np.uint32)
    table, step = np.empty((longest_few + 1, 16)), steps()
    sums, counts = _scratch(most, adjacent), _scratch(most, adjacent)
    squared, linear = 0.0, 0.0
    for q in range(first, last):
        a, b = starts[q], starts[q + 1]
        n, k = b - a, n_grades[q]
        if k < 2:
            order[a:b] = np.arange(n)
            low[a:b], high[a:b], sorted_codes[a:b] = 0, 0, 0
            degree[a:b], slope[a:b] = 0.0, 0.0
            continue
        s, o, lo, hi, c = ranked[:n], order[a:b], low[a:b], high[a:b], sorted_codes[a:b]
        sort_with_order(scores[a:b], o, s, bucket, ends)
        of_document = codes[a:b]
        for r in range(n):
            c[r] = of_document[o[r]]
        _find_windows(s, margin, lo, hi)
        _centre(s)
        d, m, g = degree[a:b], better_less_worse[:n], total[:n]
        if adjacent:
            sum_and_count_adjacent(s, c, k, lo, hi, sums, counts, g, d, m)
        elif lo[n - 1] == 0 and hi[0] == n:
            sum_and_count_all(s, c, k, sums, counts, g, d, m)
        elif k <= MAX_TABLE_GRADES:
            sum_and_count_few(s, c, lo, hi, table, step, g, d, m)
        else:
            sum_and_count_many(s, c, k, lo, hi, sums, counts, g, d, m)
        # half the degrees is the number of pairs
        part, hinge, slopes, weight = 0.0, 0.0, slope[a:b], weights[q]
        for r in range(n):
            quadratic = d[r] * s[r] - g[r]
            part += s[r] * (quadratic + 2.0 * margin * m[r]) + 0.5 * margin * margin * d[r]
            hinge += s[r] * m[r] + 0.5 * margin * d[r]
            slopes[o[r]] = 2.0 * weight * (quadratic + margin * m[r])
        if not part < 0.0:  # only by rounding; NaN must stay
            squared += weight * part
        if not hinge < 0.0:
            linear += weight * hinge
    return squared, linear


@compiled
def multiply(
    by_document: Floats, first: int, last: int, judged: Judged, adjacent: bool, windows: Windows, out: Floats
) -> None:
    """Overwrite out with the second derivative of the squared hinge by score, at the windows, times by_document."""
    starts, _, n_grades, weights = judged
    order, low, high, sorted_codes, degree, _ = windows
    longest, longest_few, most = _extremes(starts, n_grades, first, last)
    ranked, total = np.empty(longest), np.empty(longest)
    table, step, sums = np.empty((longest_few + 1, 8)), steps(), _scratch(most, adjacent)
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
        c, lo, hi = sorted_codes[a:b], low[a:b], high[a:b]
        if adjacent:
            sum_adjacent(t, c, k, lo, hi, sums, g)
        elif lo[n - 1] == 0 and hi[0] == n:
            sum_all(t, c, k, sums, g)
        elif k <= MAX_TABLE_GRADES:
            sum_few(t, c, lo, hi, table, step, g)
        else:
            sum_many(t, c, k, lo, hi, sums, g)
        twice = 2.0 * weights[q]
        for r in range(n):
            result[o[r]] = twice * (d[r] * t[r] - g[r])


@compiled
def _extremes(starts: Ints, n_grades: Codes, first: int, last: int) -> tuple[int, int, int]:
    """Return the documents of the longest query from first to last, of the longest with few grades, the most grades."""
    longest, longest_few = 0, 0
    most = 0
    for q in range(first, last):
        n, k = starts[q + 1] - starts[q], int(np.int64(n_grades[q]))
        longest, most = max(longest, n), max(most, k)
        if k <= MAX_TABLE_GRADES:
            longest_few = max(longest_few, n)
    return longest, longest_few, most


@compiled
def _scratch(most: int, adjacent: bool) -> Floats:
    """Return room for a number a grade and their tree."""
    return np.empty(most + 2 if adjacent else offsets(most)[-1])


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
def _find_windows(ranked: Floats, margin: float, low: Codes, high: Codes) -> None:
    """Fill low and high by one merge; both use the same difference, so that a pair is active from both ends or neither.

    The position that advances is unpredictable, so there is no branch: both are written, and the last value stays.
    """
    n = len(ranked)
    r = at = 0
    while r < n:
        far = ranked[r] - ranked[at] >= margin
        low[r], high[at] = at, r
        at += far
        r += 1 - far
    high[at:] = n
