"""Second-order updates from one pair at a time: the rules FULL and DIAGONAL of online.kernels."""

from __future__ import annotations

import numpy as np

from ranktune.solvers.core.arrays import Floats, Ints
from ranktune.solvers.core.compiled import compiled, inlined
from ranktune.solvers.data.rows import MatrixRows, difference, product, stretched_square
from ranktune.solvers.online.kernels import FULL, RECENT, OnlineState, UpdateRule


@compiled
def learn(rows: MatrixRows, better: Ints, worse: Ints, weights: Floats, rule: UpdateRule, state: OnlineState) -> None:
    """Update from the pairs of rows better[t] and worse[t], one after the other; weights as in kernels.learn."""
    for t in range(len(better)):
        m = difference(rows, better[t], worse[t], state.z, state.columns)
        loss = 1.0 - product(rows, state.z, state.columns, m, state.weights)
        state.counters[1] += 1.0
        if loss > 0.0:
            weight = weights[t] if len(weights) > 0 else 1.0
            state.counters[2] += weight * loss * loss
            if rule.kind == FULL:
                full_step(rule.strength / weight, state, rows, m, loss)
            else:
                diagonal_step(rule.strength / weight, state, rows, m, loss)


@compiled
def full_step(gamma: float, state: OnlineState, rows: MatrixRows, m: int, loss: float) -> None:
    """Take the step of FULL. Cost: d^2.

    Sigma is sigma less the outer products of the rows of recent with themselves. Four rows of sigma are added at once,
    so that v is met less often.
    """
    z, columns, v, sigma, recent = state.z, state.columns, state.scratch, state.sigma, state.recent
    d, known = len(v), int(state.counters[4])
    for c in range(d):
        v[c] = 0.0
    for k in range(0, m - 3, 4):
        f0, f1, f2, f3 = z[0, k], z[0, k + 1], z[0, k + 2], z[0, k + 3]
        if f0 == 0.0 and f1 == 0.0 and f2 == 0.0 and f3 == 0.0:
            continue
        r0, r1, r2, r3 = columns[k], columns[k + 1], columns[k + 2], columns[k + 3]
        for c in range(d):
            v[c] += (f0 * sigma[r0, c] + f1 * sigma[r1, c]) + (f2 * sigma[r2, c] + f3 * sigma[r3, c])
    for k in range(m // 4 * 4, m):
        factor, row = z[0, k], columns[k]
        for c in range(d):
            v[c] += factor * sigma[row, c]
    for s in range(known):
        inner = product(rows, z, columns, m, recent[s])
        for c in range(d):
            v[c] -= inner * recent[s, c]
    total = gamma + product(rows, z, columns, m, v)
    if not total < np.inf:
        state.weights[0] = np.nan  # the caller reports the overflow
        return
    step, root = loss / total, 1.0 / np.sqrt(total)
    for c in range(d):
        state.weights[c] += step * v[c]
        recent[known, c] = root * v[c]
    state.counters[4] += 1.0
    if known + 1 == RECENT:
        subtract_recent(state)


@inlined
def subtract_recent(state: OnlineState) -> None:
    """Bring sigma up to date. It stays symmetric to the bit: u_i u_j is u_j u_i, subtracted in the same order."""
    sigma, recent, d = state.sigma, state.recent, len(state.weights)
    for r in range(d):
        f0, f1, f2, f3 = recent[0, r], recent[1, r], recent[2, r], recent[3, r]
        f4, f5, f6, f7 = recent[4, r], recent[5, r], recent[6, r], recent[7, r]
        for c in range(d):
            first = (f0 * recent[0, c] + f1 * recent[1, c]) + (f2 * recent[2, c] + f3 * recent[3, c])
            second = (f4 * recent[4, c] + f5 * recent[5, c]) + (f6 * recent[6, c] + f7 * recent[7, c])
            sigma[r, c] -= first + second
    state.counters[4] = 0.0


@inlined
def diagonal_step(gamma: float, state: OnlineState, rows: MatrixRows, m: int, loss: float) -> None:
    """Take the step of DIAGONAL. Cost: the stored values of the pair."""
    z, columns, sigma = state.z, state.columns, state.sigma[0]
    total = gamma + stretched_square(rows, z, columns, m, sigma)
    if not total < np.inf:
        state.weights[0] = np.nan  # the caller reports the overflow
        return
    step, inverse = loss / total, 1.0 / total
    for k in range(m):
        c = columns[k] if rows.is_sparse else k
        change = sigma[c] * z[0, k]
        state.weights[c] += step * change
        sigma[c] -= change * change * inverse


def current_covariance(rule: UpdateRule, state: OnlineState) -> Floats:
    """Return Sigma, (d, d), or its diagonal, (d,)."""
    sigma: Floats = state.sigma.copy() if rule.kind == FULL else state.sigma[0]
    for row in state.recent[: int(state.counters[4])]:
        sigma -= row[:, None] * row
    return sigma
