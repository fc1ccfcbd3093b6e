"""Boosted oblivious trees grown by CatBoost, an extra: pip install "ranktune[catboost]".

An oblivious tree has one split for all nodes of a level. CatBoost is imported when a model is fitted, and its trees are
converted to Trees at once. CatBoost compares in single precision and sends x > border right; Trees send x <= threshold
left in double precision. Both send every number, rounded to single precision, the same way if the threshold is the
largest double that rounds to the border or less.

CatBoost has no call for a single round: it grows blocks of a few rounds, each a separate fit on the same bins, whose
baseline are the scores of the trees before it. The blocks are the same however many rounds are kept. CatBoost lowers
the noise in the scores of splits as a model grows; each block gets the noise of its first round.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, ClassVar

import numpy as np
from scipy import sparse

from ranktune.solvers.abilities import DOCUMENT_WEIGHTS, MONOTONE
from ranktune.solvers.boosting.base import BoostedRanker, pair_scale
from ranktune.solvers.boosting.growth import TrainingData
from ranktune.solvers.boosting.training_queries import (
    RowShare,
    TrainingQueries,
    check_penalty,
    check_share,
    check_single,
    check_single_features,
    whole,
)
from ranktune.solvers.core import libraries
from ranktune.solvers.core.arrays import Floats, Json, JsonView
from ranktune.solvers.core.errors import DataError
from ranktune.solvers.core.parameters import Param, with_parameters
from ranktune.solvers.core.space import Value
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.models.other_libraries.catboost import trees_of as trees_of_json
from ranktune.solvers.models.trees import Trees, joined, one_tree

QUERY_RMSE, YETI_RANK, _ = LOSSES = ("QueryRMSE", "YetiRank", "YetiRankPairwise")
BLOCK = 4
"""Rounds of a block: so few that boosting ends soon after a deadline, and so many that the start of a fit is cheap."""


@dataclass(frozen=True, eq=False)
class CatBoostData(TrainingData):
    """Training data for CatBoost, which grows trees on them."""

    library: ModuleType
    parameters: JsonView

    def growth(self, seed: int) -> CatBoostGrowth:
        """Return the growth of trees on the data."""
        scores = np.zeros(self.queries.n_documents) if self.start is None else self.start.copy()
        return CatBoostGrowth(self.library, self.queries, self.parameters, scores, seed)


@dataclass
class CatBoostGrowth:
    """Trees that CatBoost grows in blocks; scores of the training documents are what the next fit starts from."""

    library: ModuleType
    queries: Queries
    parameters: JsonView
    scores: Floats
    seed: int
    _trees: list[Trees] = field(default_factory=list)
    _rounds: int = 0
    _pool: Any = None

    def grow(self) -> bool:
        """Grow one more round, which is always possible."""
        if self._rounds == len(self._trees):
            self._grow_block()
        self._rounds += 1
        return True

    def trees(self, first: int, last: int) -> Trees:
        """Return the trees of the rounds from number first up to but without last."""
        return joined(self._trees[first:last])

    def _grow_block(self) -> None:
        features = self.queries.features
        if features.shape[0] == 0 or _is_constant(self.queries):
            self._trees += [_constant(self.queries.has_missing)] * BLOCK  # CatBoost refuses such features
            return
        try:
            if self._pool is None:
                self._pool = self._binned()
            self._pool.set_baseline(self.scores[:, None])
            model = self.library.CatBoost(self._block_parameters(len(self._trees)))
            model.fit(self._pool)
        except self.library.CatBoostError as error:
            raise DataError(f"CatBoost cannot learn from these data: {error}") from error
        grown = trees_of(model, self.queries.has_missing)
        grown += [_constant(self.queries.has_missing)] * (BLOCK - len(grown))
        self.scores = self.scores + joined(grown).scores(features)
        self._trees += grown

    def _binned(self) -> Any:
        """Return the training data in bins."""
        features, weights = self.queries.features, {}
        if self.queries.is_weighted:  # a pool takes one of both
            name = "group_weight" if self.queries.document_weights is None else "weight"
            weights[name] = self.queries.weight_of_document
        pool = self.library.Pool(
            features if isinstance(features, np.ndarray) else sparse.csr_matrix(features),
            label=self.queries.grades,
            group_id=self.queries.query_of_document,
            **weights,
        )
        pool.quantize(border_count=self.parameters["border_count"], nan_mode=self.parameters["nan_mode"])
        return pool

    def _block_parameters(self, rounds: int) -> Json:
        """Return the parameters of a fit after so many rounds."""
        seed = (self.seed + rounds) % (2**31 - 1)
        parameters: Json = {**self.parameters, "iterations": BLOCK, "random_seed": seed}
        length = rounds * self.parameters["learning_rate"]
        parameters["random_strength"] *= noise_after(length, self.queries.n_documents)
        if self.queries.is_weighted:  # CatBoost multiplies the penalty by their mean
            parameters["l2_leaf_reg"] /= self.queries.weight_of_document.mean()
        return parameters


def noise_after(length: float, documents: int) -> float:
    """Return the factor of the noise in the scores of splits: 1 at first, then less with the length of a model.

    length is the number of its rounds times the learning rate. The factor is a half where it is the logarithm of the
    number of documents. Source: CatBoost, which computes it from the rounds of one fit.
    """
    return float(1.0 / (1.0 + np.exp(length) / documents))


def _is_constant(queries: Queries) -> bool:
    """Return whether no feature has two values."""
    X = queries.features
    if isinstance(X, np.ndarray):
        return bool((X == X[0]).all())
    return bool((X.max(axis=0).toarray() == X.min(axis=0).toarray()).all())


def _constant(has_missing: bool) -> Trees:
    return one_tree([], [], [], [], [0.0], [] if has_missing else None)


def trees_of(model: Any, has_missing: bool) -> list[Trees]:
    """Return the trees of a fitted CatBoost model, one for each, with sides for missing values if there are."""
    with tempfile.TemporaryDirectory(prefix="ranktune-") as folder:
        file = Path(folder) / "model.json"
        model.save_model(str(file), format="json")
        return trees_of_json(file.read_bytes(), has_missing)


@with_parameters
class CatBoostRanker(BoostedRanker):
    """Boosted oblivious trees on a pairwise or listwise objective, by CatBoost.

    Queries without two different grades are left out. Features are rounded to single precision. Early stopping by
    validation queries ends the search for the number of rounds, though CatBoost has grown up to half as many more. Cost
    of a round: depth n_documents n_features additions.

    {parameters}

    {attributes}

    References
    ----------
    Gulin, Kuralenok & Pavlov 2011, "Winning the Transfer Learning Track of Yahoo!'s Learning to Rank Challenge with
    YetiRank", JMLR Workshop and Conference Proceedings 14. Prokhorenkova et al. 2018, "CatBoost: unbiased boosting with
    categorical features", NeurIPS.

    Examples
    --------
    >>> import numpy as np
    >>> from ranktune.solvers import CatBoostRanker  # doctest: +SKIP
    >>> X = np.linspace(0.0, 1.0, 60)[:, None]
    >>> grades = (X[:, 0] > 0.5).astype(int)
    >>> ranker = CatBoostRanker(trees=20).fit(X, grades, qid=np.arange(60) % 6)  # doctest: +SKIP
    >>> bool(ranker.predict([[0.9]]) > ranker.predict([[0.1]]))  # doctest: +SKIP
    True
    """

    trees = 200
    _: KW_ONLY
    depth: Annotated[int, Param("The levels of each tree.", low=2, high=8, check=whole(1, 16))] = 6
    l2: Annotated[
        float, Param("Penalty on the values of leaves.", low=0.1, high=100.0, log=True, check=check_penalty)
    ] = 3.0
    randomness: Annotated[
        float,
        Param(
            "The noise in the scores of splits; CatBoost's random_strength.",
            low=1e-3,
            high=10.0,
            log=True,
            check=check_penalty,
        ),
    ] = 1.0
    feature_share: Annotated[
        float, Param("The share of the features that is drawn for each level.", low=0.2, high=1.0, check=check_share)
    ] = 1.0
    row_share: RowShare = 1.0
    loss: Annotated[
        str,
        Param(
            '"YetiRank": pairs of documents weighted by their ranks in drawn orders; "YetiRankPairwise": also with '
            'values of leaves that minimise the loss together, which takes several times as long; "QueryRMSE": squared '
            "errors of grades less their mean in the query, as monotone constraints and weights of documents need it.",
            choices=LOSSES,
            searched=(QUERY_RMSE, YETI_RANK),
        ),
    ] = QUERY_RMSE
    bins: Annotated[int, Param("The most borders per feature.", check=whole(1, 254))] = 254

    space_order = ("trees", "learning_rate", "depth", "l2", "randomness", "feature_share", "row_share", "loss")
    weighted: ClassVar[bool] = True
    refusals: ClassVar[Mapping[str, str]] = {
        DOCUMENT_WEIGHTS: "CatBoost's YetiRank and YetiRankPairwise do not use them: loss='QueryRMSE' does."
    }
    takes_monotone: ClassVar[bool] = False
    takes_missing: ClassVar[bool] = True
    needs_pairs: ClassVar[bool] = True

    @classmethod
    def supports(cls, parameters: Mapping[str, Value]) -> frozenset[str]:
        """Return what a configuration can use: with YetiRank, CatBoost weighs no documents and keeps no constraints."""
        by_document = parameters.get("loss", QUERY_RMSE) == QUERY_RMSE
        return super().supports(parameters) | ({MONOTONE, DOCUMENT_WEIGHTS} if by_document else frozenset())

    def _start_scale(self, queries: Queries) -> float:
        return 1.0 if self.loss == QUERY_RMSE else pair_scale(queries)

    def _source(self, training: TrainingQueries) -> CatBoostData:
        queries = training.queries
        check_single(queries.grades, "a grade")
        if queries.is_weighted:
            check_single(queries.weight_of_document, "the weight of a query or document")
        check_single_features(queries, "CatBoostRanker")
        parameters = self._parameters()
        if queries.monotone is not None:
            parameters |= {"monotone_constraints": queries.monotone.tolist(), "model_shrink_rate": 0.0}
        start, library = self._first_scores(training), libraries.load("catboost")
        return CatBoostData(queries, queries.grades, start, library, parameters)

    def _parameters(self) -> Json:
        return {
            "loss_function": self.loss,
            "learning_rate": float(self.learning_rate),
            "depth": int(self.depth),
            "l2_leaf_reg": float(self.l2),
            "random_strength": float(self.randomness),
            "rsm": float(self.feature_share),
            "bootstrap_type": "Bernoulli" if self.row_share < 1.0 else "No",
            **({"subsample": float(self.row_share)} if self.row_share < 1.0 else {}),
            "border_count": int(self.bins),
            "nan_mode": "Min",
            "boosting_type": "Plain",
            "thread_count": int(self.threads),
            "allow_writing_files": False,
            "logging_level": "Silent",
        }
