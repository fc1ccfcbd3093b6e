"""One step of a one-pass optimizer a list, at the cost of the list's nonzeros.

A penalty moves every weight at every list, a sparse list's gradient only a few. So a weight is brought up to date when
it is next needed: while its gradient is zero, any number of penalty steps is one formula of how far a clock advanced.

t          lists visited so far              eta  rate of a list: eta0 / sqrt(t), eta0, or eta0 / (DELTA + sqrt(G_j))
vector     (d,) weights as they were at seen; for RDA the sum of the gradients
squares    (d,) G_j, sum of the squared gradients, for AdaGrad
clock      (d,) reading of the clock at seen           seen  (d,) t at the last change
now        (3,) t, clock, clock at the last truncation

Clocks advance a list: FOBOS by eta l1, or by log(1 + eta l2) if l2 > 0; PSGD by -log(1 - eta l2); TGD at a truncation
by k eta l1. Under AdaGrad eta_j stands still with the gradient, and t is the clock.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ranktune.solvers.core.arrays import Floats, Indices, Ints, Matrix
from ranktune.solvers.core.compiled import compiled
from ranktune.solvers.core.vectors import row_product
from ranktune.solvers.data.list_scaling import columns_of_list, factor_of, ranges
from ranktune.solvers.losses.pair_kernels import Lists, PairRule, list_loss

FOBOS, RDA, PSGD, TGD = 0, 1, 2, 3
INVERSE_ROOT, CONSTANT, ADAGRAD = 0, 1, 2

DELTA = 1e-8
"""Keeps AdaGrad's rate finite where no gradient has been seen."""


class Rule(NamedTuple):
    """The optimizer, its schedule and rate, the penalty's strengths, and the truncation."""

    optimizer: int
    schedule: int
    eta0: float
    l1: float
    l2: float
    threshold: float
    every: int


class State(NamedTuple):
    """The variables that a step changes; see the notation of the module."""

    vector: Floats
    squares: Floats
    clock: Floats
    seen: Ints
    now: Floats


@compiled
def rate(rule: Rule, t: float, square: float) -> float:
    """Return eta of list t for a weight whose squared gradients sum to square."""
    if rule.schedule == INVERSE_ROOT:
        return float(rule.eta0 / np.sqrt(t))
    if rule.schedule == CONSTANT:
        return rule.eta0
    return float(rule.eta0 / (DELTA + np.sqrt(square)))


@compiled
def shrunk(weight: float, amount: float) -> float:
    """Return weight moved towards zero by amount, at most to zero."""
    if weight > amount:
        return weight - amount
    if weight < -amount:
        return weight + amount
    return 0.0


@compiled
def weight_now(rule: Rule, state: State, j: int) -> float:
    """Return weight j after state.now[0] lists, its gradient having been zero since seen."""
    t, weight = float(state.now[0]), float(state.vector[j])
    if weight == 0.0 or t == 0.0:
        return 0.0
    if rule.optimizer == RDA:
        eta = rate(rule, t, state.squares[j])
        return -shrunk(weight / t, rule.l1) / (rule.l2 + 1.0 / (eta * t))
    passed = t - state.seen[j]
    if passed == 0.0:
        return weight
    eta = rate(rule, t, state.squares[j])
    adaptive = rule.schedule == ADAGRAD
    if rule.optimizer == FOBOS:
        if rule.l2 > 0.0:  # w + l1 / l2 shrinks by 1 / (1 + eta l2) a list
            gone = passed * np.log1p(eta * rule.l2) if adaptive else state.now[1] - state.clock[j]
            amount = -rule.l1 / rule.l2 * np.expm1(-gone)
            return shrunk(float(weight * np.exp(-gone)), float(amount))
        return shrunk(weight, passed * eta * rule.l1 if adaptive else state.now[1] - state.clock[j])
    if rule.optimizer == PSGD:
        return _decayed(rule, state, j, weight, eta)
    if abs(weight) > rule.threshold:
        return weight
    truncations = t // rule.every - state.seen[j] // rule.every
    return shrunk(weight, truncations * rule.every * eta * rule.l1 if adaptive else state.now[1] - state.clock[j])


