"""The bases of online rankers: they learn from one query at a time, and can be evaluated progressively."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import KW_ONLY
from typing import Annotated, ClassVar, Self

import numpy as np

from ranktune.solvers.base.passes import PassRanker
from ranktune.solvers.base.ranker import Step
from ranktune.solvers.core.arrays import Floats, Ints, stored_values
from ranktune.solvers.core.checks import RandomState, check_random_state
from ranktune.solvers.core.errors import DataError, ParameterError
from ranktune.solvers.core.parameters import Param, with_parameters
from ranktune.solvers.data import products
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.rows import MatrixRows, rows_of
from ranktune.solvers.data.scaling import SCALINGS
from ranktune.solvers.models.base import Model
from ranktune.solvers.models.linear import LinearModel
from ranktune.solvers.online import kernels
from ranktune.solvers.online.kernels import OnlineState, UpdateRule, VisitedLists, new_state
from ranktune.solvers.online.pairs import ORDERS, WeighedPairs, listed_pairs, lists_of

WORK = 2e8
"""Approximate multiplications between two reported steps: a tenth of a second."""

LARGEST_FACTOR = 1e100
"""A feature that would need a larger factor counts as constant: the square of the factor must be finite."""


@with_parameters
class OnlineRanker(PassRanker):
    """A linear ranker that learns from one query at a time; a subclass defines _start and _learn.

    Attributes
    ----------
    n_queries_seen_ : int
        Queries that were learned from.
    """

    _: KW_ONLY
    scaling: Annotated[
        str,
        Param(
            "Whether features are used as they are, or as if divided by their range or standard deviation.",
            choices=SCALINGS,
            searched=("standard", "minmax"),
        ),
    ] = "minmax"
    random_state: Annotated[
        RandomState,
        Param(
            "Seed of the order of queries in each pass and of the sampled pairs. None: the queries keep their order, "
            "and pairs are drawn with seed 0.",
            check=lambda _, value: check_random_state(value, "the queries are visited in their order"),
        ),
    ] = None

    takes_document_weights: ClassVar[bool] = True

    def _start(self, queries: Queries, stretch: Floats) -> None:
        """Set the state before the first query; stretch, (n_features,), is the square of the scaling factors."""
        raise NotImplementedError

    def _begin(self, queries: Queries) -> np.random.Generator | None:
        """Reset the state; return the generator of the order of queries, None where they keep theirs."""
        generator = None if self.random_state is None else np.random.default_rng(self.random_state)
        self._generator = np.random.default_rng(0) if generator is None else generator
        multiplier = self._factors(queries)
        stretch = np.where(multiplier < LARGEST_FACTOR, multiplier, 0.0) ** 2
        self.coef_ = np.zeros(queries.n_features)
        self.n_queries_seen_, self._averaged = 0, False
        self._start(queries, stretch)
        return generator

    def _check_finite(self) -> None:
        if not np.isfinite(self.coef_).all():
            raise ParameterError(
                "the weights overflowed: the features are too large for steps of this kind. "
                "Scale them (scaling='minmax' or 'standard')."
            )


class PairRanker(OnlineRanker):
    """An online ranker that learns from one pair of documents after the other; a subclass defines the rule of updates.

    Attributes
    ----------
    n_pairs_seen_ : int
        Pairs that were learned from.
    cumulative_loss_ : float
        The sum of the losses of pairs, each before its step.
    """

    def _rule(self) -> UpdateRule:
        raise NotImplementedError

    def continue_from(self, model: Model | None) -> Self:
        """Let the next calls of fit begin with the weights of a model instead of zero.

        Everything else that the ranker counts, such as its steps, begins anew. To learn on with the whole state of a
        ranker call its partial_fit.

        Parameters
        ----------
        model : Model or None
            A linear model of the raw features; None: begin with zero.

        Returns
        -------
        self

        Raises
        ------
        ParameterError
            If the model is not linear, scales the features of each query, or has terms for missing values.
        """
        if model is not None and not (
            isinstance(model, LinearModel) and not model.list_scaling and model.missing is None
        ):
            raise ParameterError(
                f"{type(self).__name__} cannot go on from this {type(model).__name__}: it begins with the weights of a "
                "linear model that neither scales the features of each query nor has terms for missing values."
            )
        self._earlier = model
        return self

    def _new_state(self, stretch: Floats) -> OnlineState:
        return new_state(stretch)

    def _start(self, queries: Queries, stretch: Floats) -> None:
        self._state = self._new_state(stretch)
        if isinstance(self._earlier, LinearModel):
            if self._earlier.n_features != queries.n_features:
                raise DataError(
                    f"the model to continue has {self._earlier.n_features} features, the training data "
                    f"{queries.n_features}: both must have the same features."
                )
            self._state.weights[:] = self._earlier.weights
        self._publish()

    def _update(self, rows: MatrixRows, better: Ints, worse: Ints, weights: Floats) -> None:
        """Learn from the pairs, better[t] to rank above worse[t], one after the other."""
        kernels.learn(rows, better, worse, weights, self._rule(), self._state)

    def _weights(self) -> Floats:
        """Return a copy of the weights of the model, (n_features,)."""
        return kernels.current_weights(self._rule(), self._state)

    def _publish(self) -> None:
        """Set the fitted attributes."""
        self.coef_ = self._weights()
        seen = self._state.counters
        self.n_queries_seen_, self.n_pairs_seen_, self.cumulative_loss_ = int(seen[0]), int(seen[1]), float(seen[2])
        self._check_finite()

    def _learn_pairs(self, rows: MatrixRows, pairs: Iterable[WeighedPairs], n_queries: int) -> float:
        """Learn from pairs of so many queries; return the mean loss of a pair."""
        before = self._state.counters.copy()
        for better, worse, weights in pairs:
            self._update(rows, better, worse, weights)
        self._state.counters[0] += n_queries
        self._publish()
        seen = self._state.counters - before
        return float(seen[2] / max(seen[1], 1.0))


PASSES = Param("Passes over the queries.", low=1, high=10)
PAIR_ORDER = Param(
    'The order of the pairs of a query: "shuffled": documents in an order that depends on their features and grades '
    'only, each with all later ones; "rows": documents in the order of rows, each with all later ones; "worse": each '
    "row with all better ones.",
    choices=ORDERS,
    searched=(),
)


@with_parameters
class PairwiseOnlineRanker(PairRanker):
    """An online ranker that learns from all or some pairs of each query."""

    _: KW_ONLY
    passes: Annotated[int, PASSES] = 1
    pairs_per_query: Annotated[
        int | None,
        Param(
            "Pairs that are drawn from a query that has more, by the weights of documents if there are any; None: all "
            "pairs of each query.",
            searched=(1000,),
        ),
    ] = 1000
    pair_order: Annotated[str, PAIR_ORDER] = "shuffled"

    path_parameter: ClassVar[str | None] = "passes"

    def _learn(self, queries: Queries, order: Ints, scores: Floats) -> Iterator[Step]:
        lists, rows = lists_of(queries, self.pair_order, self.pairs_per_query), rows_of(queries.features)
        parts = order[:, None] if len(scores) else blocks_of_work(order, self._work(queries, lists))
        for part in parts:
            if len(scores):
                a, b = queries.starts[part[0]], queries.starts[part[0] + 1]
                scores[a:b] = products.scores(queries.features[a:b], self.coef_)
            pairs = listed_pairs(lists, part, self._generator)
            loss = self._learn_pairs(rows, pairs, int(np.count_nonzero(lists.pairs[part])))
            yield Step(self.n_queries_seen_, loss)

    def _work(self, queries: Queries, lists: VisitedLists) -> Floats:
        """Return the approximate multiplications of each query, (n_queries,)."""
        pairs = np.minimum(lists.pairs, lists.limit) if lists.limit else lists.pairs
        row = stored_values(queries.features).size / queries.n_documents
        each = 2.0 * queries.n_features**2 if self._rule().kind == kernels.FULL else 4.0 * row
        return np.asarray(pairs * each + queries.n_features)


def blocks_of_work(order: Ints, work: Floats) -> Iterator[Ints]:
    """Yield order in parts of about WORK each; work is (n_queries,)."""
    number = np.cumsum(work[order]) // WORK
    bounds = np.flatnonzero(np.diff(number)) + 1
    yield from np.split(order, bounds)
