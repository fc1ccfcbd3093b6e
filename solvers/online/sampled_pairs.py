"""Rankers that learn from pairs drawn at random: PAMIR by passive-aggressive steps, Pegasos by subgradients.

Pairs of documents of different grades are drawn at a constant cost each: uniformly, or by weights of documents. The
first document of a pair is drawn from all that have a partner ("documents": long queries count more), or from a query
that is drawn uniformly ("queries"); the second document from those of the same query with another grade.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY
from typing import Annotated, NamedTuple

import numpy as np

from ranktune.solvers.base.ranker import Step
from ranktune.solvers.core.arrays import Floats, Ints, as_ints
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
from ranktune.solvers.online.pairs import by_grade
from ranktune.solvers.online.weighted_draws import mass_of, partner, places

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


class PairTable(NamedTuple):
    """The index of partners; a block is the documents of one grade of one query, adjacent in rows.

    rows    (n_documents,) the rows of each query, lowest grade first
    block   (n_documents,) the block of each position in rows   first   (n_blocks + 1,) its first position
    query   (n_blocks,) its query                               starts  (n_queries + 1,) first position of each query
    useful  (n_useful,) queries with at least two grades        before  (n_useful + 1,) their documents, cumulated
    mass    of rows: see online.weighted_draws
    """

    rows: Ints
    block: Ints
    first: Ints
    query: Ints
    starts: Ints
    useful: Ints
    before: Ints
    mass: Floats


def pair_table(queries: Queries) -> PairTable:
    """Return the table of queries. Cost: a sort of the documents and one pass over X."""
    rows, of_query = by_grade(queries), queries.query_of_document
    grades = queries.grades[rows]
    begins = np.ones(len(rows), dtype=bool)
    begins[1:] = (grades[1:] != grades[:-1]) | (of_query[1:] != of_query[:-1])
    block, first = np.cumsum(begins) - 1, np.flatnonzero(begins)
    query = of_query[first]
    useful = np.flatnonzero(np.bincount(query, minlength=queries.n_queries) > 1)
    before = np.concatenate([[0], np.cumsum(queries.lengths[useful])])
    starts, mass = as_ints(queries.starts), mass_of(queries, rows)
    return PairTable(rows, block, np.append(first, len(rows)), query, starts, useful, before.astype(np.int64), mass)


def first_positions(table: PairTable, draws: Floats, sampling: str) -> Ints:
    """Return the position of a first document for each number of draws, in [0, 1)."""
    n_useful = len(table.useful)
    if len(table.mass):
        start, end = table.starts[table.useful], table.starts[table.useful + 1]
        shares = np.ones(n_useful) if sampling == "queries" else table.mass[end] - table.mass[start]
        up_to = np.cumsum(shares)
        number = np.minimum(np.searchsorted(up_to, draws * up_to[-1], side="right"), n_useful - 1)
        position = (draws * up_to[-1] - up_to[number]) / shares[number] + 1.0
        return places(table.mass, start[number], end[number], position)
    if sampling == "queries":
        number = np.minimum((draws * n_useful).astype(np.int64), n_useful - 1)
        start, length = table.starts[table.useful[number]], np.diff(table.before)[number]
        within = (draws * n_useful - number) * length
        return np.asarray(start + np.minimum(within.astype(np.int64), length - 1))
    total = int(table.before[-1])
    document = np.minimum((draws * total).astype(np.int64), total - 1)
    if total == len(table.rows):
        return document
    number = np.searchsorted(table.before, document, side="right") - 1
    return np.asarray(table.starts[table.useful[number]] + document - table.before[number])


def draw(table: PairTable, count: int, sampling: str, generator: np.random.Generator) -> tuple[Ints, Ints]:
    """Return count pairs drawn from all queries: the rows of the better documents and those of the worse."""
    first = first_positions(table, generator.random(count), sampling)
    return _with_partners(table, first, generator)


def draw_from(table: PairTable, query: int, count: int, generator: np.random.Generator) -> tuple[Ints, Ints]:
    """Return count pairs drawn from one query that has two grades."""
    a, b = int(table.starts[query]), int(table.starts[query + 1])
    draws = generator.random(count)
    if len(table.mass):
        return _with_partners(table, places(table.mass, np.array(a), np.array(b), draws), generator)
    first = a + np.minimum((draws * (b - a)).astype(np.int64), b - a - 1)
    return _with_partners(table, first, generator)


def _with_partners(table: PairTable, first: Ints, generator: np.random.Generator) -> tuple[Ints, Ints]:
    better, worse = np.empty((2, len(first)), dtype=np.int64)
    partners(table, first, generator.random(len(first)), better, worse)
    return better, worse


@compiled
def partners(table: PairTable, positions: Ints, draws: Floats, better: Ints, worse: Ints) -> None:
    """Overwrite better and worse with the rows of the pairs of each position and a partner drawn for it."""
    for t in range(len(positions)):
        p = positions[t]
        g = table.block[p]
        a, b = table.starts[table.query[g]], table.starts[table.query[g] + 1]
        others = b - a - (table.first[g + 1] - table.first[g])
        r = a + min(int(draws[t] * others), others - 1)
        if r >= table.first[g]:
            r += table.first[g + 1] - table.first[g]
        if len(table.mass) > 0:
            r = partner(table.mass, a, b, table.first[g], table.first[g + 1], draws[t])
        better[t], worse[t] = table.rows[max(p, r)], table.rows[min(p, r)]
