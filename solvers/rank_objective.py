"""The objective of RankSVM: a hinge over all pairs of a query that differ in grade, squared or not, and derivatives.

    f(w) = 1/2 w'w + C sum over q of a_q sum over (i, j) in P_q of h(s_i - s_j),      s = X M w

P_q  pairs of query q with y_i > y_j     a_q  weight of the query     M  diagonal, what each feature is multiplied by

Squared hinge: h(d) = max(0, 1 - d)^2. Hinge, smoothed by 0 < u < 1: a parabola for 1 - u < d < 1, straight below,

    h(d) = (max(0, 1 - d)^2 - max(0, 1 - u - d)^2) / (2 u)

so that both are sums of squared hinges: factor_t max(0, margin_t - d)^2. Everything is float64 but X. A pass over X
does both products on one block of queries after the other; with an executor blocks are shared out among its threads,
and the results are the same bits for dense X, whose blocks are summed in their order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from ranktune.solvers import order_statistics, products
from ranktune.solvers.arrays import Floats, Ints
from ranktune.solvers.queries import Queries

BLOCK_BYTES = 1 << 22
"""Features of one block: they should stay in cache between the two products, and make the calls worth while."""

Windows = tuple[Any, Any, Any, Any, Floats, Floats]


class RankObjective:
    """f, its gradient, and its (generalised) Hessian at the last weights evaluated.

    C is a positive number; multiplier (n_features,) and query_weights (n_queries,) are 1 where not given. smoothing is
    u for the hinge, between 0 and 1, None for the squared hinge. adjacent: pairs are of grades next to each other
    among the query's. C and smoothing may be set between calls; executor (of threads) may be None.
    """

    def __init__(
        self,
        queries: Queries,
        C: float,
        *,
        multiplier: Floats | None = None,
        query_weights: Floats | None = None,
        smoothing: float | None = None,
        adjacent: bool = False,
        executor: Executor | None = None,
        threads: int = 1,
    ) -> None:
        self.queries = queries
        self.C = C
        self.multiplier = multiplier
        self.query_weights = np.ones(queries.n_queries) if query_weights is None else query_weights
        self.smoothing, self.adjacent, self.executor, self.threads = smoothing, adjacent, executor, threads
        n = queries.n_documents
        self._codes, self.n_grades = np.empty(n, dtype=np.uint32), np.empty(queries.n_queries, dtype=np.uint32)
        order_statistics.number_grades(queries.grades, queries.starts, self._codes, self.n_grades)
        self._scores = np.empty(n)
        # Of one term, the slopes can take the place of the scores, which have done their work by then.
        self.windows = (
            [_windows(n, self._scores)] if smoothing is None else [_windows(n, np.empty(n)) for _ in range(2)]
        )
        self.hinges = np.zeros(2)
        features = queries.features
        row_bytes = (2 * features.data.nbytes if queries.is_sparse else features.nbytes) / queries.n_documents
        rows = max(int(BLOCK_BYTES / max(row_bytes, 1.0)), 1)
        self._blocks = [_Block(queries, first, last, rows, threads) for first, last in blocks(queries.starts, rows)]

    @property
    def n_features(self) -> int:
        """Length of the weights."""
        return self.queries.n_features

    @property
    def terms(self) -> list[tuple[float, float]]:
        """The squared hinges that the loss is the sum of: margin and factor of each."""
        if self.smoothing is None:
            return [(1.0, 1.0)]
        assert 0.0 < self.smoothing < 1.0  # windows need margins above zero
        return [(1.0, 0.5 / self.smoothing), (1.0 - self.smoothing, -0.5 / self.smoothing)]

    def diagonal(self) -> Floats:
        """Return the diagonal of I + C M X' D X M, (n_features,), D the weighted degrees. Cost: one pass over X."""
        queries = self.queries
        weighted = 2.0 * np.repeat(self.query_weights, queries.lengths) * self.degrees
        by_feature = self._scaled(self._scaled(products.squares(queries.features, weighted)))
        return 1.0 + self.C * by_feature

    @property
    def degrees(self) -> Floats:
        """How many active pairs each document is part of, (n_documents,), at the last weights, by terms' factors."""
        result = np.zeros(self.queries.n_documents)
        first = np.repeat(self.queries.starts[:-1], self.queries.lengths)
        for (_, factor), (order, _, _, _, degree, _) in zip(self.terms, self.windows, strict=True):
            result[first + order] += factor * degree
        return result

    @cached_property
    def pairs(self) -> Floats:
        """The number of pairs of each query, (n_queries,)."""
        return self._ties()[0]

    def at_zero(self) -> tuple[float, Floats]:
        """Return f and its gradient at zero weights, where every pair is active; the last weights stay what they are.

        Cost: a product with X', no sorting.
        """
        pairs, slope = self._ties()
        value, steepness = (1.0, 2.0) if self.smoothing is None else (1.0 - 0.5 * self.smoothing, 1.0)
        gradient = self._sum_blocks(lambda block, out: block.add_transposed(slope, out))
        return self.C * value * float(self.query_weights @ pairs), self.C * steepness * self._scaled(gradient)

    def rank_at_zero(self) -> None:
        """Make zero the last weights evaluated. Cost: no pass over X, no sorting."""
        for windows in self.windows:
            order_statistics.windows_of_ties(self.queries.starts, self._codes, self.n_grades, self.adjacent, windows)
        pairs = float(self.query_weights @ self.pairs)
        self.hinges[: len(self.terms)] = [pairs * margin for margin, _ in self.terms]

    def _loss(self) -> float:
        """Return the loss of all blocks as evaluated, and note hinges: what the hinge of each term's margin sums to."""
        losses = np.sum([block.losses or [] for block in self._blocks], axis=0)  # (n_terms, 2)
        self.hinges[: len(losses)] = losses[:, 1]
        return float(np.array([factor for _, factor in self.terms]) @ losses[:, 0])

    def _ties(self) -> tuple[Floats, Floats]:
        """Return the pairs of each query, (n_queries,), and better less worse partners of each document, weighted."""
        queries = self.queries
        pairs, slope = np.empty(queries.n_queries), np.empty(queries.n_documents)
        order_statistics.evaluate_ties(
            queries.starts, self._codes, self.n_grades, self.query_weights, self.adjacent, pairs, slope
        )
        return pairs, slope

    def value_and_gradient(self, weights: Floats) -> tuple[float, Floats]:
        """Return f and its gradient, (n_features,). Cost: one pass over X, and sorting the scores of each query."""
        raw = self._scaled(weights)

        def work(block: _Block, out: Floats) -> None:
            block.times(raw, self._scores)
            self._evaluate(block)
            block.add_transposed(self._slope(block), out)

        gradient = self._sum_blocks(work)
        loss = self._loss()
        with np.errstate(over="ignore", invalid="ignore"):  # a step too far is not finite: the caller takes a shorter
            return 0.5 * float(weights @ weights) + self.C * loss, weights + self.C * self._scaled(gradient)

    def _evaluate(self, block: _Block) -> None:
        queries = self.queries
        block.losses = [
            order_statistics.evaluate(
                self._scores,
                block.first,
                block.last,
                queries.starts,
                self._codes,
                self.n_grades,
                self.query_weights,
                margin,
                self.adjacent,
                windows,
            )
            for (margin, _), windows in zip(self.terms, self.windows, strict=True)
        ]

    def _slope(self, block: _Block) -> Floats:
        if self.smoothing is None:
            return self.windows[0][5]
        (_, factor), (_, other) = self.terms
        rows = slice(block.start, block.stop)
        slope = self._scores  # the scores of the block have done their work
        slope[rows] = factor * self.windows[0][5][rows] + other * self.windows[1][5][rows]
        return slope

    def hessian_product(self, direction: Floats) -> Floats:
        """Return H direction, (n_features,), with the pairs that are active at the last weights evaluated.

        Sparse rows meet the direction in single precision: half of the memory that they jump about in. Equations that
        are solved roughly do not notice.
        """
        raw = self._scaled(direction)
        if self.queries.is_sparse:
            raw = raw.astype(np.float32)
        by_document = np.empty(self.queries.n_documents)

        def work(block: _Block, out: Floats) -> None:
            block.times(raw, by_document)
            self._multiply(block, by_document)
            block.add_transposed(by_document, out)

        product = self.C * self._scaled(self._sum_blocks(work))
        product += direction
        return product

    def _multiply(self, block: _Block, by_document: Floats) -> None:
        queries = self.queries
        rows = slice(block.start, block.stop)
        total: Floats | None = None
        for (_, factor), windows in zip(self.terms, self.windows, strict=True):
            out = by_document if self.smoothing is None else np.empty_like(by_document)
            order_statistics.multiply(
                by_document,
                block.first,
                block.last,
                queries.starts,
                self.n_grades,
                self.query_weights,
                self.adjacent,
                windows,
                out,
            )
            if self.smoothing is not None:
                total = factor * out[rows] if total is None else total + factor * out[rows]
        if total is not None:
            by_document[rows] = total

    def _sum_blocks(self, work: Callable[[_Block, Floats], None]) -> Floats:
        """Return the sum of what work adds to its second argument, (n_features,), over all blocks."""
        n_blocks = len(self._blocks)
        alone = n_blocks == 1 or self.executor is None
        apart = not self.queries.is_sparse and n_blocks > 1  # a vector a block, so that threads change no bit
        lanes = [[block] for block in self._blocks] if apart else [self._blocks]
        if not apart and not alone:
            lanes = [self._blocks[lane :: self.threads] for lane in range(self.threads)]
        parts = np.zeros((len(lanes), self.n_features))

        def run(lane: int) -> None:
            for block in lanes[lane]:
                work(block, parts[lane])

        for block in self._blocks:
            block.executor = self.executor if n_blocks == 1 else None
        _run(None if alone else self.executor, run, range(len(lanes)))
        total: Floats = parts.sum(axis=0) if len(lanes) > 1 else parts[0]
        return total

    def _scaled(self, vector: Floats) -> Floats:
        return vector if self.multiplier is None else vector * self.multiplier


