"""Objectives that a library of trees does not have: the derivatives of a loss by the scores of documents."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.scaling import without_level


class Objective(Protocol):
    """A loss of the scores of some documents."""

    def derivatives(self, scores: Floats) -> tuple[Floats, Floats]:
        """Return the gradient and the curvature by each score, (n_documents,)."""


MakeObjective: TypeAlias = Callable[[Queries, Floats], Objective]
"""Makes the objective of queries, whose lengths and weights are used, and the target of each document."""


@dataclass(frozen=True, eq=False)
class QueryError:
    """Half the squared errors of scores that are shifted by the best constant for each query.

    queries hold the lengths and weights; targets are (n_documents,). Source: QueryRMSE in CatBoost's documentation.
    """

    queries: Queries
    targets: Floats

    def value(self, scores: Floats) -> float:
        """Return the error of scores, (n_documents,)."""
        residuals = without_level(scores - self.targets, self.queries)
        return float(0.5 * self.queries.weight_of_document @ residuals**2)

    def derivatives(self, scores: Floats) -> tuple[Floats, Floats]:
        """Return the gradient and the curvature by each score, (n_documents,).

        The curvature is the weight, as for a plain squared error: an upper bound.
        """
        weights = self.queries.weight_of_document
        return weights * without_level(scores - self.targets, self.queries), weights
