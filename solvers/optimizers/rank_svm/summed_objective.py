"""The objective of a RankSVM whose documents lie in blocks: every operation is a sum over them.

A step sends the weights (and a direction) to the workers, and gets a gradient a block: 16 to 24 bytes a feature and
block. Before the first step a sample of the documents is gathered once, whose Hessian is factored here.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.data.blocked import BlockedQueries, Data, OpenBlock
from ranktune.solvers.data.queries import Queries, concatenate
from ranktune.solvers.optimizers.rank_svm.hinge_objective import HingeObjective
from ranktune.solvers.optimizers.rank_svm.pairwise_objective import RankObjective
from ranktune.solvers.optimizers.rank_svm.sampling import MAX_SAMPLE_OF_QUERY, sample_size


class SummedObjective(HingeObjective):
    """f, its gradient, and its (generalised) Hessian at the last weights evaluated, of all blocks of workers."""

    def __init__(self, data: BlockedQueries, C: float, loss: HingeLoss, *, multiplier: Floats | None = None) -> None:
        self.C, self.multiplier, self.smoothing = C, multiplier, loss.smoothing
        self.hinges = np.zeros(2)
        self._workers, self._given, self._extent = data.workers, loss, data.extent
        self._at = np.zeros(data.n_features)
        self._pairs = 0.0

    @property
    def n_features(self) -> int:
        """Length of the weights."""
        return self._extent.n_features

    @property
    def _loss(self) -> HingeLoss:
        return replace(self._given, smoothing=self.smoothing)

    def loss_at_zero(self, executor: object = None) -> tuple[float, Floats]:
        """Return the loss and its gradient at zero weights; the last weights stay what they are."""
        values, pairs, gradients = zip(*self._workers.map(loss_at_zero, self._loss), strict=True)
        self._pairs = sum(pairs)
        return sum(values), self._scaled(np.sum(gradients, axis=0))

    def rank_at_zero(self) -> None:
        """Make zero the last weights evaluated, after loss_at_zero. Cost: none."""
        self._at = np.zeros(self.n_features)
        self.hinges[:] = [self._pairs, 0.0 if self.smoothing is None else self._pairs * (1.0 - self.smoothing)]

    def loss_and_gradient(self, weights: Floats, image: Floats | None = None) -> tuple[float, Floats]:
        """Return the loss and its gradient, (n_features,). Cost: one pass over all blocks."""
        self._at = self._scaled(weights)
        results = self._workers.map(loss_and_gradient, self._loss, self._at)
        values, hinges, gradients = zip(*results, strict=True)
        self.hinges = np.sum(hinges, axis=0)
        with np.errstate(over="ignore", invalid="ignore"):
            return float(np.sum(values)), self._scaled(np.sum(gradients, axis=0))

    def loss_product(self, direction: Floats) -> tuple[Floats, None]:
        """Return the Hessian of the loss at the last weights times direction. Cost: one pass over all blocks."""
        products = self._workers.map(product, self._loss, self._at, self._scaled(direction))
        return self._scaled(np.sum(products, axis=0)), None

    def loss_diagonal(self) -> Floats:
        """Return the diagonal of the Hessian without products of different documents, (n_features,)."""
        parts = self._workers.map(diagonal, self._loss, self._at)
        return self._scaled(self._scaled(np.sum(parts, axis=0)))

    def loss_hessian(self) -> Floats:
        """Return the Hessian of the loss at the last weights, (n_features, n_features): of small data."""
        total: Floats = np.sum(self._workers.map(hessian, self._loss, self._at), axis=0)
        return total if self.multiplier is None else total * np.outer(self.multiplier, self.multiplier)

    def sample(self) -> RankObjective | None:
        """Return the objective of a sample of every block, in memory; None where that saves little."""
        extent = self._extent
        size = sample_size(extent.n_documents, extent.n_features, extent.row_bytes)
        if size == 0 or (2 * size > extent.n_documents and extent.longest <= MAX_SAMPLE_OF_QUERY):
            return None
        results = self._workers.map(sample, self._loss, size / extent.n_documents)
        parts = [part for part in results if part is not None]
        return RankObjective(
            concatenate([queries for queries, _ in parts]),
            self.C,
            multiplier=self.multiplier,
            query_weights=np.concatenate([weights for _, weights in parts]),
            smoothing=self.smoothing,
            adjacent=self._given.adjacent,
        )


def hinge_objective(data: Data, C: float, loss: HingeLoss, multiplier: Floats | None) -> HingeObjective:
    """Return the objective of the documents of data, in memory or in blocks."""
    if not isinstance(data, Queries):
        if loss.average == "pairs":
            useful, pairs = np.sum(data.workers.map(pair_totals, loss), axis=0)
            loss = replace(loss, scale=float(useful / pairs))
        return SummedObjective(data, C, loss, multiplier=multiplier)
    objective = loss.objective(data, C, multiplier)
    if loss.average == "pairs":
        weights = data.weight_of_query
        objective.query_weights *= weights[objective.pairs > 0.0].sum() / float(weights @ objective.pairs)
    return objective


_STATE = "loss"


@dataclass(frozen=True)
class HingeLoss:
    """The hinge over all pairs: smoothing and adjacent as of RankObjective; threads that compute it on a block.

    average "none": every pair counts 1; "pairs": all count the same, those of an average query together as much as a
    query; "queries": those of every query together 1. Each query counts as its weight times scale.
    """

    smoothing: float | None = None
    adjacent: bool = False
    average: str = "none"
    scale: float = 1.0
    threads: int = 1

    def weight_of(self, queries: Queries) -> None:
        """Return None: the losses of blocks add up."""

    def objective(self, queries: Queries, C: float = 1.0, multiplier: Floats | None = None) -> RankObjective:
        """Return the objective of queries."""
        executor = None if self.threads == 1 else ThreadPoolExecutor(self.threads)  # its threads end with it
        objective = RankObjective(
            queries,
            C,
            multiplier=multiplier,
            query_weights=queries.weight_of_query * self.scale,
            smoothing=self.smoothing,
            adjacent=self.adjacent,
            executor=executor,
            threads=self.threads,
        )
        if self.average == "queries":
            objective.query_weights /= np.where(objective.pairs > 0.0, objective.pairs, 1.0)
        return objective


@dataclass(eq=False)
class _State:
    """The objective of a block, and the weights that it was evaluated at last."""

    loss: HingeLoss
    objective: RankObjective
    at: Floats | None = None


def pair_totals(block: OpenBlock, loss: HingeLoss) -> tuple[float, float]:
    """Return the weights of the queries with pairs, and of all pairs."""
    objective, weights = _state(block, loss).objective, block.queries.weight_of_query
    return float(weights[objective.pairs > 0.0].sum()), float(weights @ objective.pairs)


def loss_at_zero(block: OpenBlock, loss: HingeLoss) -> tuple[float, float, Floats]:
    """Return the loss at zero weights, the weight of all pairs, and the gradient there."""
    objective = _state(block, loss).objective
    value, gradient = objective.loss_at_zero(objective.executor)
    return value, float(objective.query_weights @ objective.pairs), gradient


def loss_and_gradient(block: OpenBlock, loss: HingeLoss, weights: Floats) -> tuple[float, Floats, Floats]:
    """Return the loss at weights, its hinges and its gradient."""
    state = _state(block, loss)
    value, gradient = state.objective.loss_and_gradient(weights)
    state.at = weights
    return value, state.objective.hinges.copy(), gradient


def product(block: OpenBlock, loss: HingeLoss, weights: Floats, direction: Floats) -> Floats:
    """Return the Hessian at weights times direction."""
    return _evaluated(block, loss, weights).loss_product(direction)[0]


def diagonal(block: OpenBlock, loss: HingeLoss, weights: Floats) -> Floats:
    """Return the diagonal of the Hessian at weights, without products of different documents."""
    return _evaluated(block, loss, weights).loss_diagonal()


def hessian(block: OpenBlock, loss: HingeLoss, weights: Floats) -> Floats:
    """Return the Hessian at weights."""
    return _evaluated(block, loss, weights).loss_hessian()


def sample(block: OpenBlock, loss: HingeLoss, share: float) -> tuple[Queries, Floats] | None:
    """Return a sample of the documents, or all that matter where that saves little, and the weights of their queries.

    share is the part of the documents that makes the sample. A block without pairs returns None.
    """
    objective = _state(block, loss).objective
    useful = np.flatnonzero(objective.pairs > 0.0)
    if len(useful) == 0:
        return None
    size = max(int(share * block.queries.lengths[useful].sum()), 1)
    part = objective.sample(size)
    if part is None:
        return _plain(block.queries.select(useful)), objective.query_weights[useful]
    return _plain(part.queries), part.query_weights


def _plain(queries: Queries) -> Queries:
    """Return queries without what a loss does not need."""
    names, weights = np.arange(queries.n_queries), queries.document_weights
    return Queries(queries.features, queries.grades, queries.starts, names).replaced(document_weights=weights)


def _evaluated(block: OpenBlock, loss: HingeLoss, weights: Floats) -> RankObjective:
    """Return the objective of the block, evaluated last at weights."""
    state = _state(block, loss)
    if state.at is None or not np.array_equal(state.at, weights):
        if weights.any():
            state.objective.loss_and_gradient(weights)
        else:
            state.objective.rank_at_zero()
        state.at = weights
    return state.objective


def _state(block: OpenBlock, loss: HingeLoss) -> _State:
    state: _State | None = block.cache.get(_STATE)
    if state is not None and state.loss != loss:
        alike = (
            None not in (state.loss.smoothing, loss.smoothing) and replace(state.loss, smoothing=loss.smoothing) == loss
        )
        if alike:
            state.loss, state.objective.smoothing, state.at = loss, loss.smoothing, None
        else:
            state = None
    if state is None:
        state = block.cache[_STATE] = _State(loss, loss.objective(block.queries))
    return state
