"""Copies of a model that systems can load, and what they lose.

The loss is measured on queries whose documents a copy was not made from: on each half of the queries by a copy made
from the other half. Grades are not used to make a copy. Where the queries are those that the model was trained on,
which it ranks better than others, its copies lose more on them than on others: the loss is not underestimated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ranktune.solvers.abilities import LINEAR, TREES
from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.distillation.distil import distil
from ranktune.solvers.metrics.means import linearised, mean_or_zero
from ranktune.solvers.metrics.metrics import metric_for, parse_metric
from ranktune.solvers.models.base import Model
from ranktune.solvers.models.linear import LinearModel
from ranktune.solvers.models.tree_model import TreeModel
from ranktune.tuner.evaluation.models import microseconds_a_document
from ranktune.tuner.splits.forward import forward_or_dealt
from ranktune.tuner.statistics.intervals import bootstrap_interval
from ranktune.tuner.statistics.measured import Interval
from ranktune.tuner.study.abilities import can_load

MAX_LOSS = 0.002
"""The loss of the metric that a copy may have."""
ONE_SIDED_Z = 1.645
"""Standard errors above MAX_LOSS from which a loss is significantly above it, at a level of .05."""


@dataclass(frozen=True, eq=False)
class Copy:
    """A copy of a model, with the loss of the metric, and the bytes and microseconds a document before and after."""

    model: Model
    metric: str
    loss: Interval
    bytes_before: int
    microseconds_before: float
    microseconds: float


def copied(model: Model, queries: Queries, serve: Sequence[str], trees: int | None = None) -> Copy:
    """Return a copy of a model that systems can load, made from queries, and its loss on them."""
    queries = replace(queries, rows=None)
    metric = str(metric_for(queries, model.metric))
    copy = copy_of(model, queries, serve, trees)
    lost = copy_loss(model, queries, serve, metric, 0, trees)
    loss = bootstrap_interval(lost, np.random.default_rng(0), weights=queries.query_weights)
    before, after = (microseconds_a_document(each, queries) for each in (model, copy))
    return Copy(copy, metric, loss, model.bytes, before, after)


def copy_of(model: Model, queries: Queries, serve: Sequence[str], trees: int | None = None) -> TreeModel | LinearModel:
    """Return a copy of a model in trees, in this number of them if it is given, or in weights where none are loaded."""
    return distil(model, queries, TREES if can_load(serve, {TREES}) else LINEAR, trees=trees)


def copy_loss(
    model: Model, queries: Queries, serve: Sequence[str], metric: str, seed: int, trees: int | None = None
) -> Floats:
    """Return the metric of a model less that of copies of it, (n_queries,), each made from the other half of queries.

    Where times are known, each later third is scored by a copy made from all before it; the others are NaN.

    Raises DataError where a half has no two documents with different scores.
    """
    lost, by = np.full(queries.n_queries, np.nan), parse_metric(metric)
    for fold in forward_or_dealt(queries, 2, seed, stream=7):
        part = queries.select(fold.vali)
        copy = copy_of(model, queries.select(fold.train), serve, trees)
        before, after = (by.per_query(each.predict(replace(part, rows=None)), part) for each in (model, copy))
        lost[fold.vali] = before - after
    return lost


def is_significant(loss: Floats, weights: Floats | None = None) -> bool:
    """Return whether a loss, (n_queries,), is significantly above MAX_LOSS, its mean weighted by weights."""
    known = linearised(loss, weights)[~np.isnan(loss)]
    error = float(known.std()) / np.sqrt(max(len(known), 1)) if len(known) else 0.0
    return mean_or_zero(known) - MAX_LOSS > ONE_SIDED_Z * error
