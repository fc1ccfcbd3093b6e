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

from ranktune.solvers.core.arrays import Floats, Ints
from ranktune.solvers.core.compiled import compiled, inlined
from ranktune.solvers.data.rows import MatrixRows, add_list, close_list, no_columns, open_list, score_list
from ranktune.solvers.data.scaling import factor_of
from ranktune.solvers.losses.pair_kernels import PairLists, PairRule, list_loss

FOBOS, RDA, PSGD, TGD = 0, 1, 2, 3
INVERSE_ROOT, CONSTANT, ADAGRAD = 0, 1, 2

DELTA = 1e-8
"""Keeps AdaGrad's rate finite where no gradient has been seen."""


class OnePassSettings(NamedTuple):
    """The optimizer, its schedule and rate, the penalty's strengths, and the truncation."""

    optimizer: int
    schedule: int
    eta0: float
    l1: float
    l2: float
    threshold: float
    every: int


class OnePassState(NamedTuple):
    """The variables that a step changes; see the notation of the module."""

    vector: Floats
    squares: Floats
    clock: Floats
    seen: Ints
    now: Floats


@inlined
def rate(rule: OnePassSettings, t: float, square: float) -> float:
    """Return eta of list t for a weight whose squared gradients sum to square."""
    if rule.schedule == INVERSE_ROOT:
        return float(rule.eta0 / np.sqrt(t))
    if rule.schedule == CONSTANT:
        return rule.eta0
    return adaptive_rate(rule.eta0, square)


@inlined
def adaptive_rate(eta0: float, square: float) -> float:
    """Return AdaGrad's eta."""
    return float(eta0 / (DELTA + np.sqrt(square)))


@inlined
def fobos_step(weight: float, gradient: float, eta: float, l1: float, l2: float) -> float:
    """Return where FOBOS moves a weight."""
    return shrunk(weight - eta * gradient, eta * l1) / (1.0 + eta * l2)


@inlined
def shrunk(weight: float, amount: float) -> float:
    """Return weight moved towards zero by amount, at most to zero."""
    size = abs(weight) - amount
    size = size if size > 0.0 else 0.0
    return size if weight > 0.0 else -size


@inlined
def weight_now(rule: OnePassSettings, state: OnePassState, j: int) -> float:
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


@inlined
def _decayed(rule: OnePassSettings, state: OnePassState, j: int, weight: float, eta: float) -> float:
    """Return weight j of PSGD; it only shrinks, so the last truncation since seen decides whether one removed it."""
    t = state.now[0]
    truncated = t - t % rule.every
    if truncated > state.seen[j]:
        at_truncation = weight * _decay(rule, eta, truncated - state.seen[j], state.now[2] - state.clock[j])
        if abs(at_truncation) < rule.threshold:
            return 0.0
    return weight * _decay(rule, eta, t - state.seen[j], state.now[1] - state.clock[j])


@inlined
def _decay(rule: OnePassSettings, eta: float, lists: float, clock: float) -> float:
    if rule.schedule == ADAGRAD:
        return float(max(0.0, 1.0 - eta * rule.l2) ** lists)
    return float(np.exp(-clock))


@compiled
def weights_of(rule: OnePassSettings, state: OnePassState, columns: Ints, out: Floats) -> None:
    """Overwrite out with the weights of columns as they are now."""
    for r in range(len(columns)):
        out[r] = weight_now(rule, state, columns[r])


@inlined
def advance(rule: OnePassSettings, state: OnePassState) -> None:
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


@inlined
def step(rule: OnePassSettings, state: OnePassState, columns: Ints, weights: Floats, gradient: Floats) -> None:
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
            weight = fobos_step(weights[r], g, eta, rule.l1, rule.l2)
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
def learn(
    rows: MatrixRows,
    order: Ints,
    lists: PairLists,
    pairs: PairRule,
    rule: OnePassSettings,
    state: OnePassState,
    multiplier: Floats,
    scaled: bool,
    before: Floats,
) -> float:
    """Learn from the lists in order; return the sum of their losses, each before its step. Cost: the stored values.

    Features count as multiplied by multiplier, (d,). before, if it has room, is overwritten with the scores of the
    lists' documents, each before its list's step.
    """
    d = len(state.vector)
    at = no_columns(rows, d)
    _, columns, low, high, _ = at
    weights, factor, effective, gradient = np.empty(d), np.empty(d), np.empty(d), np.empty(d)
    total = 0.0
    for q in order:
        if lists.n_grades[q] < 2 and len(before) == 0:
            continue
        a, b = lists.starts[q], lists.starts[q + 1]
        m = open_list(rows, a, b, at)
        weights_of(rule, state, columns[:m], weights)
        for r in range(m):
            factor[r] = multiplier[columns[r]] * factor_of(low[r], high[r], scaled)
            effective[r] = factor[r] * weights[r]
            gradient[r] = 0.0
        scores, slope = np.empty(b - a), np.empty(b - a)
        score_list(rows, a, b, at, effective, scores)
        if len(before) > 0:
            level = 0.0  # of columns that are constant in the list, and so order nothing
            for r in range(m if not scaled else 0):
                if factor[r] == 0.0:
                    level += multiplier[columns[r]] * weights[r] * low[r]
            for i in range(a, b):
                before[i] = scores[i - a] + level
        if lists.n_grades[q] > 1:
            codes, k, gain, x = lists.codes[a:b], lists.n_grades[q], lists.gain[a:b], lists.copies[a:b]
            total += list_loss(pairs, pairs.noise, scores, codes, k, gain, x, lists.keys[q], slope)
            add_list(rows, a, b, at, slope, gradient)
            for r in range(m):
                gradient[r] *= factor[r]
            step(rule, state, columns[:m], weights, gradient)
        close_list(rows, m, at)
    return total
