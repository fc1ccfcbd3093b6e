"""Least squares on documents grouped by query, in memory or in blocks, without a prepared copy of the features.

    minimise  sum over documents of a (t - z)^2 + alpha |w|^2,   z = (x - level) M w

a  weight of the document             t  its target, less its level     M  diagonal, what each feature is multiplied by
level  the mean of the document's query, or of all documents

Under monotone constraints weights are bounded by 0, exactly where there are normal equations: see within_signs.

Few features: normal equations, summed in float64 by blocks of rows. Many: conjugate gradients on the same equations,
with the diagonal as preconditioner.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ranktune.solvers.base.ranker import Step
from ranktune.solvers.core.arrays import Floats, Ints, dense
from ranktune.solvers.core.errors import DataError, IncompatibleParts
from ranktune.solvers.core.parameters import part
from ranktune.solvers.data import products
from ranktune.solvers.data.blocked import Data, OpenBlock, blocked
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.scaling import SCALINGS, weighted_sums, without_level, without_share
from ranktune.solvers.losses.base import Loss
from ranktune.solvers.losses.penalties import Penalty
from ranktune.solvers.losses.pointwise import SquaredInsensitiveLoss
from ranktune.solvers.optimizers.base import Needs, Optimizer, Parts, Progress, minimised
from ranktune.solvers.optimizers.newton import conjugate_gradients

MAX_DENSE_FEATURES = 2000
"""Of normal equations: they take n_features^2 doubles, and solving them n_features^3 operations."""

MAX_DENSE_WORK = 2e10
"""Multiplications of normal equations on sparse features, whose zeros they do not skip: a second."""

BLOCK_BYTES = 1 << 20
"""Size of a block of doubles, which should stay in cache."""

MIN_BLOCK_ROWS = 512
"""Rows of a block: adding its products must cost little beside computing them."""

TOLERANCE = 1e-9
"""Relative residual of conjugate gradients, in the norm of the preconditioner."""


MAX_BLOCKS, MAX_EXCHANGES, ROUNDING = 3, 10, 1e-12
"""Of an exchange of weights within bounds: exchanges of many that do not help, exchanges a weight, and the part of the
largest gradient that counts as 0."""


@part
class LeastSquares(Optimizer):
    """The normal equations of the squared error of documents, solved exactly: one step.

    It takes SquaredInsensitiveLoss(epsilon=0), and L2 of a positive strength.
    """

    needs: ClassVar[Needs] = Needs(penalty=("strengths", "gradient"), scalings=SCALINGS)
    losses: ClassVar[str] = "named"
    penalties: ClassVar[tuple[str, ...]] = ("l2",)

    def check(self, loss: Loss, penalty: Penalty) -> None:
        """Raise IncompatibleParts for another loss or penalty."""
        if not is_squared_error(loss) or penalty.strengths[1] <= 0.0:
            raise IncompatibleParts(
                f"LeastSquares cannot minimise {loss!r} with {penalty!r}: it takes the squared error of documents, and "
                "L2 of a positive strength. LBFGS and OWLQN take any loss."
            )

    def follow(self, path: Sequence[Parts], data: Data) -> Iterator[Iterator[Progress]]:
        """Yield the one step for each of path. The products of the features are computed once."""
        factors = np.ones(data.n_features) if path[0].multiplier is None else path[0].multiplier
        equations = NormalEquations(data, factors, getattr(path[0].loss, "centre", "") == "query")
        for parts in path:
            mean = equations.weight / parts.loss_weight  # the loss is a mean over documents
            alpha = 0.5 * parts.penalty.strengths[1] * mean
            weights = equations.solve(alpha)
            if not np.isfinite(factors * weights).all():
                raise DataError(
                    "the squares of the features are too large for numbers. Divide the features by a factor."
                )
            objective = equations.squares(alpha, weights) / mean + parts.penalty.value(weights)
            yield iter([minimised(factors * weights, Step(1, objective, 0.0), 0.0)])


def is_squared_error(loss: object) -> bool:
    """Return whether a loss is the squared error of documents."""
    return isinstance(loss, SquaredInsensitiveLoss) and loss.epsilon == 0.0


class NormalEquations:
    """The equations for any alpha, summed over blocks. Targets are the grades, less their level.

    Cost: n_documents n_features^2 / 2 for few features, once, and n_features^3 for each alpha; for many, two passes
    over X an iteration. Of a block, workers return one vector, or one matrix, of features.
    """

    def __init__(self, data: Data, multiplier: Floats, by_query: bool) -> None:
        blocks = blocked(data)
        self._map, self._multiplier, self._monotone = blocks.workers.map, multiplier, data.monotone
        self._levels = None if by_query else _levels(self._map(_sums))
        self._last = np.zeros(data.n_features)
        self._gram: Floats | None = None
        sides, weights, targets = zip(*self._map(_side, self._levels), strict=True)
        self._side, self._targets = multiplier * np.sum(sides, axis=0), float(sum(targets))
        self.weight = float(sum(weights))
        """Of all documents."""
        work = float(blocks.extent.n_documents) * data.n_features**2
        if data.n_features <= MAX_DENSE_FEATURES and not (blocks.extent.is_sparse and work > MAX_DENSE_WORK):
            self._gram = np.sum(self._map(_gram, self._levels), axis=0) * multiplier * multiplier[:, None]
            self._diagonal = self._gram.diagonal().copy()
        else:
            self._diagonal = multiplier**2 * np.sum(self._map(_squares), axis=0)

    def solve(self, alpha: float) -> Floats:
        """Return w, (n_features,); conjugate gradients start at the w returned before."""
        if self._gram is None:
            self._last = self._last + self._iterated(alpha)
            return self._last
        np.fill_diagonal(self._gram, self._diagonal + alpha)
        if self._monotone is not None:
            return within_signs(self._gram, self._side, self._monotone)
        return np.asarray(np.linalg.solve(self._gram, self._side), dtype=np.float64)

    def squares(self, alpha: float, weights: Floats) -> float:
        """Return the sum over documents of a (t - z)^2 at weights, what solve returned last, for that alpha."""
        curved = self._side if self._gram is None else self._gram @ weights
        return max(self._targets + float((curved - alpha * weights - 2.0 * self._side) @ weights), 0.0)

    def _iterated(self, alpha: float) -> Floats:
        """Return the difference from the last w, by conjugate gradients.

        The preconditioner leaves out what the level subtracts from the diagonal.
        """
        multiplier, diagonal = self._multiplier, alpha + self._diagonal

        def product(direction: Floats) -> tuple[Floats, None]:
            parts = self._map(_product, self._levels, multiplier * direction)
            return multiplier * np.sum(parts, axis=0) + alpha * direction, None

        left = self._side - product(self._last)[0] if self._last.any() else self._side
        share = float(left @ (left / diagonal)) / max(float(self._side @ (self._side / diagonal)), 1e-300)
        if share <= TOLERANCE**2:
            return np.zeros_like(left)
        return conjugate_gradients(product, left, lambda residual: residual / diagonal, TOLERANCE / np.sqrt(share))[0]


@dataclass(frozen=True, eq=False)
class Levels:
    """The means over all documents of the features, (n_features,), and of the grades."""

    features: Floats
    grade: float


def _sums(block: OpenBlock) -> tuple[Floats, float, float]:
    """Return the weighted sums of the features and of the grades of a block, and the weight of its documents."""
    sums, weight = weighted_sums(block.queries)
    return sums, float(block.queries.weight_of_document @ block.queries.grades), weight


def _levels(parts: Sequence[tuple[Floats, float, float]]) -> Levels:
    sums, grades, weights = zip(*parts, strict=True)
    return Levels(np.sum(sums, axis=0) / sum(weights), sum(grades) / sum(weights))


def _side(block: OpenBlock, levels: Levels | None) -> tuple[Floats, float, float]:
    """Return X' A t of a block, X less its level, the weight of its documents, and t' A t.

    levels are None where the level of a document is the mean of its query.
    """
    queries = block.queries
    weights = queries.weight_of_document
    target = without_level(queries.grades, queries) if levels is None else queries.grades - levels.grade
    weighted = weights * target
    return _centred_product(queries, levels, weighted), float(weights.sum()), float(weighted @ target)


def _squares(block: OpenBlock) -> Floats:
    """Return the diagonal of X' A X of a block, X as it is."""
    return products.squares(block.queries.features, block.queries.weight_of_document)


