"""The objective of a RankSVM whose documents lie in blocks: every operation is a sum over them.

A step sends the weights (and a direction) to the workers, and gets a gradient a block: 16 to 24 bytes a feature and
block. Before the first step a sample of the documents is gathered once, whose Hessian is factored here.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ranktune.solvers.blocks.blocked import BlockedQueries
from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.data.queries import concatenate
from ranktune.solvers.linear import block_loss
from ranktune.solvers.linear.block_loss import BlockLoss
from ranktune.solvers.optimizers.rank_svm.hinge_objective import HingeObjective
from ranktune.solvers.optimizers.rank_svm.pairwise_objective import RankObjective
from ranktune.solvers.optimizers.rank_svm.sampling import MAX_SAMPLE_OF_QUERY, sample_size


class SummedObjective(HingeObjective):
    """f, its gradient, and its (generalised) Hessian at the last weights evaluated, of all blocks of workers."""

    def __init__(self, data: BlockedQueries, C: float, loss: BlockLoss, *, multiplier: Floats | None = None) -> None:
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
    def _loss(self) -> BlockLoss:
        return replace(self._given, smoothing=self.smoothing)

    def loss_at_zero(self, executor: object = None) -> tuple[float, Floats]:
        """Return the loss and its gradient at zero weights; the last weights stay what they are."""
        values, pairs, gradients = zip(*self._workers.map(block_loss.loss_at_zero, self._loss), strict=True)
        self._pairs = sum(pairs)
        return sum(values), self._scaled(np.sum(gradients, axis=0))

    def rank_at_zero(self) -> None:
        """Make zero the last weights evaluated, after loss_at_zero. Cost: none."""
        self._at = np.zeros(self.n_features)
        self.hinges[:] = [self._pairs, 0.0 if self.smoothing is None else self._pairs * (1.0 - self.smoothing)]

    def loss_and_gradient(self, weights: Floats, image: Floats | None = None) -> tuple[float, Floats]:
        """Return the loss and its gradient, (n_features,). Cost: one pass over all blocks."""
        self._at = self._scaled(weights)
        found = self._workers.map(block_loss.loss_and_gradient, self._loss, self._at)
        values, hinges, gradients = zip(*found, strict=True)
        self.hinges = np.sum(hinges, axis=0)
        with np.errstate(over="ignore", invalid="ignore"):
            return float(np.sum(values)), self._scaled(np.sum(gradients, axis=0))

    def loss_product(self, direction: Floats) -> tuple[Floats, None]:
        """Return the Hessian of the loss at the last weights times direction. Cost: one pass over all blocks."""
        products = self._workers.map(block_loss.product, self._loss, self._at, self._scaled(direction))
        return self._scaled(np.sum(products, axis=0)), None

    def loss_diagonal(self) -> Floats:
        """Return the diagonal of the Hessian without products of different documents, (n_features,)."""
        parts = self._workers.map(block_loss.diagonal, self._loss, self._at)
        return self._scaled(self._scaled(np.sum(parts, axis=0)))

    def loss_hessian(self) -> Floats:
        """Return the Hessian of the loss at the last weights, (n_features, n_features): of small data."""
        total: Floats = np.sum(self._workers.map(block_loss.hessian, self._loss, self._at), axis=0)
        return total if self.multiplier is None else total * np.outer(self.multiplier, self.multiplier)

    def sample(self) -> RankObjective | None:
        """Return the objective of a sample of every block, in memory; None where that saves little."""
        extent = self._extent
        size = sample_size(extent.n_documents, extent.n_features, extent.row_bytes)
        if 2 * size > extent.n_documents and extent.longest <= MAX_SAMPLE_OF_QUERY:
            return None
        found = self._workers.map(block_loss.sample, self._loss, size / extent.n_documents)
        parts = [part for part in found if part is not None]
        return RankObjective(
            concatenate([queries for queries, _ in parts]),
            self.C,
            multiplier=self.multiplier,
            query_weights=np.concatenate([weights for _, weights in parts]),
            smoothing=self.smoothing,
            adjacent=self._given.adjacent,
        )
