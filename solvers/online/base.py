"""Rankers that learn from one query after the other, and can be judged while they do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Self

import numpy as np

from ranktune.solvers.base.passes import PassRanker, checked_order, orders
from ranktune.solvers.base.ranker import Step
from ranktune.solvers.core.arrays import Floats, Ints, stored_values
from ranktune.solvers.core.checks import check_choice, check_count, check_random_state
from ranktune.solvers.core.errors import ParameterError
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.scaling import check_scaling, factors
from ranktune.solvers.online import kernels
from ranktune.solvers.online.kernels import Lists, Rule, State
from ranktune.solvers.online.pairs import ORDERS, lists_of
from ranktune.solvers.online.rows import Rows, rows_of

NO_SCORES = np.zeros(0)

WORK = 2e8
"""Multiplications between two reports, about: a tenth of a second."""

LARGEST_FACTOR = 1e100
"""A feature whose range asks for more is constant: the square of the factor must be finite."""


class OnlineRanker(PassRanker):
    """A linear ranker that learns from one query at a time.

    A subclass says how learning begins (_start) and how it goes on (_learn); fit, partial_fit and progressive follow.
    """

    passes: int = 1
    scaling: str
    random_state: Any

    def _check_parameters(self) -> None:
        check_count("passes", self.passes)
        check_scaling(self.scaling)
        check_random_state(self.random_state, "the queries are learnt in their order")

    def _start(self, queries: Queries, stretch: Floats) -> None:
        """Put the state before the first query in place; stretch, (n_features,), is the square of the factors."""
        raise NotImplementedError

    def _learn(self, queries: Queries, order: Ints, scores: Floats) -> Iterator[Step]:
        """Learn from the queries of order; before each, write the scores of its documents, if scores has room."""
        raise NotImplementedError

    def _passes(self, queries: Queries) -> Iterator[Iterator[Step]]:
        generator = self._begin(queries)
        for order in orders(queries.n_queries, int(self.passes), generator):
            yield self._learn(queries, order, NO_SCORES)

    def partial_fit(self, X: Any, y: Any = None, *, qid: Any = None, group: Any = None) -> Self:
        """Learn from more queries, once, in their order, going on from what was learnt before.

        Takes what fit takes, whole queries at a time. Calls on the pieces of a data set leave the same bits as fit on
        all of it with passes=1 and random_state=None, if scaling is "none": else the first piece sets the scale.
        Learners of pairs ignore queries without two different grades.
        """
        queries = self._further(X, y, qid, group)
        for _ in self._learn(queries, np.arange(queries.n_queries), NO_SCORES):
            pass
        return self

    def progressive(self, queries: Queries, order: Any = None) -> Floats:
        """Return the score of each document, (n_documents,), given before its query was learnt from.

        For every query named by order (numbers; None: all, as they stand) its documents are scored by the model as it
        is, then the model learns from it, as partial_fit would. Scores of queries that order leaves out are NaN.
        Goes on from what was learnt before; take a new ranker, or a clone, to begin with nothing. Where scaling is not
        "none", the scale of the features is that of all queries given first: known before any of them is learnt from.
        """
        self._check_parameters()
        numbers = checked_order(queries, order)
        queries = self._further(queries, None, None, None)
        scores = np.full(queries.n_documents, np.nan)
        for _ in self._learn(queries, numbers, scores):
            pass
        return scores

    def _further(self, X: Any, y: Any, qid: Any, group: Any) -> Queries:
        """Return what to learn from next, having begun if nothing was learnt yet."""
        self._check_parameters()
        first = not hasattr(self, "coef_")
        queries = self._grouped(X, y, qid, group, reset=first)
        if first:
            self._begin(queries)
        return queries

    def _begin(self, queries: Queries) -> np.random.Generator | None:
        """Begin with nothing learnt; return what draws the order of the queries, None where they keep theirs."""
        generator = None if self.random_state is None else np.random.default_rng(self.random_state)
        self._generator = np.random.default_rng(0) if generator is None else generator
        multiplier = factors(queries, self.scaling)
        stretch = np.where(multiplier < LARGEST_FACTOR, multiplier, 0.0) ** 2
        self.coef_ = np.zeros(queries.n_features)
        self.n_queries_seen_ = 0
        self._start(queries, stretch)
        return generator

    def _check_finite(self) -> None:
        if not np.isfinite(self.coef_).all():
            raise ParameterError(
                "the weights overflowed: the features are too large for steps of this kind. "
                "Scale them (scaling='minmax' or 'standard')."
            )


class PairwiseOnlineRanker(OnlineRanker):
    """An online ranker that learns from all pairs of a query, or from some drawn alike; a subclass gives the rule.

    Fitted, beside coef_: n_queries_seen_, n_pairs_seen_, cumulative_loss_ (of every pair before it was learnt from).
    """

    path_parameter: ClassVar[str | None] = "passes"
    pairs_per_query: int | None
    pair_order: str

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("pair_order", self.pair_order, ORDERS)
        if self.pairs_per_query is not None:
            check_count("pairs_per_query", self.pairs_per_query)

    def _rule(self) -> Rule:
        raise NotImplementedError

    def _rooms(self, stretch: Floats) -> tuple[Floats, Floats]:
        """Return Sigma and the committee as they begin; both are (1, 1) where the rule uses none."""
        return np.zeros((1, 1)), np.zeros((1, 1))

    def _start(self, queries: Queries, stretch: Floats) -> None:
        sigma, committee = self._rooms(stretch)
        weights, v = np.zeros((2, queries.n_features))
        self._state = State(weights, stretch, sigma, v, committee, np.zeros(len(committee)), np.zeros(4))
        self._note()

    def _note(self) -> None:
        """Put what the caller sees in place."""
        state = self._state
        if self._rule().kind == kernels.COMMITTEE:
            self.coef_ = np.empty(len(state.weights))
            kernels.combined(state, self.coef_)
        else:
            self.coef_ = state.weights.copy()
        seen = state.now
        self.n_queries_seen_, self.n_pairs_seen_, self.cumulative_loss_ = int(seen[0]), int(seen[1]), float(seen[2])
        self._check_finite()

    def _learn(self, queries: Queries, order: Ints, scores: Floats) -> Iterator[Step]:
        lists, rows, rule = self._prepared(queries)
        for part in blocks_of_work(order, self._work(queries, lists)):
            before = self._state.now.copy()
            limited = np.count_nonzero(lists.pairs[part] > lists.limit) if lists.limit else 0
            draws = self._generator.random(lists.limit * limited)
            kernels.learn(rows, lists, part, draws, rule, self._state, scores)
            self._note()
            _, pairs, loss, _ = self._state.now - before
            yield Step(self.n_queries_seen_, loss / max(pairs, 1.0))

    def _prepared(self, queries: Queries) -> tuple[Lists, Rows, Rule]:
        lists = lists_of(queries, self.pair_order, self.pairs_per_query)
        return lists, rows_of(queries.features), self._rule()

    def _work(self, queries: Queries, lists: Lists) -> Floats:
        """Return about how many multiplications each query takes, (n_queries,)."""
        pairs = np.minimum(lists.pairs, lists.limit) if lists.limit else lists.pairs
        row = stored_values(queries.features).size / queries.n_documents
        each = 2.0 * queries.n_features**2 if self._rule().kind == kernels.FULL else 4.0 * row
        return np.asarray(pairs * each + queries.n_features)


def blocks_of_work(order: Ints, work: Floats) -> Iterator[Ints]:
    """Yield order in runs of queries that take about WORK each; work is (n_queries,)."""
    number = np.cumsum(work[order]) // WORK
    bounds = np.flatnonzero(np.diff(number)) + 1
    yield from np.split(order, bounds)