class _Block:
    """Queries first to last, the rows start to stop, whose products are done in pieces of rows if they are many."""

    def __init__(self, queries: Queries, first: int, last: int, rows: int, threads: int) -> None:
        self.first, self.last = first, last
        self.start, self.stop = int(queries.starts[first]), int(queries.starts[last])
        self.n_features = queries.n_features
        self.losses: list[tuple[float, float]] | None = None
        self.executor: Executor | None = None
        n = self.stop - self.start
        if queries.is_sparse:
            n_pieces = threads if n > 2 * rows else 1
        else:
            n_pieces = -(-n // rows) if n > 2 * rows else 1  # of the same size for any number of threads
        ends = self.start + np.arange(n_pieces + 1) * n // n_pieces
        self.pieces = [(int(a), int(b), *products.block(queries.features, int(a), int(b))) for a, b in pairwise(ends)]

    def times(self, weights: Floats, out: Floats) -> None:
        """Overwrite the block's part of out, (n_documents,), with X weights."""

        def run(piece: int) -> None:
            a, b, times, _ = self.pieces[piece]
            times(weights, out[a:b])

        _run(self.executor, run, range(len(self.pieces)))

    def add_transposed(self, by_document: Floats, out: Floats) -> None:
        """Add X' by_document of the block to out, (n_features,)."""
        if len(self.pieces) == 1:
            a, b, _, add = self.pieces[0]
            add(by_document[a:b], out)
            return
        parts = np.zeros((len(self.pieces), self.n_features))

        def run(piece: int) -> None:
            a, b, _, add = self.pieces[piece]
            add(by_document[a:b], parts[piece])

        _run(self.executor, run, range(len(self.pieces)))
        out += parts.sum(axis=0)


def _run(executor: Executor | None, work: Callable[[int], None], numbers: Iterable[int]) -> None:
    if executor is None:
        for number in numbers:
            work(number)
    else:
        list(executor.map(work, numbers))


def _windows(n: int, slope: Floats) -> Windows:
    order, low, high, sorted_codes = (np.empty(n, dtype=np.uint32) for _ in range(4))
    return order, low, high, sorted_codes, np.empty(n), slope


def blocks(starts: Ints, rows: int) -> list[tuple[int, int]]:
    """Return ranges of queries of about so many rows; a longer query is in a range of its own or ends one."""
    marks = np.searchsorted(starts, np.arange(rows, starts[-1] + rows, rows), side="right") - 1
    ends = np.unique(np.append(marks[marks > 0], len(starts) - 1))
    return [(int(a), int(b)) for a, b in zip(np.append(0, ends[:-1]), ends, strict=True)]
