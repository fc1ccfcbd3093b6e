"""The loss of pairs whose weights are means over noisy rankings, one list after the other, and its derivatives.

    loss = sum over the pairs y_i > y_j of w_ij log(1 + exp(-(s_i - s_j)))
    w_ij = mean over samples of the weight of the pair in the ranking by s + G,  G independent standard Gumbel noise

s + G puts documents in the order of -log(u) exp(-s), u uniform: the rankings are those of the Plackett-Luce model. The
derivatives are those at the scores without noise, w held constant. Weights, with x the gain of a document and v_r the
discount of rank r:

NEIGHBOURS  v_r |x_i - x_j| for the documents at ranks r and r + 1, else 0
CHANGES     the change of a metric where the two documents swap places:
    SUM         sum of x_(r) v_r
    PRECISION   sum of x_(r) v_r (x_(1) + ... + x_(r)): average precision, v_r = 1 / r, x 0 or 1
    FIRST       the v_r of the first document with x = 1: reciprocal rank, v_r = 1 / r
    STOPS       sum of v_r x_(r) (1 - x_(1)) ... (1 - x_(r - 1)): expected reciprocal rank, v_r = 1 / r

Only the first K ranks count, those of v. A document at one of them makes pairs of one weight with all documents of a
level of x behind them. Hence a sample costs n to rank, and K (K + levels) weights; weights are summed over samples by
documents that were among the first K and by level, with a correction for pairs of two such documents. The exponentials
are one a document. A list takes K samples n numbers at most, and (K samples)^2 corrections.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ranktune.solvers.core.arrays import Codes, Floats, Ints, Matrix
from ranktune.solvers.core.compiled import compiled
from ranktune.solvers.losses.smoothed.draws import draw, first_ones
from ranktune.solvers.losses.smoothed.phi import LOGISTIC, phi_and_slope

NEIGHBOURS, SUM, PRECISION, FIRST, STOPS = range(5)

WIDE = 600.0
"""Scores of a list that are further apart are not taken to the exponent one by one."""


class Lists(NamedTuple):
    """What of lists does not depend on scores.

    starts   (n_lists + 1,) the first document of each list, and the number of documents
    gains    (n_documents,) x
    codes    (n_documents,) the number of each x among the levels of its list, lowest 0
    levels   (n_lists,) how many different x each list has
    share    (n_lists,) the factor of the weights of a list
    keys     (n_lists,) what tells the noise of a list from that of others
    """

    starts: Ints
    gains: Floats
    codes: Codes
    levels: Codes
    share: Floats
    keys: Ints


class Rule(NamedTuple):
    """The kind of weights, v of the first K ranks, the samples, whose noise follows from a seed, and the loss of pairs.

    Unless valued, the loss and the sum of the weights are not computed, which takes logarithms: they are 0 then.
    """

    kind: int
    v: Floats
    samples: int
    seed: int
    valued: bool = False
    phi: int = LOGISTIC
    margin: float = 1.0


class Sums(NamedTuple):
    """Room for the weights of the pairs of a list, summed over samples, of documents that were among the first ranks.

    used       (1,) how many such documents there are, each with a slot in the order in which they come
    slots      (n,) the slot of each document, -1 without one
    documents  (slots,) the document of each
    by_level   (slots, levels) with documents of a level, as if those were behind the first ranks in each sample
    together   (slots, slots) what is to be added for two documents that have slots, the lower one first

    value      (levels,) the gain of each level
    behind, rest, ends, room  are scratch

    It is for the longest list, so that only parts of it are in use.
    """

    used: Ints
    slots: Ints
    documents: Ints
    by_level: Matrix
    together: Matrix
    value: Floats
    behind: Matrix
    rest: Ints
    ends: Ints
    room: Matrix


class Scores(NamedTuple):
    """The scores of a list, exp(highest score - score), (n,) both, whether pairs do without that, and their loss.

    They do where it is beyond what a number can hold, and under hinges, whose curvature is not computed.
    """

    s: Floats
    late: Floats
    is_wide: bool
    phi: int
    margin: float


@compiled
def derivatives(
    rule: Rule, lists: Lists, number: int, first: int, last: int, scores: Floats, slope: Floats, bend: Floats
) -> tuple[float, float]:
    """Return the loss of the lists from number first up to but without last, in the round of that number.

    The second number is the sum of the weights of their pairs.

    Overwrites slope and bend, (n_documents,), with the first and second derivative by each score.
    """
    longest, levels = 0, 1
    for q in range(first, last):
        longest = max(longest, lists.starts[q + 1] - lists.starts[q])
        levels = max(levels, lists.levels[q])
    near = rule.kind == NEIGHBOURS
    sums = no_sums(0, 0, 0, 0) if near else no_sums(longest, levels, len(rule.v), rule.samples)
    late, noise, room = np.empty(longest), np.empty(longest), np.empty(longest)
    before, until = np.empty(len(rule.v) + 1), np.empty(len(rule.v) + 1)
    order, top = np.empty(len(rule.v) + 1, dtype=np.int64), np.empty(len(rule.v) + 1)
    total = weights = 0.0
    for q in range(first, last):
        a, b = lists.starts[q], lists.starts[q + 1]
        slope[a:b] = 0.0
        bend[a:b] = 0.0
        n, factor = b - a, lists.share[q] / rule.samples
        if lists.levels[q] < 2 or factor == 0.0 or len(rule.v) == 0:
            continue
        s, x, codes = scores[a:b], lists.gains[a:b], lists.codes[a:b]
        high = s.max()
        for i in range(n):
            late[i] = np.exp(min(high - s[i], WIDE))
        wide = rule.phi != LOGISTIC or high - s.min() > WIDE
        known = Scores(s, late[:n], wide, rule.phi, rule.margin)
        if not near:
            for i in range(n):
                sums.value[codes[i]] = x[i]
        k = min(len(rule.v) + near, n)
        loss = weight = 0.0
        for sample in range(rule.samples):
            draw(rule.seed, lists.keys[q], number, sample, room[:n], noise[:n])
            for i in range(n):
                noise[i] *= late[i]
            first_ones(noise[:n], top[:k], order[:k])
            if near:
                more = _neighbours(rule, lists, known, a, order[:k], slope[a:b], bend[a:b])
                loss += more[0]
                weight += more[1]
            else:
                _add_changes(rule, x, codes, lists.levels[q], order[:k], before, until, sums)
        if not near:
            loss, weight = _pairs(known, codes, lists.levels[q], sums, slope[a:b], bend[a:b], rule.valued)
            _clear(sums, n, lists.levels[q])
        for i in range(a, b):
            slope[i] *= factor
            bend[i] *= factor
        total += factor * loss
        weights += factor * weight
    return total, weights


@compiled
def _share(scores: Scores, i: int, j: int) -> float:
    """Return -phi' of documents i and j: of the logistic loss the probability that j is preferred to i."""
    if scores.is_wide:
        return float(-phi_and_slope(scores.phi, scores.margin, scores.s[i] - scores.s[j])[1])
    return float(scores.late[i] / (scores.late[i] + scores.late[j]))


