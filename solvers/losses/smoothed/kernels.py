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
slot. The weight of a pair in SUM is |x_i - x_j| times the mean of |v_r(i) - v_r(j)|. For the other kinds, a document at
one of the first ranks makes pairs of one weight with all documents of a level of x behind them: weights are summed over
samples by slot and level, with a correction for pairs of two slots, at most K samples of them. The loop is over the
better documents of pairs, which are few where few are relevant.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ranktune.solvers.core.arrays import Codes, Floats, Ints, Matrix
from ranktune.solvers.core.compiled import compiled, inlined
from ranktune.solvers.losses.smoothed.draws import rankings, stream
from ranktune.solvers.losses.vector_loops import LOGISTIC, phi_and_slope, total

NEIGHBOURS, SUM, PRECISION, FIRST, STOPS = range(5)

WIDE = 600.0
"""Scores of a list that are further apart are not taken to the exponent one by one."""


class NoisyLists(NamedTuple):
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


class NoisyRule(NamedTuple):
    """The kind of weights, v of the first K ranks, the samples, the table of their noise, and the loss of pairs.

    The loss and the sum of the weights are those of all pairs only where valued, which takes logarithms. swaps is the
    kind if it is PRECISION, FIRST or STOPS: where an argument is None, numba leaves out the branch and compiles nothing
    that it calls.
    """

    kind: int
    v: Floats
    samples: int
    noise: Floats
    valued: bool = False
    phi: int = LOGISTIC
    margin: float = 1.0
    swaps: int | None = None


class Sums(NamedTuple):
    """Room for the rankings of a list, and for the weights of its pairs, summed over samples.

    orders     (samples, k) the first documents of each ranking
    slots      (n,) the slot of each of these documents, below 0 of others
    documents  (n,) those without slots, by level, highest first, then the others, by level, which gives their slots
    ends       (2 levels,) where the documents of each level end, in this order

    counts     (samples + 1, slots) of SUM the v of the rank of each document, 0 behind the first, and their sum

    by_level   (slots, levels) with documents of a level, as if those were behind the first ranks in each sample
    together   (slots, slots) what is to be added for two documents that have slots, the higher one first

    room is scratch. It is for the longest list, so that only parts of it are in use.
    """

    orders: Ints
    slots: Ints
    documents: Ints
    ends: Ints
    counts: Matrix
    by_level: Matrix
    together: Matrix
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
    rule: NoisyRule, lists: NoisyLists, number: int, first: int, last: int, scores: Floats, slope: Floats, bend: Floats
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
    k, samples = len(rule.v), rule.samples
    most = 0 if near else min(longest, k * samples)
    summed = 0 if rule.kind == SUM else most
    numbers = np.empty((3, longest), dtype=np.int64)
    orders, ends = np.empty((samples, k + 1), dtype=np.int64), np.empty(2 * levels, dtype=np.int64)
    counts, by_level, together = np.empty((samples + 1, most)), np.empty((summed, levels)), np.empty((summed, summed))
    sums = Sums(orders, numbers[0], numbers[1], ends, counts, by_level, together, np.empty((7, longest)))
    late = np.empty(longest)
    limit, total, weights = 1.0, 0.0, 0.0
    for q in range(first, last):
        a, b = lists.starts[q], lists.starts[q + 1]
        slope[a:b] = 0.0
        bend[a:b] = 0.0
        n, factor = b - a, lists.share[q] / samples
        if lists.levels[q] < 2 or factor == 0.0 or len(rule.v) == 0:
            continue
        s = scores[a:b]
        high = low = s[0]
        for i in range(n):
            high, low = max(high, s[i]), min(low, s[i])
        for i in range(n):
            late[i] = np.exp(min(high - s[i], WIDE))
        wide = rule.phi != LOGISTIC or high - low > WIDE
        of_list = Scores(s, late[:n], wide, rule.phi, rule.margin)
        k = min(len(rule.v) + near, n)
        hashed = stream(lists.keys[q], number)
        limit = rankings(rule.noise, hashed, of_list.late, limit, sums.room, numbers, k, orders)
        loss = weight = 0.0
        if near:
            for order in orders:
                value, more = _neighbours(rule, lists, of_list, a, order[:k], slope[a:b], bend[a:b])
                loss += value
                weight += more
        else:
            x, codes, often, n_levels = lists.gains[a:b], lists.codes[a:b], lists.copies[a:b], lists.levels[q]
            _arrange(codes, n_levels, k, sums)
            _add_samples(rule, rule.swaps, x, codes, n_levels, k, sums)
            loss, weight = _pairs(rule, rule.swaps, of_list, x, codes, often, n_levels, sums, slope[a:b], bend[a:b])
        for i in range(a, b):
            slope[i] *= factor
            bend[i] *= factor
        total += factor * loss
        weights += factor * weight
    return total, weights


