"""The objective of RankSVM: a squared hinge over all pairs of a query that differ in grade, and its derivatives.

    f(w) = 1/2 w'w + C sum over q of a_q sum over (i, j) in P_q of max(0, 1 - (s_i - s_j))^2,      s = X M w

P_q  pairs of query q with y_i > y_j     a_q  weight of the query     M  diagonal, what each feature is multiplied by
Everything is float64 but X. A pass over X does both products on one block of queries after the other.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ranktune.solvers import order_statistics, products
from ranktune.solvers.arrays import Floats, Ints
from ranktune.solvers.queries import Queries

BLOCK_BYTES = 1 << 22
"""Features of one block: they should stay in cache between the two products, and make the calls worth while."""


class RankObjective:
    """f, its gradient, and its (generalised) Hessian at the last weights evaluated.

    C is a positive number; multiplier (n_features,) and query_weights (n_queries,) are 1 where not given.
    """

    def __init__(
        self, queries: Queries, C: float, *, multiplier: Floats | None = None, query_weights: Floats | None = None
    ) -> None:
        self.queries = queries
        self.C = C
        self.multiplier = multiplier
        self.query_weights = np.ones(queries.n_queries) if query_weights is None else query_weights
        n = queries.n_documents
        self._codes, self.n_grades = np.empty(n, dtype=np.uint32), np.empty(queries.n_queries, dtype=np.uint32)
        order_statistics.number_grades(queries.grades, queries.starts, self._codes, self.n_grades)
        order, low, high, sorted_codes = (np.empty(n, dtype=np.uint32) for _ in range(4))
        self.windows = (order, low, high, sorted_codes, np.empty(n), np.empty(n))
        self.scores, self._by_document = np.empty(n), np.empty(n)
        features = queries.features
        row_bytes = (2 * features.data.nbytes if queries.is_sparse else features.nbytes) / queries.n_documents
        ranges = blocks(queries.starts, max(int(BLOCK_BYTES / max(row_bytes, 1.0)), 1))
        self._blocks = [
            (first, last, a, b, *products.block(features, a, b))
            for first, last in ranges
            for a, b in [(int(queries.starts[first]), int(queries.starts[last]))]
        ]

    @property
    def n_features(self) -> int:
        """Length of the weights."""
        return self.queries.n_features

    def diagonal(self) -> Floats:
        """Return the diagonal of I + C M X' D X M, (n_features,), D the weighted degrees. Cost: one pass over X."""
        queries = self.queries
        weighted = 2.0 * np.repeat(self.query_weights, queries.lengths) * self.degrees
        by_feature = self._scaled(self._scaled(products.squares(queries.features, weighted)))
        return 1.0 + self.C * by_feature

    @property
    def degrees(self) -> Floats:
        """How many active pairs each document is part of, (n_documents,), at the last weights evaluated."""
        order, degree = self.windows[0], self.windows[4]
        result = np.empty_like(degree)
        result[np.repeat(self.queries.starts[:-1], self.queries.lengths) + order] = degree
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
        gradient = products.transposed(self.queries.features, slope)
        return self.C * float(self.query_weights @ pairs), self.C * self._scaled(gradient)

    def _ties(self) -> tuple[Floats, Floats]:
        """Return the pairs of each query, (n_queries,), and the gradient by score if all scores are equal."""
        queries = self.queries
        pairs, slope = np.empty(queries.n_queries), np.empty(queries.n_documents)
        order_statistics.evaluate_ties(queries.starts, self._codes, self.n_grades, self.query_weights, pairs, slope)
        return pairs, slope

    def value_and_gradient(self, weights: Floats) -> tuple[float, Floats]:
        """Return f and its gradient, (n_features,). Cost: one pass over X, and sorting the scores of each query."""
        queries, slope = self.queries, self.windows[5]
        raw = self._scaled(weights)
        loss, gradient = 0.0, np.zeros(self.n_features)
        for first, last, a, b, times, add_transposed in self._blocks:
            times(raw, self.scores[a:b])
            loss += order_statistics.evaluate(
                self.scores, first, last, queries.starts, self._codes, self.n_grades, self.query_weights, self.windows
            )
            add_transposed(slope[a:b], gradient)
        with np.errstate(
            over="ignore", invalid="ignore"
        ):  # a step too far is not finite, and the caller takes a shorter one
            return 0.5 * float(weights @ weights) + self.C * loss, weights + self.C * self._scaled(gradient)

    def hessian_product(self, direction: Floats) -> Floats:
        """Return H direction, (n_features,), with the pairs that are active at the last weights evaluated."""
        queries, by_document = self.queries, self._by_document
        raw = self._scaled(direction)
        result = np.zeros(self.n_features)
        for first, last, a, b, times, add_transposed in self._blocks:
            times(raw, by_document[a:b])
            order_statistics.multiply(
                by_document, first, last, queries.starts, self.n_grades, self.query_weights, self.windows, by_document
            )
            add_transposed(by_document[a:b], result)
        return direction + self.C * self._scaled(result)

    def _scaled(self, vector: Floats) -> Floats:
        return vector if self.multiplier is None else vector * self.multiplier


def blocks(starts: Ints, rows: int) -> list[tuple[int, int]]:
    """Return ranges of queries of about so many rows; a longer query is in a range of its own or ends one."""
    marks = np.searchsorted(starts, np.arange(rows, starts[-1] + rows, rows), side="right") - 1
    ends = np.unique(np.append(marks[marks > 0], len(starts) - 1))
    return [(int(a), int(b)) for a, b in zip(np.append(0, ends[:-1]), ends, strict=True)]
