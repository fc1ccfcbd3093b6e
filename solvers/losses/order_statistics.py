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

A document of weight x counts x times, so that a pair weighs x_i x_j. Without weights the factor 1 changes no bit.

Source: Lee & Lin 2014, "Large-scale linear RankSVM", Neural Computation 26, sections 3 to 5.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.data.grades import MAX_TABLE_GRADES, grade_cells, partners_by_cell
from ranktune.solvers.losses.order_statistics_kernels import (
    GradedLists,
    Windows,
    multiply_few,
    multiply_rest,
    rank,
    slopes_few,
    slopes_rest,
)
from ranktune.solvers.losses.window_sums import offsets


def slopes_of_ties(graded: GradedLists, adjacent: bool) -> Floats:
    """Return better less worse partners of each document, weighted, where all scores are equal: (n_documents,).

    That is half the gradient by score of the squared hinge of margin 1.
    """
    starts, codes, n_grades, weights, copies = graded
    cells, counts, below = grade_cells(starts, codes, n_grades, copies)
    worse, better = partners_by_cell(counts, below, n_grades, adjacent)
    slopes: Floats = (np.repeat(weights, n_grades) * (better - worse))[cells]
    return slopes * copies if len(copies) else slopes


def windows_of_ties(graded: GradedLists, adjacent: bool, windows: Windows) -> None:
    """Fill windows as evaluate does where all scores are equal, but for the slopes. Cost: no sorting."""
    starts, codes, n_grades, _, copies = graded
    lengths = np.diff(starts)
    cells, counts, below = grade_cells(starts, codes, n_grades, copies)
    worse, better = partners_by_cell(counts, below, n_grades, adjacent)
    windows.order[:] = np.arange(starts[-1]) - np.repeat(starts[:-1], lengths)
    windows.low[:], windows.high[:], windows.codes[:] = 0, np.repeat(lengths, lengths), codes
    windows.degree[:] = (worse + better)[cells]


class ActivePairs:
    """The squared hinge of queries and its derivatives, with scratch for one caller at a time."""

    def __init__(self, graded: GradedLists, adjacent: bool) -> None:
        self._graded, self._adjacent = graded, adjacent
        longest, self._most = int(np.diff(graded.starts).max()), int(graded.n_grades.max())
        self._bucket, self._ends = np.empty((2, 2 * longest + 1), dtype=np.uint32)
        self._sorted, self._table = np.empty(graded.starts[-1]), np.empty((longest + 1, 16))
        self._ranked, self._total, self._counted, self._weighed = np.empty((4, longest))

    def evaluate(self, scores: Floats, margin: float, windows: Windows) -> tuple[float, float]:
        """Return the weighted losses, the squared hinge and the hinge, of margin.

        Fills the windows, the last being the gradient of the squared hinge by score: it may be the array of scores.
        """
        rank(scores, self._graded, margin, self._bucket, self._ends, windows, self._sorted)
        shared = (self._graded, margin, self._adjacent, windows, self._sorted)
        squared, linear = slopes_few(*shared, self._table)
        if self._most > MAX_TABLE_GRADES:
            more = slopes_rest(
                *shared, _room(self._most), _room(self._most), self._total, self._ranked, self._counted, self._weighed
            )
            squared, linear = squared + more[0], linear + more[1]
        return squared, linear

    def multiply(self, by_document: Floats, windows: Windows, out: Floats) -> None:
        """Overwrite out with the second derivative of the squared hinge by score, at the windows, times by_document.

        out may be by_document.
        """
        shared = (self._graded, self._adjacent, windows, by_document)
        multiply_few(*shared, self._table, self._ranked, out)
        if self._most > MAX_TABLE_GRADES:
            multiply_rest(*shared, _room(self._most), self._ranked, self._total, self._weighed, out)


def _room(n_grades: int) -> Floats:
    """Return scratch for sums by grade, or by node of a tree, of a query with n_grades grades."""
    return np.empty(max(int(offsets(n_grades)[-1]), n_grades + 2))


class Hinges:
    """The squared hinges that a loss is the sum of, for the queries first to last - 1, which one thread works on.

    windows are those of all documents, one of each hinge; adjacent: only adjacent grades make pairs. terms are the
    margin and the factor of each hinge. Scores and other vectors are of all documents; only those of the block count.
    """

    def __init__(self, graded: GradedLists, first: int, last: int, adjacent: bool, windows: Sequence[Windows]) -> None:
        a, b = int(graded.starts[first]), int(graded.starts[last])
        self._documents = slice(a, b)
        self._pairs = ActivePairs(graded.part(first, last), adjacent)
        self._windows = [window.part(a, b) for window in windows]

    def slopes(self, terms: Sequence[tuple[float, float]], scores: Floats, losses: Floats) -> None:
        """Turn scores into slopes, and overwrite losses, (n_terms, 2).

        With one term of factor 1 the slopes of the windows may lie where the scores are.
        """
        by_document = scores[self._documents]
        for t, ((margin, _), windows) in enumerate(zip(terms, self._windows, strict=True)):
            losses[t] = self._pairs.evaluate(by_document, margin, windows)
        if len(terms) > 1:
            _add_up(terms, [windows.slope for windows in self._windows], by_document)

    def curvatures(self, terms: Sequence[tuple[float, float]], by_document: Floats, out: Floats) -> None:
        """Overwrite out with the second derivative of the loss by score times by_document, which may be out."""
        vector, result = by_document[self._documents], out[self._documents]
        if len(terms) == 1:
            self._pairs.multiply(vector, self._windows[0], result)
            return
        products = np.empty((len(terms), len(vector)))
        for windows, product in zip(self._windows, products, strict=True):
            self._pairs.multiply(vector, windows, product)
        _add_up(terms, products, result)


def _add_up(terms: Sequence[tuple[float, float]], parts: Sequence[Floats] | Floats, out: Floats) -> None:
    """Overwrite out with the sum of the parts by the factors of the terms."""
    np.multiply(parts[0], terms[0][1], out=out)
    for (_, factor), part in zip(terms[1:], parts[1:], strict=True):
        out += factor * part
