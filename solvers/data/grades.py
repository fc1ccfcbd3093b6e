"""The grades of documents, numbered within each query.

codes     (n_documents,) uint32, the number of the document's grade among the distinct ones of its query, lowest 0
n_grades  (n_queries,) uint32, how many distinct grades each query has
"""

from __future__ import annotations

import numpy as np

from ranktune.solvers.core.arrays import Codes, Floats, Ints, as_floats, as_ints
from ranktune.solvers.core.compiled import compiled

MAX_TABLE_GRADES = 7
"""Up to this number of grades in a query, loops over all grades beat trees: a row of 8 sums is one cache line."""


def number_grades(grades: Floats, starts: Ints) -> tuple[Codes, Codes]:
    """Return codes and n_grades."""
    codes, n_grades = np.empty(len(grades), dtype=np.uint32), np.empty(len(starts) - 1, dtype=np.uint32)
    _number(as_floats(grades), as_ints(starts), codes, n_grades)
    return codes, n_grades


@compiled
def _number(grades: Floats, starts: Ints, codes: Codes, n_grades: Codes) -> None:
    """Overwrite codes and n_grades."""
    levels = np.empty(MAX_TABLE_GRADES)
    for q in range(len(starts) - 1):
        a, b = starts[q], starts[q + 1]
        k = 0
        levels[:] = np.inf
        for i in range(a, b):
            known = False
            for level in levels:  # all of them, whatever is found: no branch depends on the data
                known |= level == grades[i]
            if known:
                continue
            if k == MAX_TABLE_GRADES:
                k += 1
                break
            at = k
            while at > 0 and levels[at - 1] > grades[i]:
                levels[at] = levels[at - 1]
                at -= 1
            levels[at] = grades[i]
            k += 1
        if k <= MAX_TABLE_GRADES:
            for i in range(a, b):
                at = 0
                for level in levels:
                    at += level < grades[i]
                codes[i] = at
        else:
            n = b - a
            by_grade, ranked = np.empty(n, dtype=np.uint32), np.empty(n)
            sort_with_order(
                grades[a:b], by_grade, ranked, np.empty(n, dtype=np.uint32), np.empty(2 * n + 1, dtype=np.uint32)
            )
            k = 1
            codes[a + by_grade[0]] = 0
            for r in range(1, n):
                k += ranked[r] > ranked[r - 1]
                codes[a + by_grade[r]] = k - 1
        n_grades[q] = k


@compiled
def documents_below(codes: Codes, k: int) -> Floats:
    """Return how many documents have grades below c, for c from 0 to k."""
    up_to = np.zeros(k + 1)
    for code in codes:
        up_to[code + 1] += 1.0
    for c in range(1, k + 1):
        up_to[c] += up_to[c - 1]
    return up_to


@compiled
def count_pairs(starts: Ints, codes: Codes, n_grades: Codes, adjacent: bool = False) -> Floats:
    """Return the pairs of documents of different grades, or of adjacent ones, in each query, (n_queries,)."""
    pairs = np.zeros(len(n_grades))
    for q in range(len(starts) - 1):
        k = int(np.int64(n_grades[q]))
        up_to = documents_below(codes[starts[q] : starts[q + 1]], k)
        for c in range(1, k):
            pairs[q] += (up_to[c + 1] - up_to[c]) * (up_to[c] - up_to[c - 1 if adjacent else 0])
    return pairs


@compiled
def sort_with_order(scores: Floats, order: Codes, ranked: Floats, bucket: Codes, ends: Codes) -> None:
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
        _heap_sort(ranked, order)


@compiled
def _insertion_sort(keys: Floats, order: Codes, budget: int) -> bool:
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
def _heap_sort(keys: Floats, order: Codes) -> None:
    """Sort keys and order with them. It compiles in a fraction of the time of the sort of numba."""
    n = len(keys)
    for start in range(n // 2 - 1, -1, -1):
        _sift_down(keys, order, start, n)
    for end in range(n - 1, 0, -1):
        keys[0], keys[end] = keys[end], keys[0]
        order[0], order[end] = order[end], order[0]
        _sift_down(keys, order, 0, end)


@compiled
def _sift_down(keys: Floats, order: Codes, root: int, end: int) -> None:
    """Restore the heap keys[:end], the largest first, where only root may be out of place."""
    key, document = keys[root], order[root]
    child = 2 * root + 1
    while child < end:
        if child + 1 < end and keys[child + 1] > keys[child]:
            child += 1
        if not keys[child] > key:
            break
        keys[root], order[root] = keys[child], order[child]
        root, child = child, 2 * child + 1
    keys[root], order[root] = key, document
