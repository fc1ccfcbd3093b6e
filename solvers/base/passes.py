"""Rankers that visit one query after the other, in passes, and that can go on learning from further queries."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from ranktune.solvers.base.linear import LinearRanker
from ranktune.solvers.base.ranker import Step
from ranktune.solvers.base.training_data import NOTHING
from ranktune.solvers.core.arrays import Floats, Ids, Ints, Json, Sizes
from ranktune.solvers.core.checks import RandomState
from ranktune.solvers.core.errors import DataError, ParameterError
from ranktune.solvers.data.blocked import BlockedQueries, OpenBlock, factors_of
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.scaling import factors, query_factors

NO_SCORES = np.zeros(0)


class PassRanker(LinearRanker):
    """Base of linear rankers that learn query by query; a subclass defines _begin and _learn."""

    online: ClassVar[bool] = True
    scaled_within_queries: ClassVar[bool] = False
    passes: int = 1
    scaling: str
    random_state: RandomState
    _shared_factors: Floats | None = None
    _averaged: bool = False

    def _begin(self, queries: Queries) -> np.random.Generator | None:
        """Reset the state; return the generator of the order of queries, None if they keep theirs."""
        raise NotImplementedError

    def _factors(self, queries: Queries) -> Floats:
        """Return the factor of each feature, (n_features,), 1 where each query is scaled by itself."""
        if self._shared_factors is not None:
            return self._shared_factors
        of_queries = query_factors if self.scaled_within_queries else factors
        return of_queries(queries, "none" if self.scaling == "list" else self.scaling)

    def _fit_blocks(self, data: BlockedQueries) -> None:
        """Learn from each block by itself, with features scaled as of all blocks, and average the weights."""
        scaling = "none" if self.scaling == "list" else self.scaling
        shared = factors_of(data, scaling, within_queries=self.scaled_within_queries)
        self.coef_ = mixed(data.workers.map(_learnt, type(self), self.get_params(), shared))
        self._averaged = True

    def _learn(self, queries: Queries, order: Ints, scores: Floats) -> Iterator[Step]:
        """Learn from the queries in order; before each, write the scores of its documents unless scores is empty."""
        raise NotImplementedError

    def _has_begun(self) -> bool:
        return hasattr(self, "coef_")

    def _passes(self, queries: Queries) -> Iterator[Iterator[Step]]:
        """Yield the steps of each pass, to be taken before the next."""
        generator = self._begin(queries)
        for order in orders(queries.n_queries, int(self.passes), generator):
            yield self._learn(queries, order, NO_SCORES)

    def _steps(self, queries: Queries) -> Iterator[Step]:
        for steps in self._passes(queries):
            yield from steps

    def _counts(self, queries: Queries) -> Iterator[int]:
        for number, steps in enumerate(self._passes(queries), start=1):
            for _ in steps:
                pass
            yield number

    def partial_fit(
        self,
        X: object,
        y: object = None,
        *,
        qid: Ids | None = None,
        group: Sizes | None = None,
        document_weights: ArrayLike | None = None,
    ) -> Self:
        """Continue learning from more queries, once, in their order.

        Calls on the pieces of a data set give the same bits as fit on all of it with passes=1 and random_state=None, if
        features are not scaled by their range or deviation over all queries: then the first piece sets the scale.
        Pairwise learners ignore queries without two different grades.

        Parameters
        ----------
        X, y, qid, group, document_weights
            As in fit: whole queries at a time.

        Returns
        -------
        self
        """
        queries = self._further(X, y, qid, group, {"document_weights": document_weights})
        for _ in self._learn(queries, np.arange(queries.n_queries), NO_SCORES):
            pass
        return self

    def progressive(self, queries: Queries, order: ArrayLike | None = None) -> Floats:
        """Evaluate progressively: score each query, then learn from it.

        Learning continues from the current state; use a new ranker, or a clone, to start from zero. Features that are
        scaled by their range or deviation over all queries get the scale of the first queries given, before any of them
        is learned from.

        Parameters
        ----------
        queries : Queries
            The queries to score and to learn from.
        order : array-like of int, optional
            Numbers of the queries in the order of visits; by default all of them as they are.

        Returns
        -------
        ndarray of shape (n_documents,)
            The score of each document before its query was learned from; NaN for queries that order omits.
        """
        self._check_parameters()
        numbers = checked_order(queries, order)
        queries = self._further(queries)
        scores = np.full(queries.n_documents, np.nan)
        for _ in self._learn(queries, numbers, scores):
            pass
        return scores

    def _further(
        self,
        X: object,
        y: object = None,
        qid: Ids | None = None,
        group: Sizes | None = None,
        columns: Mapping[str, object] = NOTHING,
    ) -> Queries:
        """Return the next queries, after starting with the first ones."""
        self._check_parameters()
        if self._averaged:
            raise ParameterError(
                f"the weights of this {type(self).__name__} are means over blocks, from which it cannot learn further: "
                "fit it again, or a new one."
            )
        first = not self._has_begun()
        queries = self._grouped(X, y, qid, group, columns, reset=first)
        if queries.monotone is not None:
            raise ParameterError(
                f"{type(self).__name__} honours monotone constraints only where it sees all queries: call fit, or "
                "leave monotone out."
            )
        if self._powers(queries) is not None:
            raise DataError(
                "features beyond 1e100, or all below 1e-100, have squares that are no numbers, and further queries "
                "cannot change their scale: divide them by a factor, or call fit, which does."
            )
        if first:
            self._begin(queries)
        return queries


def _learnt(block: OpenBlock, kind: type[PassRanker], parameters: Json, shared: Floats) -> tuple[int, Floats]:
    """Return the number of queries of a block, and the weights learned from it, zeros where there are none.

    shared, (n_features,), are the factors of the features.
    """
    queries = block.queries
    if not queries.has_pairs:
        return 0, np.zeros(queries.n_features)
    ranker = kind(**parameters)
    ranker._shared_factors = shared
    return queries.n_queries, ranker.fit(queries).coef_


def mixed(blocks: Sequence[tuple[int, Floats]]) -> Floats:
    """Return the mean of the weights learned from blocks, by their number of queries: parameter mixing."""
    counts = np.array([count for count, _ in blocks], dtype=np.float64)
    mean: Floats = (counts / counts.sum()) @ np.array([weights for _, weights in blocks])
    return mean


def orders(n_queries: int, passes: int, generator: np.random.Generator | None) -> Iterator[Ints]:
    """Yield the order of the queries in each pass: drawn from generator, or as given."""
    for _ in range(passes):
        yield np.arange(n_queries) if generator is None else generator.permutation(n_queries)


def checked_order(queries: Queries, order: ArrayLike | None) -> Ints:
    """Return the numbers of the queries to visit, all of them for None. Raises ParameterError for other numbers."""
    if order is None:
        return np.arange(queries.n_queries)
    numbers = np.asarray(order)
    if numbers.ndim == 1 and (numbers.dtype.kind in "iu" or len(numbers) == 0):
        numbers = numbers.astype(np.int64)
        with contextlib.suppress(ValueError):  # no queries at all
            if 0 <= numbers.min() and numbers.max() < queries.n_queries:
                return numbers
    raise ParameterError(
        f"order={order!r}: it must name at least one query by its number, whole from 0 to {queries.n_queries - 1}."
    )
