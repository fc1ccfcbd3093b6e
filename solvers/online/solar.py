"""SOLAR: linear ranking learnt from one pair after the other, by first- or second-order passive-aggressive steps."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.checks import check_choice, check_positive
from ranktune.solvers.core.errors import ParameterError
from ranktune.solvers.core.space import Choice, Float, Int, Parameter
from ranktune.solvers.online import kernels
from ranktune.solvers.online.base import PairwiseOnlineRanker
from ranktune.solvers.online.kernels import Rule, State, new_state

COVARIANCES = ("full", "diagonal", "auto")
FULL_FEATURES = 2000
"""Up to so many features "auto" is full: 32 MB."""
MOST_BYTES = 1 << 30
"""Memory of a full covariance beyond which it is refused."""


class SOLAR1(PairwiseOnlineRanker):
    """First-order SOLAR: each pair that lacks a lead of 1 moves the weights a little, at most as far as C lets it.

    C                how far a step goes; positive. Small: by 2C (1 - lead); large: until the lead is 1
    passes           how often to go through the queries
    scaling          "none": features as they are; "minmax", "standard": as if divided by range or standard deviation
    pairs_per_query  learn from that many pairs drawn alike where a query has more; None: from all, once
    pair_order       "shuffled": by features and grades, whatever the order of the rows; "rows": each row with all later
                     ones; "worse": each row with all better ones
    random_state     a seed or numpy.random.Generator that draws the order of the queries in each pass, and pairs;
                     None: the order given, pairs as from seed 0

    A pair (i, j), y_i > y_j, z = x_i - x_j, with the loss l = max(0, 1 - w'z), takes the step
    w += l / (z'z + 1/(2C)) z from w = 0: the minimum of 1/2 |w' - w|^2 + C l(w')^2. Cost: the stored values of a pair.
    Fitted: coef_ (n_features,), n_queries_seen_, n_pairs_seen_, cumulative_loss_ (sum of l^2, each before its step).
    Source: Wang, Wan, Zhang & Hoi 2015, "SOLAR: Scalable Online Learning Algorithms for Ranking", ACL.
    """

    space: ClassVar[tuple[Parameter, ...]] = (
        Float("C", 1e-8, 1e-2, log=True),
        Choice("scaling", ("standard", "minmax")),
        Int("passes", 1, 10),
        Choice("pairs_per_query", (1000,)),
    )

    def __init__(
        self,
        C: float = 1e-4,
        *,
        passes: int = 1,
        scaling: str = "minmax",
        pairs_per_query: int | None = 1000,
        pair_order: str = "shuffled",
        random_state: Any = None,
    ) -> None:
        self.C = C
        self.passes = passes
        self.scaling = scaling
        self.pairs_per_query = pairs_per_query
        self.pair_order = pair_order
        self.random_state = random_state

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_positive("C", self.C)

    def _rule(self) -> Rule:
        return Rule(kernels.FIRST_ORDER, float(self.C))


class SOLAR2(PairwiseOnlineRanker):
    """Second-order SOLAR: steps are shorter along directions in which the weights are already sure.

    gamma            how slowly it grows sure; positive. Large: like first-order steps with C = 1/(2 gamma)
    covariance       "full": n_features^2 numbers, at that cost a pair; "diagonal": n_features, at the cost of the
                     stored values of a pair; "auto": full up to 2,000 features. Full beyond 1 GB is refused
    passes           how often to go through the queries
    scaling          "none": features as they are; "minmax", "standard": as if divided by range or standard deviation
    pairs_per_query  learn from that many pairs drawn alike where a query has more; None: from all, once
    pair_order       "shuffled": by features and grades, whatever the order of the rows; "rows": each row with all later
                     ones; "worse": each row with all better ones
    random_state     a seed or numpy.random.Generator that draws the order of the queries in each pass, and pairs;
                     None: the order given, pairs as from seed 0

    A pair (i, j), y_i > y_j, z = x_i - x_j, with the loss l = max(0, 1 - w'z), takes from w = 0, Sigma = I the step
    w += l / b Sigma z, Sigma -= Sigma z (Sigma z)' / b, b = z'Sigma z + gamma (AROW).
    Fitted: coef_ (n_features,), n_queries_seen_, n_pairs_seen_, cumulative_loss_ (sum of l^2, each before its step),
    covariance_ ((n_features, n_features), or (n_features,) its diagonal).
    Source: Wang, Wan, Zhang & Hoi 2015, "SOLAR: Scalable Online Learning Algorithms for Ranking", ACL.
    """

    space: ClassVar[tuple[Parameter, ...]] = (
        Float("gamma", 1.0, 1e7, log=True),
        Choice("covariance", ("auto", "diagonal")),
        Choice("scaling", ("standard", "minmax")),
        Int("passes", 1, 10),
        Choice("pairs_per_query", (1000,)),
    )

    def __init__(
        self,
        gamma: float = 1e3,
        *,
        covariance: str = "auto",
        passes: int = 1,
        scaling: str = "minmax",
        pairs_per_query: int | None = 1000,
        pair_order: str = "shuffled",
        random_state: Any = None,
    ) -> None:
        self.gamma = gamma
        self.covariance = covariance
        self.passes = passes
        self.scaling = scaling
        self.pairs_per_query = pairs_per_query
        self.pair_order = pair_order
        self.random_state = random_state

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_positive("gamma", self.gamma)
        check_choice("covariance", self.covariance, COVARIANCES)

    def _rule(self) -> Rule:
        return Rule(kernels.FULL if self._is_full else kernels.DIAGONAL, float(self.gamma))

    @property
    def _is_full(self) -> bool:
        if self.covariance == "auto":
            return self.n_features_in_ <= FULL_FEATURES
        return bool(self.covariance == "full")

    def _new_state(self, stretch: Floats) -> State:
        if not self._is_full:
            return new_state(stretch, sigma=stretch.copy()[None, :])
        size = 8 * len(stretch) ** 2
        if size > MOST_BYTES:
            raise ParameterError(
                f"covariance='full' of {len(stretch)} features would take {size / 1e9:.3g} GB, more than "
                f"{MOST_BYTES / 1e9:.3g} GB. Set covariance='diagonal'."
            )
        return new_state(stretch, sigma=np.diag(stretch))

    @property
    def covariance_(self) -> Floats:
        """How sure the weights are: Sigma, (n_features, n_features), or its diagonal, (n_features,)."""
        sigma = self._state.sigma
        return sigma if self._is_full else sigma[0]
