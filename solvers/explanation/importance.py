"""The importance of features: what a metric loses when a feature's values are shuffled among the documents of a query.

Shuffled within queries, a feature keeps its distribution there, and no longer says which document is better.
What depends on the query alone stays as it is, and can lose nothing. Features that measure the same, such as the
columns of a category, can be shuffled together. Source: Breiman 2001; Fisher, Rudin & Dominici 2019.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from scipy import sparse

from ranktune.solvers.core.arrays import Features, Floats, Ints
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.metrics.judgements import Judgements
from ranktune.solvers.metrics.metrics import Metric
from ranktune.solvers.models.base import Model

REPEATS = 5
"""Shuffles of each feature."""


def shuffling_losses(
    model: Model, queries: Queries, metric: Metric, groups: Sequence[Ints], *, repeats: int = REPEATS, seed: int = 0
) -> Floats:
    """Return the loss of the metric on each query, the mean over shuffles, for each group of columns.

    The result is (len(groups), n_queries), NaN where the metric skips a query. queries have the model's features. The
    shuffles of a group depend on the seed and its first column alone. Cost: repeats times scoring for each group.
    """
    queries = replace(queries, rows=None)
    judgements = Judgements.of(queries)
    before = metric.per_query(model.predict(queries), judgements)
    losses = np.empty((len(groups), queries.n_queries))
    shuffle = _shuffler(queries)
    for k, columns in enumerate(groups):
        generator = np.random.default_rng([seed, int(columns[0])])
        after = [
            metric.per_query(model.predict(shuffle(columns, shuffled_rows(queries, generator))), judgements)
            for _ in range(repeats)
        ]
        losses[k] = before - np.mean(after, axis=0)
    return losses


def shuffled_rows(queries: Queries, generator: np.random.Generator) -> Ints:
    """Return a random order of the documents of each query, (n_documents,): the row that each row takes from."""
    return np.argsort(queries.query_of_document + generator.random(queries.n_documents))


def _shuffler(queries: Queries) -> Callable[[Ints, Ints], Queries]:
    """Return a function of columns and rows to queries in which these columns are those of other rows.

    Dense queries are valid until it is called again.
    """
    X = queries.features
    if isinstance(X, np.ndarray):
        changed = np.array(X)
        last = np.zeros(0, dtype=np.int64)

        def shuffle(columns: Ints, rows: Ints) -> Queries:
            nonlocal last
            changed[:, last] = X[:, last]
            changed[:, columns] = X[np.ix_(rows, columns)]
            last = columns
            return replace(queries, features=changed)

        return shuffle
    return lambda columns, rows: replace(queries, features=_with_rows(X, columns, rows))


def _with_rows(X: sparse.csr_array, columns: Ints, rows: Ints) -> Features:
    """Return a CSR array with the entries of some columns moved to other rows."""
    moved = np.isin(X.indices, columns)
    place = np.empty(len(rows), dtype=np.int64)
    place[rows] = np.arange(len(rows))
    row = np.repeat(np.arange(X.shape[0], dtype=X.indices.dtype), np.diff(X.indptr))
    row[moved] = place[row[moved]]
    return sparse.csr_array((X.data, (row, X.indices)), shape=X.shape, dtype=X.dtype)
