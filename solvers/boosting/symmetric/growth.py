"""Symmetric trees grown on features in bins, round by round."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from ranktune.solvers.boosting.bins import Bins
from ranktune.solvers.boosting.growth import TrainingData
from ranktune.solvers.boosting.objectives import MakeObjective
from ranktune.solvers.boosting.symmetric.kernels import fill_leaves, grow_tree
from ranktune.solvers.core.arrays import Floats, Ints, Mask
from ranktune.solvers.models.trees import Trees, joined, symmetric_tree


@dataclass(frozen=True)
class Limits:
    """What bounds a tree, and the shares of what is drawn for it."""

    rate: float
    depth: int
    l2: float
    feature_share: float
    row_share: float


@dataclass(frozen=True, eq=False)
class SymmetricData(TrainingData):
    """Training data in dense bins; queries have no features. with_missing says which features have missing values.

    The first bin of those features holds the missing values.
    """

    bins: Bins
    with_missing: Mask | None
    limits: Limits
    objective: MakeObjective

    def part(self, numbers: Ints) -> Self:
        """Return the data of the queries of these numbers, ascending."""
        values = self.bins.values[:, self.queries.documents_of(numbers)]
        return replace(super().part(numbers), bins=replace(self.bins, values=np.ascontiguousarray(values)))

    def growth(self, seed: int) -> SymmetricGrowth:
        """Return the growth of trees on the data."""
        return SymmetricGrowth(self, seed)


class SymmetricGrowth:
    """Symmetric trees that are grown, and the scores of the training documents."""

    def __init__(self, data: SymmetricData, seed: int) -> None:
        self._data, self._generator = data, np.random.default_rng(seed)
        self._objective = data.objective(data.queries, data.targets, seed)
        self._counts = data.bins.counts
        self._usable = np.flatnonzero(self._counts > 1)
        self._trees: list[Trees] = []
        self._over = False
        self._scores: Floats = np.zeros(data.queries.n_documents) if data.start is None else data.start.copy()

    def grow(self) -> bool:
        """Grow one more round; return False, and add nothing, where no further split improves the fit."""
        if self._over:
            return False
        data, limits, draw, n = self._data, self._data.limits, self._generator, len(self._scores)
        gradient, curvature = self._objective.derivatives(self._scores, len(self._trees))
        features, rows = self._usable, np.arange(n, dtype=np.int32)
        if limits.feature_share < 1.0:
            count = math.ceil(limits.feature_share * len(features))
            features = np.sort(draw.choice(features, count, replace=False))
        if limits.row_share < 1.0:
            rows = np.flatnonzero(draw.random(n) < limits.row_share).astype(np.int32)
        splits = np.zeros((limits.depth, 2), dtype=np.int64)
        parts = (data.bins.values, self._counts, features, rows, gradient, curvature)
        splits = splits[: grow_tree(*parts, limits.l2, splits)]
        self._over = len(splits) == 0
        if self._over and self._trees:  # a first tree without splits is kept
            return False
        values = np.zeros(2 ** len(splits))
        fill_leaves(data.bins.values, splits, gradient, curvature, limits.l2, limits.rate, values, self._scores)
        thresholds = np.array([data.bins.cuts[f][b] for f, b in splits])
        self._trees.append(symmetric_tree(splits[:, 0], thresholds, values).with_sides_of(data.with_missing))
        return True

    def trees(self, first: int, last: int) -> Trees:
        """Return the trees of the rounds from number first up to but without last."""
        return joined(self._trees[first:last])
