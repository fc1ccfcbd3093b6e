"""The protocols of losses, and the form in which optimizers evaluate them repeatedly."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Protocol, TypeAlias

import numpy as np

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.data.queries import Queries

Evaluate: TypeAlias = Callable[[Floats], tuple[float, Floats]]
"""Scores, (n_documents,), to the loss and its gradient by score."""

NO_GRADES = np.zeros(0)


class Composable:
    """The declaration of the optimizers that a loss combines with.

    smooth         whether it has a gradient everywhere, as optimizers that descend one function need
    bounded_slope  whether steps of fixed length are safe
    optimizers     names of the optimizers that are specific to it
    """

    smooth: ClassVar[bool] = True
    bounded_slope: ClassVar[bool] = True
    optimizers: ClassVar[tuple[str, ...]] = ()


class Loss(Protocol):
    """A loss of scores. One that can reuse work between evaluations also has a method ``prepared(queries)``."""

    def value_and_gradient(self, scores: Floats, queries: Queries) -> tuple[float, Floats]:
        """Return the loss and its gradient by score, (n_documents,)."""


class DivisibleLoss(Loss, Protocol):
    """A loss that is the weighted mean, or the sum, of its values on blocks of the queries."""

    def weight_of(self, queries: Queries) -> float | None:
        """Return what queries count in the mean over blocks; None where the losses of blocks add up."""

    def prepared(self, queries: Queries, others: Floats = NO_GRADES) -> Evaluate:
        """Return value_and_gradient on queries, where further ones have the grades others, (n,)."""


def prepared(loss: Loss, queries: Queries) -> Evaluate:
    """Return loss.value_and_gradient on queries; what does not depend on the scores is computed once if possible.

    Raises DataError for grades that the loss cannot use.
    """
    prepare: Callable[[Queries], Evaluate] | None = getattr(loss, "prepared", None)
    return prepare(queries) if prepare is not None else lambda scores: loss.value_and_gradient(scores, queries)