@compiled
def _neighbours(
    rule: Rule, lists: Lists, scores: Scores, a: int, order: Ints, slope: Floats, bend: Floats
) -> tuple[float, float]:
    """Add the derivatives of the pairs of documents at successive places of order; return their loss and weights.

    The first document of the list is number a of all.
    """
    loss = weights = 0.0
    for r in range(len(order) - 1):
        i, j = order[r], order[r + 1]
        if lists.codes[a + i] != lists.codes[a + j]:
            if lists.codes[a + i] < lists.codes[a + j]:
                i, j = j, i
            weight = rule.v[r] * (lists.gains[a + i] - lists.gains[a + j])
            share = _share(scores, i, j)
            if rule.valued:
                loss += weight * phi_and_slope(scores.phi, scores.margin, scores.s[i] - scores.s[j])[0]
                weights += weight
            slope[i] -= weight * share
            slope[j] += weight * share
            bend[i] += weight * share * (1.0 - share)
            bend[j] += weight * share * (1.0 - share)
    return loss, weights


@compiled
def no_sums(n: int, levels: int, k: int, samples: int) -> Sums:
    """Return sums of nothing, for lists of n documents and that many levels, of which k ranks count."""
    most = min(n, k * samples)
    slots, documents = np.full(n, -1, dtype=np.int64), np.empty(most, dtype=np.int64)
    by_level, together = np.zeros((most, levels)), np.zeros((most, most))
    value, behind = np.empty(levels), np.empty((min(n, k), levels))
    rest, ends = np.empty(n, dtype=np.int64), np.empty(levels + 1, dtype=np.int64)
    return Sums(
        np.zeros(1, dtype=np.int64), slots, documents, by_level, together, value, behind, rest, ends, np.empty((4, n))
    )


