"""Boosted symmetric trees."""

from __future__ import annotations

from dataclasses import KW_ONLY, replace
from typing import Annotated, ClassVar

import numpy as np

from ranktune.solvers.boosting.base import BoostedRanker, pair_scale
from ranktune.solvers.boosting.bins import Bins, binned, shared_by
from ranktune.solvers.boosting.limits import L2, RowShare, check_share, whole
from ranktune.solvers.boosting.objectives import NOISY, Decay, NoisyRankings, Samples, query_error
from ranktune.solvers.boosting.symmetric.growth import SymmetricData, TreeLimits
from ranktune.solvers.boosting.training_queries import TrainingQueries
from ranktune.solvers.core.parameters import Param, with_parameters
from ranktune.solvers.data.origins import Kept
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.scaling import without_level
from ranktune.solvers.models.trees import ANY_VALUE

KEPT: Kept[Bins] = Kept(2)
"""The bins of the last data sets of this process."""
MAX_KEPT_BYTES = 2**30
"""The most bytes of the bins of a data set that are kept; larger bins are made for each fit."""


@with_parameters
class SymmetricGBDT(BoostedRanker):
    """Boosted symmetric trees, which have one split a level, on the grades within queries.

    Such trees are smoother than others of as many leaves, and overfit less. Queries without two different grades are
    left out. Weights of queries and documents multiply the gradients. Missing values go left. Sparse features are kept
    in dense bins, a byte a value. Cost of a round: feature_share row_share depth n_documents n_features additions.

    {parameters}

    {attributes}

    References
    ----------
    Friedman 2001, "Greedy Function Approximation: A Gradient Boosting Machine", Annals of Statistics 29(5).
    Prokhorenkova et al. 2018, "CatBoost: unbiased boosting with categorical features", NeurIPS, for symmetric
    (oblivious) trees and squared errors within queries.

    Examples
    --------
    >>> import numpy as np
    >>> from ranktune.solvers import SymmetricGBDT
    >>> X = np.linspace(0.0, 1.0, 60)[:, None]
    >>> grades = (X[:, 0] > 0.5).astype(int)
    >>> ranker = SymmetricGBDT(trees=20).fit(X, grades, qid=np.arange(60) % 6)
    >>> bool(ranker.predict([[0.9]]) > ranker.predict([[0.1]]))
    True
    """

    trees = 200
    _: KW_ONLY
    depth: Annotated[int, Param("The levels of each tree.", low=3, high=8, check=whole(1, 12))] = 6
    l2: L2 = 10.0
    feature_share: Annotated[
        float, Param("The share of the features that is drawn for each tree.", low=0.2, high=1.0, check=check_share)
    ] = 1.0
    row_share: RowShare = 0.8
    loss: Annotated[
        str,
        Param(
            '"squared": squared errors of grades less their mean in the query. "yetirank", "smoothed": see LambdaMART.',
            choices=("squared", *NOISY),
        ),
    ] = "squared"
    samples: Samples = 10
    decay: Decay = 0.85
    bins = 128

    space_order = ("trees", "learning_rate", "depth", "l2", "feature_share", "row_share", "loss")
    weighted: ClassVar[bool] = True
    takes_document_weights: ClassVar[bool] = True
    takes_missing: ClassVar[bool] = True
    needs_pairs: ClassVar[bool] = True

    def _source(self, training: TrainingQueries) -> SymmetricData:
        queries = training.queries
        bins = self._bins(queries)
        with_missing = None
        if queries.has_missing:
            with_missing = np.array([len(cuts) > 0 and cuts[0] == -ANY_VALUE for cuts in bins.cuts])
        limits = TreeLimits(
            float(self.learning_rate),
            int(self.depth),
            float(self.l2),
            float(self.feature_share),
            float(self.row_share),
        )
        noisy = NoisyRankings.of(self.get_params())
        targets = without_level(queries.grades, queries) if noisy is None else noisy.targets(queries)
        make = query_error if noisy is None else noisy.objective
        start = self._first_scores(training)
        signs = np.zeros(len(bins.cuts), dtype=np.int64) if queries.monotone is None else queries.monotone
        return SymmetricData(queries.without_features(), targets, start, bins, signs, with_missing, limits, make)

    def _bins(self, queries: Queries) -> Bins:
        """Return the features in bins, which are shared with other queries of the same data."""
        origin, numbers = shared_by(queries)
        if origin.n_documents * origin.n_features > MAX_KEPT_BYTES:
            return binned(queries.features, int(self.bins)).dense()
        bins = KEPT.of(origin, str(self.bins), lambda: binned(origin.features, int(self.bins)).dense())
        if origin is queries:
            return bins
        values = bins.values[:, np.arange(origin.n_documents)[origin.documents_of(numbers)]]
        return replace(bins, values=np.ascontiguousarray(values))

    def _start_scale(self, queries: Queries) -> float:
        return pair_scale(queries) if self.loss in NOISY else 1.0
