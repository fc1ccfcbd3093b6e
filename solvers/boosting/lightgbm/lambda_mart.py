"""LambdaMART, grown by LightGBM."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from ranktune.solvers.boosting.base import TREE_GAINS, BoostedRanker, check_share, gains_of, pair_scale
from ranktune.solvers.boosting.lightgbm.ranker import BOOSTED_SPACE, SMALL, LightGBMRanker, bagging
from ranktune.solvers.core.arrays import Floats, Json
from ranktune.solvers.core.checks import RandomState, check_choice, check_count, check_flag
from ranktune.solvers.core.errors import DataError
from ranktune.solvers.core.space import Choice, Float, Int, Parameter, Value, When
from ranktune.solvers.data.grades import shared_levels
from ranktune.solvers.data.queries import Queries

MAX_QUERY_LENGTH = 10_000
"""The limit of LightGBM on the documents of a query with lambdarank."""
MAX_EXPONENT = 30
"""The highest grade with xendcg, whose targets are about 2^grade."""
MAX_GRADES = 10_000
"""Different gains with lambdarank, which LightGBM keeps in a table, and counts for each query; of more, neighbours
count as one."""

LAMBDARANK, XENDCG = LOSSES = ("lambdarank", "xendcg")


class LambdaMART(BoostedRanker, LightGBMRanker):
    """LambdaMART: boosted trees whose gradients weigh each pair by the change in NDCG of swapping it, by LightGBM.

    Queries without two different grades are left out. Documents of equal score, all before the first tree, rank in the
    order of rows. Weights of queries and documents multiply the gradients; min_documents counts documents whatever
    their weight. Feature values within 1e-35 of 0 count as 0. Cost of a round: n_documents n_features additions, and
    truncation n_documents swaps.

    Parameters
    ----------
    trees : int, default=100
        The most rounds. Give several hundred, or 2,000 for much data, where validation queries end them earlier.
    learning_rate : float, default=0.1
        The factor of each tree.
    leaves : int, default=31
        The most leaves of each tree.
    min_documents : int, default=20
        The least documents of each leaf; at most a tenth of all.
    l2 : float, default=1.0
        Penalty on the values of leaves.
    feature_share : float, default=1.0
        The share of the features that is drawn for each split.
    splitter : {"best", "random"}, default="best"
        The thresholds that a split compares: all of each feature, or a random one of each.
    query_share : float, default=0.7
        The share of the queries that is drawn for each tree; with xendcg of the documents.
    loss : {"lambdarank", "xendcg"}, default="lambdarank"
        "lambdarank": pairs of documents. "xendcg": cross-entropy of the softmax of a query's scores, with targets drawn
        around 2^grade for each tree; much faster on long queries. `gain` does not change it; grades that are not whole
        numbers from 0 to 30 are replaced by their order.
    truncation : int, default=30
        With lambdarank the ranks whose swaps count: the better placed document of a pair is among the first truncation
        ones.
    norm : bool, default=True
        With lambdarank, whether the gradients of a query are divided by the differences of scores and by the total of
        the query, so that no query dominates; LightGBM's lambdarank_norm.
    gain : {"auto", "exponential", "linear"}, default="auto"
        The gain of a grade: "exponential": 2^grade - 1, for grades from 0 to 30; "linear": the grade, at least 0;
        "auto": exponential for whole grades from 0 to 30, else the difference to the lowest grade.
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
    Bruch 2021, "An Alternative Cross Entropy Loss for Learning-to-Rank", WWW, for xendcg.
    Burges 2010, "From RankNet to LambdaRank to LambdaMART: An Overview", MSR-TR-2010-82.
    Geurts et al. 2006, "Extremely Randomized Trees", Machine Learning 63(1), for the random splitter.
    Ke et al. 2017, "LightGBM: A Highly Efficient Gradient Boosting Decision Tree", NIPS.

    Examples
    --------
    >>> import numpy as np
    >>> from ranktune.solvers import LambdaMART
    >>> X = np.linspace(0.0, 1.0, 60)[:, None]
    >>> grades = (X[:, 0] > 0.5).astype(int)
    >>> ranker = LambdaMART(trees=20).fit(X, grades, qid=np.arange(60) % 6)
    >>> bool(ranker.predict([[0.9]]) > ranker.predict([[0.1]]))
    True
    """

    needs_pairs: ClassVar[bool] = True
    space: ClassVar[tuple[Parameter, ...]] = (
        *BOOSTED_SPACE,
        Float("query_share", 0.4, 1.0),
        Choice("loss", LOSSES),
        Int("truncation", 5, 50, log=True, when=When("loss", (LAMBDARANK,))),
    )
    portfolio: ClassVar[tuple[Mapping[str, Value], ...]] = ({}, SMALL)

    def __init__(
        self,
        trees: int = 100,
        *,
        learning_rate: float = 0.1,
        leaves: int = 31,
        min_documents: int = 20,
        l2: float = 1.0,
        feature_share: float = 1.0,
        splitter: str = "best",
        query_share: float = 0.7,
        loss: str = "lambdarank",
        truncation: int = 30,
        norm: bool = True,
        gain: str = "auto",
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
        self.query_share = query_share
        self.loss = loss
        self.truncation = truncation
        self.norm = norm
        self.gain = gain
        self.start = start
        self.validation = validation
        self.patience = patience
        self.metric = metric

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_share("learning_rate", self.learning_rate)
        check_count("truncation", self.truncation)
        check_share("query_share", self.query_share)
        check_choice("loss", self.loss, LOSSES)
        check_choice("gain", self.gain, TREE_GAINS)
        check_flag("norm", self.norm)

    def _targets(self, queries: Queries) -> tuple[Floats, Json]:
        longest = int(queries.lengths.argmax())
        if queries.lengths[longest] > MAX_QUERY_LENGTH:
            raise DataError(
                f"query '{queries.query_ids[longest]}' has {queries.lengths[longest]} documents: LambdaMART takes at "
                f"most {MAX_QUERY_LENGTH} a query. Keep those that a first ranking puts first, or take GBDTRanker."
            )
        if self.loss == XENDCG:
            return whole_grades(queries.grades), {}
        levels, number = shared_levels(gains_of(queries.grades, self.gain), MAX_GRADES)
        return number.astype(np.float64), {"label_gain": levels.tolist()}

    def _shifted(self, start: Floats, targets: Floats, queries: Queries) -> Floats:
        return start  # only differences count

    def _start_scale(self, queries: Queries) -> float:
        return pair_scale(queries)

    def _leaf_limits(self, queries: Queries) -> Json:
        least = min(int(self.min_documents), max(1, queries.n_documents // 10))
        # LightGBM estimates the documents of a leaf from its curvature; positive curvature proves one document.
        return {"min_data_in_leaf": least if least > 1 else 0, "min_sum_hessian_in_leaf": 1e-9}

    def _objective(self) -> Json:
        if self.loss == LAMBDARANK:
            loss: Json = {
                "objective": "lambdarank",
                "lambdarank_truncation_level": min(int(self.truncation), MAX_QUERY_LENGTH),
                "lambdarank_norm": bool(self.norm),
                "bagging_by_query": self.query_share < 1.0,
            }
        else:  # drawing queries, LightGBM ends after the first tree
            loss = {"objective": "rank_xendcg"}
        return {**loss, "learning_rate": float(self.learning_rate), **bagging(self.query_share)}


def whole_grades(grades: Floats) -> Floats:
    """Return the grades if they are whole numbers from 0 to 30, else the order of each among them, 30 at most."""
    if grades.min() >= 0.0 and grades.max() <= MAX_EXPONENT and bool((grades == np.round(grades)).all()):
        return grades
    number = np.unique(grades, return_inverse=True)[1].astype(np.float64)
    order: Floats = np.round(number * min(1.0, MAX_EXPONENT / max(number.max(), 1.0)))
    return order
