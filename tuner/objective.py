"""The black box: one configuration in, its metrics per validation query out."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ranktune.solvers.arrays import Floats
from ranktune.solvers.compiled import compiling
from ranktune.solvers.metrics import parse_metric
from ranktune.solvers.queries import Queries
from ranktune.solvers.ranker import BaseRanker
from ranktune.solvers.registry import make
from ranktune.solvers.space import Value
from ranktune.tuner.limits import uncounted
from ranktune.tuner.plans import Fold, Plan, Progressive, write_plan
from ranktune.tuner.plans import read_plan as read_plan_file
from ranktune.tuner.problem_store import located
from ranktune.tuner.store import read_queries, write_queries

PLAN, FRESH = "plan", "fresh"


@dataclass(frozen=True)
class Task:
    """What a worker needs to evaluate one configuration; small, because the data lies in the folder.

    plan is the name of the plan there: PLAN of the trials, or a FRESH one for those that it cannot tell apart.
    keep_scores asks for the scores of the validation documents too, to blend models by. limit is how many seconds it
    may take: it is given up between two steps of learning then.
    """

    folder: str
    metrics: tuple[str, ...]
    solver: str
    parameters: Mapping[str, Value]
    seed: int
    plan: str = PLAN
    keep_scores: bool = False
    limit: float = float("inf")


@dataclass(frozen=True)
class Outcome:
    """What one configuration showed.

    per_query     metric -> (n validation queries,), NaN where the metric skips a query, in the order of the
                  development queries
    nonzeros      features that the models look at, bytes of the numbers they keep: means over the folds
    seconds       processor time to learn, all folds together; microseconds: of it, to score one document
    error         why it failed, or None
    begun, ended  seconds since 1970; worker: the process. What kernels took to be compiled, at their first use on a
                  machine, is not of the trial: it begins so much later
    given_up      whether it took longer than its limit; error then says so
    scores        (n development documents,) float32, 0 where the plan scores none, where the task asked for them
    steps         (seconds since 1970, what was done, what it scored), as the evaluation went on
    """

    per_query: Mapping[str, Floats] = field(default_factory=dict)
    nonzeros: float = float("nan")
    seconds: float = 0.0
    error: str | None = None
    warnings: tuple[str, ...] = ()
    bytes: float = float("nan")
    microseconds: float = float("nan")
    begun: float = 0.0
    ended: float = 0.0
    worker: str = ""
    given_up: bool = False
    scores: NDArray[np.float32] | None = None
    steps: tuple[tuple[float, str, float], ...] = ()


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
    with uncounted():
        return read_queries(located(folder))


@lru_cache(maxsize=4)
def read_plan(folder: str, name: str) -> Plan:
    """Return a plan that write_problem wrote; empty where it wrote none of that name."""
    with uncounted():
        return read_plan_file(located(folder) / f"{name}.npz")


def read_training(folder: str) -> Queries:
    """Return the training queries of the only fold of the plan: those of a given split."""
    plan = read_plan(folder, PLAN)
    assert isinstance(plan, tuple)
    return read_development(folder).select(plan[0].train)


def evaluate(task: Task) -> Outcome:
    """Learn on each fold of the plan and score its validation queries; a failure is an outcome, never an exception."""
    begun = time.time()
    caught: list[warnings.WarningMessage] = []
    try:
        with warnings.catch_warnings(record=True) as caught, compiling() as spent:
            warnings.simplefilter("always")
            outcome = _evaluate(task)
        begun += sum(spent)
    except _OutOfTime:
        outcome = Outcome(error=f"given up after {task.limit:.3g} seconds", given_up=True)
    except Exception as error:  # one configuration may fail in any way; the study records why and goes on
        outcome = Outcome(error=f"{type(error).__name__}: {error}")
    told = () if outcome.error else tuple(dict.fromkeys(f"{w.category.__name__}: {w.message}" for w in caught))
    return replace(outcome, warnings=told, begun=begun, ended=time.time(), worker=str(os.getpid()))


class _OutOfTime(Exception):
    """A task took longer than its limit."""


def _learn(ranker: BaseRanker, train: Queries, until: float) -> None:
    """Learn step by step. Raises _OutOfTime between two steps once the steady clock is past until."""
    for _ in ranker.fit_steps(train):
        if time.monotonic() > until:
            raise _OutOfTime


def _evaluate(task: Task) -> Outcome:
    plan = read_plan(task.folder, task.plan)
    return _progressively(task, plan) if isinstance(plan, Progressive) else _by_folds(task, plan)


def _by_folds(task: Task, plan: tuple[Fold, ...]) -> Outcome:
    """Score each fold by what was learnt from the others; queries that several folds score get their mean."""
    development = read_development(task.folder)
    metrics = [parse_metric(name) for name in task.metrics]
    sums = {name: np.zeros(development.n_queries) for name in task.metrics}
    times = np.zeros(development.n_queries)
    costs, until = _Costs(), time.monotonic() + task.limit
    kept = np.zeros(development.n_documents) if task.keep_scores else None
    for place, fold in enumerate(plan, start=1):
        # A run of queries is a view. Others are gathered again for each trial: a copy costs little beside learning,
        # and keeping the copies would cost every worker the data many times.
        train, vali = development.select(fold.train), development.select(fold.vali)
        ranker = make(task.solver, dict(task.parameters), task.seed)
        with costs.learning():
            _learn(ranker, train, until)
        with costs.scoring(vali.n_documents):
            scores = ranker.predict(vali)
        for name, metric in zip(task.metrics, metrics, strict=True):
            values = metric.per_query(scores, vali)
            sums[name][fold.vali] += values
            if name == task.metrics[0]:
                costs.step(f"fold {place} of {len(plan)}", values)
        times[fold.vali] += 1.0
        costs.model(ranker)
        if kept is not None:
            kept[development.documents_of(fold.vali)] += scores
    judged = times > 0.0
    per_query = {name: total[judged] / times[judged] for name, total in sums.items()}
    with np.errstate(over="ignore"):  # of features beyond single precision: such scores take no part in a blend
        return costs.outcome(per_query, None if kept is None else kept.astype(np.float32))


def _progressively(task: Task, plan: Progressive) -> Outcome:
    """Score each query before it is learnt from; a query's value is its mean over the orders."""
    development = read_development(task.folder)
    metrics = [parse_metric(name) for name in task.metrics]
    sums = {name: np.zeros(development.n_queries) for name in task.metrics}
    costs, until = _Costs(), time.monotonic() + task.limit
    for place, order in enumerate(plan.orders, start=1):
        if time.monotonic() > until:
            raise _OutOfTime
        ranker: Any = make(task.solver, dict(task.parameters), task.seed)
        with costs.learning():
            scores = ranker.progressive(development, order)
        for name, metric in zip(task.metrics, metrics, strict=True):
            values = metric.per_query(scores, development)
            sums[name] += values
            if name == task.metrics[0]:
                costs.step(f"order {place} of {len(plan.orders)}", values)
        costs.model(ranker)
    return costs.outcome({name: total / len(plan.orders) for name, total in sums.items()}, None)


