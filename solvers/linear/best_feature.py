"""The best single feature, such as BM25: the baseline that any trained model should beat."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from ranktune.solvers.base.ranker import LinearRanker, Step
from ranktune.solvers.core.checks import check_count
from ranktune.solvers.core.space import Parameter
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.metrics.feature_tables import candidates, columns
from ranktune.solvers.metrics.metrics import chosen_metric, parse_metric


class BestFeature(LinearRanker):
    """The single best feature: the baseline that any trained model should beat.

    The feature, rising or falling, with the best mean metric on the training data. Of equally good features the first
    is taken; constant features are left out. Cost: two evaluations of the metric for each feature.

    Parameters
    ----------
    metric : str, default="auto"
        Such as "map". "auto" is ndcg@10, or pairwise accuracy if a grade cannot have the gain 2^grade - 1 (negative,
        fractional, above 30).
    max_features : int, default=1000
        Of more features than that, only those that are nonzero in the most documents are tried.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Zero but for one entry, +1 or -1.
    feature_ : int
        The column of the feature.
    score_ : float
        Its metric on the training data.

    Examples
    --------
    >>> from ranktune.solvers import BestFeature
    >>> X = [[0.9, 0.1], [0.2, 0.8], [0.7, 0.3], [0.1, 0.6]]
    >>> BestFeature().fit(X, [1, 0, 1, 0], qid=[1, 1, 2, 2]).coef_
    array([1., 0.])
    """

    space: ClassVar[tuple[Parameter, ...]] = ()

    def __init__(self, metric: str = "auto", *, max_features: int = 1000) -> None:
        self.metric = metric
        self.max_features = max_features

    def _check_parameters(self) -> None:
        if self.metric != "auto":
            parse_metric(self.metric)
        check_count("max_features", self.max_features)

    def _steps(self, queries: Queries) -> Iterator[Step]:
        metric = chosen_metric(self.metric, queries)
        self.coef_, self.feature_, self.score_ = np.zeros(queries.n_features), 0, -np.inf
        chosen = candidates(queries, int(self.max_features))
        for number, (at, column) in enumerate(zip(chosen, columns(queries, chosen), strict=True), start=1):
            if column.min() == column.max():
                continue
            for sign in (1.0, -1.0):
                score = metric.mean(sign * column, queries)
                if score > self.score_:
                    self.coef_ = np.zeros(queries.n_features)
                    self.coef_[at] = sign
                    self.feature_, self.score_ = int(at), score
            yield Step(number, -self.score_)
