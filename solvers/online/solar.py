"""SOLAR: online linear ranking by first- or second-order passive-aggressive steps on pairs.

The second-order steps are those of the rules FULL and DIAGONAL of online.kernels, from one pair at a time.
"""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Annotated

import numpy as np

from ranktune.solvers.core.arrays import Floats, Ints
from ranktune.solvers.core.compiled import compiled, inlined
from ranktune.solvers.core.errors import ParameterError
from ranktune.solvers.core.parameters import Param, with_parameters
from ranktune.solvers.data.rows import MatrixRows, difference, product, stretched_square
from ranktune.solvers.online import kernels
from ranktune.solvers.online.base import PairwiseOnlineRanker
from ranktune.solvers.online.kernels import FULL, RECENT, OnlineState, UpdateRule, new_state

FULL_FEATURES = 2000
"""The most features for which "auto" is full: 32 MB."""
MAX_BYTES = 1 << 30
"""The largest full covariance that is allowed."""


@with_parameters
class SOLAR1(PairwiseOnlineRanker):
    """First-order SOLAR: passive-aggressive steps (PA-II) on pairs.

    A pair (i, j), y_i > y_j, z = x_i - x_j, with the loss l = max(0, 1 - w'z), takes the step
    ``w += l / (z'z + 1/(2C)) z`` from w = 0: the minimum of ``1/2 |w' - w|^2 + C l(w')^2``. Cost: the stored values of
    each pair.

    {parameters}

    {attributes}
    cumulative_loss_ : float
        The sum of l^2, each before its step.

    References
    ----------
    Wang, Wan, Zhang & Hoi 2015, "SOLAR: Scalable Online Learning Algorithms for Ranking", ACL.

    Examples
    --------
    >>> from ranktune.solvers import SOLAR1
    >>> X = [[0.9, 0.1], [0.2, 0.8], [0.7, 0.3], [0.1, 0.6]]
    >>> ranker = SOLAR1(C=0.1).fit(X, [1, 0, 1, 0], qid=[1, 1, 2, 2])
    >>> ranker.coef_.round(3)
    array([ 0.299, -0.301])
    """

    C: Annotated[
        float,
        Param(
            "Aggressiveness; positive. Small: steps of about 2C l z; large: steps until the margin is 1.",
            low=1e-8,
            high=1e-2,
            log=True,
        ),
    ] = 1e-4

    space_order = ("C", "scaling", "passes")

    def _rule(self) -> UpdateRule:
        return UpdateRule(kernels.FIRST_ORDER, float(self.C))


@with_parameters
class SOLAR2(PairwiseOnlineRanker):
    """Second-order SOLAR: steps are shorter in directions where the weights have little variance (AROW).

    A pair (i, j), y_i > y_j, z = x_i - x_j, with the loss l = max(0, 1 - w'z), takes from w = 0, Sigma = I the step
    w += l / b Sigma z, Sigma -= Sigma z (Sigma z)' / b, b = z'Sigma z + gamma.

    {parameters}

    {attributes}
    covariance_ : ndarray of shape (n_features, n_features) or (n_features,)
        Sigma, or its diagonal.
    cumulative_loss_ : float
        The sum of l^2, each before its step.

    References
    ----------
    Wang, Wan, Zhang & Hoi 2015, "SOLAR: Scalable Online Learning Algorithms for Ranking", ACL.

    Examples
    --------
    >>> from ranktune.solvers import SOLAR2
    >>> ranker = SOLAR2(gamma=1.0).fit([[0.9, 0.1], [0.2, 0.8], [0.7, 0.3], [0.1, 0.6]], [1, 0, 1, 0], qid=[1, 1, 2, 2])
    >>> ranker.coef_.round(3), ranker.covariance_.round(3).tolist()
    (array([ 0.629, -0.54 ]), [[0.934, 0.585], [0.585, 1.301]])
    """

    gamma: Annotated[
        float,
        Param(
            "How slowly the variance shrinks; positive. Large: like first-order steps with C = 1/(2 gamma).",
            low=1.0,
            high=1e7,
            log=True,
        ),
    ] = 1e3
    _: KW_ONLY
    covariance: Annotated[
        str,
        Param(
            'The form of Sigma: "full": n_features^2 numbers, at that cost per pair, up to 1 GB; "diagonal": '
            'n_features numbers, at the cost of the stored values of a pair; "auto": full up to 2,000 features.',
            choices=("full", "diagonal", "auto"),
            searched=("auto", "diagonal"),
        ),
    ] = "auto"

    space_order = ("gamma", "covariance", "scaling", "passes")

    def _rule(self) -> UpdateRule:
        return UpdateRule(kernels.FULL if self._is_full else kernels.DIAGONAL, float(self.gamma))

    def _update(self, rows: MatrixRows, better: Ints, worse: Ints, weights: Floats) -> None:
        learn(rows, better, worse, weights, self._rule(), self._state)

    @property
    def _is_full(self) -> bool:
        if self.covariance == "auto":
            return self.n_features_in_ <= FULL_FEATURES
        return bool(self.covariance == "full")

    def _new_state(self, stretch: Floats) -> OnlineState:
        if not self._is_full:
            return new_state(stretch, sigma=stretch.copy()[None, :])
        size = 8 * len(stretch) ** 2
        if size > MAX_BYTES:
            raise ParameterError(
                f"covariance='full' of {len(stretch)} features would take {size / 1e9:.3g} GB, more than "
                f"{MAX_BYTES / 1e9:.3g} GB. Set covariance='diagonal'."
            )
        return new_state(stretch, sigma=np.diag(stretch))

    @property
    def covariance_(self) -> Floats:
        """Sigma, (n_features, n_features), or its diagonal, (n_features,)."""
        return current_covariance(self._rule(), self._state)


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
    d, n_recent = len(v), int(state.counters[4])
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
    for s in range(n_recent):
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
        recent[n_recent, c] = root * v[c]
    state.counters[4] += 1.0
    if n_recent + 1 == RECENT:
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
