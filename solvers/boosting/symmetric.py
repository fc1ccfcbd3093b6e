"""Boosted symmetric trees, grown round by round on features in bins."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, replace
from typing import Annotated, ClassVar, Self

import numpy as np

from ranktune.solvers.boosting.base import BoostedRanker, pair_scale
from ranktune.solvers.boosting.bins import Bins, binned, shared_by
from ranktune.solvers.boosting.growth import TrainingData
from ranktune.solvers.boosting.objectives import NOISY, Decay, MakeObjective, NoisyRankings, Samples, query_error
from ranktune.solvers.boosting.symmetric_kernels import AT_ONCE, fill_leaves, grow_tree
from ranktune.solvers.boosting.training_queries import L2, RowShare, TrainingQueries, check_share, whole
from ranktune.solvers.core.arrays import Floats, Ints, Mask
from ranktune.solvers.core.parameters import Param, with_parameters
from ranktune.solvers.data.origins import Kept
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.scaling import without_level
from ranktune.solvers.models.trees import ANY_VALUE, Trees, symmetric_trees

MAX_SUMS = 2**24
"""The most sums of derivatives of a tree that are kept, 8 bytes each; those of further features are counted anew."""
KEPT: Kept[Bins] = Kept(2)
"""The bins of the last data sets of this process."""
MAX_KEPT_BYTES = 2**30
"""The most bytes of the bins of a data set that are kept; larger bins are made for each fit."""


@with_parameters
class SymmetricGBDT(BoostedRanker):
    """Boosted symmetric trees, which have one split a level, on the grades within queries.

    Such trees are smoother than others of as many leaves, and overfit less. Queries without two different grades are
    left out. Weights of queries and documents multiply the gradients. Missing values go left. Sparse features are kept
    in dense bins, a byte a value. Cost of a round: feature_share row_share depth n_documents n_features additions.

    {parameters}

    {attributes}

    References
    ----------
    Friedman 2001, "Greedy Function Approximation: A Gradient Boosting Machine", Annals of Statistics 29(5).
    Prokhorenkova et al. 2018, "CatBoost: unbiased boosting with categorical features", NeurIPS, for symmetric
    (oblivious) trees and squared errors within queries.

    Examples
    --------
    >>> import numpy as np
    >>> from ranktune.solvers import SymmetricGBDT
    >>> X = np.linspace(0.0, 1.0, 60)[:, None]
    >>> grades = (X[:, 0] > 0.5).astype(int)
    >>> ranker = SymmetricGBDT(trees=20).fit(X, grades, qid=np.arange(60) % 6)
    >>> bool(ranker.predict([[0.9]]) > ranker.predict([[0.1]]))
    True
    """

    trees = 200
    _: KW_ONLY
    depth: Annotated[int, Param("The levels of each tree.", low=3, high=8, check=whole(1, 12))] = 6
    l2: L2 = 10.0
    feature_share: Annotated[
        float, Param("The share of the features that is drawn for each tree.", low=0.2, high=1.0, check=check_share)
    ] = 1.0
    row_share: RowShare = 0.8
    loss: Annotated[
        str,
        Param(
            '"squared": squared errors of grades less their mean in the query. "yetirank", "smoothed": see LambdaMART.',
            choices=("squared", *NOISY),
        ),
    ] = "squared"
    samples: Samples = 10
    decay: Decay = 0.85
    bins = 128

    space_order = ("trees", "learning_rate", "depth", "l2", "feature_share", "row_share", "loss")
    weighted: ClassVar[bool] = True
    takes_document_weights: ClassVar[bool] = True
    takes_missing: ClassVar[bool] = True
    needs_pairs: ClassVar[bool] = True

    def _source(self, training: TrainingQueries) -> SymmetricData:
        queries = training.queries
        bins = self._bins(queries)
        with_missing = None
        if queries.has_missing:
            with_missing = np.array([len(cuts) > 0 and cuts[0] == -ANY_VALUE for cuts in bins.cuts])
        limits = TreeLimits(
            float(self.learning_rate),
            int(self.depth),
            float(self.l2),
            float(self.feature_share),
            float(self.row_share),
        )
        noisy = NoisyRankings.of(self.get_params())
        targets = without_level(queries.grades, queries) if noisy is None else noisy.targets(queries)
        make = query_error if noisy is None else noisy.objective
        start = self._first_scores(training)
        signs = np.zeros(len(bins.cuts), dtype=np.int64) if queries.monotone is None else queries.monotone
        return SymmetricData(queries.without_features(), targets, start, bins, signs, with_missing, limits, make)

    def _bins(self, queries: Queries) -> Bins:
        """Return the features in bins, which are shared with other queries of the same data."""
        origin, numbers = shared_by(queries)
        if origin.n_documents * origin.n_features > MAX_KEPT_BYTES:
            return binned(queries.features, int(self.bins)).dense()
        bins = KEPT.of(origin, str(self.bins), lambda: binned(origin.features, int(self.bins)).dense())
        if origin is queries:
            return bins
        values = bins.values[:, np.arange(origin.n_documents)[origin.documents_of(numbers)]]
        return replace(bins, values=np.ascontiguousarray(values))

    def _start_scale(self, queries: Queries) -> float:
        return pair_scale(queries) if self.loss in NOISY else 1.0


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
