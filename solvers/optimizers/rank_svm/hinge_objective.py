"""What a RankSVM minimises, as the operations that a solver of it needs: the loss of all pairs, wherever they are.

    f(w) = 1/2 w'w + C loss(w),      loss: the hinge over all pairs, squared or smoothed

The documents may be in memory (RankObjective) or in blocks, here or on other machines (SummedObjective): the loss is a
sum over queries, so that it, its gradient and its products with the Hessian are sums over blocks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from concurrent.futures import Executor

import numpy as np

from ranktune.solvers.core.arrays import Floats


class HingeObjective(ABC):
    """f, its gradient, and its (generalised) Hessian at the last weights evaluated.

    A subclass sets the attributes in its constructor. C and smoothing may be set between calls.

    C            weight of the loss
    smoothing    of the hinge, between 0 and 1; None for the squared hinge
    multiplier   (n_features,), what each feature is multiplied by; None for 1
    hinges       (2,), what the hinge of each term's margin sums to, at the last weights evaluated
    executor     of threads, or None
    """

    C: float
    smoothing: float | None
    multiplier: Floats | None
    hinges: Floats
    executor: Executor | None = None

    @property
    @abstractmethod
    def n_features(self) -> int:
        """Length of the weights."""

    @abstractmethod
    def loss_at_zero(self, executor: Executor | None = None) -> tuple[float, Floats]:
        """Return the loss and its gradient at zero weights, where every pair is active.

        The last weights stay what they are.
        """

    @abstractmethod
    def rank_at_zero(self) -> None:
        """Make zero the last weights evaluated."""

    @abstractmethod
    def loss_and_gradient(self, weights: Floats, image: Floats | None = None) -> tuple[float, Floats]:
        """Return the loss and its gradient, (n_features,); image spares work where it is known."""

    @abstractmethod
    def loss_product(self, direction: Floats) -> tuple[Floats, Floats | None]:
        """Return the Hessian of the loss at the last weights times direction, (n_features,), and direction's image."""

    @abstractmethod
    def loss_diagonal(self) -> Floats:
        """Return the diagonal of the Hessian without products of different documents, (n_features,)."""

    @abstractmethod
    def loss_hessian(self) -> Floats:
        """Return the Hessian of the loss at the last weights, (n_features, n_features)."""

    @abstractmethod
    def sample(self) -> HingeObjective | None:
        """Return the objective of a part of the documents that resembles it, None where that saves little."""

    def image(self, weights: Floats) -> Floats | None:
        """Return the scores of weights, (n_documents,), where knowing them spares work."""
        return None

    def value_and_gradient(self, weights: Floats, image: Floats | None = None) -> tuple[float, Floats]:
        """Return f and its gradient, (n_features,). Cost: one pass over X, and sorting the scores of each query.

        Where the scores are known, as image, they need not be computed.
        """
        loss, gradient = self.loss_and_gradient(weights, image)
        with np.errstate(over="ignore", invalid="ignore"):  # a step too far is not finite: the caller takes a shorter
            return 0.5 * float(weights @ weights) + self.C * loss, weights + self.C * gradient

    def product_and_image(self, direction: Floats) -> tuple[Floats, Floats | None]:
        """Return H direction, (n_features,), with the pairs active at the last weights evaluated, and its image.

        Cost: one pass over X.
        """
        product, image = self.loss_product(direction)
        result = self.C * product
        result += direction
        return result, image

    def _scaled(self, vector: Floats) -> Floats:
        return vector if self.multiplier is None else vector * self.multiplier
