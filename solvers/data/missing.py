"""Missing values (NaN) for methods that need a number everywhere: the median of the feature, and indicators.

A feature that no training document lacks is 0 where it is missing later: that is what engines mean by absence. An
indicator is a further column, 1 where a feature is missing and 0 elsewhere. A feature gets one if documents that
lack it have other grades than the rest of their query: then it is informative that the value is missing.

n_features features, n_indicators further columns
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from scipy import sparse

from ranktune.solvers.core.arrays import Features, Floats, Ints, Mask, Matrix, stored_values
from ranktune.solvers.core.errors import DataError
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.scaling import without_level

MIN_Z = 2.0
"""Standard errors by which the grades of documents that lack a feature must differ for it to get an indicator."""
BLOCK_COLUMNS = 16
"""Columns that are copied together: neighbours of a row share a cache line."""
BLOCK_ROWS = 4096
"""Rows whose missing values are looked up together."""


@dataclass(frozen=True, eq=False)
class Imputation:
    """What is put in place of missing values.

    fill        (n_features,) the value; None for the mean of what the query has, 0 where it has nothing
    indicators  (n_indicators,) the features that have an indicator
    """

    fill: Floats | None
    indicators: Ints

    @classmethod
    def learn(cls, queries: Queries, *, indicators: bool) -> Self:
        """Return medians of the features that documents lack, and the indicators if there are to be any.

        The fill is 0 for a feature that no document lacks, or all documents lack. A document counts by its weight
        and that of its query.
        """
        absent = np.flatnonzero(has_missing_by_feature(queries.features))
        informative = _informative(queries, absent) if indicators else np.zeros(0, dtype=np.int64)
        return cls(_medians(queries, absent), informative)

    @classmethod
    def within_queries(cls) -> Self:
        """Return the means of each query, without indicators: for features that are scaled in each query."""
        return cls(None, np.zeros(0, dtype=np.int64))

    def completed(self, queries: Queries) -> Queries:
        """Return queries without missing values, their features first, then the indicators."""
        X = queries.features
        fill = query_means(queries) if self.fill is None else self.fill
        features = filled(X, queries.query_of_document if self.fill is None else None, fill)
        if len(self.indicators):
            features = _beside(features, missing_in(X[:, self.indicators]))
        return replace(queries.with_features(features), has_missing=False)

    def folded(self, weights: Floats) -> tuple[Floats, Floats]:
        """Return the weights of the features, and what a missing value of each adds to the score, (n_features,) each.

        weights, (n_features + n_indicators,), are those of completed queries. Beside the mean of the query, where it
        is the fill, a missing value adds nothing.
        """
        values = weights[: len(weights) - len(self.indicators)]
        added = np.zeros(len(values)) if self.fill is None else values * self.fill
        np.add.at(added, self.indicators, weights[len(values) :])
        return values, added


def with_absent_missing(queries: Queries, columns: Ints) -> Queries:
    """Return queries with NaN for what their rows leave out of some features, as XGBoost takes it.

    Dense features leave nothing out, and those of tables are 0 where they do.
    """
    X = queries.features
    if isinstance(X, np.ndarray) or queries.encoding is not None:
        return queries
    whole = X.tocoo()  # it keeps zeros that are written
    written = sparse.csr_array((np.ones(whole.nnz, np.int8), (whole.row, whole.col)), shape=X.shape)[:, columns]
    row, column = np.nonzero(written.toarray() == 0)
    places = np.append(whole.row, row), np.append(whole.col, columns[column])
    values = np.append(whole.data, np.full(len(row), np.nan, X.dtype))
    features = sparse.csr_array((values, places), shape=X.shape)
    return replace(queries, features=features, has_missing=True)


def refuse_missing(queries: Queries, names: Sequence[str] | None) -> None:
    """Raise DataError for the first feature that is missing, if there is one; names are those of a model."""
    values = stored_values(queries.features)
    where = np.argwhere(np.isnan(values))
    if len(where) == 0:
        return
    at = where[0][-1] if isinstance(queries.features, np.ndarray) else queries.features.indices[where[0][0]]
    name = f"'{names[at]}'" if names else f"of column {at}"
    raise DataError(
        f"the feature {name} is missing (NaN), and the training data of the model had no missing values: it has "
        "not learned what they mean. Fill them in, or train on data that has them."
    )


def missing_in(features: Features) -> Features:
    """Return 1 where features are NaN, else 0, with the type and layout of features."""
    if isinstance(features, np.ndarray):
        return np.isnan(features).astype(features.dtype)
    marks = sparse.csr_array(features, copy=True)
    marks.data = np.isnan(features.data).astype(features.dtype)
    marks.eliminate_zeros()
    return marks


def filled(features: Features, row: Ints | None, fill: Floats) -> Features:
    """Return a copy of features with fill where they are NaN: fill[column], or fill[row[i], column] for row i."""
    if isinstance(features, np.ndarray):
        result = np.array(features, order="C")
        for a in range(0, len(result), BLOCK_ROWS):
            part = result[a : a + BLOCK_ROWS]
            at, column = np.nonzero(np.isnan(part))
            part[at, column] = fill[column] if row is None else fill[row[a + at], column]
        return result
    copy = sparse.csr_array(features, copy=True)
    at = np.flatnonzero(np.isnan(copy.data))
    column = copy.indices[at]
    if row is None:
        copy.data[at] = fill[column]
    else:
        copy.data[at] = fill[row[np.searchsorted(copy.indptr, at, side="right") - 1], column]
    return copy


def query_means(queries: Queries) -> Floats:
    """Return the mean of what the documents of each query have, (n_queries, n_features); 0 where they have nothing."""
    X = queries.features
    absent = missing_in(X)
    if isinstance(X, np.ndarray) and isinstance(absent, np.ndarray):
        sums = np.add.reduceat(np.where(absent > 0.0, 0.0, X), queries.starts[:-1], dtype=np.float64)
        lacking = np.add.reduceat(absent, queries.starts[:-1], dtype=np.float64)
    else:
        rows = np.arange(queries.n_documents)
        ones = np.ones(queries.n_documents)
        of_query = sparse.csr_array((ones, (queries.query_of_document, rows)), dtype=np.float64)
        sums = (of_query @ filled(X, None, np.zeros(queries.n_features))).toarray()
        lacking = (of_query @ absent).toarray()
    present = queries.lengths[:, None] - lacking
    return np.divide(sums, present, out=np.zeros_like(sums), where=present > 0.0)


def _medians(queries: Queries, columns: Ints) -> Floats:
    """Return the lower median of what documents have of each of some features, (n_features,), 0 of the others."""
    weights = queries.weight_of_document if queries.is_weighted else None
    medians = np.zeros(queries.n_features)
    medians[columns] = [_median(column, weights) for column in each_column(queries.features, columns)]
    return medians


def each_column(features: Features, chosen: Ints) -> Iterator[Floats]:
    """Yield the chosen features one after the other, (n_documents,) float64 each."""
    if isinstance(features, np.ndarray):
        for first in range(0, len(chosen), BLOCK_COLUMNS):
            yield from np.ascontiguousarray(features[:, chosen[first : first + BLOCK_COLUMNS]].T, dtype=np.float64)
        return
    by_column = sparse.csc_array(features[:, chosen])
    for at in range(len(chosen)):
        a, b = by_column.indptr[at], by_column.indptr[at + 1]
        column = np.zeros(features.shape[0])
        column[by_column.indices[a:b]] = by_column.data[a:b]
        yield column


def _median(column: Matrix, weights: Floats | None) -> float:
    """Return the least value that at least half of the known values do not exceed, by weight; 0 if all are missing."""
    present = ~np.isnan(column)
    values = column[present]
    if len(values) == 0:
        return 0.0
    if weights is None:
        return float(np.partition(values, (len(values) - 1) // 2)[(len(values) - 1) // 2])
    order = np.argsort(values)
    shares = np.cumsum(weights[present][order])
    return float(values[order][np.searchsorted(shares, 0.5 * shares[-1] * (1.0 - 1e-12))])


def _informative(queries: Queries, absent: Ints) -> Ints:
    """Return those of some features whose absence goes with other grades within queries than their presence.

    absent, (n_absent,) ascending, are the features that documents lack.

    c_q is the sum, over the documents of query q that lack the feature, of their grades less the mean of the query;
    the sum of c_q must exceed MIN_Z standard errors.
    """
    grades, weights = without_level(queries.grades, queries), queries.weight_of_query
    if queries.document_weights is not None:
        grades = grades * queries.document_weights
    X, informative = queries.features, []
    for first in range(0, len(absent), BLOCK_COLUMNS):
        columns = absent[first : first + BLOCK_COLUMNS]
        marks = missing_in(X[:, columns])
        dense = marks if isinstance(marks, np.ndarray) else marks.toarray()
        sums = np.add.reduceat(dense * grades[:, None], queries.starts[:-1])
        total, square = weights @ sums, weights @ sums**2
        informative.append(columns[np.abs(total) > MIN_Z * np.sqrt(square)])
    return np.concatenate([np.zeros(0, dtype=np.int64), *informative])


def features_with_missing(queries: Queries) -> Mask | None:
    """Return whether some document lacks each feature, (n_features,); None for data without missing values."""
    return has_missing_by_feature(queries.features) if queries.has_missing else None


def has_missing_by_feature(features: Features) -> Mask:
    """Return whether some document lacks each feature, (n_features,)."""
    if isinstance(features, np.ndarray):
        lacking = np.zeros(features.shape[1], dtype=np.bool_)
        for a in range(0, len(features), BLOCK_ROWS):
            lacking |= np.isnan(features[a : a + BLOCK_ROWS]).any(axis=0)
        return lacking
    missing = np.isnan(stored_values(features))
    return np.bincount(features.indices[missing], minlength=features.shape[1]) > 0


def _beside(features: Features, more: Features) -> Features:
    """Return the columns of both."""
    if isinstance(features, np.ndarray):
        return np.ascontiguousarray(np.hstack([features, more]))
    return sparse.csr_array(sparse.hstack([features, more], format="csr"))