@compiled
def _neighbours(
    rule: NoisyRule, lists: NoisyLists, scores: Scores, a: int, order: Ints, slope: Floats, bend: Floats
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
            value, change = 0.0, -scores.late[i] / (scores.late[i] + scores.late[j])
            if scores.is_wide or rule.valued:
                value, change = phi_and_slope(scores.phi, scores.margin, scores.s[i] - scores.s[j])
            loss += weight * value
            weights += weight
            share = -change
            slope[i] -= weight * share
            slope[j] += weight * share
            bend[i] += weight * share * (1.0 - share)
            bend[j] += weight * share * (1.0 - share)
    return loss, weights


@inlined
def _arrange(codes: Codes, levels: int, k: int, sums: Sums) -> None:
    """Give slots to the documents of the first places of the rankings."""
    n, slots, ends = len(codes), sums.slots, sums.ends
    slots[:n] = 0
    for order in sums.orders:
        for r in range(k):
            slots[order[r]] = 1
    ends[: 2 * levels] = 0
    for i in range(n):
        slots[i] = levels + codes[i] if slots[i] else levels - 1 - codes[i]
        ends[slots[i]] += 1
    begin = 0
    for run in range(2 * levels):
        begin, ends[run] = begin + ends[run], begin
    others = ends[levels]
    for i in range(n):
        run = slots[i]
        sums.documents[ends[run]] = i
        slots[i] = ends[run] - others
        ends[run] += 1


@compiled
def _add_samples(rule: NoisyRule, swaps: int | None, x: Floats, codes: Codes, levels: int, k: int, sums: Sums) -> None:
    """Overwrite counts or by_level and together with what the rankings say."""
    count = len(x) - sums.ends[levels - 1]
    if swaps is None:
        sums.counts[:, :count] = 0.0
        for sample in range(rule.samples):
            for r in range(k):
                slot = sums.slots[sums.orders[sample, r]]
                sums.counts[sample, slot] = rule.v[r]
                sums.counts[rule.samples, slot] += rule.v[r]
        return
    value, behind = np.empty(levels), np.empty((k, levels))
    for i in range(len(x)):
        value[codes[i]] = x[i]
    sums.by_level[:count, :levels] = 0.0
    sums.together[:count, :count] = 0.0
    before, until = np.empty(k + 1), np.empty(k + 1)
    for sample in range(rule.samples):
        order = sums.orders[sample, :k]
        _prefixes(swaps, rule.v, x, order, before, until)
        for r in range(k):
            i = order[r]
            for level in range(levels):
                weight = 0.0
                if level != codes[i]:
                    weight = _change(swaps, rule.v[r], 0.0, before, until, r, k, x[i], value[level])
                    sums.by_level[sums.slots[i], level] += weight
                behind[r, level] = weight
        for r in range(k):
            i = order[r]
            for t in range(r + 1, k):
                j = order[t]
                if codes[i] != codes[j]:
                    a, b = sums.slots[i], sums.slots[j]
                    weight = _change(swaps, rule.v[r], rule.v[t], before, until, r, t, x[i], x[j])
                    sums.together[max(a, b), min(a, b)] += weight - behind[r, codes[j]] - behind[t, codes[i]]


@inlined
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


@inlined
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
    rule: NoisyRule,
    swaps: int | None,
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

    They are those of each document with documents of lower levels that have slots and, if it has one itself, with the
    others. Divide, which does not test for zero, and loops that write two arrays at most become vector instructions.
    """
    s, documents, ends, room = scores.s, sums.documents, sums.ends, sums.room
    n, unplaced = len(s), ends[levels - 1]
    late, gains, by_score, twice = room[0], room[1], room[2], room[3]
    for p in range(n):
        late[p], gains[p], by_score[p], twice[p] = scores.late[documents[p]], x[documents[p]], 0.0, 0.0
    loss = weights = 0.0
    for p in range(n):
        level = codes[documents[p]]
        begin, end = ends[levels - 1 - level] if p >= unplaced else unplaced, ends[levels - 1 + level]
        if begin < end:
            w, u, c = room[4][begin:end], room[5][begin:end], room[6][begin:end]
            others, theirs, curved = late[begin:end], by_score[begin:end], twice[begin:end]
            if swaps is None:
                _weigh_sum(sums.counts, p - unplaced, unplaced - begin, w)
                gain, gained = gains[p], gains[begin:end]
                for b in range(len(w)):
                    w[b] *= gain - gained[b]
            else:
                _weigh(sums, codes, p, begin, unplaced, w)
            if len(often) > 0:
                for b in range(len(w)):
                    w[b] *= often[documents[p]] * often[documents[begin + b]]
            if scores.is_wide or rule.valued:
                for b in range(len(w)):
                    value, change = phi_and_slope(scores.phi, scores.margin, s[documents[p]] - s[documents[begin + b]])
                    loss += w[b] * value
                    weights += w[b]
                    u[b] = -w[b] * change
                    c[b] = u[b] * (1.0 + change)
            else:
                mine = late[p]
                for b in range(len(w)):
                    share = np.divide(mine, others[b] + mine)
                    u[b] = w[b] * share
                    c[b] = w[b] * share * (1.0 - share)
            for b in range(len(w)):
                theirs[b] += u[b]
                curved[b] += c[b]
            by_score[p] -= total(u)
            twice[p] += total(c)
    for p in range(n):
        slope[documents[p]] = by_score[p]
        bend[documents[p]] = twice[p]
    return loss, weights


@compiled
def _weigh_sum(counts: Matrix, slot: int, unplaced: int, weight: Floats) -> None:
    """Overwrite weight with the sum over samples of |v - v'|, of a slot and documents without slots, then first slots.

    slot is below 0 for a document without one.
    """
    behind, placed, samples = weight[:unplaced], weight[unplaced:], len(counts) - 1
    all_v = counts[samples]
    for b in range(len(behind)):
        behind[b] = all_v[slot]
    for b in range(len(placed)):
        placed[b] = all_v[b]
    for sample in range(samples if slot >= 0 else 0):
        others, v = counts[sample], counts[sample, slot]
        if v > 0.0:
            for b in range(len(placed)):
                placed[b] += abs(others[b] - v) - others[b]


@compiled
def _weigh(sums: Sums, codes: Codes, p: int, begin: int, unplaced: int, weight: Floats) -> None:
    """Overwrite weight with those of place p and the places from begin on, the first documents without slots."""
    mine, slot = codes[sums.documents[p]], p - unplaced
    for b in range(len(weight)):
        other = begin + b - unplaced
        weight[b] = 0.0
        if slot >= 0:
            weight[b] += sums.by_level[slot, codes[sums.documents[begin + b]]]
        if other >= 0:
            weight[b] += sums.by_level[other, mine] + (sums.together[slot, other] if slot >= 0 else 0.0)
