"""The grades of documents, numbered within each query.

codes     (n_documents,) uint32, the number of the document's grade among the distinct ones of its query, lowest 0
n_grades  (n_queries,) uint32, how many distinct grades each query has
"""

from __future__ import annotations

import numpy as np

from ranktune.solvers.core.arrays import Codes, Floats, Ints, Mask, as_floats
from ranktune.solvers.core.compiled import compiled
from ranktune.solvers.core.errors import DataError
from ranktune.solvers.data.queries import Queries

MAX_TABLE_GRADES = 7
"""Up to this number of grades in a query, loops over all grades beat trees: a row of 8 sums is one cache line."""

NO_COPIES = np.zeros(0)
"""Every document counts once."""

_MAX_LEVELS = 64
"""Up to this number of grades in all, a table with a row per query tells which of them it has: no sorting."""


def copies_of(queries: Queries) -> Floats:
    """Return how many copies each document counts as, its weight, (n_documents,); empty where each counts as one."""
    return NO_COPIES if queries.document_weights is None else as_floats(queries.document_weights)


def number_grades(grades: Floats, starts: Ints) -> tuple[Codes, Codes]:
    """Return codes and n_grades."""
    queries, lengths, levels = np.arange(len(starts) - 1), np.diff(starts), _levels(grades)
    if levels is not None:
        cells, n_levels = levels
        cells += np.repeat(n_levels * queries, lengths)
        present = np.zeros((len(starts) - 1, n_levels), dtype=np.uint32)
        present.ravel()[cells] = 1
        up_to = np.cumsum(present, axis=1, dtype=np.uint32)
        return up_to.ravel()[cells] - np.uint32(1), np.ascontiguousarray(up_to[:, -1])
    order = np.lexsort((grades, np.repeat(queries, lengths)))
    ranked = grades[order]
    rises = np.zeros(len(grades), dtype=np.int64)
    rises[1:] = ranked[1:] != ranked[:-1]
    rises[starts[:-1]] = 0
    risen = np.cumsum(rises)
    codes = np.empty(len(grades), dtype=np.uint32)
    codes[order] = risen - np.repeat(risen[starts[:-1]], lengths)
    return codes, (risen[starts[1:] - 1] - risen[starts[:-1]] + 1).astype(np.uint32)


def with_pairs(queries: Queries) -> Mask:
    """Return of each query whether two of its documents have different grades, (n_queries,)."""
    first = queries.starts[:-1]
    return np.maximum.reduceat(queries.grades, first) > np.minimum.reduceat(queries.grades, first)


def _levels(grades: Floats) -> tuple[Ints, int] | None:
    """Return the number of each grade among those of all queries, gaps counted, and how many; None if they are many."""
    lowest = grades.min()
    if grades.max() - lowest < _MAX_LEVELS:
        above = grades - lowest
        number = above.astype(np.int64)
        if (number == above).all():
            return number, int(number.max()) + 1
    distinct = np.unique(grades)
    return None if len(distinct) > _MAX_LEVELS else (np.searchsorted(distinct, grades), len(distinct))


def shared_levels(values: Floats, most: int) -> tuple[Floats, Ints]:
    """Return at most so many levels of values, ascending, and the number of the level of each value.

    Of more different values, as many neighbours as needed share a level, their mean.
    """
    levels, number = np.unique(values, return_inverse=True)
    if len(levels) > most:
        shared = np.arange(len(levels)) * most // len(levels)
        levels, number = np.bincount(shared, levels) / np.bincount(shared), shared[number]
    return levels, number


def grade_cells(starts: Ints, codes: Codes, n_grades: Codes, copies: Floats = NO_COPIES) -> tuple[Ints, Floats, Floats]:
    """Return the cell of each document, the documents of each cell, and those of lower grades; a cell a grade a query.

    The cells of query q are the n_grades[q] from sum(n_grades[:q]) on. A document counts as often as copies says.
    """
    ends = np.cumsum(n_grades, dtype=np.int64)
    cells: Ints = np.repeat(ends - n_grades, np.diff(starts)) + codes.astype(np.int64)
    counts = np.bincount(cells, copies if len(copies) else None, int(ends[-1])).astype(np.float64)
    before = np.cumsum(counts) - counts
    return cells, counts, before - np.repeat(before[ends - n_grades], n_grades)


