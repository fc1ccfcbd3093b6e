"""Minimising a RankObjective from coarse to fine: the optimum of a sample, then steps on all documents.

The sample's optimum lies close to that of all documents, and the sample's Hessian close to theirs: on many documents
both together leave two or three evaluations of gradient to do, at a tenth of what Newton's method from zero costs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ranktune.solvers.arrays import Floats, Ints
from ranktune.solvers.curvature import DENSE_FEATURES, DiagonalHessian, SampledHessian
from ranktune.solvers.newton import Point, Preconditioner, minimise
from ranktune.solvers.queries import Queries
from ranktune.solvers.rank_objective import RankObjective
from ranktune.solvers.ranker import Step

SAMPLE_SHARE = 20
SAMPLE_PER_FEATURE = 20
SAMPLE_LEAST = 500
SAMPLE_QUERIES = 50
SAMPLE_LONGEST = 5000
"""A sample is one document in 20, at least 20 for each feature and 500, of 50 queries or all, and at most 5,000 of
one query. With fewer documents a feature, the sample's H is far from that of all; and forming H takes a row of
n_features for each grade of the longest query.
"""

SAMPLE_TOLERANCE = 2e-2
"""How far the gradient of the sample is reduced: its optimum is no nearer to the optimum of all."""


def solve(
    objective: RankObjective, *, tolerance: float, max_iterations: int, weights: Floats | None = None
) -> Iterator[tuple[Point, Step]]:
    """Yield points and records of minimising objective from weights on, until |g| / |g at zero| is at most tolerance.

    Without weights the start is the optimum of a sample, found the same way, or zero.
    """
    at_zero, gradient = objective.at_zero()
    start = np.zeros(objective.n_features) if weights is None else weights
    preconditioner: Preconditioner
    if objective.n_features > DENSE_FEATURES:
        preconditioner = DiagonalHessian(objective)
    else:
        part = sample(objective)
        preconditioner = SampledHessian(part or objective, whole=part is None)
        if part is not None and weights is None:
            for point, _ in solve(part, tolerance=SAMPLE_TOLERANCE, max_iterations=50):
                start = point.weights
        elif part is not None:
            part.value_and_gradient(start)
    reference = float(np.linalg.norm(gradient))
    value, gradient = objective.value_and_gradient(start)
    if weights is None and value > at_zero:  # the sample misleads
        start = np.zeros(objective.n_features)
        value, gradient = objective.value_and_gradient(start)
    first = Point(start, value, gradient)
    yield from minimise(
        objective, first, preconditioner, reference=reference, tolerance=tolerance, max_iterations=max_iterations
    )


def sample(objective: RankObjective) -> RankObjective | None:
    """Return the objective on a part of the documents, scaled to resemble the whole; None where that saves little.

    Of the queries every m-th is taken, and where those would be few, more of them, and of their documents every m-th in
    the order of their grades. Each query is weighted by the pairs that it stands for.
    """
    queries, pairs = objective.queries, objective.pairs
    useful = np.flatnonzero(pairs > 0.0)
    rows = int(queries.lengths[useful].sum())
    size = max(rows // SAMPLE_SHARE, SAMPLE_PER_FEATURE * queries.n_features, SAMPLE_LEAST)
    long = bool(queries.lengths.max() > SAMPLE_LONGEST)
    if 2 * size > rows and not long:
        return None
    stride = max(min(rows // size, len(useful) // SAMPLE_QUERIES), 1)
    chosen = useful[stride // 2 :: stride]
    within = max(rows // (size * stride), 1)
    part = _thinned(queries.select(chosen), np.maximum(within, -(-queries.lengths[chosen] // SAMPLE_LONGEST)))
    if part.n_documents > (1.0 if long else 0.75) * rows:  # short queries have nothing to spare
        return None
    weights = objective.query_weights[chosen] * (pairs.sum() / pairs[chosen].sum())
    kept = RankObjective(part, objective.C, multiplier=objective.multiplier, query_weights=weights)
    kept.query_weights *= np.divide(pairs[chosen], kept.pairs, out=np.zeros_like(weights), where=kept.pairs > 0.0)
    return kept


def _thinned(queries: Queries, every: Ints) -> Queries:
    """Return every[q]-th document of each query q, in the order of their grades."""
    every = np.minimum(every, np.maximum(queries.lengths // 2, 1))  # two documents at least, if there are two
    if (every == 1).all():
        return queries
    rows = []
    for q in range(queries.n_queries):
        a, b = queries.starts[q], queries.starts[q + 1]
        by_grade = np.argsort(queries.grades[a:b], kind="stable")
        rows.append(a + np.sort(by_grade[every[q] // 2 :: every[q]]))
    starts = np.concatenate([[0], np.cumsum([len(part) for part in rows])]).astype(np.int64)
    at = np.concatenate(rows)
    return replace(queries, features=queries.features[at], grades=queries.grades[at], starts=starts, document_ids=None)
