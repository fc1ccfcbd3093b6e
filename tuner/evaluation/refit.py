"""The final fit of a configuration, and its scores on the test queries."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from ranktune.solvers.base.ranker import BaseRanker
from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.metrics.metrics import parse_metric
from ranktune.solvers.models.base import Model
from ranktune.solvers.registry import make
from ranktune.tuner.evaluation.store import read_development, read_training
from ranktune.tuner.evaluation.task import Task


@dataclass(frozen=True)
class Refitted:
    """A final model, and the processor time of its fit."""

    model: Model
    seconds: float


def refit(task: Task, *, on_everything: bool) -> Refitted:
    """Fit a configuration to all development queries, or to the training queries of a given split."""
    train = read_development(task.folder) if on_everything else read_training(task.folder)
    ranker = make(task.solver, dict(task.parameters), task.seed)
    begun = time.process_time()
    ranker.fit(train)
    return Refitted(as_model(ranker, task, train), time.process_time() - begun)


def as_model(ranker: BaseRanker, task: Task, train: Queries) -> Model:
    """Return the model of a fitted ranker, with its origin."""
    return ranker.as_model(
        solver=task.solver,
        parameters=task.parameters,
        feature_names=train.feature_names,
        metric=task.metrics[0],
        fingerprint=train.fingerprint,
    )


def score_on(model: Model, queries: Queries, metrics: tuple[str, ...]) -> Mapping[str, Floats]:
    """Return metric -> (n_queries,), NaN where a metric skips a query."""
    scores = model.predict(replace(queries, rows=None))
    return {name: parse_metric(name).per_query(scores, queries) for name in metrics}


MIN_SECONDS = 0.05
"""Seconds of scoring that are enough to measure it."""


def microseconds_a_document(model: Model, queries: Queries, repeats: int = 5) -> float:
    """Return the median processor time to score one document; a slow model is measured once."""
    times: list[float] = []
    while len(times) < repeats and sum(times) < MIN_SECONDS:
        begun = time.process_time()
        model.predict(queries)
        times.append(time.process_time() - begun)
    return float(np.median(times)) / queries.n_documents * 1e6
