"""The objective of RankSVM: a hinge over all pairs of a query that differ in grade, squared or not, and derivatives.

    f(w) = 1/2 w'w + C sum over q of a_q sum over (i, j) in P_q of x_i x_j h(s_i - s_j),      s = X M w

P_q  pairs of query q with y_i > y_j     a_q  weight of the query     x_i  weight of the document
M    diagonal, what each feature is multiplied by

Squared hinge: h(d) = max(0, 1 - d)^2. Hinge, smoothed by 0 < u < 1: a parabola for 1 - u < d < 1, straight below,

    h(d) = (max(0, 1 - d)^2 - max(0, 1 - u - d)^2) / (2 u)

so that both are sums of squared hinges: factor_t max(0, margin_t - d)^2. Everything is float64 but X. A pass over X
goes through one block of queries after the other; with an executor blocks are shared out among its threads, and the
results are the same bits for dense X, whose blocks are summed in their order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from functools import cached_property
from itertools import pairwise

import numpy as np
from scipy import sparse

from ranktune.solvers.core.arrays import Features, Floats, Ints
from ranktune.solvers.data import products
from ranktune.solvers.data.blocked import row_bytes
from ranktune.solvers.data.grades import copies_of, count_pairs, number_grades
from ranktune.solvers.data.products import blocks
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.losses import order_statistics
from ranktune.solvers.losses.order_statistics import Hinges
from ranktune.solvers.losses.order_statistics_kernels import GradedLists, Windows
from ranktune.solvers.optimizers.rank_svm.curvature import WORTH_THREADS, half_sum
from ranktune.solvers.optimizers.rank_svm.hinge_objective import HingeObjective
from ranktune.solvers.optimizers.rank_svm.sampling import draw, sample_size

BLOCK_BYTES = 1 << 22
"""Features of one block: few enough to stay in cache between the two products, and many beside the cost of a call."""


class RankObjective(HingeObjective):
    """Of documents in memory: f, its gradient, and its (generalised) Hessian at the last weights evaluated.

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
        self._codes, self.n_grades = number_grades(queries.grades, queries.starts)
        self._copies = copies_of(queries)
        self._scores = np.empty(n)
        # Of one term, the slopes can take the place of the scores, which have done their work by then.
        by_term = self._scores[None] if smoothing is None else np.empty((2, n))
        order, low, high, codes = (np.empty(by_term.shape, dtype=np.uint32) for _ in range(4))
        arrays = (order, low, high, codes, np.empty(by_term.shape), by_term)
        self.windows = [Windows(*term) for term in zip(*arrays, strict=True)]
        self.hinges = np.zeros(2)
        often = products.often_first(queries.features) if queries.is_sparse else None
        self._features: Features
        self._order: Ints | None
        self._features, self._order = (queries.features, None) if often is None else often
        rows = max(int(BLOCK_BYTES / max(row_bytes(queries), 1.0)), 1)
        self._blocks = [
            _Block(queries.starts, self._features, first, last, rows, threads, self._hinges(first, last))
            for first, last in blocks(queries.starts, rows)
        ]

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

    def loss_diagonal(self) -> Floats:
        """Return the diagonal of M X' D X M, (n_features,), D the weighted degrees. Cost: one pass over X."""
        queries = self.queries
        weighted = 2.0 * np.repeat(self.query_weights, queries.lengths) * self.degrees
        return self._scaled(self._by_weight(products.squares(self._features, weighted)))

    def loss_hessian(self) -> Floats:
        """Return M X' L X M, L the Laplacian of the active pairs of each term. For samples: the rows are copied."""
        half = np.zeros((self.n_features, self.n_features))
        for (_, factor), windows in zip(self.terms, self.windows, strict=True):
            half += factor * half_sum(self.queries, self._graded, windows, self.adjacent, self.executor, self.threads)
        result: Floats = 0.5 * (half + half.T)
        if self.multiplier is not None:
            result *= np.outer(self.multiplier, self.multiplier)
        return result

    def sample(self, size: int | None = None) -> RankObjective | None:
        """Return the objective on a part of the documents, about size of them, None where that saves little.

        Each query is weighted by the pairs that it stands for.
        """
        pairs = self.pairs
        if size is None:
            rows = int(self.queries.lengths[pairs > 0.0].sum())
            size = sample_size(rows, self.n_features, row_bytes(self.queries))
        drawn = draw(self.queries, pairs, size) if size > 0 else None
        if drawn is None:
            return None
        part, chosen = drawn
        weights = self.query_weights[chosen] * (pairs.sum() / pairs[chosen].sum())
        some = RankObjective(
            part,
            self.C,
            multiplier=self.multiplier,
            query_weights=weights,
            smoothing=self.smoothing,
            adjacent=self.adjacent,
            executor=self.executor,
            threads=self.threads,
        )
        some.query_weights *= np.divide(pairs[chosen], some.pairs, out=np.zeros_like(weights), where=some.pairs > 0.0)
        return some

    @property
    def degrees(self) -> Floats:
        """The weight of each document's active pairs, (n_documents,), at the last weights, by terms' factors."""
        result = np.zeros(self.queries.n_documents)
        first = np.repeat(self.queries.starts[:-1], self.queries.lengths)
        for (_, factor), (order, _, _, _, degree, _) in zip(self.terms, self.windows, strict=True):
            result[first + order] += factor * degree
        return result * self._copies if len(self._copies) else result

    @cached_property
    def pairs(self) -> Floats:
        """The weight of the pairs of each query, (n_queries,): their number, where documents have no weights."""
        return count_pairs(self.queries.starts, self._codes, self.n_grades, self.adjacent, self._copies)

    def loss_at_zero(self, executor: Executor | None = None) -> tuple[float, Floats]:
        """Return the loss and its gradient at zero weights, by the threads of executor or one.

        The last weights stay what they are. Cost: a product with X', no sorting.
        """
        slope = order_statistics.slopes_of_ties(self._graded, self.adjacent)
        value, steepness = (1.0, 2.0) if self.smoothing is None else (1.0 - 0.5 * self.smoothing, 1.0)
        gradient = self._sum_blocks(lambda block, out: block.add_transposed(slope, out), executor)
        return value * float(self.query_weights @ self.pairs), steepness * self._by_weight(gradient)

    def rank_at_zero(self) -> None:
        """Make zero the last weights evaluated. Cost: no pass over X, no sorting."""
        for windows in self.windows:
            order_statistics.windows_of_ties(self._graded, self.adjacent, windows)
        pairs = float(self.query_weights @ self.pairs)
        self.hinges[: len(self.terms)] = [pairs * margin for margin, _ in self.terms]

    def _loss(self) -> float:
        """Return the loss of all blocks as evaluated, and note hinges: what the hinge of each term's margin sums to."""
        losses = np.sum([block.losses for block in self._blocks], axis=0)[: len(self.terms)]
        self.hinges[: len(losses)] = losses[:, 1]
        return float(np.array([factor for _, factor in self.terms]) @ losses[:, 0])

    def loss_and_gradient(self, weights: Floats, image: Floats | None = None) -> tuple[float, Floats]:
        """Return the loss and its gradient, (n_features,). Cost: one pass over X, and sorting each query's scores."""
        raw, scores, terms = self._by_column(weights), self._scores, self.terms
        if image is not None:
            scores[:] = image

        def work(block: _Block, out: Floats) -> None:
            if image is None:
                block.times(raw, scores)
            block.hinges.slopes(terms, scores, block.losses)
            block.add_transposed(scores, out)

        gradient = self._sum_blocks(work, self.executor)
        loss = self._loss()
        with np.errstate(over="ignore", invalid="ignore"):
            return loss, self._by_weight(gradient)

    def _hinges(self, first: int, last: int) -> Hinges:
        return Hinges(self._graded, first, last, self.adjacent, self.windows)

    @property
    def _graded(self) -> GradedLists:
        return GradedLists(self.queries.starts, self._codes, self.n_grades, self.query_weights, self._copies)

    def image(self, weights: Floats) -> Floats | None:
        """Return the scores X M weights, (n_documents,), of sparse features; None of dense ones.

        Dense rows are met twice while they are in cache, so that little would be spared.
        """
        if not self.queries.is_sparse:
            return None
        scores = np.zeros(self.queries.n_documents)
        if not weights.any():
            return scores
        raw = self._by_column(weights)
        _run(self.executor, lambda block: self._blocks[block].times(raw, scores), range(len(self._blocks)))
        return scores

    def loss_product(self, direction: Floats) -> tuple[Floats, Floats | None]:
        """Return the Hessian of the loss at the last weights times direction, and direction's image.

        Cost: one pass over X.
        """
        raw = self._by_column(direction)
        out, terms = self._scores, self.terms  # the slopes are not needed again
        image = np.empty_like(out) if self.queries.is_sparse else None

        def work(block: _Block, total: Floats) -> None:
            by_document = out if image is None else image
            block.times(raw, by_document)
            block.hinges.curvatures(terms, by_document, out)
            block.add_transposed(out, total)

        return self._by_weight(self._sum_blocks(work, self.executor)), image

    def _sum_blocks(self, work: Callable[[_Block, Floats], None], executor: Executor | None) -> Floats:
        """Return the sum of what work adds to its second argument, (n_features,), over all blocks."""
        n_blocks = len(self._blocks)
        short = n_blocks < WORTH_THREADS * self.threads and not any(block.is_cut_up for block in self._blocks)
        alone = executor is None or n_blocks == 1 or short
        apart = not self.queries.is_sparse and n_blocks > 1  # a vector a block, so that threads change no bit
        lanes = [[block] for block in self._blocks] if apart else [self._blocks]
        if not apart and not alone:
            lanes = [self._blocks[lane :: self.threads] for lane in range(self.threads)]
        parts = np.zeros((len(lanes), self.n_features))

        def run(lane: int) -> None:
            for block in lanes[lane]:
                work(block, parts[lane])

        for block in self._blocks:
            block.executor = executor if n_blocks == 1 else None
        _run(None if alone else executor, run, range(len(lanes)))
        total: Floats = parts.sum(axis=0) if len(lanes) > 1 else parts[0]
        return total

    def _by_column(self, weights: Floats) -> Floats:
        """Return the weights on raw features, in the order in which the columns are kept."""
        raw = self._scaled(weights)
        return raw if self._order is None else raw[self._order]

    def _by_weight(self, sums: Floats) -> Floats:
        """Return what was summed by column, for the scaled weights in their own order."""
        if self._order is None:
            return self._scaled(sums)
        result = np.empty_like(sums)
        result[self._order] = sums
        return self._scaled(result)


