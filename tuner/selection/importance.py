"""The importance of a model's features with intervals over queries, most important first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ranktune.solvers.core.arrays import Ints
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.explanation.importance import shuffling_losses
from ranktune.solvers.metrics.metrics import Metric
from ranktune.solvers.models.base import Model
from ranktune.tuner.statistics.intervals import Interval, bootstrap_interval

RESAMPLES = 2_000
"""Draws of queries for each interval."""


@dataclass(frozen=True)
class Importance:
    """What the metric loses where the values of a feature, or of those of one column, are shuffled within queries.

    loss has the 95 percent interval over queries.
    """

    feature: str
    loss: Interval


def feature_importance(
    model: Model, queries: Queries, metric: Metric, *, repeats: int, seed: int = 0, resamples: int = RESAMPLES
) -> tuple[Importance, ...]:
    """Return the importance of each feature that the model uses, the greatest loss first.

    The features of one column of a table, such as those of a category, are shuffled together. queries have the model's
    features. The interval holds the noise of the queries, and that of the shuffles on them.
    """
    groups = groups_of(model)
    losses = shuffling_losses(model, queries, metric, tuple(groups.values()), repeats=repeats, seed=seed)
    found = [
        Importance(
            name,
            bootstrap_interval(
                own, np.random.default_rng([seed, k]), resamples=resamples, weights=queries.query_weights
            ),
        )
        for k, (name, own) in enumerate(zip(groups, losses, strict=True))
    ]
    return tuple(sorted(found, key=lambda one: -np.nan_to_num(one.loss.mean)))


def groups_of(model: Model) -> dict[str, Ints]:
    """Return the features that the model uses by their name, or by that of the column of the table that gave them."""
    names = names_of(model)
    columns = {} if model.encoding is None else model.encoding.sources(names)
    groups: dict[str, list[int]] = {}
    for j in model.used_features.tolist():
        groups.setdefault(columns.get(names[j], names[j]), []).append(j)
    return {name: np.array(own, dtype=np.int64) for name, own in groups.items()}


def names_of(model: Model) -> Sequence[str]:
    """Return the names of a model's features; those of a model without names are numbered from 1."""
    return model.feature_names or [f"feature {j + 1}" for j in range(model.n_features)]


def sampled(queries: Queries, count: int, seed: int = 0) -> Queries:
    """Return at most count of the queries, drawn at random, in their order."""
    if queries.n_queries <= count:
        return replace(queries, rows=None)
    drawn: Ints = np.random.default_rng([seed, 1]).choice(queries.n_queries, count, replace=False)
    return queries.select(np.sort(drawn))
