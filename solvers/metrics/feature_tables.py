"""How well each feature by itself ranks each query: the table that single-feature models are made of.

table[0, q, r]   metric of query q with its documents in the order of feature r, rising values first in rank
table[1, q, r]   the same with the smallest value first

Queries that the metric skips have NaN. Weights of documents multiply gains and relevance: a document takes one rank
whatever its weight. The table depends on the data and the metric alone, so it is computed once.

The discounted sums of a part of the columns of X are computed at once, equal values averaged. A sum needs the k
greatest values of a column in a query, and where they stand. The values of all columns are sorted into their k greatest
row by row, so that one comparison of the machine serves several columns; a second look at the rows adds the value of
each document to the rank of its feature.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy import sparse

from ranktune.solvers.core.arrays import Floats, Ints, Matrix
from ranktune.solvers.core.compiled import compiled
from ranktune.solvers.core.errors import ParameterError
from ranktune.solvers.data.grades import copies_of
from ranktune.solvers.data.missing import each_column
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.metrics.formulas import SUMS, Terms, of_sums
from ranktune.solvers.metrics.judgements import Judgements
from ranktune.solvers.metrics.metrics import Metric, parse_metric

SIGNS = (1.0, -1.0)

WEIGHED = ("ndcg", "pairwise", "recall")
"""The metrics that are shares of a sum over documents or pairs, whose terms weights can multiply."""

PART = 1 << 23
"""Values of X from which one part of a table is computed: some hundredths of a second."""
WIDEST = 64
"""The most features of a part."""
FEWEST = 8
"""Of fewer features, too few values would be compared at once."""
MOST_RANKS = 32
"""Up to so many ranks, sorting every value into the first ones beats ranking the documents."""


def check_metric(spelling: str) -> None:
    """Raise ParameterError for a spelling that is none, or of a metric without bounds."""
    if spelling != "auto" and parse_metric(spelling).name == "dcg":
        raise ParameterError(
            f"metric={spelling!r}: dcg has no upper bound, so queries cannot be weighed by it. Use ndcg."
        )


def weighed(metric: Metric, queries: Queries) -> Judgements:
    """Return the judgements that learning measures queries by: gains, relevance and pairs count as the documents do.

    Raises ParameterError for a metric that has no such terms, where documents have weights.
    """
    if queries.document_weights is None:
        return Judgements.of(queries)
    if metric.name not in WEIGHED:
        raise ParameterError(
            f"metric={str(metric)!r} cannot weigh documents: it is no share of a sum whose terms they could multiply. "
            f"Take one of {', '.join(WEIGHED)}, or leave document_weights out."
        )
    return Judgements(queries.grades, queries.starts, queries.document_ids, copies_of(queries))


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
    done = 0
    for part in table_parts(metric, queries, chosen, signs):
        table[:, :, done : done + part.shape[2]] = part
        done += part.shape[2]
    return table


def table_parts(metric: Metric, queries: Queries, chosen: Ints, signs: tuple[float, ...] = SIGNS) -> Iterator[Floats]:
    """Yield the table of the chosen features in parts, (len(signs), n_queries, some of them), of at most PART values.

    A part has at least one feature. Metrics that need no more than the first ranks take one pass over X.
    """
    judgements = weighed(metric, queries)
    if metric.name in SUMS and metric.ties == "average":
        terms = SUMS[metric.name].terms(metric, judgements)
        if len(terms.discounts) <= MOST_RANKS and len(chosen) >= FEWEST:
            for X, places in _parts(queries, chosen):
                yield _from_sums(metric, terms, judgements, X, places, signs)
            return
    for column in each_column(queries.features, chosen):
        yield np.stack([metric.per_query(sign * column, judgements) for sign in signs])[:, :, None]


def _from_sums(
    metric: Metric, terms: Terms, judgements: Judgements, X: Matrix, places: Ints, signs: tuple[float, ...]
) -> Floats:
    part = np.empty((len(signs), len(judgements.lengths), len(places)))
    for values, sign in zip(part, signs, strict=True):
        column_sums(X, places, X.dtype.type(sign), judgements.starts, terms.values, terms.discounts, values)
        for at in range(len(places)):
            values[:, at] = of_sums(metric, values[:, at], judgements)
    return part


def _parts(queries: Queries, chosen: Ints) -> Iterator[tuple[Matrix, Ints]]:
    """Yield dense arrays with the chosen features in their order, and the columns of them that are meant."""
    features = queries.features
    width = max(1, min(WIDEST, PART // queries.n_documents))
    dense = isinstance(features, np.ndarray)
    by_column = None if dense else sparse.csc_array(features[:, chosen])
    for start in range(0, len(chosen), width):
        if by_column is None:
            yield features, chosen[start : start + width]
        else:
            part = by_column[:, start : start + width].toarray(order="C")
            yield part, np.arange(part.shape[1])


ROWS = 4
"""Rows that are sorted in together: their values stay in registers between the ranks."""


@compiled
def column_sums(
    X: Matrix, columns: Ints, sign: np.floating, starts: Ints, values: Floats, discounts: Floats, sums: Floats
) -> None:
    """Overwrite sums, (n_queries, len(columns)), with those of the documents ranked by sign times each column of X.

    A sum is that of values times discounts over the first len(discounts) ranks, as kernels.discounted_sums has it with
    ties averaged, to the bit. sign is 1 or -1 in the type of X. Cost: k comparisons a value.
    """
    k, width = len(discounts), len(columns)
    greatest, rows = np.empty((k, width), X.dtype), np.empty((ROWS, width), X.dtype)
    counts, value_sums = np.empty((k, width)), np.empty((k, width))  # of the documents whose value first has that rank
    for q in range(len(starts) - 1):
        first, stop = starts[q], starts[q + 1]
        top = min(k, stop - first)
        _greatest(X, columns, sign, first, stop, rows, greatest)
        for r in range(top):
            for c in range(width):
                counts[r, c] = value_sums[r, c] = 0.0
        for i in range(first, stop):
            for c in range(width):
                value = sign * X[i, columns[c]]
                if value >= greatest[top - 1, c]:
                    rank = 0
                    while greatest[rank, c] > value:
                        rank += 1
                    counts[rank, c] += 1.0
                    value_sums[rank, c] += values[i]
        for c in range(width):
            total, b = 0.0, 0
            while b < top:
                mean, end = value_sums[b, c] / counts[b, c], min(b + int(counts[b, c]), top)
                for r in range(b, end):
                    total += mean * discounts[r]
                b = end
            sums[q, c] = total


@compiled
def _greatest(
    X: Matrix, columns: Ints, sign: np.floating, first: int, stop: int, rows: Matrix, greatest: Matrix
) -> None:
    """Overwrite greatest, (k, len(columns)), with the greatest of sign times the rows first to stop, falling."""
    for r in range(len(greatest)):
        for c in range(len(columns)):
            greatest[r, c] = -np.inf
    for start in range(first, stop, ROWS):
        for i in range(start, start + ROWS):
            for c in range(len(columns)):
                rows[i - start, c] = sign * X[i, columns[c]] if i < stop else -np.inf
        for r in range(len(greatest)):
            for c in range(len(columns)):
                a = greatest[r, c]
                b0, b1, b2, b3 = rows[0, c], rows[1, c], rows[2, c], rows[3, c]
                a0 = a if a > b0 else b0
                rows[0, c] = b0 if a > b0 else a
                a1 = a0 if a0 > b1 else b1
                rows[1, c] = b1 if a0 > b1 else a0
                a2 = a1 if a1 > b2 else b2
                rows[2, c] = b2 if a1 > b2 else a1
                rows[3, c] = b3 if a2 > b3 else a2
                greatest[r, c] = a2 if a2 > b3 else b3
