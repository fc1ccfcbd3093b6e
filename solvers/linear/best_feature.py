"""The best single feature, such as BM25: the baseline that any trained model should beat."""

from collections.abc import Iterator
from dataclasses import KW_ONLY
from typing import Annotated, ClassVar

import numpy as np

from ranktune.solvers.base.linear import LinearRanker
from ranktune.solvers.base.ranker import Step
from ranktune.solvers.base.vocabulary import METRIC
from ranktune.solvers.core.arrays import Floats, Ints, Mask
from ranktune.solvers.core.parameters import Param, with_parameters
from ranktune.solvers.data.missing import each_column
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.metrics.feature_tables import SIGNS, candidates, table_parts, weighed
from ranktune.solvers.metrics.metrics import Metric, chosen_metric

MANY_QUERIES, SAMPLE = 1000, 250
STANDARD_ERRORS = 5.0
"""So far behind the best of a sample, a feature is not the best of all queries."""


@with_parameters
class BestFeature(LinearRanker):
    """The single best feature: the baseline that any trained model should beat.

    The feature, rising or falling, with the best mean metric on the training data. Of equally good features the first
    is taken; constant features are left out. Of more than 1,000 queries, 250 drawn at random choose the features that
    all queries then decide between: those whose mean is not below the best by more than 5 standard errors of the
    differences between the two. Cost: one pass over the features for a metric with a cutoff, such as ndcg@10, else two
    evaluations of the metric for each feature.

    {parameters}

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

    indicates_missing: ClassVar[bool] = False
    weighted: ClassVar[bool] = True
    takes_document_weights: ClassVar[bool] = True
    metric: Annotated[str, METRIC] = "auto"
    _: KW_ONLY
    max_features: Annotated[
        int, Param("Of more features than that, only those that are nonzero in the most documents are tried.")
    ] = 1000

    def _steps(self, queries: Queries) -> Iterator[Step]:
        metric = chosen_metric(self.metric, queries)
        self.coef_, self.feature_, self.score_ = np.zeros(queries.n_features), 0, -np.inf
        chosen, number = candidates(queries, int(self.max_features)), 0
        left = np.ones((len(chosen), len(SIGNS)), dtype=bool)
        if queries.monotone is not None:
            left &= queries.monotone[chosen][:, None] * np.array(SIGNS) >= 0.0
        no_scores = np.zeros(queries.n_documents)
        measured = ~np.isnan(metric.per_query(no_scores, weighed(metric, queries)))
        if not measured.any():
            metric.mean(no_scores, queries)  # raises DataError
        weights = None if queries.query_weights is None else queries.query_weights[measured]
        if measured.sum() > MANY_QUERIES:
            every = np.flatnonzero(measured)
            drawn = np.random.default_rng(0).choice(every, SAMPLE, replace=False, p=_shares(queries, every))
            sample, table = queries.select(np.sort(drawn)), np.full((*left.shape, SAMPLE), -np.inf)
            for at, values in _values(metric, sample, chosen, left):
                table[at], number = values, number + 1
                yield self._lead(number, queries, chosen, table.mean(axis=2))
            left &= _rivals(table)
        means = np.full(left.shape, -np.inf)
        for at, values in _values(metric, queries, chosen, left):
            means[at], number = np.average(values.compress(measured, axis=1), axis=1, weights=weights), number + 1
            yield self._lead(number, queries, chosen, means)

    def _lead(self, number: int, queries: Queries, chosen: Ints, means: Floats) -> Step:
        """Keep the first feature of the best mean, (n_chosen, 2), that is not constant."""
        for best in np.argsort(-means, axis=None, kind="stable"):
            place, column = divmod(int(best), len(SIGNS))
            feature, sign, mean = int(chosen[place]), SIGNS[column], float(means[place, column])
            if mean == -np.inf:
                break
            if self.coef_[feature] or not _is_constant(queries, feature):
                self.feature_, self.score_ = feature, mean
                self.coef_ = np.zeros(queries.n_features)
                self.coef_[feature] = sign
                break
        return Step(number, -self.score_)


def _shares(queries: Queries, every: Ints) -> Floats | None:
    """Return the probabilities of drawing queries by their weights, (len(every),); None where all count alike."""
    if queries.query_weights is None:
        return None
    weights = queries.query_weights[every]
    return weights / weights.sum() if np.count_nonzero(weights) >= SAMPLE else None


def _is_constant(queries: Queries, feature: int) -> bool:
    (values,) = each_column(queries.features, np.array([feature]))
    return bool(values.min() == values.max())


def _values(metric: Metric, queries: Queries, chosen: Ints, left: Mask) -> Iterator[tuple[tuple[Ints, int], Floats]]:
    """Yield where in left some of what is left stands, and its metric, (how many, n_queries), until all is done."""
    for column, sign in enumerate(SIGNS):
        places = np.flatnonzero(left[:, column])
        for (part,) in table_parts(metric, queries, chosen[places], (sign,)):
            yield (places[: part.shape[1]], column), np.ascontiguousarray(part.T)
            places = places[part.shape[1] :]


def _rivals(table: Floats) -> Mask:
    """Return what is not clearly worse than the best in a table, (n_chosen, 2, n_queries), of a sample: (n_chosen, 2).

    Clearly: by more than STANDARD_ERRORS of the mean of the differences.
    """
    best = table.reshape(-1, table.shape[2])[table.mean(axis=2).argmax()]
    behind = best - table
    with np.errstate(invalid="ignore"):  # what constraints exclude is -inf
        errors = behind.std(axis=2, ddof=1) / np.sqrt(table.shape[2])
    return np.asarray(behind.mean(axis=2) <= STANDARD_ERRORS * errors)
