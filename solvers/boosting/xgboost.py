"""Boosted trees grown by XGBoost, an extra: pip install "ranktune[trees]".

XGBoost is imported when a model is fitted, and its trees become our own arrays at once (xgboost_trees).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ranktune.solvers.boosting.base import (
    MOST_THREADS,
    ONE_BY_ONE,
    TREE_GAINS,
    BoostedRanker,
    check_bins,
    check_penalty,
    check_range,
    check_share,
    check_single,
    gains_of,
    rows_of,
)
from ranktune.solvers.boosting.early_stopping import with_pairs
from ranktune.solvers.boosting.xgboost_trees import trees_of
from ranktune.solvers.core import libraries
from ranktune.solvers.core.arrays import Floats, Ints, dense, stored_values
from ranktune.solvers.core.checks import check_choice, check_count
from ranktune.solvers.core.errors import DataError
from ranktune.solvers.core.space import Float, Int, Parameter
from ranktune.solvers.data.products import blocks
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.models.trees import Trees

MOST_CELLS = 2**32
"""Of sparse data: XGBoost keeps a byte for each cell, because what it does not see is not 0 to it, but missing."""
CELLS = 2**22
"""Of a sparse matrix that are written out at a time."""


@dataclass(frozen=True)
class Grown:
    """Training data, and what grows trees on them."""

    library: Any
    queries: Queries
    labels: Floats
    parameters: Mapping[str, Any]
    bins: int

    def rounds(self, queries: Ints | None, seed: int, sizes: Iterable[int] = ONE_BY_ONE) -> Iterator[Trees]:
        """Yield what rounds add, as many at a time as sizes say, learnt from the queries of these numbers."""
        part, labels = self.queries, self.labels
        if queries is not None:
            part, labels = part.select(queries), labels[rows_of(part, queries)]
        limits = {}
        if part.query_weights is not None:  # XGBoost divides them by their mean: so must be what they are measured by
            mean = float(part.query_weights.mean())
            part = part.weighted_by(part.query_weights / mean)
            limits = {name: self.parameters[name] / mean for name in ("lambda", "min_child_weight")}
        data = self._binned(part, labels)
        booster = self.library.Booster({**self.parameters, **limits, "seed": seed}, [data])
        done = 0
        for size in sizes:
            for number in range(done, done + size):
                booster.update(data, number)
            yield trees_of(booster[done : done + size].save_raw("json"))
            done += size

    def _binned(self, part: Queries, labels: Floats) -> Any:
        """Return queries in XGBoost's bins, which hold a byte a cell; sparse rows are written out a few at a time."""
        options = {"max_bin": self.bins, "nthread": self.parameters["nthread"]}
        if part.is_sparse:
            return self.library.QuantileDMatrix(_batches(self.library, part, labels), **options)
        return self.library.QuantileDMatrix(
            part.features, label=labels, weight=part.query_weights, qid=part.query_of_document, **options
        )


