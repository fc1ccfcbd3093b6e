"""Means over all documents, and values of documents minus the mean of their query.

A constant added to all documents of a query does not change its ranking, so it must not change the model.
"""

from __future__ import annotations

import numpy as np

from ranktune.solvers.core.arrays import Floats, Ints
from ranktune.solvers.core.compiled import compiled
from ranktune.solvers.data.products import transposed
from ranktune.solvers.data.queries import Queries


def weighted_means(queries: Queries) -> Floats:
    """Return the mean of each feature over all documents, (n_features,), weighted by their queries."""
    by_document = np.repeat(queries.weight_of_query, queries.lengths)
    means: Floats = transposed(queries.features, by_document) / by_document.sum()
    return means


def without_level(values: Floats, queries: Queries) -> Floats:
    """Return values, (n_documents,), minus the mean of their query."""
    result = np.array(values, dtype=np.float64)
    subtract_means(result, queries.starts)
    return result


@compiled
def subtract_means(values: Floats, starts: Ints) -> None:
    """Subtract from values, (n_documents,), the mean of their query."""
    for q in range(len(starts) - 1):
        total = 0.0
        for i in range(starts[q], starts[q + 1]):
            total += values[i]
        mean = total / (starts[q + 1] - starts[q])
        for i in range(starts[q], starts[q + 1]):
            values[i] -= mean