@compiled
def _decayed(rule: Rule, state: State, j: int, weight: float, eta: float) -> float:
    """Return weight j of PSGD; it only shrinks, so the last truncation since seen decides whether one removed it."""
    t = state.now[0]
    truncated = t - t % rule.every
    if truncated > state.seen[j]:
        at_truncation = weight * _decay(rule, eta, truncated - state.seen[j], state.now[2] - state.clock[j])
        if abs(at_truncation) < rule.threshold:
            return 0.0
    return weight * _decay(rule, eta, t - state.seen[j], state.now[1] - state.clock[j])


@compiled
def _decay(rule: Rule, eta: float, lists: float, clock: float) -> float:
    if rule.schedule == ADAGRAD:
        return float(max(0.0, 1.0 - eta * rule.l2) ** lists)
    return float(np.exp(-clock))


@compiled
def weights_of(rule: Rule, state: State, columns: Ints, out: Floats) -> None:
    """Overwrite out with the weights of columns as they are now."""
    for r in range(len(columns)):
        out[r] = weight_now(rule, state, columns[r])


@compiled
def advance(rule: Rule, state: State) -> None:
    """Advance the clocks to the next list."""
    t = state.now[0] + 1.0
    state.now[0] = t
    if rule.schedule == ADAGRAD:
        return
    eta = rate(rule, t, 0.0)
    if rule.optimizer == FOBOS:
        state.now[1] += np.log1p(eta * rule.l2) if rule.l2 > 0.0 else eta * rule.l1
    elif rule.optimizer == PSGD:
        state.now[1] -= np.log1p(-eta * rule.l2)
        if t % rule.every == 0.0:
            state.now[2] = state.now[1]
    elif rule.optimizer == TGD and t % rule.every == 0.0:
        state.now[1] += rule.every * eta * rule.l1


@compiled
def step(rule: Rule, state: State, columns: Ints, weights: Floats, gradient: Floats) -> None:
    """Learn from one list: move the weights of columns, given as they are now, by their gradient and the penalty."""
    advance(rule, state)
    t = state.now[0]
    truncate = t % rule.every == 0.0
    for r in range(len(columns)):
        j, g = columns[r], gradient[r]
        state.squares[j] += g * g
        if rule.optimizer == RDA:
            state.vector[j] += g
            continue
        eta = rate(rule, t, state.squares[j])
        if rule.optimizer == FOBOS:
            weight = shrunk(weights[r] - eta * g, eta * rule.l1) / (1.0 + eta * rule.l2)
        elif rule.optimizer == PSGD:
            weight = weights[r] * max(0.0, 1.0 - eta * rule.l2) - eta * g
            if truncate and abs(weight) < rule.threshold:
                weight = 0.0
        else:
            weight = weights[r] - eta * g
            if truncate and abs(weight) <= rule.threshold:
                weight = shrunk(weight, rule.every * eta * rule.l1)
        state.vector[j] = weight
        state.clock[j] = state.now[1]
        state.seen[j] = int(t)


@compiled
def constants(low: Matrix, factor: Floats, raw: Floats, m: int, scaled: bool) -> float:
    """Return what columns that are constant in a list, and so order nothing, add to all its scores by raw weights."""
    total = 0.0
    if not scaled:
        for r in range(m):
            if factor[r] == 0.0:
                total += raw[r] * low[r]
    return total