def _product(block: OpenBlock, levels: Levels | None, direction: Floats) -> Floats:
    """Return X' A X times direction of a block, X less its level."""
    scores = products.scores(block.queries.features, direction)
    if levels is not None:
        scores -= float(levels.features @ direction)
    return _centred_product(block.queries, levels, block.queries.weight_of_document * scores)


def _centred_product(queries: Queries, levels: Levels | None, values: Floats) -> Floats:
    """Return X' values, X less its level; values, (n_documents,), are weighted already."""
    if levels is None:
        return products.transposed(queries.features, without_share(values, queries))
    of_level: Floats = levels.features * values.sum()
    return products.transposed(queries.features, values) - of_level


def within_signs(gram: Floats, side: Floats, signs: Ints) -> Floats:
    """Return the w with gram w = side that is nearest in the norm of gram where no weight has the other sign.

    signs (n_features,) are 1, -1, or 0 for weights without a bound; gram is positive definite. Weights that have the
    wrong sign, and weights of 0 that the gradient drives to the right one, change places all at once as long as they
    become fewer, else one by one, which ends.
    Source: Júdice & Pires 1994, "A block principal pivoting algorithm for large-scale strictly monotone linear
    complementarity problems", Computers & Operations Research 21.
    """
    free, fewest, patience = np.ones(len(side), dtype=bool), len(side) + 1, MAX_BLOCKS
    rounding = ROUNDING * float(np.abs(side).max(initial=0.0))
    for _ in range(MAX_EXCHANGES * len(side)):
        weights = np.zeros(len(side))
        weights[free] = np.linalg.solve(gram[np.ix_(free, free)], side[free])
        gradient = gram @ weights - side
        wrong = np.where(free, weights * signs < 0.0, gradient * signs < -rounding)
        count = int(np.count_nonzero(wrong))
        if count == 0:
            break
        if count < fewest:
            fewest, patience = count, MAX_BLOCKS
        else:
            patience -= 1
        if patience < 0:
            wrong[: np.flatnonzero(wrong)[-1]] = False
        free ^= wrong
    return np.where(weights * signs < 0.0, 0.0, weights)


