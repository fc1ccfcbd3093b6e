"""RankBoost: boosting of thresholds on single features by the pairs that they order rightly.

    D_1 = the same for all pairs of documents of a query with different grades
    h_t = [x_r > theta] with the largest |r_t|,  r_t = sum over pairs (i, j), y_i > y_j, of D_t(i, j) (h_t(i) - h_t(j))
    a_t = 1/2 log((1 + r_t) / (1 - r_t)),   D_t+1(i, j) proportional to D_t(i, j) exp(-a_t (h_t(i) - h_t(j)))

The share of pairs that the sum of a_t h_t orders wrongly (ties too) is at most the product of sqrt(1 - r_t^2). No pair
is ever stored: see rank_boost_kernels.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from ranktune.solvers.base.ranker import Step
from ranktune.solvers.boosting import rank_boost_kernels as kernels
from ranktune.solvers.boosting.base import TreeRanker
from ranktune.solvers.boosting.bins import MOST, Bins, binned
from ranktune.solvers.boosting.early_stopping import Patience, held_out, with_pairs
from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.checks import check_choice, check_count, check_not_negative, check_part, check_random_state
from ranktune.solvers.core.errors import ParameterError
from ranktune.solvers.core.space import Choice, Float, Int, Parameter, When
from ranktune.solvers.data.grades import number_grades
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.metrics.feature_tables import check_metric
from ranktune.solvers.metrics.judgements import Judgements
from ranktune.solvers.metrics.metrics import chosen_metric
from ranktune.solvers.models.trees import Trees, stumps

AVERAGES = ("pairs", "queries")
STOPS = ("train", "vali", "never")

CLEAR = 1.0 - 1e-6
"""A weak ranker's |r| counts no more than this: without a bound, one that is always right gets an infinite weight."""

VANISHED = 1e-290
"""The weights of all pairs together below which their shares are rounding errors."""


class RankBoost(TreeRanker):
    """Boosting of thresholds on single features by pairs: a sum of steps, one or more a feature.

    rounds         thresholds added at most
    thresholds     bins that a feature is cut into, 2 to 256; with more values than that, at quantiles
    average        "pairs": all pairs begin alike; "queries": those of every query together alike
    metric         what stops it, such as "ndcg@5" or "map"; "auto": ndcg@10, or pairwise accuracy for other grades
    stop           "train": when the metric on the training queries gets no better; "vali": when that on validation
                   queries does (those given to fit, else validation, a share held out); "never": after all rounds.
                   The best round is kept
    patience       rounds that may bring nothing before it stops; tolerance is how much better is better
    random_state   a seed or numpy.random.Generator that draws the held-out queries

    Queries without documents of different grades have no part in it, nor in the quantiles.
    Fitted: features_, thresholds_ and alphas_ of each round kept (the score adds alpha where x > threshold), trees_
    (the same, those of equal thresholds added up), score_, the metric that chose the round, n_iter_.
    Cost: sorting each feature once, then one byte a value a round; memory: one byte a value.
    Source: Freund, Iyer, Schapire & Singer 2003, "An Efficient Boosting Algorithm for Combining Preferences", JMLR 4.
    """

    space: ClassVar[tuple[Parameter, ...]] = (
        Int("rounds", 20, 1000, log=True),
        Int("thresholds", 4, MOST, log=True),
        Choice("average", AVERAGES),
        Choice("stop", ("never", "vali")),
        Int("patience", 10, 200, log=True, when=When("stop", ("vali",))),
        Float("validation", 0.1, 0.4, when=When("stop", ("vali",))),
    )
    path_parameter: ClassVar[str | None] = "rounds"
    weighted: ClassVar[bool] = True
    validated: ClassVar[bool] = True

    def __init__(
        self,
        rounds: int = 100,
        *,
        thresholds: int = 64,
        average: str = "pairs",
        metric: str = "auto",
        stop: str = "never",
        patience: int = 50,
        tolerance: float = 0.0,
        validation: float = 0.25,
        random_state: Any = None,
    ) -> None:
        self.rounds = rounds
        self.thresholds = thresholds
        self.average = average
        self.metric = metric
        self.stop = stop
        self.patience = patience
        self.tolerance = tolerance
        self.validation = validation
        self.random_state = random_state

    def _check_parameters(self) -> None:
        for name in ("rounds", "patience", "thresholds"):
            check_count(name, getattr(self, name))
        if not 2 <= self.thresholds <= MOST:
            raise ParameterError(f"thresholds={self.thresholds!r}: features are cut into 2 to {MOST} bins.")
        check_choice("average", self.average, AVERAGES)
        check_choice("stop", self.stop, STOPS)
        check_metric(self.metric)
        check_not_negative("tolerance", self.tolerance)
        check_part("validation", self.validation)
        check_random_state(self.random_state, "another draw in each fit")

    def _steps_watched(self, queries: Queries, vali: Queries | None) -> Iterator[Step]:
        metric = chosen_metric(self.metric, *(part for part in (queries, vali) if part is not None))
        if self.stop == "vali" and vali is None and np.count_nonzero(with_pairs(queries)) > 1:
            queries, vali = held_out(queries, float(self.validation), np.random.default_rng(self.random_state))
        queries = queries.select(np.flatnonzero(with_pairs(queries)))
        by_row = None if queries.query_weights is None else np.repeat(queries.query_weights, queries.lengths)
        booster = Booster(queries, binned(queries.features, int(self.thresholds), by_row), self.average == "queries")
        watched = vali if self.stop == "vali" and vali is not None else queries
        scores = booster.scores if watched is queries else np.zeros(watched.n_documents)
        patience = Patience(int(self.patience))
        self._keep(booster, 0)
        self.score_, self.n_iter_ = -np.inf, 0
        for number in range(1, int(self.rounds) + 1):
            if not booster.round():
                break
            if watched is not queries:
                scores += booster.latest().scores(watched.features)
            if self.stop == "never":
                better, value = True, float("nan")
            else:
                value = metric.mean(scores, watched)
                better = value > patience.best_value + self.tolerance
                patience.told(number, value if better else -np.inf)
            if better:
                self.score_, self.n_iter_ = value, number
                self._keep(booster, number)
            yield Step(number, booster.bound)
            if self.stop != "never" and patience.over:
                break

    def _keep(self, booster: Booster, number: int) -> None:
        self.features_ = np.array(booster.features[:number], dtype=np.int64)
        self.thresholds_ = np.array(booster.thresholds[:number])
        self.alphas_ = np.array(booster.alphas[:number])

    @property
    def trees_(self) -> Trees:  # type: ignore[override]
        """The weak rankers as trees of one split, those of the same threshold added up."""
        return _added_up(self.features_, self.thresholds_, self.alphas_)


