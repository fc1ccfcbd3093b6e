"""Boosted regression trees and random forests, grown by LightGBM on the grade of each document."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Annotated

from ranktune.solvers.boosting.base import BoostedRanker
from ranktune.solvers.boosting.lightgbm.ranker import MAX_LEAVES, LightGBMRanker, bagging
from ranktune.solvers.boosting.objectives import MakeObjective, query_error
from ranktune.solvers.boosting.training_queries import RowShare, check_share, whole
from ranktune.solvers.core.arrays import Floats, Json
from ranktune.solvers.core.errors import ParameterError
from ranktune.solvers.core.parameters import Param, with_parameters
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.scaling import without_level
from ranktune.solvers.losses.pointwise import CENTRES


@with_parameters
class GBDTRanker(BoostedRanker, LightGBMRanker):
    """Gradient boosted regression trees on the grade of each document (pointwise), by LightGBM.

    Cost of a round: n_documents n_features additions.

    {parameters}

    {attributes}

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

    _: KW_ONLY
    row_share: RowShare = 0.7
    centre: Annotated[
        str,
        Param(
            '"rounds": the residuals are centred within each query before each tree, so that only differences within '
            'queries count (CatBoost\'s QueryRMSE). "query": the trees fit what grades differ by from the mean grade '
            'of their query. "none": the trees fit the grades. Scores compare documents of one query in any case.',
            choices=("rounds", *CENTRES),
        ),
    ] = "rounds"
    leaves = 8

    def _targets(self, queries: Queries) -> tuple[Floats, Json]:
        targets, more = super()._targets(queries)
        return targets if self.centre == "none" else without_level(targets, queries), more

    def _derivatives(self) -> MakeObjective | None:
        return query_error if self.centre == "rounds" else None

    def _shifted(self, start: Floats, targets: Floats, queries: Queries) -> Floats:
        if self.centre != "none":
            return without_level(start, queries)
        return super()._shifted(start, targets, queries)

    def _objective(self) -> Json:
        return {
            "objective": "none" if self.centre == "rounds" else "regression",
            "learning_rate": float(self.learning_rate),
            **bagging(self.row_share),  # of documents: with this objective, LightGBM 4.7 fits wrong trees by query
        }


def _check_less(name: str, value: float) -> None:
    check_share(name, value)
    if value >= 1.0:
        raise ParameterError(f"{name}={value!r}: it must be below 1, or all trees are the same.")


@with_parameters
class RandomForestRanker(LightGBMRanker):
    """A random forest of regression trees on the grade of each document, by LightGBM.

    More trees do not overfit, so nothing is held out. Before fitting ends, trees that are not yet grown count as 0.
    Cost of a tree: n_documents n_features additions per level.

    {parameters}

    {attributes}
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

    trees: Annotated[int, Param("Trees of the forest.")] = 100
    _: KW_ONLY
    leaves: Annotated[
        int, Param("The most leaves of each tree.", low=8, high=256, log=True, check=whole(2, MAX_LEAVES))
    ] = 32
    min_documents: Annotated[
        int, Param("The least documents of each leaf; at most a tenth of all.", low=1, high=100, log=True)
    ] = 10
    feature_share: Annotated[
        float, Param("The share of the features that is drawn for each split.", low=0.1, high=1.0, check=check_share)
    ] = 0.3
    row_share: Annotated[
        float,
        Param(
            "The share of the documents that is drawn for each tree, without replacement; below 1.",
            low=0.3,
            high=0.9,
            check=_check_less,
        ),
    ] = 0.6

    space_order = ("leaves", "min_documents", "l2", "feature_share", "row_share")

    def _factor(self) -> float:
        return 1.0 / int(self.trees)

    def _objective(self) -> Json:
        return {"objective": "regression", "boosting": "rf", **bagging(self.row_share)}
