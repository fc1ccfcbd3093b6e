"""The base of the rankers that LightGBM grows: its parameters, and its trees as our own arrays.

LightGBM is loaded when a model is fitted (lightgbm_library). Its trees are converted at once, so that prediction,
saving and loading do not need it. With one thread and one seed, two fits give the same bits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ranktune.solvers.blocks.blocked import BlockedQueries, better_divided
from ranktune.solvers.boosting.base import (
    MAX_THREADS,
    STARTS,
    TreeRanker,
    check_penalty,
    check_range,
    check_share,
    check_single,
)
from ranktune.solvers.boosting.lightgbm_bins import DENSE_SAMPLE, MAX_KEPT_BYTES, BinnedQueries
from ranktune.solvers.boosting.lightgbm_library import Booster, Data, Parameters
from ranktune.solvers.boosting.query_error import QueryError
from ranktune.solvers.boosting.training_queries import InBlocks, TrainingQueries
from ranktune.solvers.core.arrays import Features, Floats, Ints, Json
from ranktune.solvers.core.checks import RandomState, check_choice, check_count
from ranktune.solvers.core.space import Choice, Float, Int, Parameter, Value
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.models.trees import ANY_VALUE, Trees, joined, one_tree

MAX_BUNDLED_BYTES = 2**32
"""Bytes of bins of sparse features that may be kept as bundled columns."""
MAX_ROW_WISE = 2**24
"""Bins of dense features that are read by rows: more do not stay in the caches of a processor."""
MAX_LEAVES = 131_072
"""The limit of LightGBM."""
BEST, RANDOM = SPLITTERS = ("best", "random")
"""The thresholds that a split compares."""


BOOSTED_SPACE: tuple[Parameter, ...] = (
    Int("trees", 10, 1000, log=True),
    Float("learning_rate", 0.02, 0.3, log=True),
    Int("leaves", 4, 64, log=True),
    Int("min_documents", 5, 200, log=True),
    Float("l2", 1e-2, 100.0, log=True),
    Float("feature_share", 0.2, 1.0),
    Choice("splitter", SPLITTERS),
    Choice("start", STARTS),
)

STOCK: Mapping[str, Value] = {"learning_rate": 0.1, "leaves": 31, "min_documents": 20, "l2": 1.0}
"""The size of trees and the learning rate of LightGBM by default."""
SMALL: Mapping[str, Value] = {**STOCK, "leaves": 8}
"""Small trees: better than large ones on most data, and no worse by much on any."""


@dataclass(frozen=True)
class LightGBMData:
    """Training data in the bins of LightGBM, which grows trees on them; factor multiplies the values of trees.

    error is what the trees reduce where LightGBM has no such objective.
    """

    data: BinnedQueries
    parameters: Parameters
    factor: float = 1.0
    has_missing: bool = False
    error: QueryError | None = None

    def growth(self, queries: Ints | None, seed: int) -> LightGBMGrowth:
        """Return the growth of trees on the queries of these numbers (None: all)."""
        data = self.data.all() if queries is None else self.data.part(queries)
        error = self.error if self.error is None or queries is None else self.error.part(queries)
        booster = Booster(data, {**self.parameters, "seed": seed})
        return LightGBMGrowth(booster, self.factor, self.has_missing, error)


class LightGBMGrowth:
    """Trees that LightGBM grows, for its objective or to reduce error; factor multiplies their values."""

    def __init__(self, booster: Booster, factor: float, has_missing: bool, error: QueryError | None = None) -> None:
        self._booster, self._factor, self._has_missing, self._error = booster, factor, has_missing, error
        self._rounds, self._over = 0, False

    def grow(self) -> bool:
        """Grow one more round; return False, and add nothing, where no further split improves the fit."""
        if self._over:
            return False
        if self._error is None:
            self._over = self._booster.update()
        else:
            self._over = self._booster.update_by(*self._error.derivatives(self._booster.scores()))
        if self._over and self._rounds > 0:
            return False
        self._rounds += 1  # a first tree without splits is kept: its value is a constant
        return True

    def trees(self, first: int, last: int) -> Trees:
        """Return the trees of the rounds from number first up to but without last."""
        trees = trees_of(self._booster.text(first, last - first), self._has_missing)
        return trees if self._factor == 1.0 else trees.scaled(self._factor)


class LightGBMRanker(TreeRanker):
    """A ranker whose trees LightGBM grows; a subclass defines the objective."""

    weighted: ClassVar[bool] = True
    takes_document_weights: ClassVar[bool] = True
    takes_missing: ClassVar[bool] = True

    def __init__(
        self,
        trees: int,
        leaves: int,
        min_documents: int,
        l2: float,
        feature_share: float,
        splitter: str,
        seeds: int,
        bins: int,
        threads: int,
        random_state: RandomState,
    ) -> None:
        self.trees = trees
        self.leaves = leaves
        self.min_documents = min_documents
        self.l2 = l2
        self.feature_share = feature_share
        self.splitter = splitter
        self.seeds = seeds
        self.bins = bins
        self.threads = threads
        self.random_state = random_state

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_count("min_documents", self.min_documents)
        check_range("threads", self.threads, 1, MAX_THREADS)
        check_range("leaves", self.leaves, 2, MAX_LEAVES)
        check_range("bins", self.bins, 2, 255)
        check_penalty("l2", self.l2)
        check_share("feature_share", self.feature_share)
        check_choice("splitter", self.splitter, SPLITTERS)

    def _objective(self) -> Json:
        """Return the parameters of LightGBM that are specific to the solver."""
        raise NotImplementedError

    def _labels(self, queries: Queries) -> tuple[Floats, Json]:
        """Return the target of each document, (n_documents,), and parameters that depend on the targets."""
        check_single(queries.grades, "a grade")
        return queries.grades, {}

    def _training(self, queries: Queries) -> TrainingQueries:
        """Return the queries that the objective can use: of many that are mapped, their features stay on disk."""
        if not queries.is_sparse and queries.n_documents * queries.n_features > MAX_KEPT_BYTES:
            data = better_divided(queries)
            if isinstance(data, BlockedQueries):
                return InBlocks(data, pairs=self.needs_pairs)
        return super()._training(queries)

    def _fit_blocks(self, data: BlockedQueries) -> None:
        for _ in self._steps_on(InBlocks(data, pairs=self.needs_pairs), None):
            pass

    def _started(self, training: TrainingQueries) -> LightGBMData:
        start = None if self.start_ is None else training.scores(self.start_)
        return self._source(training.judged, start, training if isinstance(training, InBlocks) else None)

    def _source(self, queries: Queries, start: Floats | None = None, blocks: InBlocks | None = None) -> LightGBMData:
        """Return queries in bins; blocks have the features of queries that have none."""
        labels, more = self._labels(queries)
        if start is not None:
            start = self._first_scores(start, labels, queries)
        parameters = self._common() | self._objective() | self._leaf_limits(queries) | more
        parameters["use_missing"] = queries.has_missing
        parameters["is_enable_sparse"] = _bundled_bytes(queries.features) > MAX_BUNDLED_BYTES
        by_rows = blocks is None and _is_small(queries.features)
        parameters["force_row_wise" if by_rows else "force_col_wise"] = True
        if not queries.is_sparse:
            parameters["bin_construct_sample_cnt"] = DENSE_SAMPLE
        if queries.monotone is not None:
            parameters |= {"monotone_constraints": queries.monotone.tolist()}
        if queries.is_weighted:
            check_single(queries.weight_of_document, "the weight of a query or document")
        bins = None if blocks is None else Data.from_blocks(blocks.features, queries.n_documents, parameters)
        binned = BinnedQueries(queries, labels, parameters, start, bins)
        return LightGBMData(binned, parameters, self._factor(), queries.has_missing, self._error(queries, labels))

    def _error(self, queries: Queries, labels: Floats) -> QueryError | None:
        """Return what trees reduce where LightGBM has no such objective."""
        return None

    def _first_scores(self, start: Floats, labels: Floats, queries: Queries) -> Floats:
        """Return the scores before the first tree, (n_documents,)."""
        level: Floats = start + (labels.mean() - start.mean())  # grades are fitted: start may be off by a constant
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
            "extra_trees": self.splitter == RANDOM,
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


def trees_of(text: str, has_missing: bool) -> Trees:
    """Return the trees in the text of a booster of numerical features, with sides for missing values if there are."""
    body = text[text.index("\nTree=") :].partition("\nend of trees")[0]
    return joined([_tree(_fields(part), has_missing) for part in body.split("\nTree=")[1:]])


def _fields(part: str) -> Mapping[str, str]:
    return dict(line.split("=", 1) for line in part.splitlines() if "=" in line)


def _tree(fields: Mapping[str, str], has_missing: bool) -> Trees:
    if int(fields["num_leaves"]) == 1:
        return one_tree([], [], [], [], [float(fields["leaf_value"].split()[0])], [] if has_missing else None)
    whole = {name: _whole(fields[name]) for name in ("split_feature", "left_child", "right_child")}
    threshold, value = ([float(k) for k in fields[name].split()] for name in ("threshold", "leaf_value"))
    threshold = [min(limit, ANY_VALUE) for limit in threshold]  # inf tells missing values from all others
    sides = _sides(_whole(fields["decision_type"]), threshold) if has_missing else None
    return one_tree(whole["split_feature"], threshold, whole["left_child"], whole["right_child"], value, sides)


def _whole(text: str) -> list[int]:
    return [int(k) for k in text.split()]


def _sides(decisions: Sequence[int], threshold: Sequence[float]) -> list[bool]:
    """Return whether a missing value goes left at each split.

    Bit 1 of a decision is the side of missing values if bits 2 and 3 are 2, which is where LightGBM has seen some; at
    other splits they count as 0.
    """
    pairs = zip(decisions, threshold, strict=True)
    return [bool(own & 2) if own >> 2 & 3 == 2 else limit >= 0.0 for own, limit in pairs]
