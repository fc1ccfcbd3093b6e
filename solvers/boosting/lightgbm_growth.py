"""What the rankers that LightGBM grows have in common: how it is told, and how its trees come back.

LightGBM is loaded when a model is fitted (lightgbm_library), and its trees become our own arrays at once
(lightgbm_trees), so that prediction, saving and loading need it no more. One thread, one seed: two fits give the same
bits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ranktune.solvers.boosting.base import (
    MOST_THREADS,
    ONE_BY_ONE,
    TreeRanker,
    check_bins,
    check_penalty,
    check_range,
    check_share,
    check_single,
    rows_of,
)
from ranktune.solvers.boosting.lightgbm_library import Booster, Data
from ranktune.solvers.core.arrays import Features, Floats, Ints
from ranktune.solvers.core.checks import check_count
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.models.trees import Trees, joined, one_tree

MOST_ROOM = 2**32
"""Bytes of bins of sparse features that may be kept as columns of bundles."""
MOST_LEAVES = 131_072
"""LightGBM's own limit."""


@dataclass(frozen=True)
class Grown:
    """Training data in LightGBM's bins, and what grows trees on them."""

    data: Data
    queries: Queries
    parameters: Mapping[str, Any]
    factor: float = 1.0

    def rounds(self, queries: Ints | None, seed: int, sizes: Iterable[int] = ONE_BY_ONE) -> Iterator[Trees]:
        """Yield what rounds add, as many at a time as sizes say, learnt from the queries of these numbers."""
        data = self.data
        if queries is not None:
            data = data.subset(rows_of(self.queries, queries), self.queries.lengths[queries], self.parameters)
        booster = Booster(data, {**self.parameters, "seed": seed})
        done = 0
        for size in sizes:
            grown, over = 0, False
            while grown < size and not over:
                over = booster.update()
                grown += not over or done + grown == 0  # of a first tree without a split, the constant is kept
            if grown:
                trees = trees_of(booster.text(done, grown))
                yield trees if self.factor == 1.0 else trees.scaled(self.factor)
            if over:
                return
            done += grown


class LightGBMRanker(TreeRanker):
    """What the three have in common: how LightGBM is told."""

    weighted: ClassVar[bool] = True
    leaves: int
    min_documents: int
    l2: float
    feature_share: float
    bins: int
    threads: int

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_count("min_documents", self.min_documents)
        check_range("threads", self.threads, 1, MOST_THREADS)
        check_range("leaves", self.leaves, 2, MOST_LEAVES)
        check_bins(self.bins)
        check_penalty("l2", self.l2)
        check_share("feature_share", self.feature_share)

    def _own(self) -> dict[str, Any]:
        """Return LightGBM's parameters of this method alone."""
        raise NotImplementedError

    def _labels(self, queries: Queries) -> tuple[Floats, dict[str, Any]]:
        """Return the target of each document, (n_documents,), and parameters that go with the targets."""
        check_single(queries.grades, "a grade")
        return queries.grades, {}

    def _source(self, queries: Queries) -> Grown:
        labels, more = self._labels(queries)
        parameters = self._common() | self._own() | self._least(queries) | more
        parameters["is_enable_sparse"] = _room_of_bundles(queries.features) > MOST_ROOM
        weights = None if queries.query_weights is None else np.repeat(queries.query_weights, queries.lengths)
        if weights is not None:
            check_single(weights, "a query's weight")
        data = Data(queries.features, labels, queries.lengths, weights, parameters)
        return Grown(data, queries, parameters, self._factor())

    def _factor(self) -> float:
        return 1.0

    def _least(self, queries: Queries) -> dict[str, Any]:
        """Return what a leaf must hold. The curvature of squared errors is 1 a document, so that weights count too."""
        documents = float(queries.weight_of_query @ queries.lengths)
        least = min(int(self.min_documents), max(1, int(documents // 10)))
        rows = least if queries.query_weights is None else 1  # the same, but it lets features go that are too sparse
        return {"min_data_in_leaf": rows, "min_sum_hessian_in_leaf": least * (1.0 - 1e-9)}

    def _common(self) -> dict[str, Any]:
        return {
            "num_leaves": int(self.leaves),
            "lambda_l2": float(self.l2),
            "feature_fraction": float(self.feature_share),
            "max_bin": int(self.bins),
            "min_data_in_bin": 1,
            "num_threads": int(self.threads),
            "deterministic": True,
            "force_col_wise": True,
            "use_missing": False,  # features are finite
            "feature_pre_filter": True,  # without it, sparse features that no split can use take ten times as long
            "data_random_seed": 1,  # which rows bins are made from is the same in all members of a bag
            "verbosity": -1,
        }


def _room_of_bundles(features: Features) -> int:
    """Return how many bytes bins take at most, about, where features that are seldom not zero together share a column.

    Kept sparse they take fewer, but LightGBM then goes through every cell, zeros too: of 200,000 documents of 100,000
    features for minutes.
    """
    rows, columns = features.shape
    if isinstance(features, np.ndarray):
        return 0  # a byte for each number that is there already
    fullest = int(np.diff(features.indptr).max(initial=0))
    return int(rows) * min(int(columns), max(fullest, (int(features.nnz) + int(columns)) // 255))


def drawn(share: float) -> dict[str, Any]:
    """Return LightGBM's parameters for learning each tree from a share of the data."""
    return {"bagging_fraction": float(share), "bagging_freq": int(share < 1.0)}


def trees_of(text: str) -> Trees:
    """Return the trees in the text of a booster that was trained on finite features without categories."""
    body = text[text.index("\nTree=") :].partition("\nend of trees")[0]
    return joined([_tree(_fields(part)) for part in body.split("\nTree=")[1:]])


def _fields(part: str) -> Mapping[str, str]:
    return dict(line.split("=", 1) for line in part.splitlines() if "=" in line)


def _tree(fields: Mapping[str, str]) -> Trees:
    if int(fields["num_leaves"]) == 1:
        return one_tree([], [], [], [], [float(fields["leaf_value"].split()[0])])
    whole = {name: [int(k) for k in fields[name].split()] for name in ("split_feature", "left_child", "right_child")}
    threshold, value = ([float(k) for k in fields[name].split()] for name in ("threshold", "leaf_value"))
    return one_tree(whole["split_feature"], threshold, whole["left_child"], whole["right_child"], value)
