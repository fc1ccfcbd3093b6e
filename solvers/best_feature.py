"""The best single feature: the floor that any learnt model must beat, BM25 for example."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np
from scipy import sparse

from ranktune.solvers.arrays import Floats
from ranktune.solvers.metrics import Metric, parse_metric
from ranktune.solvers.queries import Queries
from ranktune.solvers.ranker import LinearRanker, Step
from ranktune.solvers.space import Parameter


class BestFeature(LinearRanker):
    """Rank by the one feature, rising or falling, with the best mean metric on the training data.

    metric is a spelling such as "map"; "auto" is ndcg@10, or pairwise accuracy where a grade is not one that gains of
    2^grade can take (negative, fractional, above 30). Of equally good features the first is taken. Constant features
    are left out.

    Fitted: coef_ with one entry, +1 or -1; feature_, its column; score_, its training metric.
    Cost: two evaluations of the metric a feature.
    """

    space: ClassVar[tuple[Parameter, ...]] = ()

    def __init__(self, metric: str = "auto") -> None:
        self.metric = metric

    def _check_parameters(self) -> None:
        if self.metric != "auto":
            parse_metric(self.metric)

    def _steps(self, queries: Queries) -> Iterator[Step]:
        metric = self._chosen_metric(queries)
        self.coef_, self.feature_, self.score_ = np.zeros(queries.n_features), 0, -np.inf
        for at, column in enumerate(_columns(queries)):
            if column.min() == column.max():
                continue
            for sign in (1.0, -1.0):
                score = metric.mean(sign * column, queries)
                if score > self.score_:
                    self.coef_ = np.zeros(queries.n_features)
                    self.coef_[at] = sign
                    self.feature_, self.score_ = at, score
            yield Step(at + 1, -self.score_)

    def _chosen_metric(self, queries: Queries) -> Metric:
        if self.metric != "auto":
            return parse_metric(self.metric)
        grades = queries.grades
        fits = grades.min() >= 0.0 and grades.max() <= 30.0 and not (grades % 1.0).any()
        return parse_metric("ndcg@10" if fits else "pairwise")


def _columns(queries: Queries) -> Iterator[Floats]:
    """Yield each feature as float64, (n_documents,)."""
    features = queries.features
    if not sparse.issparse(features):
        for at in range(queries.n_features):
            yield features[:, at].astype(np.float64)
        return
    by_column = sparse.csc_array(features)
    for at in range(queries.n_features):
        a, b = by_column.indptr[at], by_column.indptr[at + 1]
        column = np.zeros(queries.n_documents)
        column[by_column.indices[a:b]] = by_column.data[a:b]
        yield column
