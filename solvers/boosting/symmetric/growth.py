"""Symmetric trees grown on features in bins, round by round."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from ranktune.solvers.boosting.bins import Bins
from ranktune.solvers.boosting.growth import TrainingData
from ranktune.solvers.boosting.objectives import MakeObjective
from ranktune.solvers.boosting.symmetric.kernels import AT_ONCE, fill_leaves, grow_tree
from ranktune.solvers.core.arrays import Floats, Ints, Mask
from ranktune.solvers.models.trees import Trees, symmetric_trees

MAX_SUMS = 2**24
"""The most sums of derivatives of a tree that are kept, 8 bytes each; those of further features are counted anew."""


@dataclass(frozen=True)
class TreeLimits:
    """What bounds a tree, and the shares of what is drawn for it."""

    rate: float
    depth: int
    l2: float
    feature_share: float
    row_share: float


@dataclass(frozen=True, eq=False)
class SymmetricData(TrainingData):
    """Training data in dense bins; queries have no features. with_missing says which features have missing values.

    The first bin of those features holds the missing values. signs, (n_features,), are the monotone constraints.
    """

    bins: Bins
    signs: Ints
    with_missing: Mask | None
    limits: TreeLimits
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
        self._trees: list[tuple[Ints, Floats, Floats]] = []
        of_group = (2 ** (data.limits.depth - 1), AT_ONCE, 2, self._counts.max())
        n_groups = math.ceil(len(self._usable) * data.limits.feature_share / AT_ONCE)
        self._sums = np.empty((1 + min(n_groups, MAX_SUMS // math.prod(of_group)), *of_group))
        self._over = False
        self._scores: Floats = np.zeros(data.queries.n_documents) if data.start is None else data.start.copy()

    def grow(self) -> bool:
        """Grow one more round; return False, and add nothing, where no further split improves the fit."""
        if self._over:
            return False
        data, limits, draw, n = self._data, self._data.limits, self._generator, len(self._scores)
        gradient, curvature = self._objective.derivatives(self._scores, len(self._trees))
        features, rows = self._usable, np.arange(n, dtype=np.uint32)
        if limits.feature_share < 1.0:
            count = math.ceil(limits.feature_share * len(features))
            features = np.sort(draw.choice(features, count, replace=False))
        if limits.row_share < 1.0:
            rows = np.flatnonzero(draw.random(n) < limits.row_share).astype(np.uint32)
        splits = np.zeros((limits.depth, 2), dtype=np.int64)
        pairs = np.column_stack([gradient[rows], curvature[rows]]).ravel()
        places = np.arange(AT_ONCE * math.ceil(len(features) / AT_ONCE))
        groups = features[np.minimum(places, len(features) - 1)]
        parts = (data.bins.values, self._counts, data.signs, groups.reshape(-1, AT_ONCE), rows, pairs)
        splits = splits[: grow_tree(*parts, limits.l2, self._sums, splits)]
        self._over = len(splits) == 0
        if self._over and self._trees:  # a first tree without splits is kept
            return False
        values = np.zeros(2 ** len(splits))
        derivatives = (gradient, curvature, limits.l2, limits.rate)
        fill_leaves(data.bins.values, splits, data.signs, *derivatives, values, self._scores)
        thresholds = np.array([data.bins.cuts[f][b] for f, b in splits])
        self._trees.append((splits[:, 0], thresholds, values))
        return True

    def trees(self, first: int, last: int) -> Trees:
        """Return the trees of the rounds from number first up to but without last."""
        return symmetric_trees(self._trees[first:last]).with_sides_of(self._data.with_missing)
