"""Boosted regression trees and random forests, grown by LightGBM on the grade of each document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from ranktune.solvers.boosting.base import BoostedRanker, check_share
from ranktune.solvers.boosting.lightgbm.ranker import BOOSTED_SPACE, SPLITTERS, STOCK, LightGBMRanker, bagging
from ranktune.solvers.boosting.objectives import MakeObjective, QueryError
from ranktune.solvers.core.arrays import Floats, Json
from ranktune.solvers.core.checks import RandomState, check_choice
from ranktune.solvers.core.errors import ParameterError
from ranktune.solvers.core.space import Choice, Float, Int, Parameter, Value
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.scaling import without_level
from ranktune.solvers.losses.pointwise import CENTRES

ROUNDS = "rounds"
TREE_CENTRES = (ROUNDS, *CENTRES)


class GBDTRanker(BoostedRanker, LightGBMRanker):
    """Gradient boosted regression trees on the grade of each document (pointwise), by LightGBM.

    Cost of a round: n_documents n_features additions.

    Parameters
    ----------
    trees : int, default=100
        The most rounds. Give several hundred, or 2,000 for much data, where validation queries end them earlier.
    learning_rate : float, default=0.1
        The factor of each tree.
    leaves : int, default=8
        The most leaves of each tree.
    min_documents : int, default=20
        The least documents of each leaf; at most a tenth of all.
    l2 : float, default=1.0
        Penalty on the values of leaves.
    feature_share : float, default=1.0
        The share of the features that is drawn for each split.
    splitter : {"best", "random"}, default="best"
        The thresholds that a split compares: all of each feature, or a random one of each.
    row_share : float, default=0.7
        The share of the documents that is drawn for each tree.
    centre : {"rounds", "query", "none"}, default="rounds"
        "rounds": the residuals are centred within each query before each tree, so that only differences within queries
        count (CatBoost's QueryRMSE). "query": the trees fit what grades differ by from the mean grade of their query.
        "none": the trees fit the grades. Scores compare documents of one query in any case.
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
        The metric on held-out queries. "auto" is ndcg@10, or pairwise accuracy if a grade is negative.
    seeds : int, default=1
        The models with different seeds whose scores are averaged.
    bins : int, default=255
        The most bins per feature.
    threads : int, default=1
        Threads of LightGBM; with more than one, two fits may differ in their last bits.
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
    Friedman 2001, "Greedy Function Approximation: A Gradient Boosting Machine", Annals of Statistics 29(5).
    Geurts et al. 2006, "Extremely Randomized Trees", Machine Learning 63(1), for the random splitter.

    Examples
    --------
    >>> import numpy as np
    >>> from ranktune.solvers import GBDTRanker
    >>> X = np.linspace(0.0, 1.0, 60)[:, None]
    >>> grades = (X[:, 0] > 0.5).astype(int)
    >>> ranker = GBDTRanker(trees=20).fit(X, grades, qid=np.arange(60) % 6)
    >>> bool(ranker.predict([[0.9]]) > ranker.predict([[0.1]]))
    True
    """

    space: ClassVar[tuple[Parameter, ...]] = (
        *BOOSTED_SPACE,
        Float("row_share", 0.4, 1.0),
        Choice("centre", TREE_CENTRES),
    )
    portfolio: ClassVar[tuple[Mapping[str, Value], ...]] = ({"start": "linear"}, {}, STOCK)

    def __init__(
        self,
        trees: int = 100,
        *,
        learning_rate: float = 0.1,
        leaves: int = 8,
        min_documents: int = 20,
        l2: float = 1.0,
        feature_share: float = 1.0,
        splitter: str = "best",
        row_share: float = 0.7,
        centre: str = "rounds",
        start: str = "none",
        validation: float = 0.0,
        patience: int = 50,
        metric: str = "auto",
        seeds: int = 1,
        bins: int = 255,
        threads: int = 1,
        random_state: RandomState = None,
    ) -> None:
        super().__init__(trees, leaves, min_documents, l2, feature_share, splitter, seeds, bins, threads, random_state)
        self.learning_rate = learning_rate
        self.row_share = row_share
        self.centre = centre
        self.start = start
        self.validation = validation
        self.patience = patience
        self.metric = metric

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_share("learning_rate", self.learning_rate)
        check_share("row_share", self.row_share)
        check_choice("centre", self.centre, TREE_CENTRES)

    def _targets(self, queries: Queries) -> tuple[Floats, Json]:
        targets, more = super()._targets(queries)
        return targets if self.centre == "none" else without_level(targets, queries), more

    def _derivatives(self) -> MakeObjective | None:
        return QueryError if self.centre == ROUNDS else None

    def _shifted(self, start: Floats, targets: Floats, queries: Queries) -> Floats:
        if self.centre != "none":
            return without_level(start, queries)
        return super()._shifted(start, targets, queries)

    def _objective(self) -> Json:
        return {
            "objective": "none" if self.centre == ROUNDS else "regression",
            "learning_rate": float(self.learning_rate),
            **bagging(self.row_share),  # of documents: with this objective, LightGBM 4.7 fits wrong trees by query
        }


class RandomForestRanker(LightGBMRanker):
    """A random forest of regression trees on the grade of each document, by LightGBM.

    More trees do not overfit, so nothing is held out. Before fitting ends, missing trees count as 0. Cost of a tree:
    n_documents n_features additions per level.

    Parameters
    ----------
    trees : int, default=100
        Trees of the forest.
    leaves : int, default=32
        The most leaves of each tree.
    min_documents : int, default=10
        The least documents of each leaf; at most a tenth of all.
    l2 : float, default=1.0
        Penalty on the values of leaves.
    feature_share : float, default=0.3
        The share of the features that is drawn for each split.
    splitter : {"best", "random"}, default="best"
        The thresholds that a split compares: all of each feature, or a random one of each.
    row_share : float, default=0.6
        The share of the documents that is drawn for each tree, without replacement; below 1.
    seeds : int, default=1
        The models with different seeds whose scores are averaged.
    bins : int, default=255
        The most bins per feature.
    threads : int, default=1
        Threads of LightGBM; with more than one, two fits may differ in their last bits.
    random_state : int, numpy.random.Generator or None, default=None
        Seed of all that is random; None is 0.

    Attributes
    ----------
    trees_ : Trees
        The trees.
    rounds_ : tuple of int
        The trees of each seed.

    References
    ----------
    Breiman 2001, "Random Forests", Machine Learning 45(1).
    Geurts et al. 2006, "Extremely Randomized Trees", Machine Learning 63(1), for the random splitter.

    Examples
    --------
    >>> import numpy as np
    >>> from ranktune.solvers import RandomForestRanker
    >>> X = np.linspace(0.0, 1.0, 60)[:, None]
    >>> grades = (X[:, 0] > 0.5).astype(int)
    >>> ranker = RandomForestRanker(trees=20).fit(X, grades, qid=np.arange(60) % 6)
    >>> bool(ranker.predict([[0.9]]) > ranker.predict([[0.1]]))
    True
    """

    space: ClassVar[tuple[Parameter, ...]] = (
        Int("leaves", 8, 256, log=True),
        Int("min_documents", 1, 100, log=True),
        Float("l2", 1e-2, 100.0, log=True),
        Float("feature_share", 0.1, 1.0),
        Float("row_share", 0.3, 0.9),
        Choice("splitter", SPLITTERS),
    )

    def __init__(
        self,
        trees: int = 100,
        *,
        leaves: int = 32,
        min_documents: int = 10,
        l2: float = 1.0,
        feature_share: float = 0.3,
        splitter: str = "best",
        row_share: float = 0.6,
        seeds: int = 1,
        bins: int = 255,
        threads: int = 1,
        random_state: RandomState = None,
    ) -> None:
        super().__init__(trees, leaves, min_documents, l2, feature_share, splitter, seeds, bins, threads, random_state)
        self.row_share = row_share

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_share("row_share", self.row_share)
        if not self.row_share < 1.0:
            raise ParameterError(f"row_share={self.row_share!r}: it must be below 1, or all trees are the same.")

    def _factor(self) -> float:
        return 1.0 / int(self.trees)

    def _objective(self) -> Json:
        return {"objective": "regression", "boosting": "rf", **bagging(self.row_share)}