class _Block:
    """Queries first to last. A long one is cut up: its products are done in parts of rows, the rest on all of it."""

    def __init__(
        self, starts: Ints, features: Features, first: int, last: int, rows: int, threads: int, hinges: Hinges
    ) -> None:
        self.features, self.hinges = features, hinges
        self.losses = np.zeros((2, 2))
        self.executor: Executor | None = None
        start, stop = int(starts[first]), int(starts[last])
        self.is_cut_up = stop - start > 2 * rows
        n_parts = 1
        if self.is_cut_up:  # of the same size for any number of threads where bits matter
            n_parts = threads if sparse.issparse(features) else -(-(stop - start) // rows)
        self.parts = list(pairwise(start + k * (stop - start) // n_parts for k in range(n_parts + 1)))

    def times(self, weights: Floats, out: Floats) -> None:
        """Overwrite the block's part of out, (n_documents,), with X weights."""

        def run(part: int) -> None:
            a, b = self.parts[part]
            times, _ = products.block(self.features, a, b)
            times(weights, out[a:b])

        _run(self.executor, run, range(len(self.parts)))

    def add_transposed(self, by_document: Floats, out: Floats) -> None:
        """Add X' by_document of the block to out, (n_features,)."""
        sums = np.zeros((len(self.parts), len(out))) if len(self.parts) > 1 else out[None]

        def run(part: int) -> None:
            a, b = self.parts[part]
            _, add = products.block(self.features, a, b)
            add(by_document[a:b], sums[part])

        _run(self.executor, run, range(len(self.parts)))
        if len(self.parts) > 1:
            out += sums.sum(axis=0)


def _run(executor: Executor | None, work: Callable[[int], None], numbers: Sequence[int]) -> None:
    if executor is None or len(numbers) == 1:
        for number in numbers:
            work(number)
    else:
        list(executor.map(work, numbers))
