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
    """Return the mean of each feature over all documents, (n_features,), weighted."""
    sums, weight = weighted_sums(queries)
    return sums / weight


def weighted_sums(queries: Queries) -> tuple[Floats, float]:
    """Return the weighted sum of each feature over all documents, (n_features,), and the sum of the weights."""
    by_document = queries.weight_of_document
    return transposed(queries.features, by_document), float(by_document.sum())


def without_level(values: Floats, queries: Queries) -> Floats:
    """Return values, (n_documents,), minus the mean of their query, weighted by its documents."""
    result = np.array(values, dtype=np.float64)
    if queries.document_weights is None:
        subtract_means(result, queries.starts)
        return result
    weights, first = queries.document_weights, queries.starts[:-1]
    means = np.add.reduceat(weights * result, first) / np.add.reduceat(weights, first)
    return result - np.repeat(means, queries.lengths)


def without_share(values: Floats, queries: Queries) -> Floats:
    """Return values, (n_documents,), minus each document's share, by weight, in the sum of their query.

    It is the transpose of without_level: of a gradient by values without level, it makes that by the values.
    """
    if queries.document_weights is None:
        return without_level(values, queries)
    weights, first = queries.document_weights, queries.starts[:-1]
    sums = np.add.reduceat(values, first) / np.add.reduceat(weights, first)
    share: Floats = values - weights * np.repeat(sums, queries.lengths)
    return share


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
