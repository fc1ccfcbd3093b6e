"""Coordinate descent on the domination loss column by column: a feature costs the entries that it touches.

Columns are given as CSC parts: data, rows, indptr, the rows of a column ascending, so that those of a query are
adjacent. A dense block has all rows in every column: rows is then given once, and the columns are only those worked on,
in the order of working, where a sparse matrix has all. factor is what each feature is multiplied by; weights w,
gradients and curvatures are for the multiplied features. Notation as in domination_kernels.

Two ways:
- Newton: minimise the quadratic model at the current scores. v = X d; by level A = sum share_j v_j, B = sum c_j v_j,
  mean_k = M_k of v, c the curvature and W its sum, pull_k = (S_k - W_k) mean_k + B_k + alpha_k pull_(k+1). The
  gradient of the model by v_j is
      gradient_j + (h_j + c_j) v_j - c_j mean_k - share_j pull_(k+1),   h_j = share_j T_(k+1), k the level of j,
  so a column costs its nonzeros, and if its weight changes also the levels of the queries it touches. mean and pull
  of a query are renewed when as many of its documents changed as it has levels, and after each sweep: then levels never
  cost more than nonzeros, and the means change little in between.
- Bounded: an exact gradient and a bound of the curvature that holds everywhere. A nonzero step costs the exponentials
  of all documents of the queries it touches, but never raises the objective, so that it needs no line search.

Small quadratics with an elastic-net penalty are minimised coordinate by coordinate:

    minimise over d   g'd + 1/2 d'Hd + l1 sum |w + d| + l2 / 2 sum (w + d)^2

g (n,) the gradient at w, H (n, n) positive semidefinite, w (n,) the weights that d moves. One coordinate has the exact
minimum that step gives, violation says how far the conditions of an optimum are from holding.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np

from ranktune.solvers.core.arrays import Floats, Ints, Matrix
from ranktune.solvers.core.compiled import compiled, inlined
from ranktune.solvers.losses.domination_kernels import DominationLists, DominationState, evaluate_query

Sums: TypeAlias = tuple[Floats, ...]
"""Sums by level: A and B, or W, A, B, mean and pull; see the module."""


class Columns(NamedTuple):
    """Some columns of X; see the module."""

    data: Matrix
    rows: Ints
    indptr: Ints
    dense: bool
    factor: Floats


class DominationTarget(NamedTuple):
    """Strengths of the penalty, and the violation that is small enough."""

    l1: float
    l2: float
    tolerance: float


@inlined
def _column(columns: Columns, c: int) -> tuple[Matrix, Ints]:
    """Return values and rows of one column."""
    a, b = columns.indptr[c], columns.indptr[c + 1]
    return columns.data[a:b], (columns.rows if columns.dense else columns.rows[a:b])


@inlined
def _own_sums(lists: DominationLists, state: DominationState) -> Floats:
    """Return W, (n_levels,)."""
    result = np.zeros(len(state.S))
    for i in range(len(state.curvature)):
        result[lists.level[i]] += state.curvature[i]
    return result


@compiled
def _curvature(
    data: Matrix, rows: Ints, lists: DominationLists, state: DominationState, query_of: Ints, W: Floats, sums: Sums
) -> float:
    """Return x'Hx of one column."""
    A, B = sums
    total, k, n = 0.0, 0, len(rows)
    while k < n:
        q = query_of[rows[k]]
        first, last, stop = lists.first_level[q], lists.first_level[q + 1], lists.starts[q + 1]
        A[first:last], B[first:last] = 0.0, 0.0
        while k < n and rows[k] < stop:
            i, x = rows[k], data[k]
            level = lists.level[i]
            above = state.T[level + 1] if level < last - 1 else 0.0
            total += (state.share[i] * above + state.curvature[i]) * x * x
            A[level] += state.share[i] * x
            B[level] += state.curvature[i] * x
            k += 1
        mean = 0.0
        for level in range(first, last):
            total += mean * ((W[level] - state.S[level]) * mean - 2.0 * B[level])
            mean = state.alpha[level] * mean + A[level]
    return max(total, 0.0)


