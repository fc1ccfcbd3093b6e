"""The loss of one list in score space, over its pairs (i, j) with y_i > y_j, without a list of the pairs.

    loss = sum of weight(i, j) phi(s_i - s_j),   phi hinge max(0, m - z), its square, or log(1 + exp(-z))

s      (n,) scores              codes  (n,) the number of each grade among the k of the list, lowest 0
slope  (n,) overwritten with the derivative of loss by s, the weights held constant (LambdaRank's convention)
u      (n,) worth of each document, not falling with its grade      v  (K,) what the first K ranks count, not rising

Without v all pairs weigh 1, and the hinges cost n log n log k, the logistic n^2. With v, weight(i, j) =
|u_i - u_j| |v_rank(i) - v_rank(j)|: how much sum of u v changes when the two documents swap places. It is zero unless
one of them is in the first K ranks, so the cost is n K. Every function returns loss and the sum of the weights.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ranktune.solvers.core.arrays import Codes, Floats, Ints
from ranktune.solvers.core.compiled import compiled

HINGE, SQUARED_HINGE, LOGISTIC = 0, 1, 2


class PairRule(NamedTuple):
    """phi, the margin m of the hinges, and v; an empty v weighs all pairs 1."""

    phi: int
    margin: float
    values: Floats


class Lists(NamedTuple):
    """The grades of all lists: starts (n_lists + 1,), codes and worth (n_documents,), n_grades (n_lists,)."""

    starts: Ints
    codes: Codes
    n_grades: Codes
    worth: Floats


@compiled
def mean_losses(rule: PairRule, lists: Lists, weights: Floats, scores: Floats, slope: Floats) -> float:
    """Return the mean of list_loss over the lists that have pairs, each counting as often as weights, (n_lists,), says.

    slope is overwritten with its derivative.
    """
    total, count = 0.0, 0.0
    for q in range(len(lists.starts) - 1):
        a, b = lists.starts[q], lists.starts[q + 1]
        if lists.n_grades[q] < 2:
            slope[a:b] = 0.0
            continue
        loss = list_loss(rule, scores[a:b], lists.codes[a:b], lists.n_grades[q], lists.worth[a:b], slope[a:b])
        total += weights[q] * loss
        slope[a:b] *= weights[q]
        count += weights[q]
    if count == 0.0:
        return 0.0
    slope /= count
    return total / count


@compiled
def list_loss(rule: PairRule, s: Floats, codes: Codes, k: int, u: Floats, slope: Floats) -> float:
    """Return the loss of one list divided by the sum of its weights, and overwrite slope with its derivative."""
    if len(rule.values) > 0:
        loss, weight = swap_pairs(rule.phi, rule.margin, rule.values, s, codes, u, slope)
    elif rule.phi == LOGISTIC:
        loss, weight = logistic_pairs(s, codes, slope)
    else:
        loss, weight = hinge_pairs(rule.phi, rule.margin, s, codes, k, slope)
    if weight <= 0.0:
        return 0.0
    for i in range(len(slope)):
        slope[i] /= weight
    return loss / weight


@compiled
def phi_and_slope(phi: int, margin: float, lead: float) -> tuple[float, float]:
    """Return phi(lead) and its derivative, lead = s_better - s_worse."""
    if phi == LOGISTIC:
        small = np.exp(-abs(lead))  # never overflows
        share = small / (1.0 + small) if lead > 0.0 else 1.0 / (1.0 + small)
        return max(-lead, 0.0) + np.log1p(small), -share
    short = margin - lead
    if short <= 0.0:
        return 0.0, 0.0
    if phi == HINGE:
        return short, -1.0
    return short * short, -2.0 * short


@compiled
def best(s: Floats, codes: Codes, top: Ints) -> None:
    """Overwrite top with the documents of the highest scores, highest first.

    Among equal scores the lower grade comes first, then the given order: a tie counts as a mistake, and the value of
    a loss does not depend on the order of the documents.
    """
    filled = 0
    for i in range(len(s)):
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


@compiled
def swap_pairs(
    phi: int, margin: float, v: Floats, s: Floats, codes: Codes, u: Floats, slope: Floats
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
            sign = 1.0 if codes[a] > codes[j] else -1.0
            value, change = phi_and_slope(phi, margin, sign * (s[a] - s[j]))
            loss += weight * value
            weights += weight
            by_a += sign * weight * change
            slope[j] -= sign * weight * change
        slope[a] += by_a
    return loss, weights


@compiled
def logistic_pairs(s: Floats, codes: Codes, slope: Floats) -> tuple[float, float]:
    """Sum over all pairs, one by one."""
    order = np.argsort(codes)
    slope[:] = 0.0
    loss, count, lower = 0.0, 0.0, 0  # the documents order[:lower] have lower grades than i
    for r in range(len(s)):
        i = order[r]
        while codes[order[lower]] < codes[i]:
            lower += 1
        for p in range(lower):
            j = order[p]
            value, change = phi_and_slope(LOGISTIC, 0.0, s[i] - s[j])
            loss += value
            slope[i] += change
            slope[j] -= change
        count += lower
    return loss, count


@compiled
def hinge_pairs(phi: int, margin: float, s: Floats, codes: Codes, k: int, slope: Floats) -> tuple[float, float]:
    """Sum over all pairs by sorting: the active partners of a document are an interval of the scores, cut by grade.

    Two sweeps over the sorted scores keep, in a Fenwick tree by grade, how many documents are near enough and their
    sum of scores. Both test s_better - s_worse < margin by the same subtraction, so they agree on every pair.
    """
    n = len(s)
    order = np.argsort(s)
    centre = s[order[n // 2]]  # small numbers keep sums accurate
    counts, sums = np.zeros(k + 1), np.zeros(k + 1)
    loss, end = 0.0, 0
    for r in range(n):  # i as the worse document, from below
        i = order[r]
        while end < n and s[order[end]] - s[i] < margin:
            _add(counts, sums, k - codes[order[end]], s[order[end]] - centre)
            end += 1
        count, total = _below(counts, sums, k - 1 - codes[i])
        short = (margin + (s[i] - centre)) * count - total
        loss += short
        slope[i] = count if phi == HINGE else 2.0 * short
    counts[:] = 0.0
    sums[:] = 0.0
    end = n - 1
    for r in range(n - 1, -1, -1):  # i as the better document, from above
        i = order[r]
        while end >= 0 and s[i] - s[order[end]] < margin:
            _add(counts, sums, codes[order[end]] + 1, s[order[end]] - centre)
            end -= 1
        count, total = _below(counts, sums, codes[i])
        slope[i] -= count if phi == HINGE else 2.0 * ((margin - (s[i] - centre)) * count + total)
    if phi == SQUARED_HINGE:  # sum of short^2 = sum of short (margin - s_better + s_worse)
        loss *= margin
        for i in range(n):
            loss += 0.5 * slope[i] * (s[i] - centre)
        loss = max(loss, 0.0)
    return loss, _count_pairs(codes, k)


@compiled
def _count_pairs(codes: Codes, k: int) -> float:
    counts = np.zeros(k)
    for i in range(len(codes)):
        counts[codes[i]] += 1.0
    pairs, below = 0.0, 0.0
    for c in range(k):
        pairs += below * counts[c]
        below += counts[c]
    return pairs


@compiled
def _add(counts: Floats, sums: Floats, at: int, value: float) -> None:
    while at < len(counts):
        counts[at] += 1.0
        sums[at] += value
        at += at & -at


@compiled
def _below(counts: Floats, sums: Floats, at: int) -> tuple[float, float]:
    """Return the count and the sum of what was added at places 1 .. at."""
    count, total = 0.0, 0.0
    while at > 0:
        count += counts[at]
        total += sums[at]
        at &= at - 1
    return count, total
