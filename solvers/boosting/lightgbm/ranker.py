"""The base of the rankers that LightGBM grows: their parameters, their data in its bins, and its trees as Trees.

LightGBM is loaded when a model is fitted. Its trees are converted at once, so that prediction, saving and loading do
not need it. With one thread and one seed, two fits give the same bits.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from typing import Annotated, ClassVar, Self

import numpy as np

from ranktune.solvers.abilities import POSITIONS
from ranktune.solvers.boosting.base import GrownRanker
from ranktune.solvers.boosting.growth import TrainingData
from ranktune.solvers.boosting.lightgbm.library import (
    DENSE_SAMPLE,
    MAX_KEPT_BYTES,
    Data,
    Parameters,
    TreeBooster,
    bins_of,
    rows_of,
)
from ranktune.solvers.boosting.objectives import BoostingObjective, MakeObjective
from ranktune.solvers.boosting.training_queries import (
    L2,
    InBlocks,
    TrainingQueries,
    check_share,
    check_single,
    check_single_features,
    kinds_of,
    possible,
    whole,
)
from ranktune.solvers.core.arrays import Features, Floats, Ints, Json
from ranktune.solvers.core.parameters import Param, with_parameters
from ranktune.solvers.data.blocked import BlockedQueries, better_divided
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.models.other_libraries.lightgbm import trees_of
from ranktune.solvers.models.trees import Trees


@dataclass(frozen=True, eq=False)
class LightGBMData(TrainingData):
    """Training data in the bins of LightGBM, which grows trees on them; queries have no features.

    rows are those of bins that the documents have, all for None. objective makes the objective where LightGBM
    does not have it; factor multiplies the values of the trees.
    """

    bins: Data
    rows: Ints | None
    parameters: Parameters
    objective: MakeObjective | None = None
    factor: float = 1.0

    def part(self, numbers: Ints) -> Self:
        """Return the data of the queries of these numbers, ascending."""
        rows = rows_of(self.queries, numbers)
        return replace(super().part(numbers), rows=rows if self.rows is None else self.rows[rows])

    @cached_property
    def _described(self) -> Data:
        """The bins of the documents, with targets, weights and first scores."""
        data = self.bins if self.rows is None else self.bins.subset(self.rows, self.parameters)
        weights = self.queries.weight_of_document if self.queries.is_weighted else None
        data.describe(self.targets, self.queries.lengths, weights, self.start, self.queries.positions)
        return data

    def growth(self, seed: int) -> LightGBMGrowth:
        """Return the growth of trees on the data."""
        booster = TreeBooster(self._described, {**self.parameters, "seed": seed})
        objective = None if self.objective is None else self.objective(self.queries, self.targets, seed)
        return LightGBMGrowth(booster, self.factor, self.queries.has_missing, objective)


class LightGBMGrowth:
    """Trees that LightGBM grows, for its objective or a given objective; factor multiplies their values."""

    def __init__(
        self, booster: TreeBooster, factor: float, has_missing: bool, objective: BoostingObjective | None
    ) -> None:
        self._booster, self._factor, self._has_missing, self._objective = booster, factor, has_missing, objective
        self._rounds, self._over = 0, False

    def grow(self) -> bool:
        """Grow one more round; return False, and add nothing, where no further split improves the fit."""
        if self._over:
            return False
        if self._objective is None:
            self._over = self._booster.update()
        else:
            self._over = self._booster.update_by(*self._objective.derivatives(self._booster.scores(), self._rounds))
        if self._over and self._rounds > 0:
            return False
        self._rounds += 1  # a first tree without splits is kept: its value is a constant
        return True

    def trees(self, first: int, last: int) -> Trees:
        """Return the trees of the rounds from number first up to but without last."""
        trees = trees_of(self._booster.text(first, last - first), self._has_missing)
        return trees if self._factor == 1.0 else trees.scaled(self._factor)


MAX_BUNDLED_BYTES = 2**32
"""Bytes of bins of sparse features that may be kept as bundled columns."""
MAX_ROW_WISE = 2**24
"""Bins of dense features that are read by rows: more do not stay in the caches of a processor."""
MAX_LEAVES = 131_072
"""The limit of LightGBM."""


ZERO, LARGEST = 1e-35, 1e300
"""Values between them are neither 0 nor cut off in LightGBM."""


@with_parameters
class LightGBMRanker(GrownRanker):
    """A ranker whose trees LightGBM grows; a subclass defines the objective."""

    _: KW_ONLY
    leaves: Annotated[
        int, Param("The most leaves of each tree.", low=4, high=64, log=True, check=whole(2, MAX_LEAVES))
    ] = 31
    min_documents: Annotated[
        int, Param("The least documents of each leaf; at most a tenth of all.", low=5, high=200, log=True)
    ] = 20
    l2: L2 = 1.0
    feature_share: Annotated[
        float, Param("The share of the features that is drawn for each split.", low=0.2, high=1.0, check=check_share)
    ] = 1.0
    splitter: Annotated[
        str,
        Param(
            "The thresholds that a split compares: all of each feature, or a random one of each.",
            choices=("best", "random"),
        ),
    ] = "best"

    weighted: ClassVar[bool] = True
    takes_document_weights: ClassVar[bool] = True
    takes_missing: ClassVar[bool] = True

    def _objective(self) -> Json:
        """Return the parameters of LightGBM that are specific to the solver."""
        raise NotImplementedError

    def _targets(self, queries: Queries) -> tuple[Floats, Json]:
        """Return the target of each document, (n_documents,), and parameters that depend on the targets."""
        check_single(queries.grades, "a grade")
        return queries.grades, {}

    def _training(self, queries: Queries) -> TrainingQueries:
        """Return the queries that the objective can use: of many that are mapped, their features stay on disk."""
        columns = queries.n_features * kinds_of(queries, self._within)
        if not queries.is_sparse and queries.n_documents * columns > MAX_KEPT_BYTES:
            data = better_divided(queries)
            if isinstance(data, BlockedQueries):
                return InBlocks(data, pairs=self.needs_pairs, within=possible(queries, self._within))
        return super()._training(queries)

    def _fit_blocks(self, data: BlockedQueries) -> None:
        for _ in self._steps_on(InBlocks(data, pairs=self.needs_pairs, within=self._within), None):
            pass

    def _source(self, training: TrainingQueries) -> LightGBMData:
        queries, blocks = training.queries, training if isinstance(training, InBlocks) else None
        targets, more = self._targets(queries)
        start = self._first_scores(training)
        if start is not None:
            start = self._shifted(start, targets, queries)
        parameters = self._common() | self._objective() | self._leaf_limits(queries) | more
        parameters["use_missing"] = queries.has_missing
        parameters["is_enable_sparse"] = _bundled_bytes(queries.features) > MAX_BUNDLED_BYTES
        by_rows = blocks is None and _is_small(queries.features)
        parameters["force_row_wise" if by_rows else "force_col_wise"] = True
        if not queries.is_sparse:
            parameters["bin_construct_sample_cnt"] = DENSE_SAMPLE
        signs = queries.monotone if blocks is None else blocks.monotone
        if signs is not None:
            parameters["monotone_constraints"] = signs.tolist()
        if queries.is_weighted:
            check_single(queries.weight_of_document, "the weight of a query or document")
        if blocks is None:
            check_single_features(queries, "LightGBM", ZERO, LARGEST)
            bins, rows = bins_of(queries, parameters)
        else:
            bins, rows = Data.from_blocks(blocks.features, queries.n_documents, parameters), None
        thin = queries.without_features()
        if POSITIONS not in self.supports(self.get_params()):
            thin = thin.replaced(positions=None)
        return LightGBMData(thin, targets, start, bins, rows, parameters, self._derivatives(), self._factor())

    def _derivatives(self) -> MakeObjective | None:
        """Return what makes the objective where LightGBM does not have it."""
        return None

    def _shifted(self, start: Floats, targets: Floats, queries: Queries) -> Floats:
        """Return the scores before the first tree, (n_documents,), from those of a model."""
        level: Floats = start + (targets.mean() - start.mean())  # grades are fitted: start may be off by a constant
        return level

    def _factor(self) -> float:
        return 1.0

    def _leaf_limits(self, queries: Queries) -> Json:
        """Return the least size of a leaf. The curvature of squared errors is 1 per document, so that weights count."""
        documents = float(queries.weight_of_document.sum())
        least = min(int(self.min_documents), max(1, int(documents // 10)))
        rows = 1 if queries.is_weighted else least  # the same limit, but LightGBM drops too sparse features by it
        return {"min_data_in_leaf": rows, "min_sum_hessian_in_leaf": least * (1.0 - 1e-9)}

    def _common(self) -> Json:
        return {
            "num_leaves": int(self.leaves),
            "lambda_l2": float(self.l2),
            "feature_fraction_bynode": float(self.feature_share),
            "extra_trees": self.splitter == "random",
            "max_bin": int(self.bins),
            "min_data_in_bin": 1,
            "num_threads": int(self.threads),
            "deterministic": True,
            "feature_pre_filter": True,  # without it, sparse features that no split can use take ten times as long
            "data_random_seed": 1,  # all members of a bag have the same bins
            "verbosity": -1,
        }


def _is_small(features: Features) -> bool:
    """Return whether histograms are faster by rows, of which LightGBM then keeps a copy; the trees are the same."""
    return isinstance(features, np.ndarray) and features.size <= MAX_ROW_WISE


def _bundled_bytes(features: Features) -> int:
    """Return the approximate maximal bytes of bins where features that are rarely nonzero together share a column.

    Sparse bins take less memory, but with them LightGBM visits every cell, zeros included: minutes for 200,000
    documents of 100,000 features.
    """
    rows, columns = features.shape
    if isinstance(features, np.ndarray):
        return 0  # fewer bytes than the features themselves
    fullest = int(np.diff(features.indptr).max(initial=0))
    return int(rows) * min(int(columns), max(fullest, (int(features.nnz) + int(columns)) // 255))


def bagging(share: float) -> Json:
    """Return the parameters of LightGBM to train each tree on a share of the data."""
    return {"bagging_fraction": float(share), "bagging_freq": int(share < 1.0)}