@compiled
def newton_direction(
    columns: Columns,
    working: Ints,
    weights: Floats,
    gradient: Floats,
    lists: DominationLists,
    state: DominationState,
    query_of: Ints,
    target: DominationTarget,
    max_sweeps: int,
    delay: float,
    v: Floats,
) -> Floats:
    """Return d, (n_features,), zero outside of working, that about minimises the model; v gets X d.

    gradient is that of the loss by all multiplied columns. Sweeps end when no violation is above the tolerance. mean
    and pull of a query wait until delay times the number of its levels documents moved: 0 renews them at every move.
    """
    n_levels = len(state.S)
    W = _own_sums(lists, state)
    A, B, mean, pull = np.zeros(n_levels), np.zeros(n_levels), np.zeros(n_levels + 1), np.zeros(n_levels + 1)
    d, curvature = np.zeros(len(weights)), np.empty(len(working))
    for at, r in enumerate(working):
        data, rows = _column(columns, r)
        curvature[at] = _curvature(data, rows, lists, state, query_of, W, (A, B)) * columns.factor[r] ** 2
    A[:], B[:], v[:] = 0.0, 0.0, 0.0
    sums, waiting = (W, A, B, mean, pull), np.zeros(len(lists.starts) - 1, dtype=np.int64)
    ridge = RIDGE * curvature.max()
    whole = True
    for _ in range(max_sweeps):
        worst = 0.0
        for at, r in enumerate(working):
            now = weights[r] + d[r]
            if now == 0.0 and not whole:
                continue
            data, rows = _column(columns, r)
            slope = gradient[r] + columns.factor[r] * _model_slope(data, rows, lists, state, query_of, mean, pull, v)
            worst = max(worst, violation(now, slope, target.l1, target.l2))
            change = step(now, slope, curvature[at] + ridge, target.l1, target.l2)
            if change != 0.0:
                d[r] = -weights[r] if now + change == 0.0 else d[r] + change
                _move(change * columns.factor[r], data, rows, lists, state, query_of, sums, waiting, delay, v)
        for q in range(len(waiting)):
            if waiting[q] > 0:
                _renew(q, lists, state, sums)
                waiting[q] = 0
        if worst <= target.tolerance:
            if whole:
                break
            whole = True
        else:
            whole = False
    return d


@inlined
def _model_slope(
    data: Matrix,
    rows: Ints,
    lists: DominationLists,
    state: DominationState,
    query_of: Ints,
    mean: Floats,
    pull: Floats,
    v: Floats,
) -> float:
    """Return x'Hv of one column."""
    total = 0.0
    for k in range(len(rows)):
        i = rows[k]
        level = lists.level[i]
        share = state.share[i]  # 0 on the highest level, whose neighbour belongs to another query
        above = state.T[level + 1] if share != 0.0 else 0.0
        slope = share * (above * v[i] - pull[level + 1]) + state.curvature[i] * (v[i] - mean[level])
        total += data[k] * slope
    return total


@compiled
def _move(
    change: float,
    data: Matrix,
    rows: Ints,
    lists: DominationLists,
    state: DominationState,
    query_of: Ints,
    sums: Sums,
    waiting: Ints,
    delay: float,
    v: Floats,
) -> None:
    """Add change times one column to v and the sums; waiting, (n_queries,), counts moves that mean and pull miss."""
    _, A, B, _, _ = sums
    k, n = 0, len(rows)
    while k < n:
        q = query_of[rows[k]]
        stop, before = lists.starts[q + 1], k
        while k < n and rows[k] < stop:
            i, by = rows[k], change * data[k]
            v[i] += by
            A[lists.level[i]] += state.share[i] * by
            B[lists.level[i]] += state.curvature[i] * by
            k += 1
        waiting[q] += k - before
        if waiting[q] >= delay * (lists.first_level[q + 1] - lists.first_level[q]):
            _renew(q, lists, state, sums)
            waiting[q] = 0


@inlined
def _renew(q: int, lists: DominationLists, state: DominationState, sums: Sums) -> None:
    """Bring mean and pull of query q up to date."""
    W, A, B, mean, pull = sums
    first, last = lists.first_level[q], lists.first_level[q + 1]
    if last - first < 2:
        return
    for level in range(first, last - 1):
        mean[level + 1] = state.alpha[level] * mean[level] + A[level]
    above = 0.0
    for level in range(last - 1, first, -1):
        above = (state.S[level] - W[level]) * mean[level] + B[level] + state.alpha[level] * above
        pull[level] = above


