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

Only the first K ranks count, those of v; v is 0 behind them. Documents that are among the first K in a sample have a
slot. The weight of a pair in SUM is |x_i - x_j| times the mean of |v_r(i) - v_r(j)|: the v of each slot in each sample
are kept, and a document without a slot has v = 0 in all. For the other kinds, a document at one of the first ranks
makes pairs of one weight with all documents of a level of x behind them: weights are summed over samples by slot and
by level, with a correction for pairs of two slots. Hence a list of n documents takes n numbers a sample to rank, slots
n weights, and slots^2 numbers or corrections a sample, of at most K samples slots. The exponentials are one a document.
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
    copies   (n_documents,) how often each document counts, a factor of the weights of its pairs; empty: once
    """

    starts: Ints
    gains: Floats
    codes: Codes
    levels: Codes
    share: Floats
    keys: Ints
    copies: Floats


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
    """Room for the rankings of a list, and for the weights of its pairs, summed over samples.

    orders     (samples, k) the first documents of each ranking
    slots      (n,) the slot of each of these documents, -1 of others
    documents  (n,) those with slots, by level, which gives their slots, then the others, by level
    ends       (2 levels,) where the documents of each level end, those with slots, then the others

    counts     (samples, slots) of SUM the v of the rank of each document, 0 behind the first

    by_level   (slots, levels) with documents of a level, as if those were behind the first ranks in each sample
    together   (slots, slots) what is to be added for two documents that have slots, the lower one first
    value      (levels,) the gain of each level

    behind, room  are scratch

    It is for the longest list, so that only parts of it are in use.
    """

    orders: Ints
    slots: Ints
    documents: Ints
    ends: Ints
    counts: Matrix
    by_level: Matrix
    together: Matrix
    value: Floats
    behind: Matrix
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
    sums = _sums(rule, longest, levels)
    late, noise, room = np.empty(longest), np.empty(longest), np.empty(longest)
    number_of, places = np.empty(longest, dtype=np.int64), np.empty(longest, dtype=np.int64)
    limit, total, weights = 1.0, 0.0, 0.0
    for q in range(first, last):
        a, b = lists.starts[q], lists.starts[q + 1]
        slope[a:b] = 0.0
        bend[a:b] = 0.0
        n, factor = b - a, lists.share[q] / rule.samples
        if lists.levels[q] < 2 or factor == 0.0 or len(rule.v) == 0:
            continue
        s = scores[a:b]
        high = s.max()
        for i in range(n):
            late[i] = np.exp(min(high - s[i], WIDE))
        wide = rule.phi != LOGISTIC or high - s.min() > WIDE
        known = Scores(s, late[:n], wide, rule.phi, rule.margin)
        k = min(len(rule.v) + near, n)
        loss = weight = 0.0
        for sample in range(rule.samples):
            draw(rule.seed, lists.keys[q], number, sample, room[:n], noise[:n])
            for i in range(n):
                noise[i] *= late[i]
            limit = first_ones(noise[:n], limit, number_of, room, places, sums.orders[sample, :k])
            if near:
                more = _neighbours(rule, lists, known, a, sums.orders[sample, :k], slope[a:b], bend[a:b])
                loss += more[0]
                weight += more[1]
        if not near:
            x, codes = lists.gains[a:b], lists.codes[a:b]
            _arrange(codes, lists.levels[q], k, sums)
            _add_samples(rule, x, codes, lists.levels[q], k, sums)
            often = lists.copies[a:b]
            loss, weight = _pairs(rule, known, x, codes, often, lists.levels[q], sums, slope[a:b], bend[a:b])
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
            if len(lists.copies) > 0:
                weight *= lists.copies[a + i] * lists.copies[a + j]
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
def _sums(rule: Rule, n: int, levels: int) -> Sums:
    """Return room for lists of n documents and that many levels."""
    k, samples = len(rule.v), rule.samples
    most = 0 if rule.kind == NEIGHBOURS else min(n, k * samples)
    summed = 0 if rule.kind == SUM else most
    orders, slots = np.empty((samples, k + 1), dtype=np.int64), np.empty(n, dtype=np.int64)
    documents, ends = np.empty(n, dtype=np.int64), np.empty(2 * levels, dtype=np.int64)
    counts, by_level, together = np.empty((samples, most)), np.empty((summed, levels)), np.empty((summed, summed))
    behind, room = np.empty((min(k, summed), levels)), np.empty((7, n))
    return Sums(orders, slots, documents, ends, counts, by_level, together, np.empty(levels), behind, room)


@compiled
def _arrange(codes: Codes, levels: int, k: int, sums: Sums) -> None:
    """Give slots to the documents of the first places of the rankings."""
    n, slots, ends = len(codes), sums.slots, sums.ends
    slots[:n] = -1
    for order in sums.orders:
        for r in range(k):
            slots[order[r]] = 0
    ends[: 2 * levels] = 0
    for i in range(n):
        ends[codes[i] - levels * slots[i]] += 1
    begin = 0
    for run in range(2 * levels):
        begin, ends[run] = begin + ends[run], begin
    for i in range(n):
        run = codes[i] - levels * slots[i]
        sums.documents[ends[run]] = i
        slots[i] = ends[run] if slots[i] == 0 else -1
        ends[run] += 1


@compiled
def _add_samples(rule: Rule, x: Floats, codes: Codes, levels: int, k: int, sums: Sums) -> None:
    """Overwrite counts or by_level and together with what the rankings say."""
    count = sums.ends[levels - 1]
    if rule.kind == SUM:
        sums.counts[:, :count] = 0.0
        for sample in range(rule.samples):
            for r in range(k):
                sums.counts[sample, sums.slots[sums.orders[sample, r]]] = rule.v[r]
        return
    for i in range(len(x)):
        sums.value[codes[i]] = x[i]
    sums.by_level[:count, :levels] = 0.0
    sums.together[:count, :count] = 0.0
    before, until = np.empty(k + 1), np.empty(k + 1)
    for sample in range(rule.samples):
        order = sums.orders[sample, :k]
        _prefixes(rule.kind, rule.v, x, order, before, until)
        for r in range(k):
            i = order[r]
            for level in range(levels):
                weight = 0.0
                if level != codes[i]:
                    weight = _change(rule.kind, rule.v[r], 0.0, before, until, r, k, x[i], sums.value[level])
                    sums.by_level[sums.slots[i], level] += weight
                sums.behind[r, level] = weight
        for r in range(k):
            i = order[r]
            for t in range(r + 1, k):
                j = order[t]
                if codes[i] != codes[j]:
                    a, b = sums.slots[i], sums.slots[j]
                    weight = _change(rule.kind, rule.v[r], rule.v[t], before, until, r, t, x[i], x[j])
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
    rule: Rule,
    scores: Scores,
    x: Floats,
    codes: Codes,
    often: Floats,
    levels: int,
    sums: Sums,
    slope: Floats,
    bend: Floats,
) -> tuple[float, float]:
    """Add the derivatives of the pairs that have a weight in sums; if valued, return their loss and weights.

    They are those of each slot with documents of higher levels that have slots and with all that have none. Rows that
    are taken by number, not by unpacking, and divide, which does not test for zero, become vector instructions.
    """
    s, documents = scores.s, sums.documents
    n, count = len(s), sums.ends[levels - 1]
    room = sums.room
    late, gains, weight, push, curve, by_score, twice = room[0], room[1], room[2], room[3], room[4], room[5], room[6]
    for p in range(n):
        late[p], gains[p], by_score[p], twice[p] = scores.late[documents[p]], x[documents[p]], 0.0, 0.0
    loss = weights = 0.0
    for a in range(count):
        begin = sums.ends[codes[documents[a]]]
        w, u, c, others = weight[begin:n], push[begin:n], curve[begin:n], late[begin:n]
        if rule.kind == SUM:
            _weigh_sum(sums.counts, a, gains, begin, count, w)
        else:
            _weigh(sums, a, codes, begin, count, w)
        if len(often) > 0:
            for p in range(len(w)):
                w[p] *= often[documents[a]] * often[documents[begin + p]]
        if scores.is_wide or rule.valued:
            for p in range(len(w)):
                lead = s[documents[begin + p]] - s[documents[a]]
                value, change = phi_and_slope(scores.phi, scores.margin, lead if w[p] > 0.0 else -lead)
                loss += abs(w[p]) * value
                weights += abs(w[p])
                u[p] = -w[p] * change
                c[p] = abs(w[p] * change) * (1.0 + change)
        else:
            for p in range(len(w)):
                share = np.divide(others[p], others[p] + late[a])
                u[p] = abs(w[p]) * share + min(w[p], 0.0)
                c[p] = abs(w[p]) * share * (1.0 - share)
        theirs, curved = by_score[begin:n], twice[begin:n]
        for p in range(len(w)):
            theirs[p] -= u[p]
            curved[p] += c[p]
        by_score[a] += _total(u)
        twice[a] += _total(c)
    for p in range(n):
        slope[documents[p]] = by_score[p]
        bend[documents[p]] = twice[p]
    return loss, weights


@compiled
def _weigh_sum(counts: Matrix, a: int, gains: Floats, begin: int, count: int, weight: Floats) -> None:
    """Overwrite weight with those of slot a and the places from begin on in SUM, below zero where a is better."""
    mine = 0.0
    weight[:] = 0.0
    for sample in range(len(counts)):
        others, v = counts[sample][begin:count], counts[sample, a]
        mine += v
        for p in range(len(others)):
            weight[p] += abs(others[p] - v)
    for p in range(count - begin, len(weight)):
        weight[p] = mine
    gained = gains[begin : begin + len(weight)]
    for p in range(len(weight)):
        weight[p] *= gained[p] - gains[a]


@compiled
def _weigh(sums: Sums, a: int, codes: Codes, begin: int, count: int, weight: Floats) -> None:
    """Overwrite weight with those of slot a and the places from begin on, below zero where a is better."""
    mine = codes[sums.documents[a]]
    for p in range(begin, begin + len(weight)):
        other = codes[sums.documents[p]]
        behind = sums.by_level[a, other] if other != mine else 0.0
        if p < count:
            behind += sums.by_level[p, mine] + sums.together[a, p]
        weight[p - begin] = behind if other > mine else -behind


@compiled
def _total(values: Floats) -> float:
    """Return the sum of values, by four partial sums."""
    a = b = c = d = 0.0
    whole = len(values) // 4 * 4
    for p in range(0, whole, 4):
        a += values[p]
        b += values[p + 1]
        c += values[p + 2]
        d += values[p + 3]
    for p in range(whole, len(values)):
        a += values[p]
    return (a + b) + (c + d)
