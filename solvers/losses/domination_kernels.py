"""The domination loss of queries, its gradient by score, and the second derivatives in a form of sums over documents.

t = s - u   score less the grade's margin       level   the documents of one query that share a grade; 0 the lowest
Z_k         sum of c_j exp(t_j) over the levels below k                a_q     weight of the query
q_k(j)      c_j exp(t_j) / Z_k: the soft maximum of lower documents    c       weight of the document
sigma_i     Z_k / (Z_k + exp(t_i)), k of i

    loss = sum over q of a_q sum over i above level 0 of c_i log(1 + Z_k / exp(t_i))

By the law of total variance the curvature along x is, without cancellation,

    sum over k of S_k Var_{q_k}(x) + sum over i of curvature_i (x_i - M_k)^2

with S_k the sum of a_q c_i sigma_i over level k, curvature_i = a_q c_i sigma_i (1 - sigma_i), M_k the mean of x under
q_k. Between levels only ratios of neighbours pass, alpha_k = Z_k / Z_(k+1) <= 1, so nothing can overflow:

    M_(k+1) = alpha_k M_k + sum over level k of share_j x_j,  share_j = q_(k+1)(j);    T_k = S_k + alpha_k T_(k+1)

share_j T_(k+1) is then the contribution of all better documents to document j, in the gradient as in the curvature.

Source: Stevens, Bengio & Singer, "Efficient Learning of Sparse Ranking Functions", sections 1.2 to 1.4. Their margins
carry a plus sign where this derivation has t = s - u.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ranktune.solvers.core.arrays import Codes, Floats, Ints, Matrix
from ranktune.solvers.core.compiled import compiled, inlined

ROWS = 8
"""Rows that are collected before their products are added: one pass over the matrix for all of them."""


class DominationLists(NamedTuple):
    """The queries in the form of the kernels; levels are numbered through all queries.

    starts (n_queries + 1,), first_level (n_queries + 1,), level (n_documents,), order (n_documents,) documents by
    level, bounds (n_levels + 1,) where each level starts in order, margins (n_levels,) u, weights (n_queries,) a_q,
    copies (n_documents,) c.
    """

    starts: Ints
    first_level: Ints
    level: Ints
    order: Ints
    bounds: Ints
    margins: Floats
    weights: Floats
    copies: Floats


class DominationState(NamedTuple):
    """The results of evaluate: by document gradient, share and curvature; by level log_z, alpha, S and T.

    share is 0 on the highest level, curvature on the lowest; queries of one level are 0 throughout.
    """

    gradient: Floats
    share: Floats
    curvature: Floats
    log_z: Floats
    alpha: Floats
    S: Floats
    T: Floats


def new_state(lists: DominationLists) -> DominationState:
    """Return a state for evaluate to fill."""
    n_documents, n_levels = len(lists.level), int(lists.first_level[-1])
    return DominationState(*(np.zeros(n_documents) for _ in range(3)), *(np.zeros(n_levels) for _ in range(4)))


@compiled
def number_levels(starts: Ints, codes: Codes, n_grades: Codes) -> tuple[Ints, Ints, Ints, Ints]:
    """Return first_level, level, order and bounds from the grades' numbers within each query."""
    n_queries = len(starts) - 1
    first_level = np.zeros(n_queries + 1, dtype=np.int64)
    for q in range(n_queries):
        first_level[q + 1] = first_level[q] + np.int64(n_grades[q])
    level, order = np.empty(len(codes), dtype=np.int64), np.empty(len(codes), dtype=np.int64)
    bounds = np.zeros(first_level[-1] + 1, dtype=np.int64)
    for q in range(n_queries):
        for i in range(starts[q], starts[q + 1]):
            level[i] = first_level[q] + np.int64(codes[i])
            bounds[level[i] + 1] += 1
    for at in range(len(bounds) - 1):
        bounds[at + 1] += bounds[at]
    place = bounds[:-1].copy()
    for i in range(len(codes)):
        order[place[level[i]]] = i
        place[level[i]] += 1
    return first_level, level, order, bounds


@compiled
def evaluate(lists: DominationLists, scores: Floats, state: DominationState) -> float:
    """Return the loss at scores, (n_documents,), and overwrite state. Cost: two exponentials a document at most."""
    total = 0.0
    for q in range(len(lists.starts) - 1):
        total += evaluate_query(q, lists, scores, state)
    return total


