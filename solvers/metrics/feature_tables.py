"""How well each feature by itself ranks each query: the table that single-feature models are made of.

table[0, q, r]   metric of query q with its documents in the order of feature r, rising values first in rank
table[1, q, r]   the same with the smallest value first
Queries that the metric skips have NaN. It depends on the data and the metric alone, so it is computed once. Cost: two
evaluations of the metric a feature.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy import sparse

from ranktune.solvers.core.arrays import Floats, Ints
from ranktune.solvers.core.errors import ParameterError
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.metrics.metrics import Metric, parse_metric

SIGNS = (1.0, -1.0)


def check_metric(spelling: str) -> None:
    """Raise ParameterError for a spelling that is none, or of a metric without bounds."""
    if spelling != "auto" and parse_metric(spelling).name == "dcg":
        raise ParameterError(
            f"metric={spelling!r}: dcg has no upper bound, so queries cannot be weighed by it. Use ndcg."
        )


def columns(queries: Queries, chosen: Ints) -> Iterator[Floats]:
    """Yield the chosen features one after the other, (n_documents,) float64 each."""
    features = queries.features
    if isinstance(features, np.ndarray):
        for at in chosen:
            yield features[:, at].astype(np.float64)
        return
    by_column = sparse.csc_array(features[:, chosen])
    for at in range(len(chosen)):
        a, b = by_column.indptr[at], by_column.indptr[at + 1]
        column = np.zeros(queries.n_documents)
        column[by_column.indices[a:b]] = by_column.data[a:b]
        yield column


def candidates(queries: Queries, most: int) -> Ints:
    """Return the features that may be chosen, rising: at most so many, those not zero in the most documents."""
    features = queries.features
    if queries.n_features <= most:
        return np.arange(queries.n_features)
    counts = np.count_nonzero(features, axis=0) if isinstance(features, np.ndarray) else features.count_nonzero(axis=0)
    return np.sort(np.argsort(-np.asarray(counts).ravel(), kind="stable")[:most])


def feature_table(metric: Metric, queries: Queries, chosen: Ints, signs: tuple[float, ...] = SIGNS) -> Floats:
    """Return the table of the chosen features, (len(signs), n_queries, len(chosen))."""
    table = np.empty((len(signs), queries.n_queries, len(chosen)))
    for at, column in enumerate(columns(queries, chosen)):
        for place, sign in enumerate(signs):
            table[place, :, at] = metric.per_query(sign * column, queries)
    return table