def _gram(block: OpenBlock, levels: Levels | None) -> Floats:
    """Return X' A X of a block, X less its level, (n_features, n_features)."""
    queries = block.queries
    gram = np.zeros((queries.n_features, queries.n_features))
    roots = np.sqrt(queries.weight_of_document) if queries.is_weighted else None
    for first, rows in _centred_rows(queries, levels):
        if roots is not None:
            rows *= roots[first : first + len(rows)][:, None]
        gram += rows.T @ rows  # one triangle, mirrored: numpy sees that both are one array
    return gram


def _centred_rows(queries: Queries, levels: Levels | None) -> Iterator[tuple[int, Floats]]:
    """Yield the features less their level, some rows at a time, as doubles, with the number of the first row."""
    starts = queries.starts
    rows = max(BLOCK_BYTES // (8 * queries.n_features), MIN_BLOCK_ROWS)
    if levels is not None:
        yield from _less(queries, 0, queries.n_documents, rows, levels.features)
        return
    first, weights = 0, queries.document_weights
    while first < queries.n_queries:
        last = max(int(np.searchsorted(starts, starts[first] + rows, side="right")) - 1, first + 1)
        a, b = int(starts[first]), int(starts[last])
        if b - a > rows:  # one long query
            counts = np.ones(b - a) if weights is None else weights[a:b]
            yield from _less(queries, a, b, rows, products.transposed(queries.features[a:b], counts) / counts.sum())
        else:
            block, lengths = _doubles(queries, a, b), np.diff(starts[first : last + 1])
            at = starts[first:last] - a
            if weights is None:
                means = np.add.reduceat(block, at, axis=0) / lengths[:, None]
            else:
                sums = np.add.reduceat(block * weights[a:b, None], at, axis=0)
                means = sums / np.add.reduceat(weights[a:b], at)[:, None]
            block -= np.repeat(means, lengths, axis=0)
            yield a, block
        first = last


def _less(queries: Queries, a: int, b: int, rows: int, level: Floats) -> Iterator[tuple[int, Floats]]:
    for at in range(a, b, rows):
        yield at, _doubles(queries, at, min(at + rows, b)) - level


def _doubles(queries: Queries, a: int, b: int) -> Floats:
    return np.array(dense(queries.features[a:b]), dtype=np.float64, order="C")