@compiled
def add_bounds(
    columns: Columns, working: Ints, lists: DominationLists, query_of: Ints, above: Floats, tight: bool, result: Floats
) -> None:
    """Write the bound of the curvature along each feature of working into result, (n_features,).

    The curvature is a sum of variances within queries; a variance is at most a quarter of the squared range (tight),
    or the largest square, as the paper has it. above, (n_queries,), weighs the documents above the lowest level.
    """
    for at, r in enumerate(working):
        data, rows = _column(columns, at if columns.dense else r)
        total, k, n = 0.0, 0, len(rows)
        while k < n:
            q, begin = query_of[rows[k]], k
            low, high = float(data[k]), float(data[k])
            stop = lists.starts[q + 1]
            while k < n and rows[k] < stop:
                low, high = min(low, float(data[k])), max(high, float(data[k]))
                k += 1
            if k - begin < stop - lists.starts[q]:
                low, high = min(low, 0.0), max(high, 0.0)
            bound = 0.25 * (high - low) ** 2 if tight else max(high * high, low * low)
            total += lists.weights[q] * above[q] * bound
        result[r] = total * columns.factor[r] ** 2


@compiled
def bounded_sweep(
    columns: Columns,
    working: Ints,
    weights: Floats,
    curvature: Floats,
    lists: DominationLists,
    state: DominationState,
    query_of: Ints,
    target: DominationTarget,
    scores: Floats,
) -> float:
    """Give each feature of working one step in turn; return the largest violation met.

    Weights, scores and state move along; curvature, (n_features,), bounds the second derivatives.
    """
    worst = 0.0
    for at, r in enumerate(working):
        data, rows = _column(columns, at if columns.dense else r)
        slope = 0.0
        for k in range(len(rows)):
            slope += data[k] * state.gradient[rows[k]]
        slope *= columns.factor[r]
        worst = max(worst, violation(weights[r], slope, target.l1, target.l2))
        change = step(weights[r], slope, curvature[r], target.l1, target.l2)
        if change == 0.0:
            continue
        weights[r] += change
        k, n = 0, len(rows)
        while k < n:
            q = query_of[rows[k]]
            stop = lists.starts[q + 1]
            while k < n and rows[k] < stop:
                scores[rows[k]] += change * columns.factor[r] * data[k]
                k += 1
            evaluate_query(q, lists, scores, state)
    return worst


RIDGE = 1e-12
"""Share of the largest curvature that is added to each: a flat direction gets a finite step."""


@inlined
def step(weight: float, gradient: float, curvature: float, l1: float, l2: float) -> float:
    """Return the d that minimises gradient d + curvature / 2 d^2 + l1 |weight + d| + l2 / 2 (weight + d)^2.

    Zero where nothing but the l1 term is left.
    """
    stiffness = curvature + l2
    if stiffness <= 0.0:
        return -weight if abs(gradient) < l1 else 0.0
    target = curvature * weight - gradient
    if target > l1:
        return (target - l1) / stiffness - weight
    if target < -l1:
        return (target + l1) / stiffness - weight
    return -weight


@inlined
def violation(weight: float, gradient: float, l1: float, l2: float) -> float:
    """Return the distance of zero from the subdifferential of loss and penalty along one coordinate."""
    slope = gradient + l2 * weight
    if weight > 0.0:
        return abs(slope + l1)
    if weight < 0.0:
        return abs(slope - l1)
    return max(abs(slope) - l1, 0.0)


@compiled
def violations(weights: Floats, gradient: Floats, l1: float, l2: float) -> Floats:
    """Return violation of every coordinate, (n,)."""
    result = np.empty(len(weights))
    for r in range(len(weights)):
        result[r] = violation(weights[r], gradient[r], l1, l2)
    return result


@compiled
def minimise(
    H: Floats, gradient: Floats, weights: Floats, l1: float, l2: float, tolerance: float, max_sweeps: int
) -> Floats:
    """Return d, (n,), by sweeps over the coordinates until no violation in a sweep is above tolerance.

    Sweeps over the nonzero weights alone alternate with sweeps over all. Cost: n a coordinate that moves.
    """
    n = len(weights)
    slope, d = gradient.copy(), np.zeros(n)
    ridge = 0.0
    for r in range(n):
        ridge = max(ridge, RIDGE * H[r, r])
    whole = True
    for _ in range(max_sweeps):
        worst = 0.0
        for r in range(n):
            now = weights[r] + d[r]
            if now == 0.0 and not whole:
                continue
            worst = max(worst, violation(now, slope[r], l1, l2))
            change = step(now, slope[r], H[r, r] + ridge, l1, l2)
            if change != 0.0:
                d[r] = -weights[r] if now + change == 0.0 else d[r] + change
                for other in range(n):
                    slope[other] += change * H[other, r]
        if worst <= tolerance:
            if whole:
                break
            whole = True
        else:
            whole = False
    return d
