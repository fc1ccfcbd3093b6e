"""LambdaMART, boosted regression trees and random forests, grown by LightGBM."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ranktune.solvers.boosting.base import TREE_GAINS, BoostedRanker, check_share, gains_of
from ranktune.solvers.boosting.early_stopping import with_pairs
from ranktune.solvers.boosting.lightgbm_growth import LightGBMRanker, drawn
from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.checks import check_choice, check_count
from ranktune.solvers.core.errors import DataError, ParameterError
from ranktune.solvers.core.space import Float, Int, Parameter
from ranktune.solvers.data.queries import Queries

LONGEST_QUERY = 10_000
"""LightGBM's own limit on the documents of a query under lambdarank."""
MOST_GRADES = 10_000
"""Different grades under lambdarank: LightGBM keeps a table of their gains, and counts them for each query."""


class LambdaMART(BoostedRanker, LightGBMRanker):
    """Boosted trees that are pushed by how much a swap of two documents would change NDCG.

    trees          rounds, at most
    learning_rate  what of each tree is added
    leaves         of each tree, at most
    min_documents  of each leaf, at least; never more than a tenth of all
    l2             penalty on the answers of leaves
    feature_share  of the features each tree may look at, drawn at random
    query_share    of the queries each tree learns from, drawn at random
    truncation     ranks whose swaps count: of each pair, the better placed document is among so many first
    gain           "exponential" 2^grade - 1, for whole grades 0 to 30; "linear" the grade, at least 0; "auto" the first
                   where grades can take it, else the height above the lowest grade
    validation     share of the queries that is held out to find the number of rounds; all queries are then learnt from
                   with as many rounds, more by the share that they are more. 0: all rounds, as where fewer than two
                   queries have different grades. Validation queries that fit is given take their place
    patience       rounds without a better metric on queries held out that end the search
    metric         that metric; "auto" is ndcg@10, or pairwise for grades without a gain of 2^grade - 1
    seeds          models with different seeds whose scores are averaged
    bins           values that a feature is rounded to while learning, at most
    threads        of LightGBM; with more than one, two fits may differ in their last bits
    random_state   seed of everything that is drawn; None is 0

    Queries without two different grades are left out. Documents of equal score, all before the first tree, stand in the
    order of the rows. Query weights multiply the pushes; min_documents counts documents, whatever their weight. Values
    of features within 1e-35 of 0 are 0.
    Fitted: trees_, rounds_ (rounds of each seed). Cost of a round: n_documents n_features additions, and truncation
    times n_documents swaps.
    Source: Burges 2010, "From RankNet to LambdaRank to LambdaMART: An Overview", MSR-TR-2010-82; LightGBM: Ke et al.
    2017, "LightGBM: A Highly Efficient Gradient Boosting Decision Tree", NIPS.
    """

    space: ClassVar[tuple[Parameter, ...]] = (
        Int("trees", 30, 500, log=True),
        Float("learning_rate", 0.02, 0.3, log=True),
        Int("leaves", 4, 64, log=True),
        Int("min_documents", 5, 200, log=True),
        Float("l2", 1e-2, 100.0, log=True),
        Float("feature_share", 0.2, 1.0),
        Float("query_share", 0.4, 1.0),
        Int("truncation", 5, 50, log=True),
    )

    def __init__(
        self,
        trees: int = 100,
        *,
        learning_rate: float = 0.05,
        leaves: int = 8,
        min_documents: int = 50,
        l2: float = 1.0,
        feature_share: float = 0.5,
        query_share: float = 0.7,
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
        self.leaves = leaves
        self.min_documents = min_documents
        self.l2 = l2
        self.feature_share = feature_share
        self.query_share = query_share
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
        check_count("truncation", self.truncation)
        check_share("query_share", self.query_share)
        check_choice("gain", self.gain, TREE_GAINS)

    def _learnt_from(self, queries: Queries) -> Queries:
        useful = with_pairs(queries)
        return queries if useful.all() else queries.select(np.flatnonzero(useful))

    def _labels(self, queries: Queries) -> tuple[Floats, dict[str, Any]]:
        longest = int(queries.lengths.argmax())
        if queries.lengths[longest] > LONGEST_QUERY:
            raise DataError(
                f"query '{queries.query_ids[longest]}' has {queries.lengths[longest]} documents: LambdaMART takes at "
                f"most {LONGEST_QUERY} a query. Keep those that a first ranking puts first, or take GBDTRanker."
            )
        worth, number = np.unique(gains_of(queries.grades, self.gain), return_inverse=True)
        if len(worth) > MOST_GRADES:
            raise DataError(
                f"there are {len(worth)} different grades: LambdaMART takes at most {MOST_GRADES}. Round the grades, "
                "or take GBDTRanker."
            )
        return number.astype(np.float64), {"label_gain": worth.tolist()}

    def _least(self, queries: Queries) -> dict[str, Any]:
        least = min(int(self.min_documents), max(1, queries.n_documents // 10))
        # LightGBM guesses the documents of a leaf from its curvature. Of one, the curvature alone is witness enough.
        return {"min_data_in_leaf": least if least > 1 else 0, "min_sum_hessian_in_leaf": 1e-9}

    def _own(self) -> dict[str, Any]:
        return {
            "objective": "lambdarank",
            "learning_rate": float(self.learning_rate),
            "lambdarank_truncation_level": min(int(self.truncation), LONGEST_QUERY),
            "bagging_by_query": self.query_share < 1.0,
            **drawn(self.query_share),
        }


class GBDTRanker(BoostedRanker, LightGBMRanker):
    """Boosted regression trees on each document's grade, without its rivals.

    The parameters are those of LambdaMART, without truncation and gain: the target is the grade, whatever it is.
    row_share stands for query_share: the share of the documents each tree learns from, drawn at random.
    Fitted: trees_, rounds_ (rounds of each seed). Cost of a round: n_documents n_features additions.
    Source: Friedman 2001, "Greedy Function Approximation: A Gradient Boosting Machine", Annals of Statistics 29(5).
    """

    space: ClassVar[tuple[Parameter, ...]] = (
        Int("trees", 30, 500, log=True),
        Float("learning_rate", 0.02, 0.3, log=True),
        Int("leaves", 4, 64, log=True),
        Int("min_documents", 5, 200, log=True),
        Float("l2", 1e-2, 100.0, log=True),
        Float("feature_share", 0.2, 1.0),
        Float("row_share", 0.4, 1.0),
    )

    def __init__(
        self,
        trees: int = 100,
        *,
        learning_rate: float = 0.05,
        leaves: int = 8,
        min_documents: int = 50,
        l2: float = 1.0,
        feature_share: float = 0.5,
        row_share: float = 0.7,
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
        self.leaves = leaves
        self.min_documents = min_documents
        self.l2 = l2
        self.feature_share = feature_share
        self.row_share = row_share
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
        check_share("row_share", self.row_share)

    def _own(self) -> dict[str, Any]:
        return {
            "objective": "regression",
            "learning_rate": float(self.learning_rate),
            **drawn(self.row_share),  # of documents: by query, LightGBM 4.7 learns nonsense under this objective
        }


class RandomForestRanker(LightGBMRanker):
    """The mean of many regression trees on each document's grade, each on other queries and features.

    trees          in the forest
    leaves         of each tree, at most
    min_documents  of each leaf, at least; never more than a tenth of all
    l2             penalty on the answers of leaves
    feature_share  of the features each tree may look at, drawn at random
    row_share      of the documents each tree learns from, drawn at random without replacement; below 1
    seeds, bins, threads, random_state  as in LambdaMART

    More trees are never too many: nothing is held out. While it grows, scores are those of the finished forest with the
    trees to come answering 0.
    Fitted: trees_, rounds_ (trees of each seed). Cost of a tree: n_documents n_features additions a level.
    Source: Breiman 2001, "Random Forests", Machine Learning 45(1).
    """

    space: ClassVar[tuple[Parameter, ...]] = (
        Int("leaves", 8, 256, log=True),
        Int("min_documents", 1, 100, log=True),
        Float("l2", 1e-2, 100.0, log=True),
        Float("feature_share", 0.1, 1.0),
        Float("row_share", 0.3, 0.9),
    )

    def __init__(
        self,
        trees: int = 100,
        *,
        leaves: int = 32,
        min_documents: int = 10,
        l2: float = 1.0,
        feature_share: float = 0.3,
        row_share: float = 0.6,
        seeds: int = 1,
        bins: int = 255,
        threads: int = 1,
        random_state: Any = None,
    ) -> None:
        self.trees = trees
        self.leaves = leaves
        self.min_documents = min_documents
        self.l2 = l2
        self.feature_share = feature_share
        self.row_share = row_share
        self.seeds = seeds
        self.bins = bins
        self.threads = threads
        self.random_state = random_state

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_share("row_share", self.row_share)
        if not self.row_share < 1.0:
            raise ParameterError(f"row_share={self.row_share!r}: it must be below 1, or all trees are alike.")

    def _factor(self) -> float:
        return 1.0 / int(self.trees)

    def _own(self) -> dict[str, Any]:
        return {"objective": "regression", "boosting": "rf", **drawn(self.row_share)}
