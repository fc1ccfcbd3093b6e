"""Compiled loops of the ranking metrics, over all queries at once.

n        documents of a query                  starts   (n_queries + 1,) first document of each query, and the end
k        ranks that count                      order    (n_documents,) the documents of each query, best first
values   (n_documents,) the value of a document: a gain, or 1 if it is relevant and 0 if not

A block is a run of documents with equal scores. Under average ties a metric is its expected value over all orders of
every block; otherwise each document is a block, in the order that rank chose.
Source of the expected values: McSherry & Najork 2008, "Computing information retrieval performance measures
efficiently in the presence of tied scores".
"""

from __future__ import annotations

import numpy as np

from ranktune.solvers.core.arrays import Codes, Floats, Ints
from ranktune.solvers.core.compiled import compiled, inlined

WHOLE = np.iinfo(np.int64).max
"""As k: every rank counts."""

_SELECTION = 32  # up to this k, inserting into a short sorted list beats sorting the query


def rank(scores: Floats, tiebreak: Floats, starts: Ints, k: int) -> Ints:
    """Return order, in which the first min(k, n) places of each query are filled.

    Higher scores come first, then higher tiebreak (which may be empty: no tie break), then the given order.
    """
    order = np.empty(len(scores), dtype=np.int64)
    if k <= _SELECTION:
        _select(scores, tiebreak, starts, k, order)
    else:
        _sort(scores, tiebreak, starts, order)
    return order


@inlined
def _before(i: int, j: int, scores: Floats, tiebreak: Floats) -> bool:
    """Return whether document i goes before j whatever their given order."""
    if scores[i] != scores[j]:
        return bool(scores[i] > scores[j])
    return len(tiebreak) > 0 and bool(tiebreak[i] > tiebreak[j])


@compiled
def _select(scores: Floats, tiebreak: Floats, starts: Ints, k: int, order: Ints) -> None:
    """Fill the first k places of each query: one comparison per document that is not among the k best so far."""
    for q in range(len(starts) - 1):
        first, filled = starts[q], 0
        for i in range(first, starts[q + 1]):
            if filled < k:
                filled += 1
            elif not _before(i, order[first + k - 1], scores, tiebreak):
                continue
            place = first + filled - 1
            while place > first and _before(i, order[place - 1], scores, tiebreak):
                order[place] = order[place - 1]
                place -= 1
            order[place] = i


@compiled
def _sort(scores: Floats, tiebreak: Floats, starts: Ints, order: Ints) -> None:
    """Fill all places by a stable merge sort of runs of 16 that were sorted by insertion."""
    longest = 0
    for q in range(len(starts) - 1):
        longest = max(longest, starts[q + 1] - starts[q])
    other = np.empty(longest, dtype=np.int64)
    for q in range(len(starts) - 1):
        first, n = starts[q], starts[q + 1] - starts[q]
        for run in range(0, n, 16):
            for i in range(first + run, first + min(run + 16, n)):
                place = i
                while place > first + run and _before(i, order[place - 1], scores, tiebreak):
                    order[place] = order[place - 1]
                    place -= 1
                order[place] = i
        width = 16
        while width < n:
            for low in range(0, n - width, 2 * width):
                _merge(order[first + low : first + min(low + 2 * width, n)], width, other, scores, tiebreak)
            width *= 2


@compiled
def _merge(ranking: Ints, width: int, other: Ints, scores: Floats, tiebreak: Floats) -> None:
    """Merge the sorted ranking[:width] and ranking[width:] in place; other is room for width documents."""
    if not _before(ranking[width], ranking[width - 1], scores, tiebreak):
        return
    for place in range(width):
        other[place] = ranking[place]
    left, right, place = 0, width, 0
    while left < width and right < len(ranking):
        if _before(ranking[right], other[left], scores, tiebreak):
            ranking[place] = ranking[right]
            right += 1
        else:
            ranking[place] = other[left]
            left += 1
        place += 1
    while left < width:
        ranking[place] = other[left]
        left += 1
        place += 1


@compiled
def _block(
    b: np.int64, first: int, stop: int, k: int, order: Ints, scores: Floats, values: Floats, average: bool
) -> tuple[int | np.int64, float]:
    """Return the size and the summed value of the block that begins at rank b (from 0) of a query."""
    top = min(k, stop - first)
    score, total = scores[order[first + b]], values[order[first + b]]
    e = b + 1
    if not average:
        return 1, total
    while e < top and scores[order[first + e]] == score:
        total += values[order[first + e]]
        e += 1
    if e < top or e == stop - first:
        return e - b, total
    size, total = 0, 0.0  # the block reaches the last rank that was filled: it may go on behind it
    for i in range(first, stop):
        if scores[i] == score:
            size += 1
            total += values[i]
    return size, total


