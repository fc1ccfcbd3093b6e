"""Ridge regression on documents grouped by query, without a prepared copy of the features.

    minimise  sum over documents of a (t - z)^2 + alpha |w|^2,   z = (x - level) M w

a  weight of the document's query     t  its target, less its level     M  diagonal, what each feature is multiplied by
level  the mean of the document's query, or of all documents

Few features: normal equations, summed in float64 by blocks of rows. Many: conjugate gradients on the same equations,
with the diagonal as preconditioner.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy import sparse

from ranktune.solvers import products
from ranktune.solvers.arrays import Floats
from ranktune.solvers.centring import subtract_means, weighted_means
from ranktune.solvers.newton import conjugate_gradients
from ranktune.solvers.queries import Queries

MOST_FEATURES = 2000
"""For normal equations: n_features^2 doubles must fit, and solving takes n_features^3."""

MOST_WORK = 2e10
"""Multiplications of the normal equations on sparse features, whose zeros they do not skip: a second."""

BLOCK_BYTES = 1 << 20
"""Of the doubles of a block: they should stay in cache."""

LEAST_ROWS = 512
"""Of a block: adding its products must cost little beside taking them."""

TOLERANCE = 1e-9
"""Of conjugate gradients: what is left of the residual, in the norm of the preconditioner."""


def ridge(queries: Queries, target: Floats, alpha: float, multiplier: Floats, by_query: bool) -> Floats:
    """Return w, (n_features,). target is (n_documents,), already less its level.

    Cost: n_documents n_features^2 / 2 for few features; for many, two passes over X an iteration.
    """
    n, d = queries.n_documents, queries.n_features
    weights = np.repeat(queries.weight_of_query, queries.lengths)
    side = multiplier * products.transposed(queries.features, _less_level(weights * target, weights, queries, by_query))
    if d <= MOST_FEATURES and not (queries.is_sparse and float(n) * d * d > MOST_WORK):
        gram = _gram(queries, by_query) * multiplier * multiplier[:, None]
        gram[np.diag_indices(d)] += alpha
        return np.asarray(np.linalg.solve(gram, side), dtype=np.float64)
    return _iterated(queries, side, alpha, multiplier, by_query, weights)


def _gram(queries: Queries, by_query: bool) -> Floats:
    """Return X' A X, X less its level, (n_features, n_features)."""
    gram = np.zeros((queries.n_features, queries.n_features))
    roots = np.sqrt(queries.weight_of_query)
    for first, block in _centred_blocks(queries, by_query):
        if queries.query_weights is not None:
            documents = np.arange(first, first + len(block))
            block *= roots[np.searchsorted(queries.starts, documents, side="right") - 1][:, None]
        gram += block.T @ block  # one triangle, mirrored: numpy sees that both are one array
    return gram


def _centred_blocks(queries: Queries, by_query: bool) -> Iterator[tuple[int, Floats]]:
    """Yield the features less their level, some rows at a time, as doubles, with the number of the first row."""
    starts = queries.starts
    rows = max(BLOCK_BYTES // (8 * queries.n_features), LEAST_ROWS)
    if not by_query:
        level = weighted_means(queries)
        yield from _less(queries, 0, queries.n_documents, rows, level)
        return
    first = 0
    while first < queries.n_queries:
        last = max(int(np.searchsorted(starts, starts[first] + rows, side="right")) - 1, first + 1)
        a, b = int(starts[first]), int(starts[last])
        if b - a > rows:  # one long query
            yield from _less(queries, a, b, rows, products.transposed(queries.features[a:b], np.ones(b - a)) / (b - a))
        else:
            block, lengths = _doubles(queries, a, b), np.diff(starts[first : last + 1])
            means = np.add.reduceat(block, starts[first:last] - a, axis=0) / lengths[:, None]
            block -= np.repeat(means, lengths, axis=0)
            yield a, block
        first = last


def _less(queries: Queries, a: int, b: int, rows: int, level: Floats) -> Iterator[tuple[int, Floats]]:
    for at in range(a, b, rows):
        yield at, _doubles(queries, at, min(at + rows, b)) - level


def _doubles(queries: Queries, a: int, b: int) -> Floats:
    part = queries.features[a:b]
    return np.array(part.toarray() if sparse.issparse(part) else part, dtype=np.float64, order="C")


def _iterated(
    queries: Queries, side: Floats, alpha: float, multiplier: Floats, by_query: bool, weights: Floats
) -> Floats:
    """Return w by conjugate gradients; what the level takes off the diagonal is left out of the preconditioner."""
    features = queries.features
    diagonal = alpha + multiplier**2 * products.squares(features, weights)

    def product(direction: Floats) -> tuple[Floats, None]:
        by_document = weights * products.scores(features, multiplier * direction)
        by_document = _less_level(by_document, weights, queries, by_query)
        return multiplier * products.transposed(features, by_document) + alpha * direction, None

    return conjugate_gradients(product, side, lambda residual: residual / diagonal, TOLERANCE)[0]


def _less_level(values: Floats, weights: Floats, queries: Queries, by_query: bool) -> Floats:
    """Return values, already weighted, less their level: what centring the features does to a product with X'."""
    if not by_query:
        centred: Floats = values - weights * (values.sum() / weights.sum())
        return centred
    centred = np.array(values)
    subtract_means(centred, queries.starts)  # weights are those of the query: alike within it
    return centred
