"""The black box: one configuration in, its metrics per validation query out."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ranktune.solvers.base.ranker import BaseRanker
from ranktune.solvers.core.arrays import Floats, Ints
from ranktune.solvers.core.compiled import compiling
from ranktune.solvers.core.space import Value
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.metrics.metrics import parse_metric
from ranktune.solvers.registry import make
from ranktune.tuner.evaluation.accumulator import ScoreAccumulator
from ranktune.tuner.evaluation.archive import located
from ranktune.tuner.evaluation.memory import uncounted
from ranktune.tuner.evaluation.plans import Fold, Plan, Progressive, write_plan
from ranktune.tuner.evaluation.plans import read_plan as read_plan_file
from ranktune.tuner.evaluation.racing import FEWEST_ORDERS, in_the_race, is_behind
from ranktune.tuner.evaluation.store import read_queries, write_queries

PLAN, FRESH = "plan", "fresh"


@dataclass(frozen=True)
class Task:
    """What a worker needs to evaluate one configuration; small, because the data lies in the folder.

    plan is the name of the plan there: PLAN of the trials, or a FRESH one for those that it cannot tell apart.
    keep_scores asks for the scores of the validation documents too, to blend models by. limit is how many seconds it
    may take: it is given up between two steps of learning then. path are values of the parameter along, of which one
    fit gives a model for each (BaseRanker.fit_along), in the order in which they come: the best is the outcome. rival
    is what the configuration to beat scored, (n validation queries,), or by order of a progressive plan: what is for
    sure behind it is stopped (ranktune.tuner.evaluation.racing).
    """

    folder: str
    metrics: tuple[str, ...]
    solver: str
    parameters: Mapping[str, Value]
    seed: int
    plan: str = PLAN
    keep_scores: bool = False
    limit: float = float("inf")
    path_parameter: str = ""
    path: tuple[float, ...] = ()
    rival: Floats | None = None


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
    stopped       the part of the plan after which it was for sure behind, "" where it was judged in full; queries that
                  were not judged then are NaN in per_query
    along         the parameter along which a path was followed, "" for none; chosen: its value that scored best, which
                  all else is about; path: (value, mean of the metric on the queries that were judged), the dearest
                  last; bulk: bytes of the models of that one
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
    stopped: str = ""
    path_parameter: str = ""
    chosen: float | None = None
    path: tuple[tuple[float, float], ...] = ()
    bulk: float = 0.0


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


def _evaluate(task: Task) -> Outcome:
    plan = read_plan(task.folder, task.plan)
    return _progressively(task, plan) if isinstance(plan, Progressive) else _by_folds(task, plan)


def _by_folds(task: Task, plan: tuple[Fold, ...]) -> Outcome:
    """Score each fold by what was learnt from the others; queries that several folds score get their mean."""
    development = read_development(task.folder)
    judged = np.unique(np.concatenate([fold.vali for fold in plan]))
    looks = _looks(plan, len(judged))
    going = max(len(task.path), 1)
    tally = ScoreAccumulator(development, task.metrics, going, keep=task.keep_scores)
    until, stopped = time.monotonic() + task.limit, ""
    for place, fold in enumerate(plan, start=1):
        # A run of queries is a view. Others are gathered again for each trial: a copy costs little beside learning,
        # and keeping the copies would cost every worker the data many times.
        train, vali = development.select(fold.train), development.select(fold.vali)
        documents = development.documents_of(fold.vali) if task.keep_scores else None
        for candidate, ranker in enumerate(_learnt(task, task.path[:going], train, tally, until)):
            tally.judge(candidate, ranker, vali, fold.vali, documents)
        part, best = f"fold {place} of {len(plan)}", tally.best(judged, going)
        tally.step(part)
        if place <= looks:
            path = [tally.values(candidate, judged) for candidate in range(going)]
            going = in_the_race(path, best, task.rival, looks)
            if going == 0:
                stopped = part
                break
    return _outcome(task, tally, judged, best, stopped)


def _looks(plan: tuple[Fold, ...], queries: int) -> int:
    """Return after how many folds there is still something to judge for the first time."""
    seen = np.cumsum([len(fold.vali) for fold in plan])
    return int(np.count_nonzero(seen < queries))


def _progressively(task: Task, plan: Progressive) -> Outcome:
    """Score each query before it is learnt from; a query's value is its mean over the orders."""
    development = read_development(task.folder)
    every, count = np.arange(development.n_queries), len(plan.orders)
    tally = ScoreAccumulator(development, task.metrics, 1)
    until, stopped = time.monotonic() + task.limit, ""
    for place, order in enumerate(plan.orders, start=1):
        if time.monotonic() > until:
            raise _OutOfTime
        ranker: Any = make(task.solver, dict(task.parameters), task.seed)
        with tally.learning():
            scores = ranker.progressive(development, order)
        tally.add(0, scores, development, slice(None))
        tally.model(0, ranker)
        part = f"order {place} of {count}"
        tally.step(part)
        if task.rival is not None and is_behind(tally.parts(0, count), task.rival, count - 1, fewest=FEWEST_ORDERS):
            stopped = part
            break
    return _outcome(task, tally, every, 0, stopped)


def _learnt(
    task: Task, path: Sequence[float], train: Queries, tally: ScoreAccumulator, until: float
) -> Iterator[BaseRanker]:
    """Yield the ranker that was learnt, or those along the path, each as it was then, its time counted.

    Raises _OutOfTime between two steps once the steady clock is past until.
    """
    ranker = make(task.solver, dict(task.parameters), task.seed)
    steps = ranker.fit_along(train, path) if path else ranker.fit_steps(train)
    while True:
        with tally.learning():
            step = next(steps, None)
        if step is None:
            break
        if time.monotonic() > until:
            raise _OutOfTime
        if isinstance(step, tuple):
            yield step[1]
    if not path:
        yield ranker


def _outcome(task: Task, tally: ScoreAccumulator, judged: Ints, best: int, stopped: str) -> Outcome:
    """Return what the best candidate showed."""
    shown = tally.shown(best, judged)
    return Outcome(
        shown.per_query,
        shown.nonzeros,
        tally.seconds,
        bytes=shown.bytes,
        microseconds=shown.microseconds,
        scores=shown.scores,
        steps=shown.steps,
        stopped=stopped,
        path_parameter=task.path_parameter,
        chosen=task.path[best] if task.path else None,
        bulk=tally.bulk() if task.path else 0.0,
        path=tuple(zip(task.path, tally.means(judged, best), strict=True)) if task.path else (),
    )