@compiled
def evaluate_query(q: int, lists: DominationLists, scores: Floats, state: DominationState) -> float:
    """Return the weighted loss of query q and overwrite its part of state."""
    a, b = lists.starts[q], lists.starts[q + 1]
    first, last = lists.first_level[q], lists.first_level[q + 1]
    state.gradient[a:b], state.share[a:b], state.curvature[a:b] = 0.0, 0.0, 0.0
    state.S[first:last], state.T[first:last], state.alpha[first:last] = 0.0, 0.0, 0.0
    if last - first < 2:
        return 0.0
    top, mass = _level_masses(lists, scores, a, b, first, last, state.share[a:b])
    state.log_z[first] = -np.inf
    for k in range(first + 1, last):
        before, here = state.log_z[k - 1], top[k - 1 - first] + np.log(mass[k - 1 - first])
        high, low = max(before, here), min(before, here)
        state.log_z[k] = high + np.log1p(np.exp(low - high))
        state.alpha[k - 1] = np.exp(before - state.log_z[k])
    total, weight = 0.0, lists.weights[q]
    for i in range(a, b):
        k = lists.level[i]
        if k > first:
            behind = state.log_z[k] - (scores[i] - lists.margins[k])
            ratio = np.exp(-abs(behind))
            total += lists.copies[i] * (max(behind, 0.0) + np.log1p(ratio))
            sigma = (1.0 if behind > 0.0 else ratio) / (1.0 + ratio)
            share = lists.copies[i] * weight
            state.gradient[i] = -share * sigma
            state.curvature[i] = share * ratio / (1.0 + ratio) ** 2
            state.S[k] += share * sigma
    state.T[last - 1] = state.S[last - 1]
    for k in range(last - 2, first, -1):
        state.T[k] = state.S[k] + state.alpha[k] * state.T[k + 1]
    for k in range(first, last - 1):
        mass[k - first] = np.exp(top[k - first] - state.log_z[k + 1])
    mass[last - 1 - first] = 0.0
    for i in range(a, b):
        k = lists.level[i]
        state.share[i] *= mass[k - first]
        if k < last - 1:
            state.gradient[i] += state.share[i] * state.T[k + 1]
    return float(weight * total)


@inlined
def _level_masses(
    lists: DominationLists, scores: Floats, a: int, b: int, first: int, last: int, out: Floats
) -> tuple[Floats, Floats]:
    """Return the largest t and the sum of c exp(t - largest) of each level; out, (b - a,) gets these terms."""
    top, mass = np.full(last - first, -np.inf), np.zeros(last - first)
    for i in range(a, b):
        k = lists.level[i] - first
        top[k] = max(top[k], scores[i] - lists.margins[first + k])
    for i in range(a, b):
        k = lists.level[i] - first
        out[i - a] = lists.copies[i] * np.exp(scores[i] - lists.margins[first + k] - top[k])
        mass[k] += out[i - a]
    return top, mass


@compiled
def value(lists: DominationLists, scores: Floats, scratch: Floats) -> float:
    """Return the loss at scores alone; scratch has room for the longest query."""
    total = 0.0
    for q in range(len(lists.starts) - 1):
        a, b = lists.starts[q], lists.starts[q + 1]
        first, last = lists.first_level[q], lists.first_level[q + 1]
        if last - first < 2:
            continue
        top, log_z = _level_masses(lists, scores, a, b, first, last, scratch[: b - a])
        before = -np.inf
        for k in range(last - first):
            here = top[k] + np.log(log_z[k])
            log_z[k] = before
            high, low = max(before, here), min(before, here)
            before = high + np.log1p(np.exp(low - high))
        part = 0.0
        for i in range(a, b):
            k = lists.level[i] - first
            if k > 0:
                behind = log_z[k] - (scores[i] - lists.margins[first + k])
                part += lists.copies[i] * (max(behind, 0.0) + np.log1p(np.exp(-abs(behind))))
        total += lists.weights[q] * part
    return total


