"""The loss of a RankSVM on one block, for whoever holds the block: each function gets what it needs with the call.

Weights, directions and gradients are those of the raw features, and C is 1: what all blocks share is applied once, to
the sums. A block keeps its objective, and with it the ranks at the last weights, for the next call; where they are lost
(the worker was restarted, or nothing is kept) they are computed again.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np

from ranktune.solvers.blocks.workers import OpenBlock
from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.optimizers.rank_svm.pairwise_objective import RankObjective

_KEPT = "loss"


@dataclass(frozen=True)
class BlockLoss:
    """The loss: smoothing and adjacent as of RankObjective; threads that compute it on a block.

    Each query counts as its weight times scale, by_query: divided by the number of its pairs.
    """

    smoothing: float | None = None
    adjacent: bool = False
    by_query: bool = False
    scale: float = 1.0
    threads: int = 1

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
        if self.by_query:
            objective.query_weights /= np.maximum(objective.pairs, 1.0)
        return objective


@dataclass(eq=False)
class _Kept:
    """The objective of a block, and the weights that it was evaluated at last."""

    loss: BlockLoss
    objective: RankObjective
    at: Floats | None = None


def pair_totals(block: OpenBlock, loss: BlockLoss) -> tuple[float, float]:
    """Return the weights of the queries with pairs, and of all pairs."""
    objective, weights = _kept(block, loss).objective, block.queries.weight_of_query
    return float(weights[objective.pairs > 0.0].sum()), float(weights @ objective.pairs)


def loss_at_zero(block: OpenBlock, loss: BlockLoss) -> tuple[float, float, Floats]:
    """Return the loss at zero weights, the weight of all pairs, and the gradient there."""
    objective = _kept(block, loss).objective
    value, gradient = objective.loss_at_zero(objective.executor)
    return value, float(objective.query_weights @ objective.pairs), gradient


def loss_and_gradient(block: OpenBlock, loss: BlockLoss, weights: Floats) -> tuple[float, Floats, Floats]:
    """Return the loss at weights, its hinges and its gradient."""
    kept = _kept(block, loss)
    value, gradient = kept.objective.loss_and_gradient(weights)
    kept.at = weights
    return value, kept.objective.hinges.copy(), gradient


def product(block: OpenBlock, loss: BlockLoss, weights: Floats, direction: Floats) -> Floats:
    """Return the Hessian at weights times direction."""
    return _evaluated(block, loss, weights).loss_product(direction)[0]


def diagonal(block: OpenBlock, loss: BlockLoss, weights: Floats) -> Floats:
    """Return the diagonal of the Hessian at weights, without products of different documents."""
    return _evaluated(block, loss, weights).loss_diagonal()


def hessian(block: OpenBlock, loss: BlockLoss, weights: Floats) -> Floats:
    """Return the Hessian at weights."""
    return _evaluated(block, loss, weights).loss_hessian()


def sample(block: OpenBlock, loss: BlockLoss, share: float) -> tuple[Queries, Floats] | None:
    """Return a sample of the documents, or all that matter where that saves little, and the weights of their queries.

    share is the part of the documents that makes the sample. A block without pairs returns None.
    """
    objective = _kept(block, loss).objective
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
    return Queries(queries.features, queries.grades, queries.starts, np.arange(queries.n_queries))


def _evaluated(block: OpenBlock, loss: BlockLoss, weights: Floats) -> RankObjective:
    """Return the objective of the block, evaluated last at weights."""
    kept = _kept(block, loss)
    if kept.at is None or not np.array_equal(kept.at, weights):
        if weights.any():
            kept.objective.loss_and_gradient(weights)
        else:
            kept.objective.rank_at_zero()
        kept.at = weights
    return kept.objective


def _kept(block: OpenBlock, loss: BlockLoss) -> _Kept:
    kept: _Kept | None = block.kept.get(_KEPT)
    if kept is not None and kept.loss != loss:
        alike = (
            None not in (kept.loss.smoothing, loss.smoothing) and replace(kept.loss, smoothing=loss.smoothing) == loss
        )
        if alike:
            kept.loss, kept.objective.smoothing, kept.at = loss, loss.smoothing, None
        else:
            kept = None
    if kept is None:
        kept = block.kept[_KEPT] = _Kept(loss, loss.objective(block.queries))
    return kept
