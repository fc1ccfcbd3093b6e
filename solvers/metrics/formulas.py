"""The formula of each metric: from scores and judgements to a value for each query.

Some metrics follow from one sum a query, of the worth of a document times the discount of its rank: SUMS. The others
are in RANKINGS.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from ranktune.solvers.core.arrays import Codes, Floats, Ints, Mask
from ranktune.solvers.metrics.judgements import Judgements
from ranktune.solvers.metrics.kernels import (
    WHOLE,
    discounted_sums,
    dominating_counts,
    expected_reciprocal_ranks,
    mean_normalised_sums,
    pair_counts,
    precision_sums,
    rank,
    reciprocal_ranks,
)
from ranktune.solvers.metrics.presets import CUSTOM

if TYPE_CHECKING:
    from ranktune.solvers.metrics.metrics import Metric


class Terms(NamedTuple):
    """What a sum is made of: the worth of each document, (n_documents,), and the discount of each rank, (k,)."""

    worth: Floats
    discounts: Floats


class Sum(NamedTuple):
    """A metric that follows from a sum a query.

    value takes the sums, (n_queries,), and returns the metric and the mask of the queries with nothing to measure.
    """

    terms: Callable[[Metric, Judgements], Terms]
    value: Callable[[Metric, Floats, Judgements], tuple[Floats, Mask]]


ByRanking: TypeAlias = "Callable[[Metric, Floats, Judgements], tuple[Floats, Mask]]"
"""From scores to a metric, (n_queries,), and the mask of the queries with nothing to measure."""

RANKINGS: dict[str, ByRanking] = {}
"""The metrics that do not follow from one sum a query, by name."""


def ranking(name: str) -> Callable[[ByRanking], ByRanking]:
    """Return a decorator: the function computes the metric of that name."""

    def keep(function: ByRanking) -> ByRanking:
        RANKINGS[name] = function
        return function

    return keep


def per_query(metric: Metric, scores: Floats, judged: Judgements) -> Floats:
    """Return the metric of each query, (n_queries,), NaN where the query is skipped."""
    if metric.name in CUSTOM:
        return CUSTOM[metric.name].per_query(scores, judged, metric.at, str(metric.ties))
    if metric.name not in SUMS:
        return _settled(metric, *RANKINGS[metric.name](metric, scores, judged), judged)
    worth, discounts = SUMS[metric.name].terms(metric, judged)
    order, average = _ranked(metric, scores, judged, len(discounts))
    sums = discounted_sums(scores, order, worth, judged.starts, len(discounts), discounts, average)
    return of_sums(metric, sums, judged)


def of_sums(metric: Metric, sums: Floats, judged: Judgements) -> Floats:
    """Return the metric of each query, as per_query does, from the sums that it follows from."""
    return _settled(metric, *SUMS[metric.name].value(metric, sums, judged), judged)


def _settled(metric: Metric, values: Floats, empty: Mask, judged: Judgements) -> Floats:
    """Return values as the options short and empty have it."""
    if metric.short == "0":
        values = np.where(judged.lengths < (metric.at or 0), 0.0, values)
    return np.where(empty, np.nan if metric.empty == "skip" else float(metric.empty or 0), values)


def _ranked(metric: Metric, scores: Floats, judged: Judgements, k: int) -> tuple[Ints, bool]:
    """Return the order of the documents and whether ties are to be averaged."""
    ties = metric.ties or "average"
    return rank(scores, judged.tiebreak(ties), judged.starts, k), ties in ("average", "threshold")


def _ratio(numerator: Floats, denominator: Floats) -> Floats:
    result = np.zeros(len(numerator))
    np.divide(numerator, denominator, out=result, where=denominator > 0)
    return result


def _gain_terms(metric: Metric, judged: Judgements) -> Terms:
    return Terms(judged.gains(str(metric.gain)), judged.discounts(str(metric.discount), metric.at))


def _dcg(metric: Metric, sums: Floats, judged: Judgements) -> tuple[Floats, Mask]:
    return sums, judged.ideal(str(metric.gain), str(metric.discount), metric.at) <= 0


def _ndcg(metric: Metric, sums: Floats, judged: Judgements) -> tuple[Floats, Mask]:
    ideal = judged.ideal(str(metric.gain), str(metric.discount), metric.at)
    return np.minimum(_ratio(sums, ideal), 1.0), ideal <= 0  # a mean over ties may round up


@ranking("mean-ndcg")
def _mean_ndcg(metric: Metric, scores: Floats, judged: Judgements) -> tuple[Floats, Mask]:
    k = judged.ranks(metric.at)
    order, average = _ranked(metric, scores, judged, k)
    worth, by_rank = judged.gains(str(metric.gain)), judged.discounts(str(metric.discount), metric.at)
    means = mean_normalised_sums(scores, order, judged.by_grade(), worth, judged.starts, k, by_rank, average)
    return np.minimum(means, 1.0), judged.ideal(str(metric.gain), str(metric.discount), 1) <= 0


@ranking("map")
def _average_precision(metric: Metric, scores: Floats, judged: Judgements) -> tuple[Floats, Mask]:
    lowest, k = float(metric.relevant or 1), judged.ranks(metric.at)
    order, average = _ranked(metric, scores, judged, k)
    relevance, relevant = judged.relevance(lowest), judged.relevant(lowest)
    sums = precision_sums(scores, order, relevance, judged.starts, k, average, metric.ties == "threshold")
    counted = np.minimum(relevant, float(metric.at)) if metric.at is not None and metric.norm == "top" else relevant
    return np.minimum(_ratio(sums, counted), 1.0), relevant == 0


@ranking("mrr")
def _reciprocal_rank(metric: Metric, scores: Floats, judged: Judgements) -> tuple[Floats, Mask]:
    lowest, k = float(metric.relevant or 1), judged.ranks(metric.at)
    order, average = _ranked(metric, scores, judged, k)
    values = reciprocal_ranks(scores, order, judged.relevance(lowest), judged.starts, k, average)
    return values, judged.relevant(lowest) == 0


@ranking("err")
def _expected_reciprocal_rank(metric: Metric, scores: Floats, judged: Judgements) -> tuple[Floats, Mask]:
    k, stops = judged.ranks(metric.at), judged.stops(float(str(metric.highest)))
    order, average = _ranked(metric, scores, judged, k)
    values = expected_reciprocal_ranks(scores, order, stops, judged.starts, k, average)
    return values, np.maximum.reduceat(stops, judged.starts[:-1]) <= 0.0


def _persistence_terms(metric: Metric, judged: Judgements) -> Terms:
    p, lowest = float(str(metric.p)), float(metric.relevant or 1)
    discounts: Floats = (1.0 - p) * p ** np.arange(float(judged.ranks(metric.at)))
    return Terms(judged.relevance(lowest), discounts)


def _rank_biased_precision(metric: Metric, sums: Floats, judged: Judgements) -> tuple[Floats, Mask]:
    return np.minimum(sums, 1.0), judged.relevant(float(metric.relevant or 1)) == 0


def _relevance_terms(metric: Metric, judged: Judgements) -> Terms:
    return Terms(judged.relevance(float(metric.relevant or 1)), np.ones(judged.ranks(metric.at)))


def _precision(metric: Metric, sums: Floats, judged: Judgements) -> tuple[Floats, Mask]:
    k = float(metric.at or 1)
    ranks = np.minimum(judged.lengths, k) if metric.short == "cut" else k
    return np.minimum(sums / ranks, 1.0), judged.relevant(float(metric.relevant or 1)) == 0


def _recall(metric: Metric, sums: Floats, judged: Judgements) -> tuple[Floats, Mask]:
    relevant = judged.relevant(float(metric.relevant or 1))
    return np.minimum(_ratio(sums, relevant), 1.0), relevant == 0


def _winner_terms(metric: Metric, judged: Judgements) -> Terms:
    return Terms(judged.top(), np.ones(1))


def _winner_takes_all(metric: Metric, sums: Floats, judged: Judgements) -> tuple[Floats, Mask]:
    return sums, judged.pairs() == 0


_TIED_PAIR = {"average": 0.5, "pessimistic": 0.0, "optimistic": 1.0}


def _pairs(scores: Floats, levels: tuple[Codes, Codes], starts: Ints) -> tuple[Floats, Floats, Floats]:
    """Return, a number a query, the pairs ranked right, those ranked wrong, and the pairs of equal scores."""
    order = rank(scores, np.zeros(0), starts, WHOLE)
    right, wrong, tied = pair_counts(scores, order, *levels, starts).T
    return right, wrong, tied


@ranking("pairwise")
def _pairwise(metric: Metric, scores: Floats, judged: Judgements) -> tuple[Floats, Mask]:
    return _share_of_pairs(metric, scores, judged.levels(), judged.pairs(), judged.starts)


@ranking("auc")
def _auc(metric: Metric, scores: Floats, judged: Judgements) -> tuple[Floats, Mask]:
    lowest = float(metric.relevant or 1)
    relevant = judged.relevant(lowest)
    pairs = relevant * (judged.lengths - relevant)
    return _share_of_pairs(metric, scores, judged.relevance_levels(lowest), pairs, judged.starts)


def _share_of_pairs(
    metric: Metric, scores: Floats, levels: tuple[Codes, Codes], pairs: Floats, starts: Ints
) -> tuple[Floats, Mask]:
    right, wrong, _ = _pairs(scores, levels, starts)
    return _ratio(right + _TIED_PAIR[str(metric.ties)] * (pairs - right - wrong), pairs), pairs == 0


@ranking("domination")
def _domination(metric: Metric, scores: Floats, judged: Judgements) -> tuple[Floats, Mask]:
    order = rank(scores, judged.tiebreak("pessimistic"), judged.starts, WHOLE)
    by_ties = dominating_counts(scores, order, judged.levels()[0], judged.starts).T
    counts: Floats = by_ties[("pessimistic", "average", "optimistic").index(str(metric.ties))]
    return _ratio(counts, judged.above_lowest()), judged.pairs() == 0


@ranking("kendall")
def _kendall(metric: Metric, scores: Floats, judged: Judgements) -> tuple[Floats, Mask]:
    right, wrong, tied = _pairs(scores, judged.levels(), judged.starts)
    pairs = judged.pairs()
    untied = 0.5 * judged.lengths * (judged.lengths - 1.0) - tied
    return np.clip(_ratio(right - wrong, np.sqrt(pairs) * np.sqrt(untied)), -1.0, 1.0), pairs == 0


SUMS: Mapping[str, Sum] = {
    "ndcg": Sum(_gain_terms, _ndcg),
    "dcg": Sum(_gain_terms, _dcg),
    "precision": Sum(_relevance_terms, _precision),
    "recall": Sum(_relevance_terms, _recall),
    "rbp": Sum(_persistence_terms, _rank_biased_precision),
    "wta": Sum(_winner_terms, _winner_takes_all),
}
