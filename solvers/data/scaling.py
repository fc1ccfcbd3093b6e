"""The factor of each feature, so that penalties treat all features alike; features themselves are never copied.

Means, and values less the mean of their query: a constant added to all documents of a query does not change its
ranking, so it must not change the model.

A ranker whose loss does not change when a query's features shift needs no centre, only these factors: weights v on
the raw features and w = v / factor on the scaled ones rank alike, so w is penalised and v = factor * w is the model.
Spreads are taken over all documents (factors), or within queries (query_factors), for methods that must not see a shift
of a query's features in their scaling either. A weight counts as copies of the query or document would.

Features can also be scaled within each list (scaled_by_list): divided by maximum - minimum there, constant ones made 0.
The minimum is not subtracted. That would add a constant to all scores of a list, which changes neither a loss over its
pairs nor its ranking, and it would fill sparse lists. What a sparse list does not store is 0 and counts as a value.

X        (n_documents, n_features)          starts   (n_queries + 1,) first row of each query, and the number of rows
by_row   (n_documents,) how often each counts  about   (n_features,) where deviations are taken from; empty: query means
ranges   (n_features,) maximum - minimum, overall or the widest of any query
squares  (n_features,) weighted sum of squared deviations
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from ranktune.solvers.core.arrays import Features, Floats, Indices, Ints, Matrix, as_floats, as_ints
from ranktune.solvers.core.checks import check_choice
from ranktune.solvers.core.compiled import compiled, inlined
from ranktune.solvers.data.products import csr_parts, transposed
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.rows import MatrixRows, close_list, no_columns, open_list, rows_of

SCALINGS = ("none", "minmax", "standard")

MIN_SPREAD = 1e-300
"""A smaller spread counts as zero: dividing by it would overflow."""

LARGE = 1e100
"""Products of three values below it, and above its inverse, are numbers."""
MODERATE, MOST = 64, 1020
"""Powers of two that are not far from 1, and those by which a weight can be multiplied."""

BLOCK_ROWS = 4096
"""Rows of lists that are scored at a time: few enough to stay in cache."""


def check_scaling(scaling: object) -> None:
    """Raise ParameterError where scaling is not one of SCALINGS."""
    check_choice("scaling", scaling, SCALINGS)


def factors(queries: Queries, scaling: str) -> Floats:
    """Return the factor of each feature, (n_features,); 0 for one that has a single value, 1 for "none".

    minmax divides by the range, standard by the standard deviation, both over all documents, zeros that a sparse row
    does not store included. Cost: a pass over X, two for standard.
    """
    check_scaling(scaling)
    if scaling == "none":
        return np.ones(queries.n_features)
    about = weighted_means(queries) if scaling == "standard" else np.zeros(queries.n_features)
    return factors_from(moments(queries, about), scaling)


def query_factors(queries: Queries, scaling: str) -> Floats:
    """Return what each feature is multiplied by, (n_features,); 0 for one that is constant in every query.

    "standard" divides by the standard deviation about the means of the queries, "minmax" by the largest range within
    a query, "none" by nothing, whatever is constant. Zeros that a sparse row does not store count. Cost: a pass over X.
    """
    check_scaling(scaling)
    if scaling == "none":
        return np.ones(queries.n_features)
    return factors_from(query_moments(queries), scaling)


@dataclass(frozen=True)
class Moments:
    """Of documents: the sum of their weights, and of each feature, (n_features,), what its factor is made of.

    low, high   the extremes (within queries: 0, and the largest range of any query)
    squares     weighted sum of squared deviations
    """

    weight: float
    low: Floats
    high: Floats
    squares: Floats


def joined(parts: Sequence[Moments]) -> Moments:
    """Return the moments of the documents of all parts, whose deviations must be from the same values."""
    return Moments(
        sum(part.weight for part in parts),
        np.min([part.low for part in parts], axis=0),
        np.max([part.high for part in parts], axis=0),
        np.sum([part.squares for part in parts], axis=0),
    )


def factors_from(moments: Moments, scaling: str) -> Floats:
    """Return the factors, (n_features,), of features with these moments; scaling is "minmax" or "standard".

    A deviation is exactly 0 where the range is.
    """
    ranges = moments.high - moments.low
    if scaling == "minmax":
        return _inverse(ranges)
    return _inverse(np.where(ranges > 0.0, np.sqrt(moments.squares / moments.weight), 0.0))


def query_moments(queries: Queries) -> Moments:
    """Return the moments within queries: deviations are from the means of the queries. Cost: a pass over X."""
    X, by_row = queries.features, as_floats(queries.weight_of_document)
    ranges, squares = np.zeros((2, queries.n_features))
    starts = as_ints(queries.starts)
    a, b, c, d = np.zeros((4, queries.n_features))
    if isinstance(X, np.ndarray):
        _dense_by_query(X, starts, by_row, a, b, c, d, ranges, squares)
    else:
        columns = np.empty(queries.n_features, dtype=np.int64)
        _csr_by_query(*csr_parts(X), starts, by_row, columns, a, b, c, d, ranges, squares)
    return Moments(float(by_row.sum()), np.zeros_like(ranges), ranges, squares)


def moments(queries: Queries, about: Floats) -> Moments:
    """Return the moments of all documents: deviations are from about, (n_features,). Cost: a pass over X."""
    X, by_row = queries.features, as_floats(queries.weight_of_document)
    low, high = np.full_like(about, np.inf), np.full_like(about, -np.inf)
    squares, weight = np.zeros_like(about), float(by_row.sum())
    if isinstance(X, np.ndarray):
        _dense_sums(X, by_row, about, low, high, squares)
        return Moments(weight, low, high, squares)
    stored, filled = np.zeros((2, len(about)))
    _csr_sums(*csr_parts(X), by_row, about, low, high, stored, filled, squares)
    gaps = filled < len(by_row)  # of a full column, what rounding leaves of the sum less stored would count as zeros
    low, high = np.where(gaps, np.minimum(low, 0.0), low), np.where(gaps, np.maximum(high, 0.0), high)
    return Moments(weight, low, high, squares + np.where(gaps, (weight - stored) * about * about, 0.0))


def _inverse(spread: Floats) -> Floats:
    return np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > MIN_SPREAD)


def weighted_means(queries: Queries) -> Floats:
    """Return the mean of each feature over all documents, (n_features,), weighted."""
    sums, weight = weighted_sums(queries)
    return sums / weight


def weighted_sums(queries: Queries) -> tuple[Floats, float]:
    """Return the weighted sum of each feature over all documents, (n_features,), and the sum of the weights."""
    by_document = queries.weight_of_document
    return transposed(queries.features, by_document), float(by_document.sum())


def powers_of(X: Features) -> Ints | None:
    """Return the power of two of each feature, (n_features,), 0 for those of a usual size; None where all are.

    Over it, the products of a feature are numbers, and no digit has changed: the model is that of such features.
    """
    if X.dtype != np.float64:
        return None
    ends = (end if isinstance(X, np.ndarray) else end.toarray().ravel() for end in (X.max(axis=0), -X.min(axis=0)))
    high = np.maximum(*ends)
    far = (high >= LARGE) | ((high > 0.0) & (high <= 1.0 / LARGE))
    return np.where(far, np.clip(np.frexp(high)[1], -MOST, MOST), 0).astype(np.int64) if far.any() else None


def over(X: Features, powers: Ints) -> Features:
    """Return features divided by powers of two."""
    if isinstance(X, np.ndarray):
        return np.ldexp(X, -powers)
    return sparse.csr_array((np.ldexp(X.data, -powers[X.indices]), X.indices, X.indptr), shape=X.shape)


def moderate(values: Matrix) -> tuple[Floats, int]:
    """Return values, (n,), over 2^exponent, and the exponent: 0 unless the largest value is far from 1; a new array.

    Their squares and sums are then numbers, and they fit into single precision.
    """
    exponent = int(np.frexp(np.abs(values).max(initial=0.0))[1])
    exponent = exponent if abs(exponent) > MODERATE else 0
    return np.ldexp(np.asarray(values, dtype=np.float64), -exponent), exponent


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


@compiled
def _dense_sums(X: Matrix, by_row: Floats, about: Floats, low: Floats, high: Floats, squares: Floats) -> None:
    """Note the extremes of each column, and add by_row (x - about)^2 to squares."""
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            x = np.float64(X[i, j])
            low[j] = x if x < low[j] else low[j]
            high[j] = x if x > high[j] else high[j]
            squares[j] += by_row[i] * (x - about[j]) * (x - about[j])


@compiled
def _dense_by_query(
    X: Matrix,
    starts: Ints,
    by_row: Floats,
    low: Floats,
    high: Floats,
    mean: Floats,
    sums: Floats,
    ranges: Floats,
    squares: Floats,
) -> None:
    """Raise ranges to those within a query, and add to squares; low, high, mean and sums are scratch."""
    d = X.shape[1]
    for q in range(len(starts) - 1):
        a, b = starts[q], starts[q + 1]
        for j in range(d):
            low[j], high[j], mean[j], sums[j] = np.inf, -np.inf, 0.0, 0.0
        for i in range(a, b):
            for j in range(d):
                x = np.float64(X[i, j])
                low[j] = x if x < low[j] else low[j]
                high[j] = x if x > high[j] else high[j]
                mean[j] += by_row[i] * x
        n = 0.0
        for i in range(a, b):
            n += by_row[i]
        for j in range(d):
            mean[j] /= n
        for i in range(a, b):
            for j in range(d):
                off = X[i, j] - mean[j]
                sums[j] += by_row[i] * off * off
        for j in range(d):
            squares[j] += sums[j]
            spread = high[j] - low[j]
            ranges[j] = spread if spread > ranges[j] else ranges[j]


@compiled
def _csr_sums(
    data: Matrix,
    indices: Indices,
    indptr: Indices,
    by_row: Floats,
    about: Floats,
    low: Floats,
    high: Floats,
    stored: Floats,
    filled: Floats,
    squares: Floats,
) -> None:
    """Note of each column its extremes, and add up by_row, the count, and by_row (x - about)^2 of what is stored."""
    for i in range(len(by_row)):
        weight = by_row[i]
        for p in range(indptr[i], indptr[i + 1]):
            c, x = indices[p], np.float64(data[p])
            low[c] = x if x < low[c] else low[c]
            high[c] = x if x > high[c] else high[c]
            stored[c] += weight
            filled[c] += 1.0
            squares[c] += weight * (x - about[c]) * (x - about[c])


@compiled
def _csr_by_query(
    data: Matrix,
    indices: Indices,
    indptr: Indices,
    starts: Ints,
    by_row: Floats,
    columns: Ints,
    low: Floats,
    high: Floats,
    mean: Floats,
    filled: Floats,
    ranges: Floats,
    squares: Floats,
) -> None:
    """Do what _dense_by_query does; filled must hold zeros. Cost: the nonzeros."""
    for q in range(len(starts) - 1):
        m, rows = 0, 0.0
        for i in range(starts[q], starts[q + 1]):
            rows += by_row[i]
            for p in range(indptr[i], indptr[i + 1]):
                c, x = indices[p], np.float64(data[p])
                if filled[c] == 0.0:
                    columns[m] = c
                    m += 1
                    low[c], high[c], mean[c] = x, x, 0.0
                low[c] = x if x < low[c] else low[c]
                high[c] = x if x > high[c] else high[c]
                filled[c] += by_row[i]
                mean[c] += by_row[i] * x
        for r in range(m):
            c = columns[r]
            mean[c] /= rows
            if filled[c] < rows:
                low[c] = 0.0 if low[c] > 0.0 else low[c]
                high[c] = 0.0 if high[c] < 0.0 else high[c]
                squares[c] += (rows - filled[c]) * mean[c] * mean[c]
            spread = high[c] - low[c]
            ranges[c] = spread if spread > ranges[c] else ranges[c]
            filled[c] = 0.0
        for i in range(starts[q], starts[q + 1]):
            for p in range(indptr[i], indptr[i + 1]):
                off = data[p] - mean[indices[p]]
                squares[indices[p]] += by_row[i] * off * off


def scaled_by_list(features: Features, starts: Ints) -> Features:
    """Return features, (n_documents, n_features), each column divided by its range within each list; a new array.

    starts is (n_lists + 1,), the first row of each list and the number of rows. float32 stays float32, CSR stays CSR
    with the same stored places. Cost: two passes over features.
    """
    if sparse.issparse(features):
        scaled = sparse.csr_array(features, copy=True)
        scaled.sum_duplicates()
    else:
        scaled = np.array(features, order="C")
    _scale(rows_of(scaled), as_ints(starts), scaled.shape[1])
    return scaled


@compiled
def _scale(rows: MatrixRows, starts: Ints, d: int) -> None:
    """Overwrite the features of rows with the scaled ones."""
    at, factor = no_columns(rows, d), np.empty(d)
    for q in range(len(starts) - 1):
        a, b = starts[q], starts[q + 1]
        if a == b:
            continue
        m = open_list(rows, a, b, at)
        for r in range(m):
            factor[r] = factor_of(at.low[r], at.high[r], True)
        for i in range(a, b):
            if rows.is_sparse:
                for p in range(rows.indptr[i], rows.indptr[i + 1]):
                    rows.data[p] = rows.data[p] * factor[at.place[rows.indices[p]]]
            else:
                for j in range(d):
                    rows.dense[i, j] = rows.dense[i, j] * factor[j]
        close_list(rows, m, at)


@inlined
def factor_of(low: float, high: float, scaled: bool) -> float:
    """Return what a feature of one list is multiplied by; 0 if it is constant there, for then it orders nothing."""
    spread = np.float64(high) - np.float64(low)  # of float32 values it could overflow, and rounds otherwise
    if spread < MIN_SPREAD:
        return 0.0
    return 1.0 / spread if scaled else 1.0
