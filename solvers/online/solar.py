"""SOLAR: online linear ranking by first- or second-order passive-aggressive steps on pairs."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Annotated

import numpy as np

from ranktune.solvers.core.arrays import Floats, Ints
from ranktune.solvers.core.errors import ParameterError
from ranktune.solvers.core.parameters import Param, with_parameters
from ranktune.solvers.data.rows import MatrixRows
from ranktune.solvers.online import kernels, second_order
from ranktune.solvers.online.base import PairwiseOnlineRanker
from ranktune.solvers.online.kernels import OnlineState, UpdateRule, new_state

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
        second_order.learn(rows, better, worse, weights, self._rule(), self._state)

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
        return second_order.current_covariance(self._rule(), self._state)
