"""AdaRank: boosting of single features by any ranking metric.

    P_1(q) = weight of query q                        E(q, s)  the metric of query q ranked by the scores s
    h_t    = the feature (or its reverse) with the highest sum over q of P_t(q) E(q, h)
    a_t    = 1/2 log( sum P_t (1 + E(h_t)) / sum P_t (1 - E(h_t)) ),    f_t = a_1 h_1 + ... + a_t h_t
    P_t+1(q) proportional to weight(q) exp(-E(q, f_t)),  or to P_t(q) exp(-a_t E(q, h_t)), as AdaBoost

Queries without documents of different grades, and queries that the metric skips, are left out. Weights of documents
multiply gains and relevance in E. E(q, h) never changes: it is computed once (feature_tables), so that a round costs a
product with that table and one ranking.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import Annotated, ClassVar

import numpy as np

from ranktune.solvers.base.linear import LinearRanker
from ranktune.solvers.boosting.growth import queries_with_pairs
from ranktune.solvers.boosting.rounds import MAX_ACCURACY, METRIC, RoundRanker
from ranktune.solvers.core.arrays import Floats, Ints, Mask
from ranktune.solvers.core.errors import DataError
from ranktune.solvers.core.parameters import Param, with_parameters
from ranktune.solvers.data.products import scores
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.scaling import SCALINGS, factors
from ranktune.solvers.metrics.feature_tables import SIGNS, candidates, feature_table, weighed
from ranktune.solvers.metrics.metrics import Metric

DIRECTIONS = {"both": SIGNS, "up": SIGNS[:1]}


@with_parameters
class AdaRank(RoundRanker["AdaRankBooster"], LinearRanker):
    """AdaRank: boosting of single features by any ranking metric, a linear model of few features.

    Cost: two evaluations of the metric per feature, then one per round. Ties rank as the metric defines.

    {parameters}

    {attributes}
    features_, alphas_ : ndarray of shape (n_rounds,)
        The feature and weight of each round; the weight of a reversed feature is negative.
    score_ : float
        The metric of the best round.
    n_iter_ : int
        The rounds that are kept.

    References
    ----------
    Xu & Li 2007, "AdaRank: A Boosting Algorithm for Information Retrieval", SIGIR.

    Examples
    --------
    >>> from ranktune.solvers import AdaRank
    >>> X = [[0.9, 0.1], [0.2, 0.8], [0.7, 0.3], [0.1, 0.6]]
    >>> ranker = AdaRank(rounds=5).fit(X, [1, 0, 1, 0], qid=[1, 1, 2, 2])
    >>> ranker.features_.tolist()
    [0]
    """

    metric: Annotated[str, METRIC] = "auto"
    _: KW_ONLY
    directions: Annotated[
        str, Param("Whether a feature may also rank in reverse, with a negative weight.", choices=tuple(DIRECTIONS))
    ] = "both"
    repeats: Annotated[
        str,
        Param(
            'Whether a feature may be chosen again: "pause": not twice in a row; "never": each feature once; "allow": '
            "as in the paper, which may stall.",
            choices=("allow", "pause", "never"),
        ),
    ] = "pause"
    reweigh: Annotated[
        str,
        Param(
            'What the weight of a query in the next choice depends on: "feature": the metric of each chosen feature, '
            'which does not stall; "model": the metric of the sum so far, as in the paper.',
            choices=("model", "feature"),
        ),
    ] = "feature"
    scaling: Annotated[
        str,
        Param(
            "Whether features are used as they are, or as if divided by their range or standard deviation.",
            choices=SCALINGS,
            searched=("minmax", "standard"),
        ),
    ] = "minmax"
    max_features: Annotated[
        int, Param("The most features to choose from; of more, those that are nonzero in the most documents.")
    ] = 1000

    space_order = ("rounds", "directions", "repeats", "reweigh", "stop", "patience", "validation")
    indicates_missing: ClassVar[bool] = False

    def _booster(self, queries: Queries, vali: Queries | None, metric: Metric) -> AdaRankBooster:
        multiplier = factors(queries, self.scaling)
        queries = queries_with_pairs(queries)
        table = self._table(metric, queries)
        return AdaRankBooster(metric, queries, vali, table, multiplier, self.repeats, self.reweigh)

    def _table(self, metric: Metric, queries: Queries) -> WeakRankers:
        chosen = candidates(queries, int(self.max_features))
        signs = DIRECTIONS[self.directions]
        by_query = feature_table(metric, queries, chosen, signs)
        counted = ~np.isnan(by_query[0, :, 0])
        if not counted.any():
            raise DataError(
                f"{metric} skips every training query, so there is nothing to learn from. Choose another metric."
            )
        features, signs_of_features = np.tile(chosen, len(signs)), np.repeat(signs, len(chosen))
        metrics = np.hstack(list(by_query[:, counted]))
        if queries.monotone is not None:
            allowed = queries.monotone[features] * signs_of_features >= 0.0
            features, signs_of_features, metrics = features[allowed], signs_of_features[allowed], metrics[:, allowed]
        return WeakRankers(features, signs_of_features, metrics, counted)

    def _keep(self, booster: AdaRankBooster) -> None:
        self.coef_ = booster.coef.copy()
        self.features_, self.alphas_ = np.array(booster.features, dtype=np.int64), np.array(booster.alphas)


@dataclass(frozen=True, eq=False)
class WeakRankers:
    """W weak rankers: features and signs, (W,), their metric, (used queries, W), and the mask of the used queries."""

    features: Ints
    signs: Floats
    metric: Floats
    counted: Mask


@dataclass(eq=False)
class AdaRankBooster:
    """The state of boosting: the linear model so far, and the weight P of each used query."""

    metric: Metric
    queries: Queries
    vali: Queries | None
    table: WeakRankers
    multiplier: Floats
    repeats: str
    reweigh: str
    features: list[int] = field(default_factory=list)
    alphas: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Start with the weights of the queries."""
        self.judgements = weighed(self.metric, self.queries)
        self.weights = self.queries.weight_of_query[self.table.counted]
        self.P = self.weights / self.weights.sum()
        self.coef = np.zeros(self.queries.n_features)
        self.value = -np.inf

    def round(self) -> bool:
        """Add the best weak ranker that may be chosen; return False where none is left or none helps."""
        excluded = {"pause": self.features[-1:], "never": self.features}.get(self.repeats, [])
        allowed = ~np.isin(self.table.features, excluded)
        if not allowed.any():  # monotone constraints can exclude all of them
            return False
        values_of_rankers = np.where(allowed, self.P @ self.table.metric, -np.inf)
        best = int(np.argmax(values_of_rankers))
        mean = min(float(values_of_rankers[best]), MAX_ACCURACY)
        if not mean > 0.0:  # a metric that can be negative: the ranker is no better than its reverse
            return False
        alpha = 0.5 * np.log((1.0 + mean) / (1.0 - mean)) * self.table.signs[best]
        feature = int(self.table.features[best])
        self.coef[feature] += alpha * self.multiplier[feature]
        self.features.append(feature)
        self.alphas.append(float(alpha))
        values = self.metric.per_query(scores(self.queries.features, self.coef), self.judgements)[self.table.counted]
        self.value = float(self.weights @ values / self.weights.sum())
        if self.vali is not None:
            self.value = self.metric.mean(scores(self.vali.features, self.coef), self.vali)
        if self.reweigh == "model":
            self.P = self.weights * np.exp(-values)
        else:
            self.P *= np.exp(-abs(alpha) * self.table.metric[:, best])
        self.P /= self.P.sum()
        return True

    def objective(self) -> float:
        """Return the negative metric."""
        return -self.value