def _added_up(features: Any, thresholds: Floats, alphas: Floats) -> Trees:
    if len(features) == 0:
        return stumps([0], [0.0], [0.0])
    order = np.lexsort((thresholds, features))
    f, t = features[order], thresholds[order]
    first = np.flatnonzero(np.concatenate([[True], (np.diff(f) != 0) | (np.diff(t) != 0)]))
    return stumps(f[first], t[first], np.add.reduceat(alphas[order], first))


class Booster:
    """Where boosting stands: scores of the training documents, and the stumps so far."""

    def __init__(self, queries: Queries, bins: Bins, by_query: bool) -> None:
        self.bins, self._starts = bins, queries.starts
        n = queries.n_documents
        self._codes, self._n_grades = number_grades(queries.grades, queries.starts)
        self.scores, self._p, self._sums = np.zeros(n), np.empty(n), np.empty(MOST)
        self._weights = np.array(queries.weight_of_query)
        if by_query:
            self._weights /= np.maximum(Judgements.of(queries).pairs(), 1.0)
        self.features: list[int] = []
        self.thresholds: list[float] = []
        self.alphas: list[float] = []
        self.bound = 1.0
        self._counts = bins.counts

    def _potentials(self) -> float:
        return float(kernels.potentials(self.scores, self._starts, self._codes, self._n_grades, self._weights, self._p))

    def round(self) -> bool:
        """Add the best stump; return False where none tells any two documents of different grades apart."""
        Z = self._potentials()
        if not Z > VANISHED:  # every pair is ordered by hundreds
            return False
        bins = self.bins
        if bins.is_sparse:
            columns = bins.values
            parts = (columns.data, columns.indices, columns.indptr)
            f, number, r = kernels.best_sparse_stump(*parts, self._counts, bins.zero, self._p, self._sums)
        else:
            f, number, r = kernels.best_stump(bins.values, self._counts, self._p, self._sums)
        r = min(max(r / Z, -CLEAR), CLEAR)
        if abs(r) < 1e-12:
            return False
        alpha = 0.5 * float(np.log((1.0 + r) / (1.0 - r)))
        self._add(int(f), int(number), alpha)
        self.bound *= float(np.sqrt(1.0 - r * r))
        self.features.append(int(f))
        self.thresholds.append(float(bins.cuts[f][number]))
        self.alphas.append(alpha)
        return True

    def _add(self, f: int, number: int, alpha: float) -> None:
        bins = self.bins
        if not bins.is_sparse:
            kernels.add_where_above(bins.values[f], number, alpha, self.scores)
            return
        columns = bins.values
        a, b = columns.indptr[f], columns.indptr[f + 1]
        rest = alpha if bins.zero[f] > number else 0.0
        self.scores += rest
        self.scores[columns.indices[a:b]] += np.where(columns.data[a:b] > number, alpha, 0.0) - rest

    def latest(self) -> Trees:
        """Return the last stump."""
        return stumps(self.features[-1:], self.thresholds[-1:], self.alphas[-1:])
