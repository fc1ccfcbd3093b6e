"""The formula of each metric: from scores and judgements to a value for each query.

Some metrics follow from a sum for each query, of the value of a document times the discount of its rank: SUMS. The
others are in RANKINGS.
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
from ranktune.solvers.metrics.presets import CLICK_METRICS, CUSTOM

if TYPE_CHECKING:
    from ranktune.solvers.metrics.metrics import Metric


class Terms(NamedTuple):
    """The terms of a sum: the value of each document, (n_documents,), and the discount of each rank, (k,)."""

    values: Floats
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
"""The metrics that do not follow from one sum per query, by name."""


def ranking(name: str) -> Callable[[ByRanking], ByRanking]:
    """Return a decorator: the function computes the metric of that name."""

    def keep(function: ByRanking) -> ByRanking:
        RANKINGS[name] = function
        return function

    return keep


def per_query(metric: Metric, scores: Floats, judgements: Judgements) -> Floats:
    """Return the metric of each query, (n_queries,), NaN where the query is skipped."""
    if metric.name in CUSTOM:
        return CUSTOM[metric.name].per_query(scores, judgements, metric.at, str(metric.ties))
    if metric.name not in SUMS:
        return _settled(metric, *RANKINGS[metric.name](metric, scores, judgements), judgements)
    values, discounts = SUMS[metric.name].terms(metric, judgements)
    order, average = _ranked(metric, scores, judgements, len(discounts))
    sums = discounted_sums(scores, order, values, judgements.starts, len(discounts), discounts, average)
    return of_sums(metric, sums, judgements)


def of_sums(metric: Metric, sums: Floats, judgements: Judgements) -> Floats:
    """Return the metric of each query, as per_query does, from the sums that it follows from."""
    return _settled(metric, *SUMS[metric.name].value(metric, sums, judgements), judgements)


def _settled(metric: Metric, values: Floats, empty: Mask, judgements: Judgements) -> Floats:
    """Return values as the options short and empty have it."""
    if metric.short == "0":
        values = np.where(judgements.lengths < (metric.at or 0), 0.0, values)
    return np.where(empty, np.nan if metric.empty == "skip" else float(metric.empty or 0), values)


def _ranked(metric: Metric, scores: Floats, judgements: Judgements, k: int) -> tuple[Ints, bool]:
    """Return the order of the documents and whether ties are to be averaged."""
    ties = metric.ties or "average"
    return rank(scores, judgements.tiebreak(ties), judgements.starts, k), ties in ("average", "threshold")


def _ratio(numerator: Floats, denominator: Floats) -> Floats:
    result = np.zeros(len(numerator))
    np.divide(numerator, denominator, out=result, where=denominator > 0)
    return result


def _gain_terms(metric: Metric, judgements: Judgements) -> Terms:
    return Terms(judgements.gains(str(metric.gain)), judgements.discounts(str(metric.discount), metric.at))


def _dcg(metric: Metric, sums: Floats, judgements: Judgements) -> tuple[Floats, Mask]:
    return sums, judgements.pool.ideal(str(metric.gain), str(metric.discount), metric.at) <= 0


def _ndcg(metric: Metric, sums: Floats, judgements: Judgements) -> tuple[Floats, Mask]:
    ideal = judgements.pool.ideal(str(metric.gain), str(metric.discount), metric.at)
    return np.minimum(_ratio(sums, ideal), 1.0), ideal <= 0  # a mean over ties may round up


@ranking("mean-ndcg")
def _mean_ndcg(metric: Metric, scores: Floats, judgements: Judgements) -> tuple[Floats, Mask]:
    k = judgements.ranks(metric.at)
    order, average = _ranked(metric, scores, judgements, k)
    values, by_rank = judgements.gains(str(metric.gain)), judgements.discounts(str(metric.discount), metric.at)
    means = mean_normalised_sums(scores, order, judgements.by_grade(), values, judgements.starts, k, by_rank, average)
    return np.minimum(means, 1.0), judgements.pool.ideal(str(metric.gain), str(metric.discount), 1) <= 0


@ranking("map")
def _average_precision(metric: Metric, scores: Floats, judgements: Judgements) -> tuple[Floats, Mask]:
    lowest, k = float(metric.relevant or 1), judgements.ranks(metric.at)
    order, average = _ranked(metric, scores, judgements, k)
    relevance, relevant = judgements.relevance(lowest), judgements.pool.relevant(lowest)
    sums = precision_sums(scores, order, relevance, judgements.starts, k, average, metric.ties == "threshold")
    counted = np.minimum(relevant, float(metric.at)) if metric.at is not None and metric.norm == "top" else relevant
    return np.minimum(_ratio(sums, counted), 1.0), relevant == 0


@ranking("mrr")
def _reciprocal_rank(metric: Metric, scores: Floats, judgements: Judgements) -> tuple[Floats, Mask]:
    lowest, k = float(metric.relevant or 1), judgements.ranks(metric.at)
    order, average = _ranked(metric, scores, judgements, k)
    values = reciprocal_ranks(scores, order, judgements.relevance(lowest), judgements.starts, k, average)
    return values, judgements.pool.relevant(lowest) == 0


@ranking("err")
def _expected_reciprocal_rank(metric: Metric, scores: Floats, judgements: Judgements) -> tuple[Floats, Mask]:
    k, stops = judgements.ranks(metric.at), judgements.stops(float(str(metric.highest)))
    order, average = _ranked(metric, scores, judgements, k)
    values = expected_reciprocal_ranks(scores, order, stops, judgements.starts, k, average)
    return values, np.maximum.reduceat(stops, judgements.starts[:-1]) <= 0.0


def _persistence_terms(metric: Metric, judgements: Judgements) -> Terms:
    p, lowest = float(str(metric.p)), float(metric.relevant or 1)
    discounts: Floats = (1.0 - p) * p ** np.arange(float(judgements.ranks(metric.at)))
    return Terms(judgements.relevance(lowest), discounts)


def _rank_biased_precision(metric: Metric, sums: Floats, judgements: Judgements) -> tuple[Floats, Mask]:
    return np.minimum(sums, 1.0), judgements.pool.relevant(float(metric.relevant or 1)) == 0


def _relevance_terms(metric: Metric, judgements: Judgements) -> Terms:
    return Terms(judgements.relevance(float(metric.relevant or 1)), np.ones(judgements.ranks(metric.at)))


def _precision(metric: Metric, sums: Floats, judgements: Judgements) -> tuple[Floats, Mask]:
    k = float(metric.at or 1)
    ranks = np.minimum(judgements.lengths, k) if metric.short == "cut" else k
    return np.minimum(sums / ranks, 1.0), judgements.pool.relevant(float(metric.relevant or 1)) == 0


def _recall(metric: Metric, sums: Floats, judgements: Judgements) -> tuple[Floats, Mask]:
    relevant = judgements.pool.relevant(float(metric.relevant or 1))
    return np.minimum(_ratio(sums, relevant), 1.0), relevant == 0


@ranking("r-precision")
def _r_precision(metric: Metric, scores: Floats, judgements: Judgements) -> tuple[Floats, Mask]:
    lowest, pool = float(metric.relevant or 1), judgements.pool
    order, average = _ranked(metric, scores, judgements, WHOLE)
    ranked, found = scores[order], judgements.relevance(lowest)[order]
    query = np.repeat(np.arange(len(pool.lengths)), judgements.lengths)
    if average:  # each of tied documents has the mean of all
        block = np.cumsum(np.append(False, (ranked[1:] != ranked[:-1]) | (query[1:] != query[:-1])))
        found = (np.bincount(block, found) / np.bincount(block))[block]
    first = judgements.starts[:-1]
    ends = first + np.add.reduceat(pool.grades >= lowest, pool.starts[:-1], dtype=np.int64)
    relevant, counted = pool.relevant(lowest), np.arange(len(found)) < ends[query]
    return np.minimum(_ratio(np.add.reduceat(found * counted, first), relevant), 1.0), relevant == 0


def _winner_terms(metric: Metric, judgements: Judgements) -> Terms:
    return Terms(judgements.top(), np.ones(1))


def _winner_takes_all(metric: Metric, sums: Floats, judgements: Judgements) -> tuple[Floats, Mask]:
    return sums, judgements.pairs() == 0


_TIED_PAIR = {"average": 0.5, "pessimistic": 0.0, "optimistic": 1.0}


def _pairs(scores: Floats, levels: tuple[Codes, Codes], judgements: Judgements) -> tuple[Floats, Floats, Floats]:
    """Return, a number per query, the pairs ranked right, those ranked wrong, and the pairs of equal scores."""
    order = rank(scores, np.zeros(0), judgements.starts, WHOLE)
    right, wrong, tied = pair_counts(scores, order, *levels, judgements.starts, judgements.copies).T
    return right, wrong, tied


@ranking("pairwise")
def _pairwise(metric: Metric, scores: Floats, judgements: Judgements) -> tuple[Floats, Mask]:
    return _share_of_pairs(metric, scores, judgements.levels(), judgements.pairs(), judgements)


@ranking("auc")
def _auc(metric: Metric, scores: Floats, judgements: Judgements) -> tuple[Floats, Mask]:
    lowest = float(metric.relevant or 1)
    relevant = judgements.pool.relevant(lowest)
    pairs = relevant * (judgements.lengths - relevant)
    return _share_of_pairs(metric, scores, judgements.relevance_levels(lowest), pairs, judgements)


def _share_of_pairs(
    metric: Metric, scores: Floats, levels: tuple[Codes, Codes], pairs: Floats, judgements: Judgements
) -> tuple[Floats, Mask]:
    right, wrong, _ = _pairs(scores, levels, judgements)
    return _ratio(right + _TIED_PAIR[str(metric.ties)] * (pairs - right - wrong), pairs), pairs == 0


@ranking("domination")
def _domination(metric: Metric, scores: Floats, judgements: Judgements) -> tuple[Floats, Mask]:
    order = rank(scores, judgements.tiebreak("pessimistic"), judgements.starts, WHOLE)
    by_ties = dominating_counts(scores, order, judgements.levels()[0], judgements.starts).T
    counts: Floats = by_ties[("pessimistic", "average", "optimistic").index(str(metric.ties))]
    return _ratio(counts, judgements.above_lowest()), judgements.pairs() == 0


@ranking("kendall")
def _kendall(metric: Metric, scores: Floats, judgements: Judgements) -> tuple[Floats, Mask]:
    right, wrong, tied = _pairs(scores, judgements.levels(), judgements)
    pairs = judgements.pairs()
    untied = 0.5 * judgements.lengths * (judgements.lengths - 1.0) - tied
    return np.clip(_ratio(right - wrong, np.sqrt(pairs) * np.sqrt(untied)), -1.0, 1.0), pairs == 0


def _click_terms(metric: Metric, judgements: Judgements) -> Terms:
    return Terms(judgements.clicked(metric.name), judgements.examined(metric.at))


def _expected_clicks(metric: Metric, sums: Floats, judgements: Judgements) -> tuple[Floats, Mask]:
    share = judgements.clicked("share")[judgements.starts[:-1]]
    return sums * share, np.isnan(share)


SUMS: Mapping[str, Sum] = {
    "ndcg": Sum(_gain_terms, _ndcg),
    "dcg": Sum(_gain_terms, _dcg),
    "precision": Sum(_relevance_terms, _precision),
    "recall": Sum(_relevance_terms, _recall),
    "rbp": Sum(_persistence_terms, _rank_biased_precision),
    "wta": Sum(_winner_terms, _winner_takes_all),
    **dict.fromkeys(CLICK_METRICS, Sum(_click_terms, _expected_clicks)),
}
