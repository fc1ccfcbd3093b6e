"""LambdaMART, grown by LightGBM."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY
from typing import Annotated, ClassVar

import numpy as np

from ranktune.solvers.abilities import POSITIONS
from ranktune.solvers.boosting.base import BoostedRanker, pair_scale
from ranktune.solvers.boosting.lightgbm.ranker import LightGBMRanker, bagging
from ranktune.solvers.boosting.objectives import NOISY, Decay, MakeObjective, NoisyRankings, Samples
from ranktune.solvers.boosting.training_queries import Gain, check_share, gains_of
from ranktune.solvers.core.arrays import Floats, Json
from ranktune.solvers.core.checks import check_not_negative
from ranktune.solvers.core.errors import DataError
from ranktune.solvers.core.parameters import Param, with_parameters
from ranktune.solvers.core.space import Value, When
from ranktune.solvers.data.grades import shared_levels
from ranktune.solvers.data.queries import Queries

MAX_QUERY_LENGTH = 10_000
"""The limit of LightGBM on the documents of a query with lambdarank."""
MAX_EXPONENT = 30
"""The highest grade with xendcg, whose targets are about 2^grade."""
MAX_GRADES = 10_000
"""Different gains with lambdarank, which LightGBM keeps in a table, and counts for each query; of more, neighbours
are merged."""

LAMBDARANK, XENDCG, *_ = LOSSES = ("lambdarank", "xendcg", *NOISY)


@with_parameters
class LambdaMART(BoostedRanker, LightGBMRanker):
    """LambdaMART: boosted trees whose gradients weigh each pair by the change in NDCG of swapping it, by LightGBM.

    Queries without two different grades are left out. Documents of equal score, all before the first tree, rank in the
    order of rows. Weights of queries and documents multiply the gradients; min_documents counts documents whatever
    their weight. Positions are used by lambdarank: trees and an effect of each position are fitted together, and the
    model has the trees alone. Feature values within 1e-35 of 0 count as 0. Cost of a round: n_documents n_features
    additions, and truncation n_documents swaps.

    {parameters}

    {attributes}

    References
    ----------
    Bruch 2021, "An Alternative Cross Entropy Loss for Learning-to-Rank", WWW, for xendcg.
    Bruch et al. 2020, "A Stochastic Treatment of Learning to Rank Scoring Functions", WSDM, for noise on scores.
    Burges 2010, "From RankNet to LambdaRank to LambdaMART: An Overview", MSR-TR-2010-82.
    Geurts et al. 2006, "Extremely Randomized Trees", Machine Learning 63(1), for the random splitter.
    Gulin et al. 2011, "Winning the Transfer Learning Track of Yahoo!'s Learning to Rank Challenge with YetiRank",
    PMLR 14.
    Ke et al. 2017, "LightGBM: A Highly Efficient Gradient Boosting Decision Tree", NIPS.
    Lyzhin et al. 2023, "Which Tricks Are Important for Learning to Rank?", ICML.

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

    _: KW_ONLY
    query_share: Annotated[
        float,
        Param(
            "The share of the queries that is drawn for each tree; with other losses than lambdarank of the documents.",
            low=0.4,
            high=1.0,
            check=check_share,
        ),
    ] = 0.7
    loss: Annotated[
        str,
        Param(
            '"lambdarank": pairs of documents. "xendcg": cross-entropy of the softmax of a query\'s scores, with '
            "targets drawn around 2^grade for each tree; much faster on long queries. `gain` does not change it; "
            "grades that are not whole numbers from 0 to 30 are replaced by their order. "
            '"smoothed": pairs, weighted by the mean change of `metric` if the two documents swap places in a noisy '
            'ranking. "yetirank": pairs of neighbours in noisy rankings, weighted by the difference of their grades.',
            choices=LOSSES,
        ),
    ] = LAMBDARANK
    truncation: Annotated[
        int,
        Param(
            "With lambdarank the ranks whose swaps count: the better placed document of a pair is among the first "
            "truncation ones. With yetirank the ranks whose neighbours count, with smoothed those of a metric without "
            "a cutoff.",
            low=5,
            high=50,
            log=True,
            when=When("loss", (LAMBDARANK,)),
        ),
    ] = 30
    norm: Annotated[
        bool,
        Param(
            "With lambdarank, whether the gradients of a query are divided by the differences of scores and by the "
            "total of the query, so that no query dominates; LightGBM's lambdarank_norm."
        ),
    ] = True
    position_l2: Annotated[
        float,
        Param(
            "With lambdarank and positions, the penalty of the squared effects of positions, which are estimated with "
            "the trees; LightGBM's lambdarank_position_bias_regularization.",
            check=check_not_negative,
        ),
    ] = 0.0
    gain: Gain = "auto"
    samples: Samples = 10
    decay: Decay = 0.85

    needs_pairs: ClassVar[bool] = True

    @classmethod
    def supports(cls, parameters: Mapping[str, Value]) -> frozenset[str]:
        """Return what a configuration can use of the data: positions too with lambdarank."""
        by_position = {POSITIONS} if parameters.get("loss", LAMBDARANK) == LAMBDARANK else frozenset()
        return super().supports(parameters) | by_position

    def _targets(self, queries: Queries) -> tuple[Floats, Json]:
        if (noisy := NoisyRankings.of(self.get_params())) is not None:
            return noisy.targets(queries), {}
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

    def _derivatives(self) -> MakeObjective | None:
        noisy = NoisyRankings.of(self.get_params())
        return None if noisy is None else noisy.objective

    def _shifted(self, start: Floats, targets: Floats, queries: Queries) -> Floats:
        return start  # only differences count

    def _start_scale(self, queries: Queries) -> float:
        return pair_scale(queries)

    def _leaf_limits(self, queries: Queries) -> Json:
        least = min(int(self.min_documents), max(1, queries.n_documents // 10))
        # LightGBM estimates the documents of a leaf from its curvature; positive curvature proves that a leaf has a
        # document.
        return {"min_data_in_leaf": least if least > 1 else 0, "min_sum_hessian_in_leaf": 1e-9}

    def _objective(self) -> Json:
        if self.loss == LAMBDARANK:
            loss: Json = {
                "objective": "lambdarank",
                "lambdarank_truncation_level": min(int(self.truncation), MAX_QUERY_LENGTH),
                "lambdarank_norm": bool(self.norm),
                "bagging_by_query": self.query_share < 1.0,
                "lambdarank_position_bias_regularization": float(self.position_l2),
            }
        else:  # drawing queries, LightGBM ends after the first tree, or fits wrong ones with an objective of ours
            loss = {"objective": "none" if self.loss in NOISY else "rank_xendcg"}
        return {**loss, "learning_rate": float(self.learning_rate), **bagging(self.query_share)}


def whole_grades(grades: Floats) -> Floats:
    """Return the grades if they are whole numbers from 0 to 30, else the order of each among them, 30 at most."""
    if grades.min() >= 0.0 and grades.max() <= MAX_EXPONENT and bool((grades == np.round(grades)).all()):
        return grades
    number = np.unique(grades, return_inverse=True)[1].astype(np.float64)
    order: Floats = np.round(number * min(1.0, MAX_EXPONENT / max(number.max(), 1.0)))
    return order
