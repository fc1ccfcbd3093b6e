"""AdaRank: boosting of single features by any ranking measure.

    P_1(q) = weight of query q                        E(q, s)  the measure of query q ranked by the scores s
    h_t    = the feature (or its reverse) with the highest sum over q of P_t(q) E(q, h)
    a_t    = 1/2 log( sum P_t (1 + E(h_t)) / sum P_t (1 - E(h_t)) ),    f_t = a_1 h_1 + ... + a_t h_t
    P_t+1(q) proportional to weight(q) exp(-E(q, f_t)),  or to P_t(q) exp(-a_t E(q, h_t)), as AdaBoost

Queries without documents of different grades, and those that the measure skips (no relevant document, say), have no
part in it. The sum of features is a linear model.
E(q, h) never changes: it is computed once (feature_tables), and a round is a vector times that table and one ranking.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from ranktune.solvers.base.ranker import LinearRanker, Step
from ranktune.solvers.boosting.early_stopping import Patience, held_out, with_pairs
from ranktune.solvers.core.arrays import Floats, Ints
from ranktune.solvers.core.checks import check_choice, check_count, check_not_negative, check_part, check_random_state
from ranktune.solvers.core.errors import DataError
from ranktune.solvers.core.space import Choice, Float, Int, Parameter, When
from ranktune.solvers.data.products import scores
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.scaling import check_scaling, factors
from ranktune.solvers.metrics.feature_tables import SIGNS, candidates, check_metric, feature_table
from ranktune.solvers.metrics.metrics import Metric, chosen_metric

DIRECTIONS = {"both": SIGNS, "up": SIGNS[:1]}
REPEATS = ("allow", "pause", "never")
REWEIGH = ("model", "feature")
STOPS = ("train", "vali", "never")

PERFECT = 1.0 - 1e-6
"""A weak ranker's mean counts no more than this: without a bound, one that is always right gets an infinite weight."""


class AdaRank(LinearRanker):
    """Boosting of single features by any ranking measure: a linear model of few features.

    metric         the measure, such as "ndcg@5" or "map"; "auto": ndcg@10, or pairwise accuracy for other grades
    rounds         features added at most
    directions     "both": a feature may also rank in reverse (a negative weight); "up": never
    repeats        "pause": a feature is not chosen twice in a row, since the same ranking again may change nothing that
                   the next choice looks at; "never": each feature once; "allow": as the paper, which may stall
    reweigh        what the next choice weighs a query by: "model", how well the sum so far ranks it, as the paper;
                   "feature", how well each chosen feature by itself did, which does not stall
    stop           "train": when the measure on the training queries gets no better; "vali": when that on validation
                   queries does (those given to fit, else validation, a share held out); "never": after all rounds.
                   The best round is kept
    patience       rounds that may bring nothing before it stops; tolerance is how much better is better
    scaling        "none": features as they are; "minmax", "standard": as if divided by range or standard deviation
    max_features   features that may be chosen: with more, those that are not zero in the most documents
    random_state   a seed or numpy.random.Generator that draws the held-out queries

    Fitted: coef_ (n_features,), for the raw features; features_ and alphas_ of each round kept, alphas_ < 0 for a
    reversed one; score_, the measure that chose the round; n_iter_.
    Cost: two evaluations of the measure a feature, then one a round. Ties rank as the measure says.
    Source: Xu & Li 2007, "AdaRank: A Boosting Algorithm for Information Retrieval", SIGIR.
    """

    space: ClassVar[tuple[Parameter, ...]] = (
        Int("rounds", 5, 500, log=True),
        Choice("directions", tuple(DIRECTIONS)),
        Choice("repeats", ("pause", "never")),
        Choice("reweigh", REWEIGH),
        Choice("stop", ("train", "vali")),
        Int("patience", 1, 50, log=True),
        Float("validation", 0.1, 0.4, when=When("stop", ("vali",))),
        Choice("scaling", ("minmax", "standard")),
    )
    path_parameter: ClassVar[str | None] = "rounds"
    weighted: ClassVar[bool] = True
    validated: ClassVar[bool] = True

    def __init__(
        self,
        metric: str = "auto",
        *,
        rounds: int = 100,
        directions: str = "both",
        repeats: str = "pause",
        reweigh: str = "feature",
        stop: str = "train",
        patience: int = 20,
        tolerance: float = 0.0,
        validation: float = 0.25,
        scaling: str = "minmax",
        max_features: int = 1000,
        random_state: Any = None,
    ) -> None:
        self.metric = metric
        self.rounds = rounds
        self.directions = directions
        self.repeats = repeats
        self.reweigh = reweigh
        self.stop = stop
        self.patience = patience
        self.tolerance = tolerance
        self.validation = validation
        self.scaling = scaling
        self.max_features = max_features
        self.random_state = random_state

    def _check_parameters(self) -> None:
        check_metric(self.metric)
        for name in ("rounds", "patience", "max_features"):
            check_count(name, getattr(self, name))
        check_choice("directions", self.directions, DIRECTIONS)
        check_choice("repeats", self.repeats, REPEATS)
        check_choice("reweigh", self.reweigh, REWEIGH)
        check_choice("stop", self.stop, STOPS)
        check_not_negative("tolerance", self.tolerance)
        check_part("validation", self.validation)
        check_scaling(self.scaling)
        check_random_state(self.random_state, "another draw in each fit")

    def _steps_watched(self, queries: Queries, vali: Queries | None) -> Iterator[Step]:
        metric = chosen_metric(self.metric, *(part for part in (queries, vali) if part is not None))
        if self.stop == "vali" and vali is None and np.count_nonzero(with_pairs(queries)) > 1:
            queries, vali = held_out(queries, float(self.validation), np.random.default_rng(self.random_state))
        multiplier = factors(queries, self.scaling)
        queries = queries.select(np.flatnonzero(with_pairs(queries)))
        watched = queries if self.stop != "vali" or vali is None else vali
        booster = Booster(metric, queries, self._table(metric, queries), multiplier)
        patience = Patience(int(self.patience))
        self._keep(booster)
        self.score_, self.n_iter_ = -np.inf, 0
        for number in range(1, int(self.rounds) + 1):
            if not booster.round(self.repeats, self.reweigh):
                break
            value = booster.value if watched is queries else _mean(metric, watched, booster.coef)
            if self.stop == "never" or value > patience.best_value + self.tolerance:
                patience.told(number, value)
                self.score_, self.n_iter_ = value, number
                self._keep(booster)
            else:
                patience.told(number, -np.inf)
            yield Step(number, -value)
            if self.stop != "never" and patience.over:
                break

    def _table(self, metric: Metric, queries: Queries) -> Table:
        chosen = candidates(queries, int(self.max_features))
        signs = DIRECTIONS[self.directions]
        by_query = feature_table(metric, queries, chosen, signs)
        kept = ~np.isnan(by_query[0, :, 0])
        if not kept.any():
            raise DataError(
                f"{metric} skips every training query, so there is nothing to learn from. Choose another metric."
            )
        return Table(
            np.tile(chosen, len(signs)), np.repeat(signs, len(chosen)), np.hstack(list(by_query[:, kept])), kept
        )

    def _keep(self, booster: Booster) -> None:
        self.coef_ = booster.coef.copy()
        self.features_, self.alphas_ = np.array(booster.features, dtype=np.int64), np.array(booster.alphas)