def _batches(library: Any, queries: Queries, labels: Floats) -> Any:
    """Return an iterator in XGBoost's manner over whole queries, dense, about CELLS numbers at a time."""
    parts = list(blocks(queries.starts, max(1, CELLS // queries.n_features)))

    class Batches(library.DataIter):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.at = 0

        def next(self, input_data: Any) -> bool:
            if self.at == len(parts):
                return False
            first, last = parts[self.at]
            a, b = int(queries.starts[first]), int(queries.starts[last])
            input_data(
                data=dense(queries.features[a:b]),
                label=labels[a:b],
                weight=None if queries.query_weights is None else queries.query_weights[first:last],
                qid=queries.query_of_document[a:b],
            )
            self.at += 1
            return True

        def reset(self) -> None:
            self.at = 0

    return Batches()


class XGBoostRanker(BoostedRanker):
    """Boosted trees that are pushed by how much a swap would change NDCG, limited in depth.

    trees          rounds, at most
    learning_rate  what of each tree is added
    depth          of each tree, at most
    min_weight     sum of curvatures of each leaf, at least
    l2             penalty on the answers of leaves
    feature_share  of the features each tree may look at, drawn at random
    row_share      of the documents each tree learns from, drawn at random
    truncation     documents that come first by score, each of which is compared with all others of its query
    gain           as in LambdaMART; so are validation, patience, metric, seeds, bins, threads and random_state

    Queries without two different grades are left out. Sparse features: a byte for each cell, zeros included, so that
    dense and sparse data give the same trees; LambdaMART needs less. Features are rounded to single precision. Values
    share a bin where there are more than bins of them, and query weights have a say in which.
    Fitted: trees_, rounds_ (rounds of each seed). Cost of a round: depth n_documents n_features additions.
    Source: Chen & Guestrin 2016, "XGBoost: A Scalable Tree Boosting System", KDD; its objective rank:ndcg.
    """

    weighted: ClassVar[bool] = True

    space: ClassVar[tuple[Parameter, ...]] = (
        Int("trees", 30, 500, log=True),
        Float("learning_rate", 0.02, 0.3, log=True),
        Int("depth", 2, 8),
        Float("min_weight", 0.1, 100.0, log=True),
        Float("l2", 1e-2, 100.0, log=True),
        Float("feature_share", 0.2, 1.0),
        Float("row_share", 0.4, 1.0),
    )

    def __init__(
        self,
        trees: int = 100,
        *,
        learning_rate: float = 0.05,
        depth: int = 4,
        min_weight: float = 5.0,
        l2: float = 1.0,
        feature_share: float = 0.5,
        row_share: float = 0.7,
        truncation: int = 30,
        gain: str = "auto",
        validation: float = 0.0,
        patience: int = 50,
        metric: str = "auto",
        seeds: int = 1,
        bins: int = 255,
        threads: int = 1,
        random_state: Any = None,
    ) -> None:
        self.trees = trees
        self.learning_rate = learning_rate
        self.depth = depth
        self.min_weight = min_weight
        self.l2 = l2
        self.feature_share = feature_share
        self.row_share = row_share
        self.truncation = truncation
        self.gain = gain
        self.validation = validation
        self.patience = patience
        self.metric = metric
        self.seeds = seeds
        self.bins = bins
        self.threads = threads
        self.random_state = random_state

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_share("learning_rate", self.learning_rate)
        check_range("depth", self.depth, 1, 30)
        check_range("threads", self.threads, 1, MOST_THREADS)
        check_count("truncation", self.truncation)
        check_bins(self.bins)
        for name in ("min_weight", "l2"):
            check_penalty(name, getattr(self, name))
        for name in ("feature_share", "row_share"):
            check_share(name, getattr(self, name))
        check_choice("gain", self.gain, TREE_GAINS)

    def _learnt_from(self, queries: Queries) -> Queries:
        useful = with_pairs(queries)
        return queries if useful.all() else queries.select(np.flatnonzero(useful))

    def _source(self, queries: Queries) -> Grown:
        _check_fits(queries)
        worth = gains_of(queries.grades, self.gain)
        check_single(worth, "a gain")
        if queries.query_weights is not None:
            mean = queries.query_weights.mean()
            check_single(queries.query_weights / mean, "a query's weight by the mean weight, a part")
            check_single(
                np.array([self.min_weight, self.l2]) / mean, "min_weight or l2, by the mean weight of queries,"
            )
        return Grown(libraries.load("xgboost"), queries, worth, self._parameters(), int(self.bins))

    def _parameters(self) -> dict[str, Any]:
        return {
            "objective": "rank:ndcg",
            "ndcg_exp_gain": False,  # labels are gains already
            "lambdarank_pair_method": "topk",
            "lambdarank_num_pair_per_sample": min(int(self.truncation), 2**30),
            "tree_method": "hist",
            "base_score": 0.0,
            "eta": float(self.learning_rate),
            "max_depth": int(self.depth),
            "min_child_weight": float(self.min_weight),
            "lambda": float(self.l2),
            "colsample_bytree": float(self.feature_share),
            "subsample": float(self.row_share),
            "max_bin": int(self.bins),
            "nthread": int(self.threads),
            "verbosity": 0,
        }


def _check_fits(queries: Queries) -> None:
    """Raise DataError for what XGBoost cannot hold."""
    cells = queries.n_documents * queries.n_features
    if queries.is_sparse and cells > MOST_CELLS:
        raise DataError(
            f"{queries.n_documents} sparse documents of {queries.n_features} features would take XGBoost "
            f"{cells / 2**30:.0f} GB: XGBoostRanker takes at most {MOST_CELLS / 2**30:.0f}. Take LambdaMART, which "
            "keeps them sparse."
        )
    values = stored_values(queries.features)
    largest = max(float(values.max(initial=0.0)), -float(values.min(initial=0.0)))
    if largest > float(np.finfo(np.float32).max):
        raise DataError(
            f"a feature is {largest:.3g}: XGBoostRanker rounds features to single precision, at most 3.4e38. "
            "Scale the features."
        )
