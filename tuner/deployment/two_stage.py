"""Ranking in two stages: a cheap linear model for all documents, and the model for those that it ranks first.

The linear model is learnt from the scores of the model, by least squares on a few of its features. How many documents
the model must score again is measured: on queries that the linear model was not learnt from, by the loss of the metric
against scoring all of them. The window is the smallest whose loss is at most MAX_LOSS at the upper end of its interval.

Windows count the documents of a query here. An engine counts those of each shard or node, which scores more of them
again: the loss is then no larger.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ranktune.solvers.core.arrays import Floats, Ints, dense
from ranktune.solvers.core.errors import DataError, ParameterError
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.scaling import without_level
from ranktune.solvers.export.two_stage import Stage
from ranktune.solvers.linear.pointwise import RidgeRanker
from ranktune.solvers.metrics.metrics import metric_for
from ranktune.solvers.models.base import Model
from ranktune.tuner.evaluation.feature_costs import GroupedFeatures
from ranktune.tuner.evaluation.feature_order import ordered
from ranktune.tuner.evaluation.feature_sets import FeatureBudget
from ranktune.tuner.evaluation.models import microseconds_a_document
from ranktune.tuner.splits.forward import forward_or_dealt
from ranktune.tuner.statistics.intervals import Interval, bootstrap_interval

MAX_LOSS = 0.001
"""The loss of the metric that a window may have."""
WINDOWS = (5, 10, 15, 20, 25, 30, 40, 50, 75, 100, 150, 200, 300, 400, 500, 750, 1000)
"""Windows that are tried, and every document."""
FOLDS, ALPHA = 5, 1.0
"""Folds by which the loss is measured, and the penalty of the first stage."""


@dataclass(frozen=True)
class Window:
    """A number of documents that are scored again, the loss of the metric, and the microseconds of a query."""

    window: int
    loss: Interval
    microseconds: float


@dataclass(frozen=True, eq=False)
class TwoStages:
    """The models of both stages, the chosen window, and what was measured.

    windows  those tried, rising, the last of all documents; chosen is among them
    first_microseconds, full_microseconds  processor time of a query where one model scores all documents
    """

    first: Stage
    second: Stage
    metric: str
    chosen: int
    windows: tuple[Window, ...]
    first_microseconds: float
    full_microseconds: float

    @property
    def by_interval(self) -> int:
        """The smallest window whose loss is at most MAX_LOSS at the upper end of its interval."""
        return _smallest(self.windows)

    @property
    def by_mean(self) -> int:
        """The smallest window whose mean loss is at most MAX_LOSS."""
        return next(window.window for window in self.windows if window.loss.mean <= MAX_LOSS)


def two_stages(
    model: Model, queries: Queries, budget: FeatureBudget, window: int | None = None, *, complete: bool = False
) -> TwoStages:
    """Return the stages of a model, with the given window, or the smallest whose loss is small enough.

    budget limits the features of the first stage; with complete it has only features that no document lacks. Raises
    DataError where there are no grades to measure the loss by, or no feature for the first stage, and ParameterError
    for a model that compares the documents of a query.
    """
    if model.needs_queries:
        raise ParameterError(
            f"the model, by {model.solver}, compares each document with all others of its query, and a second stage "
            'gets the best of them alone. Train with within_query="none", or distil the model first.'
        )
    queries = replace(model.arranged(queries), rows=None)
    metric = metric_for(queries, model.metric)
    full = model.predict(queries)
    spread = float(np.sqrt(np.mean(without_level(full, queries) ** 2)))
    whole = metric.per_query(full, queries)
    if queries.n_queries < 2 or np.isnan(whole).all() or not spread > 0.0:
        raise DataError(
            "the loss of two stages cannot be measured: give data with grades, of several queries whose documents "
            "differ."
        )
    targets = replace(queries, grades=full / spread, query_weights=None)
    candidates = _candidates(model, queries, complete=complete)
    first, scored = np.zeros(queries.n_documents), np.zeros(queries.n_queries, dtype=bool)
    for fold in forward_or_dealt(queries, min(FOLDS, queries.n_queries), 0, stream=8):
        scored[fold.vali] = True
        part = _learnt(targets.select(fold.train), candidates, budget, complete)
        first[queries.documents_of(fold.vali)] = part.scores(queries.select(fold.vali))
    learnt = _learnt(targets, candidates, budget, complete)
    documents = queries.n_documents / queries.n_queries
    a, b = microseconds_a_document(learnt.model, learnt.taken(queries)), microseconds_a_document(model, queries)
    longest = int(queries.lengths.max())
    sizes = sorted({*(size for size in WINDOWS if size < longest), longest, *([] if window is None else [window])})
    tried = []
    for size in sizes:
        loss = np.where(scored, whole - metric.per_query(staged(first, full, queries, size), queries), np.nan)
        rescored = float(np.minimum(queries.lengths, size).mean())
        interval = bootstrap_interval(loss, np.random.default_rng(0), weights=queries.query_weights)
        tried.append(Window(size, interval, a * documents + b * rescored))
    scores = learnt.scores(queries)
    linear = learnt.model.on_columns(learnt.columns, model.n_features, model.feature_names)
    return TwoStages(
        Stage(linear, float(scores.mean()), float(scores.std()) or 1.0),
        Stage(model, float(full.mean()), float(full.std())),
        str(metric),
        window or _smallest(tried),
        tuple(tried),
        a * documents,
        b * documents,
    )


def _smallest(windows: Sequence[Window]) -> int:
    return next(window.window for window in windows if window.loss.high <= MAX_LOSS)


@dataclass(frozen=True, eq=False)
class _Learnt:
    """A linear model of some columns; complete if no document may lack them."""

    model: Model
    columns: Ints
    complete: bool

    def taken(self, queries: Queries) -> Queries:
        """Return queries as the model takes them."""
        narrow = queries.with_columns(self.columns)
        return replace(narrow, has_missing=False) if self.complete else narrow

    def scores(self, queries: Queries) -> Floats:
        return self.model.predict(self.taken(queries))


def _learnt(targets: Queries, candidates: Ints, budget: FeatureBudget, complete: bool) -> _Learnt:
    """Return the linear model that follows the grades of targets best, on some of the candidate features."""
    assert budget.limits is not None
    features = budget.costs.of(targets)
    narrow = GroupedFeatures(features.group[candidates], features.cost)
    columns = candidates[ordered(targets.with_columns(candidates), narrow, budget.limits).first(1.0)]
    if len(columns) == 0:
        raise DataError(
            "no feature of the model is left for the first stage. Allow more features or cost (within), or features "
            "that no document lacks."
        )
    queries = targets.with_columns(columns)
    ranker = RidgeRanker(alpha=ALPHA).fit(replace(queries, has_missing=queries.has_missing and not complete))
    return _Learnt(ranker.as_model(), columns, complete)


def _candidates(model: Model, queries: Queries, *, complete: bool) -> Ints:
    """Return the features of a model that the first stage may have."""
    used = model.used_features
    if not (complete and queries.has_missing):
        return used
    values = queries.features[:, used]
    lacking = np.isnan(dense(values)).any(axis=0)
    return used[~lacking]


def staged(first: Floats, full: Floats, queries: Queries, window: int) -> Floats:
    """Return scores that rank as two stages do, (n_documents,): the best of each query by first are ranked by full.

    The others follow in the order of first. Documents of equal score stay in their order.
    """
    query = queries.query_of_document
    order = np.lexsort((-first, query))
    place = np.empty(queries.n_documents, dtype=np.int64)
    place[order] = np.arange(queries.n_documents) - queries.starts[query[order]]
    lowest = np.minimum.reduceat(full, queries.starts[:-1])[query]
    return np.where(place < window, full, lowest - place - 1.0)
