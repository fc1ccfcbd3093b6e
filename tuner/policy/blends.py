"""The members and weights of a blend: half equal shares and half a greedy choice, unless one alone is better.

scores  (m, n_documents) of m models, each document scored by a model that was not trained on it; divided by scale, the
usual spread of a model's scores within a query, which makes models comparable. Shares (m,) sum to 1.

Shares are chosen in each family of models, trees and linear ones. Equal shares are a strong baseline with few queries:
greedy weights then follow their noise. Each solver has the same, divided equally among its models; those that are
behind the best of their family by `Blending.worse` have none. Greedy selection with replacement gives more to models
that are better. The mean of both is the usual choice: on fourteen generated tasks it was better than either alone. The
share of a family is the probability that it is the better one, given the paired differences of equal shares, which no
query has fitted. Equal shares of families were worse on 25 of 35 data sets that differ (docs/explanation/tasks.md).

With few queries a part of each blend, `Blending.default`, is the best of the first configurations of the solvers: where
the others are worse than it, the blend is by less. It has none where a model is better by `Blending.worse`.
The score is that with the best on all folds but one.

All three mixes are chosen on the queries of all folds but one, for each fold in turn, and scored on the fold left out.
The mean stays unless another is better, with few queries by `Blending.better`; the score of this choice is nested
likewise. The final shares are the mean over folds, which reduces the variance of the choice. A single model is
evaluated likewise: chosen on all folds but one, scored on that one. Where times are known, the folds are blocks of
time, and "all folds but one" are the earlier ones; for the earliest block all models have equal shares.
Source: Caruana, Niculescu-Mizil, Dispatcher & Ksikes 2004, "Ensemble selection from libraries of models".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from ranktune.solvers.core.arrays import Floats, as_ints
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.scaling import moderate, subtract_means
from ranktune.solvers.metrics.means import linearised, mean_or_zero
from ranktune.solvers.metrics.metrics import Metric
from ranktune.tuner.policy.policy import POLICY, Blending, Policy
from ranktune.tuner.splits.plans import Fold
from ranktune.tuner.statistics.intervals import z_score

STEPS, PATIENCE = 20, 5
"""Models of a greedy choice, with repetitions, and steps without a gain after which it ends: they bound its time."""
MAX_QUERIES = 2000
"""Queries of a greedy choice, of more an evenly spaced sample: its time grows with them."""


@dataclass(frozen=True, eq=False)
class Blend:
    """Shares of the models, (m,), and what a blend chosen without a query's fold scored on it, (n_queries,)."""

    shares: Floats
    per_query: Floats


def scale(scores: NDArray[np.floating], queries: Queries) -> float:
    """Return the root of the mean over queries of the variance of scores within each; 0 for a constant model."""
    centred, exponent = moderate(scores)
    subtract_means(centred, as_ints(queries.starts))
    centred, more = moderate(centred)
    variances = np.add.reduceat(centred**2, queries.starts[:-1]) / queries.lengths
    return float(np.ldexp(np.sqrt(np.mean(variances)), exponent + more))


def without_luck(values: Floats, lead: Floats, metric: Metric, weights: Floats | None) -> Floats:
    """Return what a blend scores by query, (n,), less the luck of its members.

    lead, (n,), is how much better the scores of the members are than their trials' own values. Scores of a trial with a
    path are those of its best value, which these queries chose, and its values are nested: so the mean of lead is luck,
    which is positive. Where it is negative, the scores are not those that the values are of, and nothing is taken off.
    """
    return np.clip(values - lead, *metric.range) if mean_or_zero(lead, weights) > 0.0 else values


