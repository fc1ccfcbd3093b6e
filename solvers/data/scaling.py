"""The factor of each feature, so that penalties treat all features alike; features themselves are never copied.

A ranker whose loss does not change when a query's features shift needs no centre, only these factors: weights v on
the raw features and w = v / factor on the scaled ones rank alike, so w is penalised and v = factor * w is the model.
Spreads are taken over all documents (factors), or within queries (query_factors), for methods that must not see a shift
of a query's features in their scaling either. A query's weight counts as copies of the query would.

X        (n_documents, n_features)          starts   (n_queries + 1,) first row of each query, and the number of rows
weights  (n_queries,) how often each counts  about   (n_features,) where deviations are taken from; empty: query means
ranges   (n_features,) maximum - minimum, the widest of any query; overall if about is given
squares  (n_features,) weighted sum of squared deviations
"""

from __future__ import annotations

import numpy as np

from ranktune.solvers.core.arrays import Floats, Indices, Ints, Matrix, as_floats, as_ints
from ranktune.solvers.core.checks import check_choice
from ranktune.solvers.core.compiled import compiled
from ranktune.solvers.data.centring import weighted_means
from ranktune.solvers.data.queries import Queries

SCALINGS = ("none", "minmax", "standard")

MIN_SPREAD = 1e-300
"""A smaller spread counts as zero: dividing by it would overflow."""


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
    ranges, deviations = _spreads(queries, about)
    return _inverse(deviations if scaling == "standard" else ranges)


def query_factors(queries: Queries, scaling: str) -> Floats:
    """Return what each feature is multiplied by, (n_features,); 0 for one that is constant in every query.

    "standard" divides by the standard deviation about the means of the queries, "minmax" by the largest range within
    a query, "none" by nothing, whatever is constant. Zeros that a sparse row does not store count. Cost: a pass over X.
    """
    check_scaling(scaling)
    if scaling == "none":
        return np.ones(queries.n_features)
    ranges, deviations = _spreads(queries, np.zeros(0))
    return _inverse(deviations if scaling == "standard" else ranges)


def _spreads(queries: Queries, about: Floats) -> tuple[Floats, Floats]:
    """Return ranges and standard deviations, (n_features,) each; a deviation is exactly 0 where the range is."""
    ranges, squares = np.zeros((2, queries.n_features))
    X, weights = queries.features, as_floats(queries.weight_of_query)
    starts = as_ints(queries.starts)
    if isinstance(X, np.ndarray):
        _dense_spreads(X, starts, weights, about, ranges, squares)
    else:
        _csr_spreads(X.data, X.indices, X.indptr, starts, weights, about, ranges, squares)
    total = float(weights @ queries.lengths)
    return ranges, np.where(ranges > 0.0, np.sqrt(squares / total), 0.0)


def _inverse(spread: Floats) -> Floats:
    return np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > MIN_SPREAD)


@compiled
def _dense_spreads(X: Matrix, starts: Ints, weights: Floats, about: Floats, ranges: Floats, squares: Floats) -> None:
    """Overwrite ranges, and add to squares."""
    d, overall = X.shape[1], len(about) > 0
    low, high = np.full(d, np.inf), np.full(d, -np.inf)
    mean, sums = about.copy() if overall else np.zeros(d), np.zeros(d)
    for q in range(len(starts) - 1):
        a, b = starts[q], starts[q + 1]
        if not overall:
            low[:], high[:], mean[:] = np.inf, -np.inf, 0.0
        for i in range(a, b):
            for j in range(d):
                x = np.float64(X[i, j])
                low[j] = x if x < low[j] else low[j]
                high[j] = x if x > high[j] else high[j]
        if not overall:
            for i in range(a, b):
                for j in range(d):
                    mean[j] += X[i, j]
            for j in range(d):
                mean[j] /= b - a
        sums[:] = 0.0
        for i in range(a, b):
            for j in range(d):
                off = X[i, j] - mean[j]
                sums[j] += off * off
        for j in range(d):
            squares[j] += weights[q] * sums[j]
            ranges[j] = max(ranges[j], high[j] - low[j])


@compiled
def _csr_spreads(
    data: Matrix,
    indices: Indices,
    indptr: Indices,
    starts: Ints,
    weights: Floats,
    about: Floats,
    ranges: Floats,
    squares: Floats,
) -> None:
    """Overwrite ranges, and add to squares. Cost: the nonzeros."""
    d, overall, n_queries = len(ranges), len(about) > 0, len(starts) - 1
    low, high, mean, stored, filled = np.zeros(d), np.zeros(d), np.zeros(d), np.zeros(d), np.zeros(d)
    seen = np.zeros(d, dtype=np.bool_)
    columns = np.empty(d, dtype=np.int64)
    m, rows, total = 0, 0, 0.0
    if overall:
        mean[:] = about
    for q in range(n_queries):
        first, last, weight = indptr[starts[q]], indptr[starts[q + 1]], weights[q] if overall else 1.0
        rows += starts[q + 1] - starts[q]
        total += weight * (starts[q + 1] - starts[q])
        for p in range(first, last):
            c, x = indices[p], np.float64(data[p])
            if not seen[c]:
                seen[c] = True
                columns[m] = c
                m += 1
                low[c], high[c], stored[c], filled[c] = x, x, 0.0, 0.0
                if not overall:
                    mean[c] = 0.0
            low[c], high[c] = min(low[c], x), max(high[c], x)
            stored[c] += weight
            filled[c] += 1.0
            if not overall:
                mean[c] += x
        if overall:
            for p in range(first, last):
                off = data[p] - mean[indices[p]]
                squares[indices[p]] += weight * off * off
            if q < n_queries - 1:
                continue
        for r in range(m):
            c = columns[r]
            if not overall:
                mean[c] /= rows
            if filled[c] < rows:  # of a full column, what rounding leaves of total - stored would count as zeros
                low[c], high[c] = min(low[c], 0.0), max(high[c], 0.0)
                squares[c] += (1.0 if overall else weights[q]) * (total - stored[c]) * mean[c] * mean[c]
            ranges[c] = max(ranges[c], high[c] - low[c])
            seen[c] = False
        if not overall:
            for p in range(first, last):
                off = data[p] - mean[indices[p]]
                squares[indices[p]] += weights[q] * off * off
            m, rows, total = 0, 0, 0.0
