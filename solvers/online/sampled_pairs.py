"""Rankers that learn from pairs drawn at random: PAMIR by passive-aggressive steps, Pegasos by subgradients."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY
from typing import Annotated

import numpy as np

from ranktune.solvers.base.ranker import Step
from ranktune.solvers.core.arrays import Floats, Ints
from ranktune.solvers.core.compiled import compiled
from ranktune.solvers.core.parameters import Param, with_parameters
from ranktune.solvers.data.grades import NO_COPIES
from ranktune.solvers.data.products import row_product
from ranktune.solvers.data.products import scores as scores_of
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.rows import MatrixRows, add_row, fetch_row, row_score, rows_of
from ranktune.solvers.online import kernels
from ranktune.solvers.online.base import PairRanker
from ranktune.solvers.online.kernels import AHEAD, OnlineState, UpdateRule
from ranktune.solvers.online.pair_sampling import draw, draw_from, pair_table

BLOCK = 1 << 17
"""Pairs between two steps that are reported."""


@with_parameters
class SampledPairsRanker(PairRanker):
    """A linear ranker that learns from pairs drawn at random.

    fit draws steps pairs, or pairs_per_document for each document, from all queries; partial_fit and progressive draw
    pairs_per_document for each document from one query after the other.

    {attributes}
    n_queries_seen_ : int
        Queries that partial_fit and progressive learned from; fit counts pairs alone.
    """

    _: KW_ONLY
    steps: Annotated[int | None, Param("Pairs that fit draws; by default pairs_per_document for each document.")] = None
    pairs_per_document: Annotated[
        int,
        Param(
            "Pairs that partial_fit and progressive draw from a query, for each of its documents.",
            low=1,
            high=100,
            log=True,
        ),
    ] = 10
    sampling: Annotated[
        str,
        Param(
            'How the first document of a pair is drawn: "documents": uniformly from all that have a partner; '
            '"queries": uniformly from a query that is drawn uniformly. The second one is drawn from those of the same '
            "query with another grade. Documents that have weights are drawn by them.",
            choices=("queries", "documents"),
        ),
    ] = "queries"

    def _steps(self, queries: Queries) -> Iterator[Step]:
        self._begin(queries)
        rows, table = rows_of(queries.features), pair_table(queries)
        left = self.pairs_per_document * int(table.before[-1]) if self.steps is None else int(self.steps)
        while left > 0:
            count = min(left, BLOCK)
            loss = self._learn_pairs(rows, [(*draw(table, count, self.sampling, self._generator), NO_COPIES)], 0)
            left -= count
            yield Step(self.n_pairs_seen_, loss)

    def _learn(self, queries: Queries, order: Ints, scores: Floats) -> Iterator[Step]:
        rows, table = rows_of(queries.features), pair_table(queries)
        useful = np.zeros(queries.n_queries, dtype=bool)
        useful[table.useful] = True
        for q in order:
            a, b = int(queries.starts[q]), int(queries.starts[q + 1])
            if len(scores):
                scores[a:b] = scores_of(queries.features[a:b], self.coef_)
            if useful[q]:
                pairs = draw_from(table, q, self.pairs_per_document * (b - a), self._generator)
                yield Step(self.n_pairs_seen_, self._learn_pairs(rows, [(*pairs, NO_COPIES)], 1))


@with_parameters
class PAMIR(SampledPairsRanker):
    """PAMIR: passive-aggressive steps (PA-I) on random pairs.

    A pair (i, j), y_i > y_j, z = x_i - x_j, with the loss l = max(0, 1 - w'z), takes the step w += min(C, l / z'z) z
    from w = 0. Cost: the stored values of each pair.

    {parameters}

    {attributes}

    References
    ----------
    Grangier & Bengio 2008, "A Discriminative Kernel-Based Approach to Rank Images from Text Queries", IEEE PAMI 30(8).
    Crammer et al. 2006, "Online Passive-Aggressive Algorithms", JMLR 7.

    Examples
    --------
    >>> from ranktune.solvers import PAMIR
    >>> X = [[0.9, 0.1], [0.2, 0.8], [0.7, 0.3], [0.1, 0.6]]
    >>> ranker = PAMIR(C=0.1).fit(X, [1, 0, 1, 0], qid=[1, 1, 2, 2])
    >>> ranker.coef_.round(3)
    array([ 1.176, -0.982])
    """

    C: Annotated[
        float, Param("The longest step, in multiples of the pair's difference; positive.", low=1e-6, high=1.0, log=True)
    ] = 1e-3

    space_order = ("C", "scaling", "sampling")

    def _rule(self) -> UpdateRule:
        return UpdateRule(kernels.BOUNDED, float(self.C))


@with_parameters
class PairwisePegasos(SampledPairsRanker):
    """Pegasos on random pairs: subgradient steps of length 1 / (alpha t) for the regularized pairwise hinge.

    It minimizes alpha / 2 w'w + E max(0, 1 - w'z), z = x_i - x_j of a random pair, y_i > y_j. Step t shrinks w by
    1 - 1/t and adds z / (alpha t) if w'z < 1; so w is the sum of these z over alpha t, and only the sum is kept. Cost:
    the stored values of each pair.

    {parameters}

    {attributes}

    References
    ----------
    Shalev-Shwartz et al. 2011, "Pegasos: Primal Estimated sub-GrAdient SOlver for SVM", Mathematical Programming 127.
    Sculley 2009, "Large Scale Learning to Rank", NIPS workshop on advances in ranking (sofia-ml).

    Examples
    --------
    >>> from ranktune.solvers import PairwisePegasos
    >>> X = [[0.9, 0.1], [0.2, 0.8], [0.7, 0.3], [0.1, 0.6]]
    >>> ranker = PairwisePegasos().fit(X, [1, 0, 1, 0], qid=[1, 1, 2, 2])
    >>> ranker.coef_.round(3)
    array([ 2.344, -1.531])
    """

    alpha: Annotated[
        float,
        Param("Strength of 1/2 w'w relative to the mean hinge of a pair; positive.", low=1e-6, high=1.0, log=True),
    ] = 0.01

    space_order = ("alpha", "scaling", "sampling")

    def _update(self, rows: MatrixRows, better: Ints, worse: Ints, weights: Floats) -> None:
        learn(rows, better, worse, float(self.alpha), self._state)

    def _weights(self) -> Floats:
        weights: Floats = self._state.weights / (self.alpha * max(self._state.counters[1], 1.0))
        return weights


@compiled
def learn(rows: MatrixRows, better: Ints, worse: Ints, alpha: float, state: OnlineState) -> None:
    """Add the differences of the pairs with a margin below 1 to the weights, whose multiple by 1 / (alpha t) is w."""
    total, stretch, counters, X = state.weights, state.stretch, state.counters, rows.dense
    for t in range(len(better)):
        i, j = better[t], worse[t]
        if t + AHEAD < len(better):
            fetch_row(X, better[t + AHEAD])
            fetch_row(X, worse[t + AHEAD])
        if rows.is_sparse:
            by = row_score(rows, i, total) - row_score(rows, j, total)
        else:  # handing all of rows to row_score would take as long as the arithmetic
            by = row_product(X, i, total) - row_product(X, j, total)
        margin = by / (alpha * counters[1]) if counters[1] > 0.0 else 0.0
        counters[1] += 1.0
        if not margin < 1.0:
            continue
        counters[2] += 1.0 - margin
        if rows.is_sparse:
            add_row(rows, i, 1.0, stretch, total)
            add_row(rows, j, -1.0, stretch, total)
        else:
            for c in range(len(total)):
                total[c] += stretch[c] * (np.float64(X[i, c]) - np.float64(X[j, c]))
