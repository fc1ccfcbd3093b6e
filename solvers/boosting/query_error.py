"""The squared error of differences between the documents of a query, as derivatives by the scores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ranktune.solvers.boosting.base import rows_of
from ranktune.solvers.core.arrays import Floats, Ints
from ranktune.solvers.data.centring import without_level
from ranktune.solvers.data.queries import Queries


@dataclass(frozen=True, eq=False)
class QueryError:
    """Half the squared errors of scores that are shifted by the best constant for each query.

    queries hold the lengths and weights; targets are (n_documents,). Source: QueryRMSE in CatBoost's documentation.
    """

    queries: Queries
    targets: Floats

    @classmethod
    def of(cls, queries: Queries, targets: Floats) -> QueryError:
        """Return the error of queries, without their features."""
        return cls(queries.with_features(np.zeros((queries.n_documents, 1), dtype=np.float32)), targets)

    def part(self, numbers: Ints) -> QueryError:
        """Return the error of the queries of these numbers, ascending."""
        return QueryError(self.queries.select(numbers), self.targets[rows_of(self.queries, numbers)])

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