def partners_by_cell(counts: Floats, below: Floats, n_grades: Codes, adjacent: bool) -> tuple[Floats, Floats]:
    """Return how many documents are worse, and how many better, than one of each cell, of all grades or adjacent ones.

    counts and below are what grade_cells returns.
    """
    ends = np.cumsum(n_grades, dtype=np.int64)
    if adjacent:
        worse, better = np.roll(counts, 1), np.roll(counts, -1)
        worse[ends - n_grades], better[ends - 1] = 0.0, 0.0
        return worse, better
    lengths = below[ends - 1] + counts[ends - 1]
    return below, np.repeat(lengths, n_grades) - below - counts


def count_pairs(
    starts: Ints, codes: Codes, n_grades: Codes, adjacent: bool = False, copies: Floats = NO_COPIES
) -> Floats:
    """Return the pairs of documents of different grades, or of adjacent ones, in each query, (n_queries,)."""
    _, counts, below = grade_cells(starts, codes, n_grades, copies)
    worse, _ = partners_by_cell(counts, below, n_grades, adjacent)
    first = np.cumsum(n_grades, dtype=np.int64) - n_grades
    pairs: Floats = np.add.reduceat(counts * worse, first)
    return pairs


@compiled
def sort_with_order(scores: Floats, order: Codes, ranked: Floats, bucket: Codes, ends: Codes) -> None:
    """Overwrite order with the documents by rising score, and ranked with their scores.

    Scores spread over 2 n buckets of equal width are nearly sorted, and insertion ends it: about n steps, a sixth of a
    comparison sort. Where the buckets fill too unevenly for that (one score far from all others), it is Shell's sort.
    bucket (n,) and ends (2 n + 1,) uint32 are scratch.
    """
    n = len(scores)
    least, most, total = scores[0], scores[0], 0.0
    for i in range(n):
        least = scores[i] if scores[i] < least else least
        most = scores[i] if scores[i] > most else most
        total += scores[i]
    width = (2 * n - 1) / (most - least) if most > least else 0.0
    if not (np.isfinite(width) and np.isfinite(total)):  # beyond float64: keep memory safe, the loss says NaN
        width = 0.0
    for at in range(2 * n + 1):
        ends[at] = 0
    for i in range(n):
        bucket[i] = np.uint32((scores[i] - least) * width) if width > 0.0 else 0
        ends[bucket[i] + 1] += 1
    for at in range(2 * n):
        ends[at + 1] += ends[at]
    for i in range(n):
        place = ends[bucket[i]]
        ends[bucket[i]] = place + 1
        ranked[place] = scores[i]
        order[place] = i
    moves, gap = 0, 0
    for r in range(1, n):
        key, document, p = ranked[r], order[r], r
        while p > 0 and ranked[p - 1] > key:
            ranked[p], order[p] = ranked[p - 1], order[p - 1]
            p -= 1
        ranked[p], order[p] = key, document
        moves += r - p
        if moves > 8 * n:
            gap = n // 2
            break
    while gap > 0:
        for r in range(gap, n):
            key, document, p = ranked[r], order[r], r
            while p >= gap and ranked[p - gap] > key:
                ranked[p], order[p] = ranked[p - gap], order[p - gap]
                p -= gap
            ranked[p], order[p] = key, document
        gap = 1 if gap == 2 else gap * 5 // 11


def check_learnable(queries: Queries, what: str) -> None:
    """Raise DataError where no query has documents of different grades."""
    if not queries.has_pairs:
        lowest, highest = queries.grades.min(), queries.grades.max()
        few = "one document only" if queries.lengths.max() == 1 else "documents of one grade only"
        detail = f"all grades are {lowest:g}" if lowest == highest else f"each query has {few}"
        raise DataError(
            f"there is nothing to learn from {what}: {detail}. "
            "A ranker needs queries that have documents of different grades; check grades and query ids."
        )
