"""What every loss offers, and the form in which an optimizer evaluates it many times."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.data.queries import Queries

Evaluate: TypeAlias = Callable[[Floats], tuple[float, Floats]]
"""Scores, (n_documents,), to the loss and its gradient by score."""


class Loss(Protocol):
    """A loss of scores. One that can reuse work between evaluations also has a method ``prepared(queries)``."""

    def value_and_gradient(self, scores: Floats, queries: Queries) -> tuple[float, Floats]:
        """Return the loss and its gradient by score, (n_documents,)."""


def prepared(loss: Loss, queries: Queries) -> Evaluate:
    """Return loss.value_and_gradient on queries; what does not depend on the scores is computed once if possible.

    Raises DataError for grades that the loss cannot use.
    """
    prepare: Callable[[Queries], Evaluate] | None = getattr(loss, "prepared", None)
    return prepare(queries) if prepare is not None else lambda scores: loss.value_and_gradient(scores, queries)