@compiled
def learn_dense(
    X: Matrix,
    order: Ints,
    lists: Lists,
    pairs: PairRule,
    rule: Rule,
    state: State,
    multiplier: Floats,
    scaled: bool,
    before: Floats,
) -> float:
    """Learn from the lists in order; return the sum of their losses, each before its step.

    Features count as multiplied by multiplier, (d,). before, if it has room, is overwritten with the scores of the
    lists' documents, each before its list's step.
    """
    d = X.shape[1]
    columns = np.empty(d, dtype=np.int64)
    for j in range(d):
        columns[j] = j
    weights, raw, factor, effective, gradient = np.empty(d), np.empty(d), np.empty(d), np.empty(d), np.empty(d)
    low, high = np.empty(d, dtype=X.dtype), np.empty(d, dtype=X.dtype)
    total = 0.0
    for q in order:
        if lists.n_grades[q] < 2 and len(before) == 0:
            continue
        a, b = lists.starts[q], lists.starts[q + 1]
        ranges(X[a:b], low, high)
        weights_of(rule, state, columns, weights)
        for j in range(d):
            raw[j] = multiplier[j] * weights[j]
            factor[j] = multiplier[j] * factor_of(low[j], high[j], scaled)
            effective[j] = factor[j] * weights[j]
            gradient[j] = 0.0
        scores, slope = np.empty(b - a), np.empty(b - a)
        for i in range(a, b):
            scores[i - a] = row_product(X, i, effective)
        if len(before) > 0:
            level = constants(low, factor, raw, d, scaled)
            for i in range(a, b):
                before[i] = scores[i - a] + level
            if lists.n_grades[q] < 2:
                continue
        total += list_loss(pairs, scores, lists.codes[a:b], lists.n_grades[q], lists.worth[a:b], slope)
        for i in range(a, b):
            change = slope[i - a]
            if change != 0.0:
                for j in range(d):
                    gradient[j] += X[i, j] * change
        for j in range(d):
            gradient[j] *= factor[j]
        step(rule, state, columns, weights, gradient)
    return total


@compiled
def learn_sparse(
    data: Matrix,
    indices: Indices,
    indptr: Indices,
    order: Ints,
    lists: Lists,
    pairs: PairRule,
    rule: Rule,
    state: State,
    multiplier: Floats,
    scaled: bool,
    before: Floats,
) -> float:
    """Learn as learn_dense does. Cost: the nonzeros of the lists."""
    d = len(state.vector)
    place = np.empty(d, dtype=np.int64)  # of each column among those of the list
    for j in range(d):
        place[j] = -1
    columns, low, high, filled = np.empty(d, dtype=np.int64), np.empty(d), np.empty(d), np.empty(d, dtype=np.int64)
    weights, raw, factor, effective, gradient = np.empty(d), np.empty(d), np.empty(d), np.empty(d), np.empty(d)
    total = 0.0
    for q in order:
        if lists.n_grades[q] < 2 and len(before) == 0:
            continue
        a, b = lists.starts[q], lists.starts[q + 1]
        m = columns_of_list(data, indices, indptr[a], indptr[b], b - a, place, columns, low, high, filled)
        weights_of(rule, state, columns[:m], weights)
        for r in range(m):
            raw[r] = multiplier[columns[r]] * weights[r]
            factor[r] = multiplier[columns[r]] * factor_of(low[r], high[r], scaled)
            effective[r] = factor[r] * weights[r]
            gradient[r] = 0.0
        scores, slope = np.empty(b - a), np.empty(b - a)
        for i in range(a, b):
            score = 0.0
            for p in range(indptr[i], indptr[i + 1]):
                score += data[p] * effective[place[indices[p]]]
            scores[i - a] = score
        if len(before) > 0:
            level = constants(low, factor, raw, m, scaled)
            for i in range(a, b):
                before[i] = scores[i - a] + level
            if lists.n_grades[q] < 2:
                for r in range(m):
                    place[columns[r]] = -1
                continue
        total += list_loss(pairs, scores, lists.codes[a:b], lists.n_grades[q], lists.worth[a:b], slope)
        for i in range(a, b):
            change = slope[i - a]
            if change != 0.0:
                for p in range(indptr[i], indptr[i + 1]):
                    gradient[place[indices[p]]] += data[p] * change
        for r in range(m):
            gradient[r] *= factor[r]
            place[columns[r]] = -1
        step(rule, state, columns[:m], weights, gradient)
    return total