@compiled
def discounted_sums(
    scores: Floats, order: Ints, values: Floats, starts: Ints, k: int, discount: Floats, average: bool
) -> Floats:
    """Return sum over the first k ranks r of values(r) discount[r], a number per query; discount starts at rank 1."""
    sums = np.zeros(len(starts) - 1)
    for q in range(len(sums)):
        first, stop = starts[q], starts[q + 1]
        top, b = min(k, stop - first), np.int64(0)
        while b < top:
            size, total = _block(b, first, stop, k, order, scores, values, average)
            mean = total / size
            if mean != 0.0:
                for r in range(b, min(b + size, top)):
                    sums[q] += mean * discount[r]
            b += size
    return sums


@compiled
def mean_normalised_sums(
    scores: Floats,
    order: Ints,
    ideal_order: Ints,
    values: Floats,
    starts: Ints,
    k: int,
    discount: Floats,
    average: bool,
) -> Floats:
    """Return the mean over m = 1..min(k, n) of DCG@m / ideal DCG@m, (n_queries,); 0 where no value is positive."""
    means = np.zeros(len(starts) - 1)
    for q in range(len(means)):
        first, stop = starts[q], starts[q + 1]
        top, b = min(k, stop - first), np.int64(0)
        if values[ideal_order[first]] <= 0.0:
            continue
        got = ideal = 0.0
        while b < top:
            size, total = _block(b, first, stop, k, order, scores, values, average)
            for r in range(b, min(b + size, top)):
                got += total / size * discount[r]
                ideal += values[ideal_order[first + r]] * discount[r]
                means[q] += got / ideal
            b += size
        means[q] /= top
    return means


@compiled
def precision_sums(
    scores: Floats, order: Ints, relevant: Floats, starts: Ints, k: int, average: bool, threshold: bool
) -> Floats:
    """Return the sum of the precisions at the ranks of relevant documents up to rank k, a number per query.

    In a block of size s with r relevant documents, the one at place j (from 1) is relevant with probability r / s,
    and then (r - 1)(j - 1) / (s - 1) of those above it in the block are, on average. With threshold, the precision at
    every document of a block is the one at the block's end, as where a score is a threshold.
    """
    sums = np.zeros(len(starts) - 1)
    for q in range(len(sums)):
        first, stop = starts[q], starts[q + 1]
        top, b, before = min(k, stop - first), np.int64(0), 0.0
        while b < top:
            size, here = _block(b, first, stop, k, order, scores, relevant, average)
            if here > 0.0 and threshold:
                sums[q] += here * (before + here) / (b + size) * (min(b + size, top) - b) / size
            elif here > 0.0:
                slope = (here - 1.0) / (size - 1.0) if size > 1 else 0.0
                for j in range(min(size, top - b)):
                    sums[q] += here / size * (before + 1.0 + slope * j) / (b + j + 1.0)
            before += here
            b += size
    return sums


@compiled
def reciprocal_ranks(scores: Floats, order: Ints, relevant: Floats, starts: Ints, k: int, average: bool) -> Floats:
    """Return 1 / the rank of the first relevant document, a number per query; 0 where that is behind k or nowhere.

    The first of r relevant documents of a block of size s is at place j with the probability that the first j - 1
    are not and the j-th is: the product over i < j of 1 - r / (s - i + 1), times r / (s - j + 1).
    """
    values = np.zeros(len(starts) - 1)
    for q in range(len(values)):
        first, stop = starts[q], starts[q + 1]
        top, b = min(k, stop - first), np.int64(0)
        while b < top:
            size, here = _block(b, first, stop, k, order, scores, relevant, average)
            if here > 0.0:
                none_yet, j = 1.0, 0
                while j < size and b + j < top and none_yet > 0.0:
                    hit = min(here / (size - j), 1.0)
                    values[q] += none_yet * hit / (b + j + 1.0)
                    none_yet *= 1.0 - hit
                    j += 1
                break
            b += size
    return values


