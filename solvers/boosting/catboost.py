"""Boosted oblivious trees grown by CatBoost, an extra: pip install "ranktune[catboost]".

An oblivious tree has one split for all nodes of a level. CatBoost is imported when a model is fitted, and its trees are
converted to our own arrays at once. CatBoost compares in single precision and sends x > border right; ours send x <=
threshold left in double precision. Both send every number, rounded to single precision, the same way if the threshold
is the largest double that rounds to the border or less.

CatBoost has no call for a single round: it grows blocks of a few rounds, each a fit of its own on the same bins, whose
baseline are the scores of the trees before it. The blocks are the same however many rounds are kept. CatBoost lowers
the noise in the scores of splits as a model grows; each block gets the noise of its first round.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from ranktune.solvers.base.training_data import MONOTONE
from ranktune.solvers.boosting.base import (
    MAX_THREADS,
    STARTS,
    BoostedRanker,
    check_penalty,
    check_range,
    check_share,
    check_single,
    check_single_features,
    pair_scale,
)
from ranktune.solvers.boosting.growth import TrainingData
from ranktune.solvers.boosting.training_queries import TrainingQueries
from ranktune.solvers.boosting.xgboost import last_below
from ranktune.solvers.core import libraries
from ranktune.solvers.core.arrays import Floats, Ints, Json, JsonView
from ranktune.solvers.core.checks import RandomState, check_choice
from ranktune.solvers.core.errors import DataError
from ranktune.solvers.core.space import Choice, Float, Int, Parameter, Value
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.models.trees import Trees, joined, one_tree

QUERY_RMSE, YETI_RANK = LOSSES = ("QueryRMSE", "YetiRank")
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
    """Trees that CatBoost grows in blocks; scores are those of the training documents, of all trees grown."""

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
            model = self.library.CatBoost(self._block_parameters())
            model.fit(self._pool)
        except self.library.CatBoostError as error:
            raise DataError(f"CatBoost cannot learn from these data: {error}") from error
        grown = trees_of(model, self.queries.has_missing)
        grown += [_constant(self.queries.has_missing)] * (BLOCK - len(grown))
        self.scores = self.scores + joined(grown).scores(features)
        self._trees += grown

    def _binned(self) -> Any:
        """Return the training data in bins."""
        features = self.queries.features
        pool = self.library.Pool(
            features if isinstance(features, np.ndarray) else sparse.csr_matrix(features),
            label=self.queries.grades,
            group_id=self.queries.query_of_document,
            group_weight=None if self.queries.query_weights is None else self._document_weights(),
        )
        pool.quantize(border_count=self.parameters["border_count"], nan_mode=self.parameters["nan_mode"])
        return pool

    def _block_parameters(self) -> Json:
        rounds = len(self._trees)
        noise = noise_after(rounds * self.parameters["learning_rate"], self.queries.n_documents)
        own: Json = {
            **self.parameters,
            "iterations": BLOCK,
            "random_seed": (self.seed + rounds) % (2**31 - 1),
            "random_strength": self.parameters["random_strength"] * noise,
        }
        if self.queries.query_weights is not None:
            own["l2_leaf_reg"] /= self._document_weights().mean()
        return own

    def _document_weights(self) -> Floats:
        """Return the weight of each document; CatBoost multiplies the penalty by their mean."""
        return np.repeat(self.queries.weight_of_query, self.queries.lengths)


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
    """Return the trees of a fitted CatBoost model of numerical features, one of ours for each.

    CatBoost puts missing values below all others: they go left, those of features that no training document lacks with
    0.
    """
    with tempfile.TemporaryDirectory(prefix="ranktune-") as folder:
        file = Path(folder) / "model.json"
        model.save_model(str(file), format="json")
        content: Json = json.loads(file.read_text())
    scale = float(content["scale_and_bias"][0])
    features = content["features_info"]["float_features"]
    lacking = np.array([feature["has_nans"] for feature in features], dtype=np.bool_) if has_missing else None
    return [_tree(tree, scale).with_sides_of(lacking) for tree in content["oblivious_trees"]]


def _tree(tree: JsonView, scale: float) -> Trees:
    """Return one oblivious tree: split k decides on bit k of the number of the leaf.

    The last split becomes the root, so that leaves stand in the order of their numbers.
    """
    splits = list(reversed(tree["splits"] or []))
    depth = len(splits)
    width = 2 ** np.arange(depth)
    column = np.repeat([int(split["float_feature_index"]) for split in splits], width)
    borders = np.repeat(np.array([split["border"] for split in splits], dtype=np.float32), width)
    left = 2 * np.arange(2**depth - 1) + 1
    left, right = (_child(child, 2**depth - 1) for child in (left, left + 1))
    values = scale * np.array(tree["leaf_values"], dtype=np.float64)
    thresholds = last_below(np.nextafter(borders, np.float32(np.inf)))
    return one_tree(column, thresholds, left, right, values, np.ones(len(column), dtype=bool))


def _child(number: Ints, n_splits: int) -> Ints:
    """Return the nodes of these numbers in level order: splits as they are, then leaves ~0, ~1, ..."""
    return np.where(number < n_splits, number, ~(number - n_splits))


class CatBoostRanker(BoostedRanker):
    """Boosted oblivious trees on a pairwise or listwise objective, by CatBoost.

    Queries without two different grades are left out. Features are rounded to single precision. Early stopping by
    validation queries ends the search for the number of rounds, though CatBoost has grown up to half as many more. Cost
    of a round: depth n_documents n_features additions.

    Parameters
    ----------
    trees : int, default=200
        The most rounds.
    learning_rate : float, default=0.1
        The factor of each tree.
    depth : int, default=6
        The levels of each tree.
    l2 : float, default=3.0
        Penalty on the values of leaves.
    randomness : float, default=1.0
        The noise in the scores of splits; CatBoost's random_strength.
    feature_share : float, default=1.0
        The share of the features that is drawn for each level.
    row_share : float, default=1.0
        The share of the documents that is drawn for each tree.
    loss : {"QueryRMSE", "YetiRank"}, default="QueryRMSE"
        "YetiRank": pairs of documents weighted by their ranks in drawn orders; "QueryRMSE": squared errors of grades
        less their mean in the query. Monotone constraints need QueryRMSE.
    start : {"none", "linear"}, default="none"
        What the trees are added to: nothing, or a ridge regression on the grades, which is fitted first. Then the model
        is a sum of both, which Solr, Elasticsearch, OpenSearch and RankLib cannot hold.
    validation : float, default=0.0
        The share of the queries that is held out to find the number of rounds. The model is then trained on all
        queries, with proportionally more rounds. 0, or fewer than two queries with different grades: all rounds.
        Validation queries given to fit replace the held-out ones.
    patience : int, default=50
        Rounds without improvement on held-out queries before boosting stops.
    metric : str, default="auto"
        The metric on held-out queries. "auto" is ndcg@10, or pairwise accuracy for grades without a gain.
    seeds : int, default=1
        The models with different seeds whose scores are averaged.
    bins : int, default=254
        The most borders per feature.
    threads : int, default=1
        Threads of CatBoost; with more than one, two fits may differ in their last bits.
    random_state : int, numpy.random.Generator or None, default=None
        Seed of all that is random; None is 0.

    Attributes
    ----------
    trees_ : Trees
        The trees.
    rounds_ : tuple of int
        The rounds of each seed.
    start_ : Model or None
        What the trees are added to.

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

    weighted: ClassVar[bool] = True
    takes_monotone: ClassVar[bool] = False
    takes_missing: ClassVar[bool] = True
    needs_pairs: ClassVar[bool] = True

    space: ClassVar[tuple[Parameter, ...]] = (
        Int("trees", 10, 1000, log=True),
        Float("learning_rate", 0.02, 0.3, log=True),
        Int("depth", 2, 8),
        Float("l2", 0.1, 100.0, log=True),
        Float("randomness", 1e-3, 10.0, log=True),
        Float("feature_share", 0.2, 1.0),
        Float("row_share", 0.4, 1.0),
        Choice("loss", LOSSES),
        Choice("start", STARTS),
    )

    def __init__(
        self,
        trees: int = 200,
        *,
        learning_rate: float = 0.1,
        depth: int = 6,
        l2: float = 3.0,
        randomness: float = 1.0,
        feature_share: float = 1.0,
        row_share: float = 1.0,
        loss: str = "QueryRMSE",
        start: str = "none",
        validation: float = 0.0,
        patience: int = 50,
        metric: str = "auto",
        seeds: int = 1,
        bins: int = 254,
        threads: int = 1,
        random_state: RandomState = None,
    ) -> None:
        self.trees = trees
        self.learning_rate = learning_rate
        self.depth = depth
        self.l2 = l2
        self.randomness = randomness
        self.feature_share = feature_share
        self.row_share = row_share
        self.loss = loss
        self.start = start
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
        check_range("depth", self.depth, 1, 16)
        check_range("threads", self.threads, 1, MAX_THREADS)
        check_range("bins", self.bins, 1, 254)
        check_choice("loss", self.loss, LOSSES)
        for name in ("l2", "randomness"):
            check_penalty(name, getattr(self, name))
        for name in ("feature_share", "row_share"):
            check_share(name, getattr(self, name))

    @classmethod
    def supports(cls, parameters: Mapping[str, Value]) -> frozenset[str]:
        """Return what a configuration can use: with YetiRank, CatBoost does not keep monotone constraints.

        Parameters
        ----------
        parameters : mapping of str to value
            The parameters that differ from the defaults.

        Returns
        -------
        frozenset of str
        """
        by_document = parameters.get("loss", QUERY_RMSE) == QUERY_RMSE
        return super().supports(parameters) | ({MONOTONE} if by_document else frozenset())

    def _start_scale(self, queries: Queries) -> float:
        return pair_scale(queries) if self.loss == YETI_RANK else 1.0

    def _source(self, training: TrainingQueries) -> CatBoostData:
        queries = training.queries
        check_single(queries.grades, "a grade")
        if queries.query_weights is not None:
            check_single(queries.query_weights, "a query's weight")
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
