"""Boosted trees grown by XGBoost, an extra: pip install "ranktune[trees]".

XGBoost is imported when a model is fitted, and its trees are converted to Trees at once. XGBoost compares in single
precision and sends x < t left; Trees send x <= threshold left in double precision. Both send every number,
rounded to single precision by XGBoost, the same way if the threshold is the largest double that rounds to less than t.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from types import ModuleType
from typing import Annotated, Any, ClassVar

import numpy as np

from ranktune.solvers.abilities import DOCUMENT_WEIGHTS
from ranktune.solvers.boosting.base import BoostedRanker, pair_scale
from ranktune.solvers.boosting.growth import TrainingData
from ranktune.solvers.boosting.objectives import NOISY, BoostingObjective, Decay, MakeObjective, NoisyRankings, Samples
from ranktune.solvers.boosting.training_queries import (
    L2,
    Gain,
    RowShare,
    TrainingQueries,
    check_penalty,
    check_share,
    check_single,
    check_single_features,
    gains_of,
    whole,
)
from ranktune.solvers.core import libraries
from ranktune.solvers.core.arrays import Floats, Json, JsonView, Mask, dense
from ranktune.solvers.core.errors import DataError
from ranktune.solvers.core.parameters import Param, with_parameters
from ranktune.solvers.core.space import Value, When
from ranktune.solvers.data.missing import features_with_missing
from ranktune.solvers.data.products import blocks
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.models.other_libraries.xgboost import trees_of
from ranktune.solvers.models.trees import Trees

TOP, MEAN = ("topk", "mean")
LAMBDARANK, *_ = LOSSES = ("lambdarank", *NOISY)
MAX_CELLS = 2**32
"""Cells of sparse data: XGBoost would treat absent values as missing, so that each cell is stored in a byte."""
LEAST_LEAF = 0.1
"""The most of all curvature that each leaf must have with losses over noisy rankings, whose curvature is small."""
BATCH_CELLS = 2**22
"""Cells of a sparse matrix that are made dense at a time."""


@dataclass(frozen=True, eq=False)
class XGBoostData(TrainingData):
    """Training data for XGBoost, which grows trees on them; objective makes it where XGBoost does not have it."""

    library: ModuleType
    parameters: JsonView
    objective: MakeObjective | None = None

    def growth(self, seed: int) -> XGBoostGrowth:
        """Return the growth of trees on the data."""
        queries, limits = self.queries, {}
        objective = None if self.objective is None else self.objective(queries, self.targets, seed)
        if objective is not None:
            scores = np.zeros(queries.n_documents) if self.start is None else self.start
            curvature = float(objective.derivatives(scores, 0)[1].sum())
            limits = {"min_child_weight": min(self.parameters["min_child_weight"], LEAST_LEAF * curvature)}
        if queries.query_weights is not None:
            mean = float(queries.query_weights.mean())
            queries = queries.weighted_by(queries.query_weights / mean)
            if objective is None:  # XGBoost divides them by their mean, so the limits must be divided too
                limits = {name: self.parameters[name] / mean for name in ("lambda", "min_child_weight")}
        data = self._binned(queries)
        if self.start is not None:
            data.set_base_margin(self.start)
        booster = self.library.Booster({**self.parameters, **limits, "seed": seed}, [data])
        return XGBoostGrowth(booster, data, features_with_missing(queries), objective)

    def _binned(self, queries: Queries) -> Any:
        """Return queries in the bins of XGBoost, a byte per cell; sparse rows are made dense in batches."""
        options = {name: self.parameters[name] for name in ("max_bin", "nthread")}
        if queries.is_sparse:
            return self.library.QuantileDMatrix(_batches(self.library, queries, self.targets), **options)
        weights, groups = queries.query_weights, queries.query_of_document
        return self.library.QuantileDMatrix(queries.features, label=self.targets, weight=weights, qid=groups, **options)


class XGBoostGrowth:
    """Trees that XGBoost grows, for its objective or a given one."""

    def __init__(self, booster: Any, data: Any, with_missing: Mask | None, objective: BoostingObjective | None) -> None:
        self._booster, self._data, self._with_missing, self._objective = booster, data, with_missing, objective
        self._rounds = 0

    def grow(self) -> bool:
        """Grow one more round, which is always possible."""
        if self._objective is None:
            self._booster.update(self._data, self._rounds)
        else:
            scores = self._booster.predict(self._data, output_margin=True).astype(np.float64)
            gradient, curvature = self._objective.derivatives(scores, self._rounds)
            self._booster.boost(self._data, iteration=self._rounds, grad=gradient, hess=curvature)
        self._rounds += 1
        return True

    def trees(self, first: int, last: int) -> Trees:
        """Return the trees of the rounds from number first up to but without last."""
        return trees_of(self._booster[first:last].save_raw("json"), self._with_missing)


def _batches(library: ModuleType, queries: Queries, labels: Floats) -> object:
    """Return an XGBoost iterator over whole queries, dense, about BATCH_CELLS numbers at a time."""
    parts = list(blocks(queries.starts, max(1, BATCH_CELLS // queries.n_features)))

    class Batches(library.DataIter):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            super().__init__()
            self.at = 0

        def next(self, input_data: Callable[..., object]) -> bool:
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


@with_parameters
class XGBoostRanker(BoostedRanker):
    """Boosted trees of limited depth whose gradients weigh each pair by its change in NDCG, by XGBoost.

    Queries without two different grades are left out. Sparse features take a byte per cell, zeros included, so that
    dense and sparse data give the same trees; LambdaMART needs less. Features are rounded to single precision. Query
    weights influence the bins of features with more values than bins. Cost of a round: depth n_documents n_features
    additions.

    {parameters}

    {attributes}

    References
    ----------
    Chen & Guestrin 2016, "XGBoost: A Scalable Tree Boosting System", KDD; its objective rank:ndcg.

    Examples
    --------
    >>> import numpy as np
    >>> from ranktune.solvers import XGBoostRanker
    >>> X = np.linspace(0.0, 1.0, 60)[:, None]
    >>> grades = (X[:, 0] > 0.5).astype(int)
    >>> ranker = XGBoostRanker(trees=20).fit(X, grades, qid=np.arange(60) % 6)  # doctest: +SKIP
    >>> bool(ranker.predict([[0.9]]) > ranker.predict([[0.1]]))  # doctest: +SKIP
    True
    """

    learning_rate = 0.05
    _: KW_ONLY
    depth: Annotated[int, Param("The most levels of each tree.", low=2, high=8, check=whole(1, 30))] = 4
    min_weight: Annotated[
        float,
        Param(
            "The least sum of curvatures of each leaf; with smoothed and yetirank at most a tenth of the first sum.",
            low=0.1,
            high=100.0,
            log=True,
            check=check_penalty,
        ),
    ] = 5.0
    l2: L2 = 1.0
    feature_share: Annotated[
        float, Param("The share of the features that is drawn for each tree.", low=0.2, high=1.0, check=check_share)
    ] = 1.0
    row_share: RowShare = 0.7
    loss: Annotated[
        str,
        Param(
            '"lambdarank": pairs, weighted by the change of NDCG if the two swap places, by XGBoost. "smoothed", '
            '"yetirank": see LambdaMART. Weights of documents need one of these two.',
            choices=LOSSES,
        ),
    ] = LAMBDARANK
    pair_method: Annotated[
        str,
        Param(
            'With lambdarank, "topk": the first truncation documents by score are paired with all others of their '
            'query; "mean": each document with some that are drawn. XGBoost\'s lambdarank_pair_method.',
            choices=(TOP, MEAN),
            when=When("loss", (LAMBDARANK,)),
        ),
    ] = TOP
    truncation: Annotated[
        int,
        Param(
            "Documents that are paired with all others of their query: the first ones by score. With yetirank and "
            "smoothed as in LambdaMART."
        ),
    ] = 30
    pairs: Annotated[
        int,
        Param(
            "With mean, the documents that are drawn for each one.",
            low=1,
            high=16,
            log=True,
            when=(When("loss", (LAMBDARANK,)), When("pair_method", (MEAN,))),
            check=whole(1, 2**30),
        ),
    ] = 1
    gain: Gain = "auto"
    samples: Samples = 10
    decay: Decay = 0.85

    space_order = ("trees", "learning_rate", "depth", "min_weight", "l2", "feature_share", "row_share")
    weighted: ClassVar[bool] = True
    refusals: ClassVar[Mapping[str, str]] = {
        DOCUMENT_WEIGHTS: "XGBoost's own loss weighs whole queries only; loss='smoothed' and 'yetirank' take them."
    }
    takes_missing: ClassVar[bool] = True
    needs_pairs: ClassVar[bool] = True

    @classmethod
    def supports(cls, parameters: Mapping[str, Value]) -> frozenset[str]:
        """Return what a configuration can use: XGBoost's loss takes no weights of documents."""
        return super().supports(parameters) | ({DOCUMENT_WEIGHTS} if parameters.get("loss") in NOISY else frozenset())

    def _start_scale(self, queries: Queries) -> float:
        return pair_scale(queries)

    def _source(self, training: TrainingQueries) -> XGBoostData:
        queries, noisy = training.queries, NoisyRankings.of(self.get_params())
        _check_fits(queries)
        labels = gains_of(queries.grades, self.gain) if noisy is None else noisy.targets(queries)
        check_single(labels, "a gain")
        if queries.query_weights is not None:
            mean = queries.query_weights.mean()
            check_single(queries.query_weights / mean, "a query's weight by the mean weight, a part")
            check_single(
                np.array([self.min_weight, self.l2]) / mean, "min_weight or l2, by the mean weight of queries,"
            )
        parameters = self._parameters()
        if queries.monotone is not None:
            parameters["monotone_constraints"] = f"({','.join(map(str, queries.monotone.tolist()))})"
        start, library = self._first_scores(training), libraries.load("xgboost")
        return XGBoostData(queries, labels, start, library, parameters, None if noisy is None else noisy.objective)

    def _parameters(self) -> Json:
        pairs = self.truncation if self.pair_method == TOP else self.pairs
        loss: Json = {
            "objective": "rank:ndcg",
            "ndcg_exp_gain": False,  # labels are gains already
            "lambdarank_pair_method": self.pair_method,
            "lambdarank_num_pair_per_sample": min(int(pairs), 2**30),
        }
        return {
            **(loss if self.loss == LAMBDARANK else {"objective": "reg:squarederror"}),
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
    if queries.is_sparse and cells > MAX_CELLS:
        raise DataError(
            f"{queries.n_documents} sparse documents of {queries.n_features} features would take XGBoost "
            f"{cells / 2**30:.0f} GB: XGBoostRanker takes at most {MAX_CELLS / 2**30:.0f}. Take LambdaMART, which "
            "keeps them sparse."
        )
    check_single_features(queries, "XGBoostRanker")