class Blends:
    """Chooses blends of models. The shares within a family are chosen once for all blends that have the same of them.

    Parameters
    ----------
    scaled : array of shape (m, n_documents)
        Scaled scores.
    groups : sequence of (str, str)
        The family and the solver of each of the m models.
    queries : Queries
        They count by their weights, if they have weights.
    metric : Metric
    folds : sequence of Fold
        Together they score every query once.
    policy : Policy
    first : mapping of int to array of shape (n_queries,), optional
        The numbers of the models that a study tries first, of which the best keeps a share, and what their trials
        scored: without the luck of a number of rounds that these queries chose.

    Attributes
    ----------
    alone : array of shape (m, n_queries)
        What each model scores.
    """

    def __init__(
        self,
        scaled: NDArray[np.floating],
        groups: Sequence[tuple[str, str]],
        queries: Queries,
        metric: Metric,
        folds: Sequence[Fold],
        policy: Policy = POLICY,
        first: Mapping[int, Floats] | None = None,
    ) -> None:
        self._scaled, self._groups, self._queries, self._metric = scaled, groups, queries, metric
        self._folds, self._policy, self._first = folds, policy, first or {}
        self.alone = np.stack([metric.per_query(scores, queries) for scores in scaled])
        self._known: dict[tuple[int, ...], list[tuple[Floats, Floats]]] = {}

    def of(self, models: Sequence[int]) -> Blend:
        """Return the best blend of the models of these numbers, whose shares are those of all m models."""
        scaled, rules, weights = self._scaled, self._policy.blend, self._queries.query_weights
        blends = [Blend(np.zeros(len(scaled)), np.full(self._queries.n_queries, np.nan)) for _ in rules.equal]
        names = dict.fromkeys(self._groups[k][0] for k in models)
        families = [[k for k in models if self._groups[k][0] == name] for name in names]
        by_fold = zip(*(self._of_family(tuple(family)) for family in families), strict=True)
        for fold, chosen in zip(self._folds, by_fold, strict=True):
            shares, fold_weights = np.zeros((2, len(scaled))), None if weights is None else weights[self._fitted(fold)]
            of_families = family_shares([values for _, values in chosen], fold_weights)
            for family, (within, _), share in zip(families, chosen, of_families, strict=True):
                shares[:, family] = share * within
            rows, queries = _rows(self._queries, fold.vali)
            for mix, blend in zip(rules.equal, blends, strict=True):
                mixed = (mix, 1.0 - mix) @ shares
                blend.shares[:] += mixed / len(self._folds)
                mixed = self._with_default(mixed, models, fold.train)
                blend.per_query[fold.vali] = self._metric.per_query(mixed @ scaled[:, rows], queries)
        scored = [blend.per_query for blend in blends]
        best = blends[first_unless_better(scored, weights, self._policy, rules.better)]
        shares = self._with_default(best.shares, models, np.arange(self._queries.n_queries))
        large = np.where(shares < rules.least / len(models), 0.0, shares)
        return Blend(large / large.sum(), first_elsewhere(scored, self._folds, weights, self._policy, rules.better))

    def _with_default(self, shares: Floats, models: Sequence[int], rows: NDArray[np.int64]) -> Floats:
        """Return shares, (m,), of which the best of the first configurations on the queries of rows keeps a share."""
        first, weights = [k for k in models if k in self._first], self._queries.query_weights
        if not first or self._queries.n_queries >= self._policy.few_queries:
            return shares
        weighted = None if weights is None else weights[rows]
        best = max(first, key=lambda k: mean_or_zero(self._first[k][rows], weighted))
        ahead = max((self.alone[k][rows] for k in models), key=lambda values: mean_or_zero(values, weighted))
        if z_score(ahead, self.alone[best][rows], weighted) > self._policy.blend.worse:
            return shares  # the evidence says otherwise
        share = self._policy.blend.default
        return np.asarray((1.0 - share) * shares + share * (np.arange(len(shares)) == best))

    def _of_family(self, models: tuple[int, ...]) -> list[tuple[Floats, Floats]]:
        """Return for each fold the equal and the greedy shares, (2, n_models), and what equal ones score elsewhere."""
        if models not in self._known:
            self._known[models] = [self._chosen(models, fold) for fold in self._folds]
        return self._known[models]

    def _chosen(self, models: tuple[int, ...], fold: Fold) -> tuple[Floats, Floats]:
        rules, weights = self._policy.blend, self._queries.query_weights
        numbers, solvers = np.array(models), [self._groups[k][1] for k in models]
        fold_weights = None if weights is None else weights[fold.train]
        equal = equal_shares(self.alone[np.ix_(numbers, fold.train)], solvers, fold_weights, rules)
        if not len(fold.train):  # the earliest queries, where times are known
            return np.stack([equal, equal]), np.empty(0)
        rows, fitted = _rows(self._queries, self._fitted(fold))
        candidates = self._scaled[np.ix_(numbers, rows)]
        shares = np.stack([equal, _greedy(candidates, fitted, self._metric)])
        return shares, self._metric.per_query(equal @ candidates, fitted)

    def _fitted(self, fold: Fold) -> NDArray[np.int64]:
        """Return the numbers of the queries that greedy shares are fitted to: all but one fold, of many a sample."""
        return fold.train[:: max(-(-len(fold.train) // MAX_QUERIES), 1)]


def family_shares(per_query: Sequence[Floats], weights: Floats | None = None) -> Floats:
    """Return the shares of families, given what each scored by query, (n_queries,): of two, which is probably better.

    The mean paired difference is taken as normal, with nothing known before. Shares are in proportion to the odds
    against the best one.
    """
    best = max(per_query, key=lambda values: mean_or_zero(values, weights))
    behind = np.array([z_score(best, values, weights) for values in per_query])
    odds = ndtr(-behind) / ndtr(behind)
    return np.asarray(odds / odds.sum())


def nested_choice(per_query: Floats, folds: Sequence[Fold], weights: Floats | None = None) -> Floats:
    """Return the nested score of choosing a model by its mean, (n_queries,); per_query is (m, n_queries).

    The model is chosen on all folds but one and scored on that one, like a blend. Where nothing chooses, on the
    earliest queries where times are known, it is the mean of all.
    """
    nested = np.full(per_query.shape[1], np.nan)
    for fold in folds:
        if not len(fold.train):
            nested[fold.vali] = per_query[:, fold.vali].mean(axis=0)
            continue
        gains = linearised(per_query[:, fold.train], None if weights is None else weights[fold.train])
        nested[fold.vali] = per_query[np.argmax(np.nanmean(gains, axis=1)), fold.vali]
    return nested


def first_unless_better(
    per_query: Sequence[Floats],
    weights: Floats | None = None,
    policy: Policy = POLICY,
    better: float = POLICY.blend.better,
) -> int:
    """Return the place of the option to take, given scores (n_queries,) of each, the most averaged first.

    With few queries another one must be better by so many standard errors.
    """
    chosen, needed = 0, better if len(per_query[0]) < policy.few_queries else 0.0
    for k in range(1, len(per_query)):
        if z_score(per_query[k], per_query[chosen], weights) > needed:
            chosen = k
    return chosen


def first_elsewhere(
    per_query: Sequence[Floats],
    folds: Sequence[Fold],
    weights: Floats | None = None,
    policy: Policy = POLICY,
    better: float = POLICY.blend.better,
) -> Floats:
    """Return the nested score of that choice, (n_queries,): made on all folds but one, and scored on that one."""
    nested = np.full(len(per_query[0]), np.nan)
    for fold in folds:
        fold_weights = None if weights is None else weights[fold.train]
        chosen = first_unless_better([values[fold.train] for values in per_query], fold_weights, policy, better)
        nested[fold.vali] = per_query[chosen][fold.vali]
    return nested


def equal_shares(
    per_query: Floats, solvers: Sequence[str], weights: Floats | None = None, blending: Blending = POLICY.blend
) -> Floats:
    """Return equal shares of the solvers, (m,), each divided equally among its models.

    per_query is (m, n_queries). Models that are significantly worse than the best have no share.
    """
    best = max(per_query, key=lambda values: mean_or_zero(values, weights))
    close = [k for k, values in enumerate(per_query) if z_score(best, values, weights) <= blending.worse]
    models = Counter(solvers[k] for k in close)
    shares = np.zeros(len(solvers))
    shares[close] = [1.0 / (models[solvers[k]] * len(models)) for k in close]
    return shares


def _greedy(candidates: NDArray[np.floating], queries: Queries, metric: Metric) -> Floats:
    """Return shares, (m,), for the queries: each step takes the model that helps most."""
    counts, best, best_value = np.zeros(len(candidates)), np.zeros(len(candidates)), -np.inf
    total = np.zeros(candidates.shape[1])
    for step in range(STEPS):
        values = [
            mean_or_zero(metric.per_query(total + scores, queries), queries.query_weights) for scores in candidates
        ]
        added = int(np.argmax(values))
        counts[added] += 1
        total += candidates[added]
        if values[added] > best_value:
            best, best_value, since = counts.copy(), values[added], step
        if step - since >= PATIENCE:
            break
    return np.asarray(best / best.sum(), dtype=np.float64)


def _rows(queries: Queries, numbers: NDArray[np.int64]) -> tuple[NDArray[np.int64], Queries]:
    """Return the documents of the queries of these numbers, and those queries without features."""
    rows = np.arange(queries.n_documents)[queries.documents_of(numbers)]
    return rows, queries.without_features().select(numbers)