@compiled
def expected_reciprocal_ranks(
    scores: Floats, order: Ints, stops: Floats, starts: Ints, k: int, average: bool
) -> Floats:
    """Return the sum over the first k ranks r of 1 / r times the probability of stopping there, a number per query.

    stops    (n_documents,) the probability of stopping at a document that was reached

    In a block, the mean probability of passing j documents is the mean over all choices of j of them.
    """
    values, passed = np.zeros(len(starts) - 1), np.zeros(k + 1)
    for q in range(len(values)):
        first, stop = starts[q], starts[q + 1]
        top, b, reached = min(k, stop - first), np.int64(0), 1.0
        while b < top and reached > 0.0:
            size, here = _block(b, first, stop, k, order, scores, stops, average)
            depth = min(size, top - b)
            if size == 1:
                values[q] += reached * here / (b + 1.0)
                reached *= 1.0 - here
            elif here > 0.0:
                passed[: depth + 1] = 0.0
                passed[0] = 1.0
                if b + size <= top:
                    for n in range(size):
                        _pass(stops[order[first + b + n]], n, passed[: depth + 1])
                else:  # not all of its documents are in the order
                    score, n = scores[order[first + b]], 0
                    for i in range(first, stop):
                        if scores[i] == score:
                            _pass(stops[i], n, passed[: depth + 1])
                            n += 1
                for j in range(depth):
                    values[q] += reached * (passed[j] - passed[j + 1]) / (b + j + 1.0)
                reached *= passed[depth]
            b += size
    return values


@inlined
def _pass(stop: float, n: int, passed: Floats) -> None:
    """Update passed[j], the mean probability of passing j of n documents, for one document more.

    That document is among j of n + 1 with probability j / (n + 1).
    """
    for j in range(min(n + 1, len(passed) - 1), 0, -1):
        passed[j] += (passed[j - 1] * (1.0 - stop) - passed[j]) * j / (n + 1.0)


@compiled
def dominating_counts(scores: Floats, order: Ints, codes: Codes, starts: Ints) -> Floats:
    """Return a row per query: documents above the lowest grade that rank above every document of a lower grade.

    order is by falling scores, then rising grades; codes number the grades (see data.grades). In the first column a
    document that shares its score with documents of lower grades counts 0; in the second the probability that it is
    before all t of them, 1 / (t + 1); in the third 1.
    """
    counts = np.zeros((len(starts) - 1, 3))
    for q in range(len(counts)):
        lowest_above, b = WHOLE, starts[q]
        while b < starts[q + 1]:
            e, lower = b, 0
            while e < starts[q + 1] and scores[order[e]] == scores[order[b]]:
                code = np.int64(codes[order[e]])
                if e > b and code > np.int64(codes[order[e - 1]]):
                    lower = e - b
                if 0 < code <= lowest_above:
                    counts[q, 0] += 1.0 if lower == 0 else 0.0
                    counts[q, 1] += 1.0 / (lower + 1.0)
                    counts[q, 2] += 1.0
                e += 1
            lowest_above = min(lowest_above, int(codes[order[b]]))
            b = e
    return counts


@compiled
def pair_counts(scores: Floats, order: Ints, codes: Codes, n_grades: Codes, starts: Ints, copies: Floats) -> Floats:
    """Return a row per query: pairs of different grades that scores rank right, wrong, and pairs of equal scores.

    codes and n_grades number the grades (see data.grades). Pairs of different grades count as often as both documents,
    by copies, (n_documents,), or once where it is empty. Cost: n log(number of grades) after the sort.
    """
    counts = np.zeros((len(starts) - 1, 3))
    room = np.zeros(n_grades.max() + 1)
    for q in range(len(starts) - 1):
        tree = room[: n_grades[q] + 1]  # a Fenwick tree of the grades of the documents scored lower
        tree[:] = 0.0
        seen = 0.0
        e = starts[q + 1] - 1
        while e >= starts[q]:
            b = e
            while b > starts[q] and scores[order[b - 1]] == scores[order[e]]:
                b -= 1
            for at in range(b, e + 1):
                level = np.int64(codes[order[at]])
                x = copies[order[at]] if len(copies) > 0 else 1.0
                counts[q, 0] += x * _prefix(tree, level)
                counts[q, 1] += x * (seen - _prefix(tree, level + 1))
            for at in range(b, e + 1):
                node, x = np.int64(codes[order[at]]) + 1, copies[order[at]] if len(copies) > 0 else 1.0
                seen += x
                while node < len(tree):
                    tree[node] += x
                    node += node & -node
            counts[q, 2] += 0.5 * (e - b) * (e - b + 1.0)
            e = b - 1
    return counts


@inlined
def _prefix(tree: Floats, node: np.int64) -> float:
    """Return how many documents in the tree have a grade numbered below node."""
    total = 0.0
    while node > 0:
        total += tree[node]
        node -= node & -node
    return total
