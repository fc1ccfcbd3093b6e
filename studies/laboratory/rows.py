"""Measuring a row of the table: a configuration on one task, fitted to a share of the training queries."""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TypeVar

import numpy as np

from ranktune.solvers.base.ranker import BaseRanker
from ranktune.solvers.core.arrays import Floats, Json
from ranktune.solvers.core.errors import RankTuneError
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.split import QuerySplit
from ranktune.solvers.metrics.metrics import parse_metric
from ranktune.studies.benchmarks.task_table.rows import ConfigurationRow, ModelCheckpoint, Sizes
from ranktune.studies.benchmarks.tasks import DRAWN
from ranktune.studies.laboratory.configurations import Configuration, name_of
from ranktune.tuner.evaluation.fitting import n_rounds, sample, unfitted
from ranktune.tuner.evaluation.task import Task
from ranktune.tuner.samplers.space import SOLVER
from ranktune.tuner.study.declaration import Study
from ranktune.tuner.study.tasks import Tasks

T = TypeVar("T")

METRIC = "ndcg@10"
SHARES = (1.0, 0.25, 0.5)
"""Shares of the training queries."""
GROWTH = 1.5
"""Factor from the rounds of a checkpoint of boosting to those of the next one."""


def row_of(
    split: QuerySplit, params: Configuration, share: float, seed: int = 0, limit: float = 30.0
) -> ConfigurationRow:
    """Fit a configuration to a share of the training queries, for so many processor seconds at most, and score it."""
    assert split.vali is not None
    assert split.test is not None
    sizes = None if split.name.startswith(f"{DRAWN}-") else Sizes.of(split)
    row = ConfigurationRow(split.name, name_of(params), share, sizes=sizes)
    numbers = np.arange(split.train.n_queries)
    train = split.train.select(sample(numbers, max(round(share * len(numbers)), 2), seed))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return replace(row, **_measured(task_of(row.configuration, seed), train, split.vali, split.test, limit))
    except (RankTuneError, ValueError, ArithmeticError) as error:
        return replace(row, error=f"{type(error).__name__}: {error}")


@cache
def task_of(configuration: str, seed: int = 0) -> Task:
    """Return what a trial of the configuration of that name fits."""
    params: Configuration = json.loads(configuration)
    return Tasks(Study(solvers=[str(params[SOLVER])], metric=METRIC, seed=seed), Path()).of(params)


def _measured(task: Task, train: Queries, vali: Queries, test: Queries, limit: float) -> Json:
    checkpoints, scores = best_of(task, train, vali, test, limit)
    of_vali, of_test = map(parse_metric(METRIC).per_query, scores, (vali, test))
    return {"checkpoints": checkpoints, "vali": of_vali, "test": of_test}


def best_of(
    task: Task, train: Queries, vali: Queries, test: Queries, limit: float
) -> tuple[tuple[ModelCheckpoint, ...], list[Floats]]:
    """Return the models on the way, and the scores of the best by validation on validation and on test queries."""
    points = list[ModelCheckpoint]()
    for value, ranker, seconds in _models(task, train, vali, limit):
        scores = [ranker.predict(part) for part in (vali, test)]
        points.append(ModelCheckpoint(value, seconds, *map(parse_metric(METRIC).mean, scores, (vali, test))))
        if max(points, key=lambda point: point.vali) is points[-1]:
            best = scores
    return tuple(points), best


def _models(task: Task, train: Queries, vali: Queries, limit: float) -> Iterator[tuple[float, BaseRanker, float]]:
    """Yield the models on the way, each with its value and the processor seconds so far; valid until the next."""
    ranker, due = unfitted(task), 1.0
    if task.path and not task.bound:
        for (value, fitted), spent in _timed(ranker.fit_path(train, task.path), limit):
            yield float(value), fitted, spent
        return
    if task.bound:
        ranker.set_params(**{task.path_parameter: task.bound})
    spent = 0.0
    for step, spent in _timed(ranker.fit_steps(train, vali=vali), limit):
        if task.bound and step.iteration >= due:
            due = max(due * GROWTH, due + 1.0)
            yield float(step.iteration), ranker, spent
    yield float(n_rounds(ranker)) if task.bound else 1.0, ranker, spent


def _timed(steps: Iterator[T], limit: float) -> Iterator[tuple[T, float]]:
    """Yield each step with the processor seconds that all took so far, until the limit; between steps none count."""
    spent = 0.0
    while spent < limit:
        begun = time.process_time()
        step = next(steps, None)
        spent += time.process_time() - begun
        if step is None:
            break
        yield step, spent