class _Costs:
    """What the models of one configuration cost, summed up as they come, and what each part of the plan scored."""

    def __init__(self) -> None:
        self.seconds, self._scoring, self._documents = 0.0, 0.0, 0
        self._nonzeros: list[float] = []
        self._bytes: list[float] = []
        self._steps: list[tuple[float, str, float]] = []

    def step(self, what: str, values: Floats) -> None:
        """Take note of a part that is done, and of what its queries scored, (n,), NaN where the metric skips one."""
        counted = values[~np.isnan(values)]
        self._steps.append((time.time(), what, float(counted.mean()) if len(counted) else float("nan")))

    @contextmanager
    def learning(self) -> Iterator[None]:
        """Count the processor time of the block as learning."""
        begun = time.process_time()
        yield
        self.seconds += time.process_time() - begun

    @contextmanager
    def scoring(self, documents: int) -> Iterator[None]:
        """Count the processor time of the block as scoring so many documents."""
        begun = time.process_time()
        yield
        self._scoring += time.process_time() - begun
        self._documents += documents

    def model(self, ranker: BaseRanker) -> None:
        """Take note of the size of a fitted ranker's model."""
        model = ranker.as_model()
        self._nonzeros.append(float(model.nonzeros))
        self._bytes.append(float(model.bytes))

    def outcome(self, per_query: Mapping[str, Floats], scores: NDArray[np.float32] | None) -> Outcome:
        """Return what the configuration showed and cost."""
        micro = self._scoring / self._documents * 1e6 if self._documents else float("nan")
        nonzeros, size = float(np.mean(self._nonzeros)), float(np.mean(self._bytes))
        steps = tuple(self._steps)
        return Outcome(per_query, nonzeros, self.seconds, bytes=size, microseconds=micro, scores=scores, steps=steps)
