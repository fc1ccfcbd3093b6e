"""Minimising a RankObjective from coarse to fine: the optimum of a sample, then steps on all documents.

The sample's optimum lies close to that of all documents, and the sample's Hessian close to theirs: on many documents
both together leave two or three evaluations of gradient to do, at a tenth of what Newton's method from zero costs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ranktune.solvers.base.ranker import Step
from ranktune.solvers.core.arrays import Floats, Ints
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.optimizers.curvature import DENSE_FEATURES, DiagonalHessian, SampledHessian
from ranktune.solvers.optimizers.newton import Point, minimise
from ranktune.solvers.optimizers.pairwise_objective import RankObjective

SAMPLE_SHARE = 20
SAMPLE_PER_FEATURE = 20
MIN_SAMPLE = 500
SAMPLE_QUERIES = 50
MAX_SAMPLE_OF_QUERY = 5000
"""A sample is one document in 20, at least 20 for each feature and 500, of 50 queries or all, and at most 5,000 of
one query. With fewer documents a feature, the sample's H is far from that of all; and forming H takes a row of
n_features for each grade of the longest query.
"""

SAMPLE_TOLERANCE = 2e-2
"""How far the gradient of the sample is reduced: its optimum is no nearer to the optimum of all."""


FORCING = 0.3
"""How roughly Newton's equations are solved with a diagonal preconditioner: the active pairs change so much from step
to step that closer solutions are wasted.
"""


class Descent:
    """An objective with what minimising it needs besides: its gradient at zero, a sample, a preconditioner.

    All of it serves any C, so that a path of them is followed with one of these.
    """

    def __init__(self, objective: RankObjective) -> None:
        self.objective = objective
        self._at_zero: tuple[float, Floats] | None = None
        self.preconditioner: SampledHessian | DiagonalHessian
        self.part = None if objective.n_features > DENSE_FEATURES else Part.of(objective)
        if objective.n_features > DENSE_FEATURES:
            self.preconditioner = DiagonalHessian(objective)
        else:
            self.preconditioner = SampledHessian(self.part or (lambda: objective), whole=self.part is None)

    @property
    def at_zero(self) -> tuple[float, Floats]:
        """The loss of the objective and its gradient at zero weights, for C = 1."""
        if self._at_zero is None:
            self._at_zero = self.objective.loss_at_zero(self.objective.executor)
        return self._at_zero

    def set_strength(self, C: float) -> None:
        """Make C that of the objective and of all that stands for it."""
        self.objective.C = C
        if self.part is not None:
            self.part().C = C
        self.preconditioner.set_strength(C)

    def start(self) -> Point:
        """Return where to begin with nothing known: the optimum of the sample, or zero. It is evaluated."""
        objective = self.objective
        if self.part is not None:
            weights = self._solve_sample(self.part())
            if isinstance(self.preconditioner, SampledHessian):
                self.preconditioner.form()
            self.part.let_go()
            point = Point(weights, *objective.value_and_gradient(weights))
            if point.value <= objective.C * self.at_zero[0]:  # otherwise the sample misleads
                return point
        objective.rank_at_zero()
        value, gradient = self.at_zero
        zero = np.zeros(objective.n_features)
        return Point(zero, objective.C * value, objective.C * gradient, objective.image(zero))

    def _solve_sample(self, part: RankObjective) -> Floats:
        """Return the optimum of part. Meanwhile another thread, if there is one, evaluates zero weights."""
        objective = self.objective
        later = None if objective.executor is None else objective.executor.submit(objective.loss_at_zero)
        weights = np.zeros(objective.n_features)
        descent = Descent(part)
        for found, _ in descent.steps(descent.start(), tolerance=SAMPLE_TOLERANCE, max_iterations=50):
            weights = found.weights
        if later is not None:
            self._at_zero = later.result()
        return weights

    def resume(self, weights: Floats) -> Point:
        """Return the point at weights, evaluated, with the sample evaluated there too."""
        self.renew(weights)
        image = self.objective.image(weights)
        return Point(weights, *self.objective.value_and_gradient(weights, image), image)

    def renew(self, weights: Floats) -> None:
        """Have the preconditioner formed again at weights, where the objective was evaluated last or will be next."""
        if self.part is not None:
            self.part().value_and_gradient(weights)
        self.preconditioner.forget()

    def steps(self, point: Point, *, tolerance: float, max_iterations: int) -> Iterator[tuple[Point, Step]]:
        """Yield points and records from point on, until |g| / |g at zero| is at most tolerance."""
        return minimise(
            self.objective,
            point,
            self.preconditioner,
            reference=self.objective.C * float(np.linalg.norm(self.at_zero[1])),
            tolerance=tolerance,
            max_iterations=max_iterations,
            forcing=FORCING if isinstance(self.preconditioner, DiagonalHessian) else 0.1,
        )


class Part:
    """The sample of an objective. Let go while nothing needs it, it is drawn again, the same, when something does."""

    def __init__(self, whole: RankObjective, first: RankObjective) -> None:
        self._whole = whole
        self._kept: RankObjective | None = first

    @classmethod
    def of(cls, objective: RankObjective) -> Part | None:
        """Return the sample of objective, None where that saves little."""
        first = sample(objective)
        return None if first is None else cls(objective, first)

    def __call__(self) -> RankObjective:
        """Return the sample as an objective."""
        if self._kept is None:
            self._kept = sample(self._whole)
        assert self._kept is not None
        return self._kept

    def let_go(self) -> None:
        """Free the memory of the sample."""
        self._kept = None


def sample(objective: RankObjective) -> RankObjective | None:
    """Return the objective on a part of the documents, scaled to resemble the whole; None where that saves little.

    Of the queries every m-th is taken, and where those would be few, more of them, and of their documents every m-th in
    the order of their grades. Each query is weighted by the pairs that it stands for.
    """
    queries, pairs = objective.queries, objective.pairs
    useful = np.flatnonzero(pairs > 0.0)
    rows = int(queries.lengths[useful].sum())
    size = max(rows // SAMPLE_SHARE, SAMPLE_PER_FEATURE * queries.n_features, MIN_SAMPLE)
    long = bool(queries.lengths.max() > MAX_SAMPLE_OF_QUERY)
    if 2 * size > rows and not long:
        return None
    stride = max(min(rows // size, len(useful) // SAMPLE_QUERIES), 1)
    chosen = useful[stride // 2 :: stride]
    within = max(rows // (size * stride), 1)
    part = _thinned(queries.select(chosen), np.maximum(within, -(-queries.lengths[chosen] // MAX_SAMPLE_OF_QUERY)))
    if part.n_documents > (1.0 if long else 0.75) * rows:  # short queries have nothing to spare
        return None
    weights = objective.query_weights[chosen] * (pairs.sum() / pairs[chosen].sum())
    kept = RankObjective(
        part,
        objective.C,
        multiplier=objective.multiplier,
        query_weights=weights,
        smoothing=objective.smoothing,
        adjacent=objective.adjacent,
        executor=objective.executor,
        threads=objective.threads,
    )
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
