"""The black box: one configuration in, its metrics per validation query out."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from ranktune.solvers.arrays import Floats
from ranktune.solvers.metrics import parse_metric
from ranktune.solvers.queries import Queries
from ranktune.solvers.ranker import BaseRanker
from ranktune.solvers.registry import make
from ranktune.solvers.space import Value
from ranktune.tuner.plans import Fold, Plan, Progressive, write_plan
from ranktune.tuner.plans import read_plan as read_plan_file
from ranktune.tuner.store import read_queries, write_queries

PLAN, FRESH = "plan", "fresh"


@dataclass(frozen=True)
class Task:
    """What a worker needs to evaluate one configuration; small, because the data lies in the folder.

    plan is the name of the plan there: PLAN of the trials, or a FRESH one for those that it cannot tell apart.
    """

    folder: str
    metrics: tuple[str, ...]
    solver: str
    parameters: Mapping[str, Value]
    seed: int
    plan: str = PLAN


@dataclass(frozen=True)
class Outcome:
    """What one configuration showed.

    per_query  metric -> (n validation queries,), NaN where the metric skips a query; queries in the plan's order, or
               in the development queries' where the plan is progressive
    nonzeros   features that the models look at, mean over the folds
    seconds    processor time to learn, all folds together
    error      why it failed, or None
    """

    per_query: Mapping[str, Floats] = field(default_factory=dict)
    nonzeros: float = float("nan")
    seconds: float = 0.0
    error: str | None = None
    warnings: tuple[str, ...] = ()


def check_metrics(metrics: Sequence[str], queries: Queries) -> None:
    """Raise DataError, before any trial, where a metric cannot judge queries: an exponential gain of huge grades."""
    for name in metrics:
        parse_metric(name).per_query(np.zeros(queries.n_documents), queries)


def write_problem(development: Queries, plans: Mapping[str, Plan], folder: Path) -> None:
    """Write the development queries and the validation plans where every worker can map them."""
    write_queries(development, folder)
    for name, plan in plans.items():
        write_plan(plan, folder / f"{name}.npz")


@lru_cache(maxsize=2)
def read_development(folder: str) -> Queries:
    """Return the development queries that write_problem wrote, mapped once a process."""
    return read_queries(Path(folder))


@lru_cache(maxsize=4)
def read_plan(folder: str, name: str) -> Plan:
    """Return a plan that write_problem wrote; empty where it wrote none of that name."""
    return read_plan_file(Path(folder) / f"{name}.npz")


def read_training(folder: str) -> Queries:
    """Return the training queries of the only fold of the plan: those of a given split."""
    plan = read_plan(folder, PLAN)
    assert isinstance(plan, tuple)
    return read_development(folder).select(plan[0].train)


def evaluate(task: Task) -> Outcome:
    """Learn on each fold of the plan and score its validation queries; a failure is an outcome, never an exception."""
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            outcome = _evaluate(task)
    except Exception as error:  # one configuration may fail in any way; the study records why and goes on
        return Outcome(error=f"{type(error).__name__}: {error}")
    told = tuple(dict.fromkeys(f"{w.category.__name__}: {w.message}" for w in caught))
    return Outcome(outcome.per_query, outcome.nonzeros, outcome.seconds, warnings=told)


def _evaluate(task: Task) -> Outcome:
    plan = read_plan(task.folder, task.plan)
    return _progressively(task, plan) if isinstance(plan, Progressive) else _by_folds(task, plan)


def _by_folds(task: Task, plan: tuple[Fold, ...]) -> Outcome:
    development = read_development(task.folder)
    metrics = [parse_metric(name) for name in task.metrics]
    parts: dict[str, list[Floats]] = {name: [] for name in task.metrics}
    nonzeros, seconds = [], 0.0
    for fold in plan:
        # A run of queries is a view. Others are gathered again for each trial: a copy costs little beside learning,
        # and keeping the copies would cost every worker the data many times.
        train, vali = development.select(fold.train), development.select(fold.vali)
        ranker = make(task.solver, dict(task.parameters), task.seed)
        begun = time.process_time()
        ranker.fit(train)
        seconds += time.process_time() - begun
        scores = ranker.predict(vali)
        for name, metric in zip(task.metrics, metrics, strict=True):
            parts[name].append(metric.per_query(scores, vali))
        nonzeros.append(_nonzeros(ranker))
    per_query = {name: np.concatenate(values) for name, values in parts.items()}
    return Outcome(per_query, float(np.mean(nonzeros)), seconds)


def _progressively(task: Task, plan: Progressive) -> Outcome:
    """Score each query before it is learnt from; a query's value is its mean over the orders."""
    development = read_development(task.folder)
    metrics = [parse_metric(name) for name in task.metrics]
    sums = {name: np.zeros(development.n_queries) for name in task.metrics}
    nonzeros, seconds = [], 0.0
    for order in plan.orders:
        ranker: Any = make(task.solver, dict(task.parameters), task.seed)
        begun = time.process_time()
        scores = ranker.progressive(development, order)
        seconds += time.process_time() - begun
        for name, metric in zip(task.metrics, metrics, strict=True):
            sums[name] += metric.per_query(scores, development)
        nonzeros.append(_nonzeros(ranker))
    per_query = {name: total / len(plan.orders) for name, total in sums.items()}
    return Outcome(per_query, float(np.mean(nonzeros)), seconds)


def _nonzeros(ranker: BaseRanker) -> float:
    return float(ranker.as_model().nonzeros)