@compiled
def _clear(sums: Sums, n: int, levels: int) -> None:
    """Make room for the next list."""
    count = sums.used[0]
    sums.used[0] = 0
    sums.slots[:n] = -1
    sums.by_level[:count, :levels] = 0.0
    sums.together[:count, :count] = 0.0


@compiled
def _add_changes(
    rule: Rule, x: Floats, codes: Codes, levels: int, order: Ints, before: Floats, until: Floats, sums: Sums
) -> None:
    """Add the weights of the pairs that touch the first places of a ranking, order."""
    kind, v, k = rule.kind, rule.v, len(order)
    _prefixes(kind, v, x, order, before, until)
    for r in range(k):
        i = order[r]
        if sums.slots[i] < 0:
            sums.slots[i] = sums.used[0]
            sums.documents[sums.used[0]] = i
            sums.used[0] += 1
        for level in range(levels):
            weight = 0.0
            if level != codes[i]:
                weight = _change(kind, v[r], 0.0, before, until, r, k, x[i], sums.value[level])
                sums.by_level[sums.slots[i], level] += weight
            sums.behind[r, level] = weight
    for r in range(k):
        i = order[r]
        for t in range(r + 1, k):
            j = order[t]
            if codes[i] != codes[j]:
                a, b = sums.slots[i], sums.slots[j]
                weight = _change(kind, v[r], v[t], before, until, r, t, x[i], x[j])
                sums.together[min(a, b), max(a, b)] += weight - sums.behind[r, codes[j]] - sums.behind[t, codes[i]]


@compiled
def _prefixes(kind: int, v: Floats, x: Floats, order: Ints, before: Floats, until: Floats) -> None:
    """Overwrite before and until, (k + 1,), with what _change needs of each of the first ranks and what is behind."""
    k = len(order)
    before[0] = until[0] = 0.0
    if kind == PRECISION:  # relevant documents before rank r, and the v of theirs
        for r in range(k):
            before[r + 1] = before[r] + x[order[r]]
            until[r + 1] = until[r] + x[order[r]] * v[r]
    elif kind == STOPS:  # the probability that a user comes to rank r, and the metric of what is before it
        before[0] = 1.0
        for r in range(k):
            before[r + 1] = before[r] * (1.0 - x[order[r]])
            until[r + 1] = until[r] + before[r] * x[order[r]] * v[r]
    elif kind == FIRST:  # relevant documents before rank r, and the v of the first and of the second of all
        until[1] = 0.0
        for r in range(k):
            before[r + 1] = before[r] + x[order[r]]
            if x[order[r]] > 0.0 and before[r] < 2.0:
                until[int(before[r])] = v[r]


@compiled
def _change(
    kind: int, high: float, low: float, before: Floats, until: Floats, r: int, t: int, mine: float, other: float
) -> float:
    """Return how much a metric changes where documents of gains mine and other at ranks r < t swap places.

    The ranks count high and low. Rank t = k is any behind those that count.
    """
    if kind == SUM:
        return abs(mine - other) * (high - low)
    if kind == PRECISION:
        return float((before[r] + 1.0) * high + until[t] - until[r + 1] - (before[t] + other) * low)
    if kind == FIRST:
        if before[r] > 0.0:
            return 0.0
        return float(high - (max(until[1], low) if mine > 0.0 else until[0]))
    ratio = (1.0 - other) / (1.0 - mine)
    change = before[r] * (other - mine) * high + (ratio - 1.0) * (until[t] - until[r + 1])
    return float(abs(change + before[t] * (ratio * mine - other) * low))