@compiled
def stiffen(lists: DominationLists, scores: Floats, state: DominationState, share: float) -> None:
    """Move the curvature of evaluate by share of the way to a bound that holds at distant scores.

    The loss of a document far behind is nearly linear, log(Z_k) - t_i: its curvature is nearly zero and does not
    bound the step. tanh(b / 2) / (2 b), b how far it is behind, bounds the curvature of log(1 + exp(b)) along
    with the value: the parabola through here with it lies nowhere below.

    Source of the bound: Jaakkola & Jordan 2000, "Bayesian parameter estimation via variational methods", Stat. Comput.
    """
    for q in range(len(lists.starts) - 1):
        first = lists.first_level[q]
        for i in range(lists.starts[q], lists.starts[q + 1]):
            k = lists.level[i]
            if k > first:
                behind = state.log_z[k] - (scores[i] - lists.margins[k])
                if behind > 1.0:
                    bound = lists.copies[i] * lists.weights[q] * np.tanh(0.5 * behind) / (2.0 * behind)
                    state.curvature[i] += share * (bound - state.curvature[i])


@compiled
def hessian(X: Matrix, columns: Ints, lists: DominationLists, state: DominationState) -> Floats:
    """Return the second derivatives by the weights of some columns of dense X, (n_columns, n_columns).

    Each level gives a row a document and one row more, whose squares add up to the curvature: all are differences from
    a mean of the query, so that features far from zero do no harm. Cost: n_documents n_columns^2.
    """
    width = len(columns)
    total, rows = np.zeros((width, width)), np.zeros((ROWS, width))
    mean, below = np.empty(width), np.empty(width)
    filled = 0
    for q in range(len(lists.starts) - 1):
        first, last = lists.first_level[q], lists.first_level[q + 1]
        if last - first < 2:
            continue
        below[:] = 0.0  # M_k
        for k in range(first, last):
            begin, end = lists.bounds[k], lists.bounds[k + 1]
            above, mass = (state.T[k + 1] if k < last - 1 else 0.0), 0.0
            mean[:] = 0.0
            if k < last - 1:
                for p in range(begin, end):
                    i = lists.order[p]
                    mass += state.share[i]
                    for c in range(width):
                        mean[c] += state.share[i] * X[i, columns[c]]
                if mass > 1e-200:
                    mean /= mass
            if k == first:
                below[:] = mean
            between = above * state.alpha[k] * mass
            for p in range(begin, end):
                i = lists.order[p]
                inner, outer = state.share[i] * above, state.curvature[i]
                both = inner + outer
                if both <= 0.0:
                    continue
                between += inner * outer / both
                root, to_mean = np.sqrt(both), inner / both
                to_below = 1.0 - to_mean
                for c in range(width):
                    rows[filled, c] = root * (X[i, columns[c]] - (to_mean * mean[c] + to_below * below[c]))
                filled += 1
                if filled == ROWS:
                    _add_products(rows, total)
                    filled = 0
            root = np.sqrt(between)
            for c in range(width):
                rows[filled, c] = root * (mean[c] - below[c])
                below[c] = state.alpha[k] * below[c] + mass * mean[c]
            filled += 1
            if filled == ROWS:
                _add_products(rows, total)
                filled = 0
    rows[filled:] = 0.0
    _add_products(rows, total)
    for r in range(width):
        for c in range(r):
            total[r, c] = total[c, r]
    return total


@compiled
def _add_products(rows: Floats, total: Floats) -> None:
    """Add rows' rows to the upper triangle of total, (width, width); rows is (8, width).

    As fast as the general product of a BLAS at the widths that occur, in one fixed order and on one thread.
    """
    r0, r1, r2, r3, r4, r5, r6, r7 = rows[0], rows[1], rows[2], rows[3], rows[4], rows[5], rows[6], rows[7]
    for r in range(len(r0)):
        out = total[r]
        a0, a1, a2, a3, a4, a5, a6, a7 = r0[r], r1[r], r2[r], r3[r], r4[r], r5[r], r6[r], r7[r]
        for c in range(r, len(r0)):
            low = (a0 * r0[c] + a1 * r1[c]) + (a2 * r2[c] + a3 * r3[c])
            out[c] += low + ((a4 * r4[c] + a5 * r5[c]) + (a6 * r6[c] + a7 * r7[c]))
