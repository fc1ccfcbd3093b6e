"""The weights of pairs in noisy rankings: neighbours, as YetiRank has them, or the change of a metric."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ranktune.solvers.core.arrays import Floats, as_floats, as_ints
from ranktune.solvers.data.grades import NO_COPIES, number_grades
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.losses.smoothed import kernels
from ranktune.solvers.losses.smoothed.draws import table_of
from ranktune.solvers.metrics.formulas import SUMS
from ranktune.solvers.metrics.judgements import Judgements, discounts
from ranktune.solvers.metrics.metrics import Metric

GAINED = ("ndcg", "dcg")
KINDS = {"map": kernels.PRECISION, "mrr": kernels.FIRST, "err": kernels.STOPS, **dict.fromkeys(SUMS, kernels.SUM)}
"""The metrics whose change is known where two documents swap places."""
SMALL = 2.0**-40
"""A sum at which no metric has reached its highest value."""


@dataclass(frozen=True, eq=False)
class PairWeights:
    """Weights of pairs: what rank r counts, v, the gain of each document, and the factor of each query.

    kind is one of kernels; v is (K,), gains (n_documents,), share (n_queries,).
    """

    kind: int
    v: Floats
    gains: Floats
    share: Floats

    def rule(self, samples: int, seed: int, *, valued: bool = False) -> kernels.NoisyRule:
        """Return the weights in so many noisy rankings, in the form of the kernels."""
        swaps = self.kind if self.kind > kernels.SUM else None
        return kernels.NoisyRule(self.kind, as_floats(self.v), samples, table_of(seed), valued, swaps=swaps)

    def lists(self, queries: Queries) -> kernels.NoisyLists:
        """Return queries in the form of the kernels."""
        codes, levels = number_grades(self.gains, queries.starts)
        keys = np.arange(queries.n_queries, dtype=np.int64)
        starts, gains, share = as_ints(queries.starts), as_floats(self.gains), as_floats(self.share)
        return kernels.NoisyLists(starts, gains, codes, levels, share, keys, NO_COPIES)


def neighbours(queries: Queries, gains: Floats, ranks: int, decay: float) -> PairWeights:
    """Return decay^(r - 1) |x_i - x_j| for the documents at ranks r and r + 1, r at most ranks."""
    return PairWeights(kernels.NEIGHBOURS, as_floats(decay ** np.arange(ranks)), gains, np.ones(queries.n_queries))


def changes(queries: Queries, metric: Metric, gains: Floats, ranks: int) -> PairWeights:
    """Return the change of a metric of KINDS, of the first ranks where it has no cutoff.

    gains, (n_documents,), are those of the documents for ndcg and dcg, their grades for others.
    """
    judgements = Judgements(gains, queries.starts)
    k = judgements.ranks(ranks if metric.at is None else metric.at)
    kind = KINDS[metric.name]
    if metric.name in GAINED:
        ideal = judgements.ideal("linear", str(metric.discount), k)
        share = np.divide(1.0, ideal, out=np.zeros(len(ideal)), where=ideal > 0.0)
        if metric.name == "dcg":
            share = np.full(len(ideal), 1.0 / max(float(ideal.mean()), SMALL))
        return PairWeights(kind, discounts(k, str(metric.discount)), gains, share)
    if kind == kernels.SUM:
        terms = SUMS[metric.name].terms(metric, judgements)
        values, empty = SUMS[metric.name].value(metric, np.full(queries.n_queries, SMALL), judgements)
        return PairWeights(kind, terms.discounts[:k], terms.values, np.where(empty, 0.0, values / SMALL))
    v, share = 1.0 / np.arange(1.0, k + 1.0), np.ones(queries.n_queries)
    if kind == kernels.STOPS:
        return PairWeights(kind, v, judgements.stops(float(str(metric.highest))), share)
    lowest = float(metric.relevant or 1)
    if kind == kernels.PRECISION:
        relevant = judgements.relevant(lowest)
        counted = np.minimum(relevant, float(metric.at)) if metric.at is not None and metric.norm == "top" else relevant
        share = 1.0 / np.maximum(counted, 1.0)
    return PairWeights(kind, v, judgements.relevance(lowest), share)