@compiled
def _pairs(
    scores: Scores, codes: Codes, levels: int, sums: Sums, slope: Floats, bend: Floats, valued: bool
) -> tuple[float, float]:
    """Add the derivatives of the pairs that have a weight in sums; if valued, return their loss and weights."""
    s, late, is_wide = scores.s, scores.late, scores.is_wide
    n, count = len(s), sums.used[0]
    rest, ends = sums.rest, sums.ends
    ends[: levels + 1] = 0
    for i in range(n):
        if sums.slots[i] < 0:
            ends[codes[i] + 1] += 1
    for level in range(levels):
        ends[level + 1] += ends[level]
    for i in range(n):
        if sums.slots[i] < 0:
            rest[ends[codes[i]]] = i
            ends[codes[i]] += 1
    later, share, by_rest, bend_rest = sums.room
    for p in range(n - count):
        later[p], by_rest[p], bend_rest[p] = late[rest[p]], 0.0, 0.0
    loss = weights = 0.0
    for a in range(count):
        i = sums.documents[a]
        begin = 0
        for level in range(levels):
            weight, end = sums.by_level[a, level], ends[level]
            sign = 1.0 if codes[i] > level else -1.0
            if weight > 0.0 and begin < end:
                if is_wide:
                    for p in range(begin, end):
                        share[p] = -phi_and_slope(scores.phi, scores.margin, sign * (s[i] - s[rest[p]]))[1]
                elif sign > 0.0:
                    for p in range(begin, end):
                        share[p] = late[i] / (late[i] + later[p])
                else:
                    for p in range(begin, end):
                        share[p] = later[p] / (late[i] + later[p])
                for p in range(begin, end):
                    by_rest[p] += sign * weight * share[p]
                    bend_rest[p] += weight * share[p] * (1.0 - share[p])
                if valued:
                    for p in range(begin, end):
                        loss += weight * phi_and_slope(scores.phi, scores.margin, sign * (s[i] - s[rest[p]]))[0]
                    weights += weight * (end - begin)
                first, second = _moments(share, begin, end)
                slope[i] -= sign * weight * first
                bend[i] += weight * (first - second)
            begin = end
        for b in range(a + 1, count):
            j = sums.documents[b]
            if codes[i] != codes[j]:
                weight = sums.by_level[a, codes[j]] + sums.by_level[b, codes[i]] + sums.together[a, b]
                better, worse = (i, j) if codes[i] > codes[j] else (j, i)
                part = _share(scores, better, worse)
                if valued:
                    loss += weight * phi_and_slope(scores.phi, scores.margin, s[better] - s[worse])[0]
                    weights += weight
                slope[better] -= weight * part
                slope[worse] += weight * part
                bend[i] += weight * part * (1.0 - part)
                bend[j] += weight * part * (1.0 - part)
    for p in range(n - count):
        slope[rest[p]] = by_rest[p]
        bend[rest[p]] = bend_rest[p]
    return loss, weights


@compiled
def _moments(values: Floats, begin: int, end: int) -> tuple[float, float]:
    """Return the sum and the sum of squares of values[begin:end], by four partial sums each."""
    a = b = c = d = e = f = g = h = 0.0
    whole = begin + (end - begin) // 4 * 4
    for p in range(begin, whole, 4):
        a += values[p]
        b += values[p + 1]
        c += values[p + 2]
        d += values[p + 3]
        e += values[p] * values[p]
        f += values[p + 1] * values[p + 1]
        g += values[p + 2] * values[p + 2]
        h += values[p + 3] * values[p + 3]
    for p in range(whole, end):
        a += values[p]
        e += values[p] * values[p]
    return (a + b) + (c + d), (e + f) + (g + h)
