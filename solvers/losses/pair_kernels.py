"""The loss of one list in score space, over its pairs (i, j) with y_i > y_j, without a list of the pairs.

    loss = sum of weight(i, j) phi(s_i - s_j),   phi hinge max(0, m - z), its square, or log(1 + exp(-z))

s      (n,) scores              codes  (n,) the number of each grade among the k of the list, lowest 0
x      (n,) how often each document counts: a pair weighs x_i x_j more; empty: once
slope  (n,) overwritten with the derivative of loss by s, the weights held constant (LambdaRank's convention)
u      (n,) gain of each document, not falling with its grade      v  (K,) what the first K ranks count, not rising

Without v all pairs weigh 1, and the cost is n^2, of hinges on long lists n log n log k. With v, weight(i, j) =
|u_i - u_j| |v_rank(i) - v_rank(j)|: how much sum of u v changes when the two documents swap places. It is zero unless
one of them is in the first K ranks, so the cost is n K. Every function returns loss and the sum of the weights.

Many columns of scores are taken one after the other: pairs of a document are looked at by vector instructions.

With noise, weights are means over noisy rankings, as in smoothed.kernels. Rules with and without noise have different
types, so that the kernels of noisy rankings are compiled only where a rule has noise.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ranktune.solvers.core.arrays import Codes, Floats, Ints, Matrix
from ranktune.solvers.core.compiled import compiled, inlined
from ranktune.solvers.data.grades import sort_with_order
from ranktune.solvers.losses.smoothed import kernels as noisy
from ranktune.solvers.losses.vector_loops import (
    HINGE,
    LOGISTIC,
    SQUARED_HINGE,
    WIDE,
    exponentials,
    logistic_rates,
    rates_of,
    sum_of_logs,
    total,
)

ROOM = 384
"""Pairs whose logarithms are taken at once."""
LONG = 300
"""With more documents than this, hinges of pairs that all weigh 1 are summed by sorting."""


class PairRule(NamedTuple):
    """phi, the margin m of the hinges, v (empty: all pairs weigh 1), whether losses are means or sums, and noise.

    Unless valued, the loss is not computed where that takes logarithms, and only slopes count.
    """

    phi: int
    margin: float
    values: Floats
    mean: bool = True
    noise: noisy.NoisyRule | None = None
    valued: bool = True


class PairLists(NamedTuple):
    """The grades of all lists: starts (n_lists + 1,), codes and gain (n_documents,), n_grades and keys (n_lists,).

    copies, (n_documents,), says how often each document counts; it is empty where each counts once.

    keys tell the noise of a list from that of others. n_grades are of the type of other sizes, so that numba compiles
    what works with sizes once.
    """

    starts: Ints
    codes: Codes
    n_grades: Ints
    gain: Floats
    keys: Ints
    copies: Floats


@compiled
def mean_losses(rule: PairRule, lists: PairLists, weights: Floats, scores: Floats, slope: Floats) -> float:
    """Return the mean of list_loss over the lists that have pairs, each counting as often as weights, (n_lists,), says.

    It is the sum unless rule.mean. slope is overwritten with its derivative.
    """
    total, count = 0.0, 0.0
    for q in range(len(lists.starts) - 1):
        a, b = lists.starts[q], lists.starts[q + 1]
        if lists.n_grades[q] < 2:
            slope[a:b] = 0.0
            continue
        codes, gain, x, by_score = lists.codes[a:b], lists.gain[a:b], lists.copies[a:b], slope[a:b]
        loss = list_loss(rule, rule.noise, scores[a:b], codes, lists.n_grades[q], gain, x, lists.keys[q], by_score)
        total += weights[q] * loss
        for i in range(a, b):
            slope[i] *= weights[q]
        count += weights[q]
    if not rule.mean:
        return total
    if count == 0.0:
        return 0.0
    for i in range(len(slope)):
        slope[i] /= count
    return total / count


@compiled
def list_loss(
    rule: PairRule,
    noise: noisy.NoisyRule | None,
    s: Floats,
    codes: Codes,
    k: int,
    u: Floats,
    x: Floats,
    key: int,
    slope: Floats,
) -> float:
    """Return the loss of one list, over the sum of its weights if rule.mean, and overwrite slope by its derivative.

    noise is rule.noise: where an argument is None, numba leaves out the branch and compiles nothing that it calls.
    """
    if noise is not None:
        loss, weight = noisy_pairs(noise, s, codes, k, u, x, key, slope)
    elif len(rule.values) > 0:
        loss, weight = swap_pairs(rule, s, codes, u, x, slope)
    elif rule.phi == LOGISTIC or len(s) <= LONG:
        loss, weight = all_pairs(rule, s, codes, k, u, x, slope)
    else:
        loss, weight = hinge_pairs(rule.phi, rule.margin, s, codes, k, x, slope)
    if weight <= 0.0:
        return 0.0
    if not rule.mean:
        return loss
    for i in range(len(slope)):
        slope[i] /= weight
    return loss / weight


@compiled
def noisy_pairs(
    noise: noisy.NoisyRule, s: Floats, codes: Codes, k: int, u: Floats, x: Floats, key: int, slope: Floats
) -> tuple[float, float]:
    """Sum over the pairs that have a weight in noisy rankings, which are the same in every round."""
    starts, keys, share = np.array([0, len(s)]), np.array([key]), np.ones(1)
    levels = np.full(1, k, dtype=np.uint32)
    lists = noisy.NoisyLists(starts, u, codes, levels, share, keys, x)
    return noisy.derivatives(noise, lists, 0, 0, 1, s, slope, np.empty(len(s)))


@compiled
def best(s: Matrix, codes: Codes, top: Ints) -> None:
    """Overwrite top with the documents of the highest scores, highest first.

    Among equal scores the lower grade comes first, then the given order: a tie counts as a mistake, and the value of
    a loss does not depend on the order of the documents.
    """
    filled, lowest = 0, -np.inf
    for i in range(len(s)):
        if s[i] < lowest:
            continue
        if filled == len(top):
            last = top[filled - 1]
            if not (s[i] > s[last] or (s[i] == s[last] and codes[i] < codes[last])):
                continue
            filled -= 1
        at = filled
        while at > 0 and (s[i] > s[top[at - 1]] or (s[i] == s[top[at - 1]] and codes[i] < codes[top[at - 1]])):
            top[at] = top[at - 1]
            at -= 1
        top[at] = i
        filled += 1
        lowest = s[top[filled - 1]] if filled == len(top) else lowest


@compiled
def swap_pairs(rule: PairRule, s: Floats, codes: Codes, u: Floats, x: Floats, slope: Floats) -> tuple[float, float]:
    """Sum over the pairs that touch the first K ranks, weighted by what a swap changes."""
    n = len(s)
    K = min(len(rule.values), n)
    heads, counts = np.empty(K, dtype=np.int64), np.zeros(n)  # v by document, 0 beyond K
    best(s, codes, heads)
    for r in range(K):
        counts[heads[r]] = rule.values[r]
    return visit(rule, heads, heads, s, u, counts, x if len(x) > 0 else np.ones(n), slope)


@compiled
def all_pairs(
    rule: PairRule, s: Floats, codes: Codes, k: int, u: Floats, x: Floats, slope: Floats
) -> tuple[float, float]:
    """Sum over all pairs, one by one: of each document with those of lower grades, which are put before it."""
    n = len(s)
    ends, order, lasts = np.zeros(k + 2, dtype=np.int64), np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    for i in range(n):
        ends[codes[i] + 2] += 1
    for c in range(k):
        ends[c + 2] += ends[c + 1]
    for i in range(n):
        order[ends[codes[i] + 1]] = i
        ends[codes[i] + 1] += 1
    t, copies, moved = np.empty(n), np.ones(n), np.empty(n)
    for p in range(n):
        i = order[p]
        t[p], lasts[p] = s[i], ends[codes[i]]
        if len(x) > 0:
            copies[p] = x[i]
    loss, weight = visit(rule, np.arange(n), lasts, t, u, t, copies, moved)
    for p in range(n):
        slope[order[p]] = moved[p]
    return loss, weight


@compiled
def visit(
    rule: PairRule, heads: Ints, lasts: Ints, t: Floats, u: Floats, counts: Floats, x: Floats, slope: Floats
) -> tuple[float, float]:
    """Sum over the pairs of each head with its partners, all at once.

    t are scores, counts what ranks count, x how often documents count. With v, all documents are partners; those that
    rank before have the weight 0. Without v, those before number lasts of the head are, which are worse, and u and
    counts are unused.
    """
    n, low, high, swaps = len(t), t[0], t[0], len(rule.values) > 0
    for p in range(n if rule.phi == LOGISTIC else 0):
        low = t[p] if t[p] < low else low
        high = t[p] if t[p] > high else high
    narrow = rule.phi == LOGISTIC and high - low < WIDE and np.isfinite(total(t))
    rows, room = np.zeros((5, n)), np.empty((3, max(n, ROOM) if narrow else n))
    rates, values, weights, e, inverse = rows[0], rows[1], rows[2], rows[3], rows[4]
    signed, z, powers = room[0], room[1], room[2]
    slope[:] = 0.0
    if narrow:
        exponentials(t, 0.5 * (low + high), e, inverse)
    loss, begin = 0.0, np.uint64(0)
    for r in range(len(heads)):
        h, last = heads[r], np.uint64(n if swaps else lasts[r])
        if narrow and begin + last > np.uint64(len(z)):
            loss += sum_of_logs(signed, z, powers, begin)
            begin = np.uint64(0)
        count, gain, often = counts[h], u[h], x[h]
        if swaps:
            for p in range(last):
                rest = count - counts[p]
                weight = often * x[p] * (gain - u[p]) * (rest if rest > 0.0 else 0.0)
                signed[begin + p] = weight
                weights[p] += abs(weight)
        else:
            for p in range(last):
                signed[begin + p] = often * x[p]
                weights[p] += often * x[p]
        if narrow:
            logistic_rates(e, inverse, signed[begin:], h, last, z[begin:], rates)
            if rule.valued:
                begin += last
        else:
            rates_of(rule.phi, rule.margin, t, signed, h, last, values, rates)
        for p in range(last):
            slope[p] += rates[p]
        slope[h] -= total(rates[:last])
    loss += sum_of_logs(signed, z, powers, begin) + total(values)
    return max(loss, 0.0), total(weights)


@compiled
def hinge_pairs(
    phi: int, margin: float, s: Floats, codes: Codes, k: int, x: Floats, slope: Floats
) -> tuple[float, float]:
    """Sum over all pairs by sorting: the active partners of a document are an interval of the scores, cut by grade.

    Two sweeps over the sorted scores keep, in a Fenwick tree by grade, how many documents are near enough and their
    sum of scores, which have the other sign in the second sweep. Both test s_better - s_worse < margin by the same
    subtraction, so they agree on every pair.
    """
    n = len(s)
    order, bucket = np.empty(n, dtype=np.uint32), np.empty(n, dtype=np.uint32)
    room = np.empty(n)
    sort_with_order(s, order, room, bucket, np.empty(2 * n + 1, dtype=np.uint32))
    if len(x) == 0:
        room[:] = 1.0
        x = room
    centre = s[order[n // 2]]  # small numbers keep sums accurate
    counts, sums, loss = np.empty(k + 1), np.empty(k + 1), 0.0
    slope[:] = 0.0
    for sign in (1.0, -1.0):  # i as the worse document, from below; then as the better document, from above
        counts[:] = 0.0
        sums[:] = 0.0
        end = 0
        for i in order:
            while end < n and sign * (s[order[end]] - s[i]) < margin:
                j = order[end]
                above = k - codes[j] if sign > 0.0 else codes[j] + 1
                _add(counts, sums, above, x[j], sign * (s[j] - centre))
                end += 1
            count, total = _below(counts, sums, np.int64(k - 1 - codes[i] if sign > 0.0 else codes[i]))
            short = (margin + sign * (s[i] - centre)) * count - total
            slope[i] += sign * x[i] * (count if phi == HINGE else 2.0 * short)
            if sign > 0.0:
                loss += x[i] * short
        for r in range(n // 2):
            order[r], order[n - 1 - r] = order[n - 1 - r], order[r]
    if phi == SQUARED_HINGE:  # sum of short^2 = sum of short (margin - s_better + s_worse)
        loss *= margin
        for document in range(n):
            loss += 0.5 * slope[document] * (s[document] - centre)
        loss = max(loss, 0.0)
    return loss, _count_pairs(codes, k, x)


@inlined
def _count_pairs(codes: Codes, k: int, x: Floats) -> float:
    counts = np.zeros(k)
    for i in range(len(codes)):
        counts[codes[i]] += x[i]
    pairs, below = 0.0, 0.0
    for c in range(k):
        pairs += below * counts[c]
        below += counts[c]
    return pairs


@inlined
def _add(counts: Floats, sums: Floats, at: int, count: float, value: float) -> None:
    while at < len(counts):
        counts[at] += count
        sums[at] += count * value
        at += at & -at


@inlined
def _below(counts: Floats, sums: Floats, at: np.int64) -> tuple[float, float]:
    """Return the count and the sum of what was added at places 1 .. at."""
    count, total = 0.0, 0.0
    while at > 0:
        count += counts[at]
        total += sums[at]
        at &= at - 1
    return count, total
