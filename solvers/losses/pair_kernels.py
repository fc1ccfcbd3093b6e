"""The loss of one list in score space, over its pairs (i, j) with y_i > y_j, without a list of the pairs.

    loss = sum of weight(i, j) phi(s_i - s_j),   phi hinge max(0, m - z), its square, or log(1 + exp(-z))

s      (n,) scores              codes  (n,) the number of each grade among the k of the list, lowest 0
x      (n,) how often each document counts: a pair weighs x_i x_j more; empty: once
slope  (n,) overwritten with the derivative of loss by s, the weights held constant (LambdaRank's convention)
u      (n,) gain of each document, not falling with its grade      v  (K,) what the first K ranks count, not rising

Without v all pairs weigh 1, and the hinges cost n log n log k, the logistic n^2. With v, weight(i, j) =
|u_i - u_j| |v_rank(i) - v_rank(j)|: how much sum of u v changes when the two documents swap places. It is zero unless
one of them is in the first K ranks, so the cost is n K. Every function returns loss and the sum of the weights.

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
from ranktune.solvers.losses.smoothed.phi import HINGE, LOGISTIC, SQUARED_HINGE, phi_and_slope

WIDE = 250.0
"""Scores of a list that are further apart are not taken to the exponent one by one: exp(-250) is 1e-109."""
SMALL, LARGE = 1e-100, 1e100
"""Between them, a product takes one more factor from 1e-109 to 2 without an overflow or loss of digits."""


class PairRule(NamedTuple):
    """phi, the margin m of the hinges, v (empty: all pairs weigh 1), whether losses are means or sums, and noise."""

    phi: int
    margin: float
    values: Floats
    mean: bool = True
    noise: noisy.Rule | None = None


class Lists(NamedTuple):
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
def mean_losses(rule: PairRule, lists: Lists, weights: Floats, scores: Floats, slope: Floats) -> float:
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
    noise: noisy.Rule | None,
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
    elif len(rule.values) > 0 and rule.phi == LOGISTIC and len(x) == 0 and spread(s) < WIDE:
        loss, weight = logistic_swaps(rule.values, s, codes, k, u, slope)
    elif len(rule.values) > 0:
        loss, weight = swap_pairs(rule.phi, rule.margin, rule.values, s, codes, u, x, slope)
    elif rule.phi == LOGISTIC:
        loss, weight = logistic_pairs(s, codes, x, slope)
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
    noise: noisy.Rule, s: Floats, codes: Codes, k: int, u: Floats, x: Floats, key: int, slope: Floats
) -> tuple[float, float]:
    """Sum over the pairs that have a weight in noisy rankings, which are the same in every round."""
    starts, keys, share = np.array([0, len(s)]), np.array([key]), np.ones(1)
    levels = np.full(1, k, dtype=np.uint32)
    lists = noisy.Lists(starts, u, codes, levels, share, keys, x)
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
def swap_pairs(
    phi: int, margin: float, v: Floats, s: Floats, codes: Codes, u: Floats, x: Floats, slope: Floats
) -> tuple[float, float]:
    """Sum over the pairs that touch the first K ranks, weighted by what a swap changes."""
    n = len(s)
    K = min(len(v), n)
    top = np.empty(K, dtype=np.int64)
    best(s, codes, top)
    counts = np.zeros(n)  # v by document, 0 beyond K
    pending = np.ones(n, dtype=np.bool_)
    for r in range(K):
        counts[top[r]] = v[r]
    slope[:] = 0.0
    loss, weights = 0.0, 0.0
    for r in range(K):
        a = top[r]
        pending[a] = False
        by_a = 0.0
        for j in range(n):
            weight = abs(u[a] - u[j]) * abs(v[r] - counts[j])
            if weight == 0.0 or not pending[j]:
                continue
            if len(x) > 0:
                weight *= x[a] * x[j]
            sign = 1.0 if codes[a] > codes[j] else -1.0
            value, change = phi_and_slope(phi, margin, sign * (s[a] - s[j]))
            loss += weight * value
            weights += weight
            by_a += sign * weight * change
            slope[j] -= sign * weight * change
        slope[a] += by_a
    return loss, weights


@inlined
def spread(s: Floats) -> float:
    """Return the highest score less the lowest."""
    low = high = s[0]
    for i in range(len(s)):
        low = s[i] if s[i] < low else low
        high = s[i] if s[i] > high else high
    return float(high - low)


@compiled
def logistic_swaps(v: Floats, s: Floats, codes: Codes, k: int, u: Floats, slope: Floats) -> tuple[float, float]:
    """Return what swap_pairs does for the logistic loss, with one exponential a document, and few logarithms.

    With e_i = exp(s_i - high), phi(s_i - s_j) = log(e_i + e_j) - log e_i, and its derivative is -e_j / (e_i + e_j). The
    documents behind the first K ranks are put in the order of their grades. Those of a grade make pairs of one weight
    with a document of the first ranks, so that their logarithms are the one of a product.
    """
    n = len(s)
    K = min(len(v), n)
    top = np.empty(K, dtype=np.int64)
    best(s, codes, top)
    high = s[top[0]]
    behind = np.ones(n, dtype=np.bool_)
    for r in range(K):
        behind[top[r]] = False
    slope[:] = 0.0
    ends, gain, logs = np.zeros(k + 1, dtype=np.int64), np.zeros(k), np.zeros(k)
    for i in range(n):
        gain[codes[i]] = u[i]
        if behind[i]:
            ends[codes[i] + 1] += 1
            logs[codes[i]] += s[i] - high
    for c in range(k):
        ends[c + 1] += ends[c]
    at, document, e = ends.copy(), np.empty(n - K, dtype=np.int64), np.empty(n - K)
    for i in range(n):
        if behind[i]:
            document[at[codes[i]]] = i
            e[at[codes[i]]] = np.exp(s[i] - high)
            at[codes[i]] += 1
    first_ranks = np.empty(K)
    for r in range(K):
        first_ranks[r] = np.exp(s[top[r]] - high)
    by_rest, shares, sums = np.zeros(n - K), np.empty(n - K), np.empty(n - K)
    loss, weights = 0.0, 0.0
    for r in range(K):
        a = top[r]
        exponential = first_ranks[r]
        for c in range(k):
            weight = abs(u[a] - gain[c]) * v[r]
            first, last = ends[c], ends[c + 1]
            if weight == 0.0 or first == last:
                continue
            better = codes[a] > c
            sign = weight if better else -weight
            for p in range(first, last):
                sums[p] = exponential + e[p]
                shares[p] = (e[p] if better else exponential) / sums[p]
                by_rest[p] += sign * shares[p]
            share, log = totals(shares, sums, first, last)
            slope[a] -= sign * share
            loss += weight * (log - ((last - first) * (s[a] - high) if better else logs[c]))
            weights += weight * (last - first)
    for r in range(K):
        a = top[r]
        for t in range(r + 1, K):
            b = top[t]
            weight = abs(u[a] - u[b]) * (v[r] - v[t])
            if weight == 0.0:
                continue
            sign = 1.0 if codes[a] > codes[b] else -1.0
            both = first_ranks[r] + first_ranks[t]
            change = sign * weight * (first_ranks[t] if sign > 0.0 else first_ranks[r]) / both
            loss += weight * (np.log(both) - ((s[a] if sign > 0.0 else s[b]) - high))
            weights += weight
            slope[a] -= change
            slope[b] += change
    for p in range(n - K):
        slope[document[p]] = by_rest[p]
    return max(loss, 0.0), weights


@inlined
def totals(shares: Floats, sums: Floats, first: int, last: int) -> tuple[float, float]:
    """Return the sum of shares[first:last] and that of the logarithms of sums[first:last], each from 1e-109 to 2."""
    share0 = share1 = log = 0.0
    product0 = product1 = 1.0
    for p in range(first, last - 1, 2):
        share0 += shares[p]
        share1 += shares[p + 1]
        product0 *= sums[p]
        product1 *= sums[p + 1]
        if not (SMALL < product0 < LARGE and SMALL < product1 < LARGE):
            log += np.log(product0) + np.log(product1)
            product0 = product1 = 1.0
    if (last - first) % 2 == 1:
        share0 += shares[last - 1]
        product0 *= sums[last - 1]
    return share0 + share1, log + np.log(product0) + np.log(product1)


@inlined
def logistic_pairs(s: Floats, codes: Codes, x: Floats, slope: Floats) -> tuple[float, float]:
    """Sum over all pairs, one by one."""
    slope[:] = 0.0
    loss, count = 0.0, 0.0
    for i in range(len(s)):
        for j in range(len(s)):
            if codes[j] < codes[i]:
                value, change = phi_and_slope(LOGISTIC, 0.0, s[i] - s[j])
                weight = x[i] * x[j] if len(x) > 0 else 1.0
                loss += weight * value
                slope[i] += weight * change
                slope[j] -= weight * change
                count += weight
    return loss, count


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