@dataclass(frozen=True, eq=False)
class Table:
    """Weak rankers, W of them: features and signs, (W,), their measure (kept queries, W), the mask of the kept."""

    features: Ints
    signs: Floats
    measure: Floats
    kept: Any


@dataclass(eq=False)
class Booster:
    """Where boosting stands: the linear model so far, and how much each kept query weighs."""

    metric: Metric
    queries: Queries
    table: Table
    multiplier: Floats
    features: list[int] = field(default_factory=list)
    alphas: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Begin with the weights of the queries."""
        self.own_weights = self.queries.weight_of_query[self.table.kept]
        self.P = self.own_weights / self.own_weights.sum()
        self.coef = np.zeros(self.queries.n_features)
        self.value = -np.inf
        self._free = np.ones(len(self.table.features), dtype=bool)
        self._last: Any = None

    def round(self, repeats: str, reweigh: str) -> bool:
        """Add the best weak ranker that may be chosen; return False where there is none, or none that helps."""
        allowed = self._free.copy()
        if repeats == "pause" and self._last is not None:
            allowed[self.table.features == self._last] = False
        if not allowed.any():
            return False
        merits = np.where(allowed, self.P @ self.table.measure, -np.inf)
        best = int(np.argmax(merits))
        mean = min(float(merits[best]), PERFECT)
        if not mean > 0.0:  # no better than its reverse, by a measure that has one
            return False
        alpha = 0.5 * np.log((1.0 + mean) / (1.0 - mean)) * self.table.signs[best]
        feature = int(self.table.features[best])
        self.coef[feature] += alpha * self.multiplier[feature]
        self.features.append(feature)
        self.alphas.append(float(alpha))
        self._last = feature
        if repeats == "never":
            self._free[self.table.features == feature] = False
        measure = self.metric.per_query(scores(self.queries.features, self.coef), self.queries)[self.table.kept]
        self.value = float(self.own_weights @ measure / self.own_weights.sum())
        if reweigh == "model":
            self.P = self.own_weights * np.exp(-measure)
        else:
            self.P *= np.exp(-abs(alpha) * self.table.measure[:, best])
        self.P /= self.P.sum()
        return True


def _mean(metric: Metric, queries: Queries, coef: Floats) -> float:
    return metric.mean(scores(queries.features, coef), queries)
