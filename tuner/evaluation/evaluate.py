"""Fitting and scoring a configuration: `evaluate(plan, task)`.

A task is a configuration, its seed, its metrics and its limits. A plan defines what is fitted and scored, part by part,
what is measured, and when the evaluation stops early. A caller gives a plan as a value (`PLANS` in names.py has the
kinds); a worker that is given a task alone takes the plan that is stored with the data under the name in the task.
"""

from __future__ import annotations

import os
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np

from ranktune.solvers.core.arrays import Ints
from ranktune.solvers.core.compiled import compile_anew, compiling, is_compiling_error
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.metrics.metrics import parse_metric
from ranktune.tuner.evaluation.names import PLANS
from ranktune.tuner.evaluation.run import Fit, LimitReached, Run
from ranktune.tuner.evaluation.task import Outcome, Task
from ranktune.tuner.splits.plans import StoredPlan
from ranktune.tuner.splits.store import read_development, read_plan

R = TypeVar("R", bound=Outcome)
T = TypeVar("T")

COMPILING_TRIES = 3
"""How often an evaluation is tried whose compiling failed."""


class Plan(ABC, Generic[R]):
    """What is fitted, scored and measured, part by part; R is the kind of its outcomes.

    Attributes
    ----------
    parts : sequence
        What is evaluated one after another, such as folds.
    noun : str
        What a part is called.
    """

    parts: Sequence[Any]
    noun: ClassVar[str] = "fold"

    @classmethod
    def of(cls, stored: StoredPlan) -> Self | None:
        """Return a stored plan as a plan of this kind; None if it is of another kind."""
        return None

    def name(self, number: int) -> str:
        """Return what the part of that number, from 1, is called."""
        return f"{self.noun} {number} of {len(self.parts)}"

    def queries(self, task: Task) -> Queries:
        """Return the queries of which some are scored."""
        return read_development(task.folder)

    @property
    @abstractmethod
    def evaluated(self) -> Ints:
        """The numbers of the queries that are scored, ascending."""

    def task(self, task: Task) -> Task:
        """Return a task as this plan evaluates it."""
        return task

    @abstractmethod
    def fits(self, run: Run, number: int) -> Iterator[Fit]:
        """Yield the fits on a part by the values of the task's path; each is scored before the next."""

    def is_lost(self, run: Run, number: int, best: int) -> bool:
        """Return whether a task is significantly worse than the incumbent after that many parts."""
        return False

    @abstractmethod
    def finished(self, run: Run, outcome: Outcome) -> R:
        """Return an outcome with the fields that this plan adds, and store what later stages need."""


def evaluate(plan: Plan[R], task: Task, deadline: float | None = None) -> R:
    """Return the outcome of a configuration by a plan. Raises the errors of its fit, and LimitReached.

    The steady clock is at the deadline when the task's limit is over, by default counted from now.
    """
    task = plan.task(task)
    deadline = time.monotonic() + task.limit if deadline is None else deadline
    run = Run(task, plan.queries(task), plan.evaluated, deadline)
    best, stopped = 0, ""
    for number in range(1, len(plan.parts) + 1):
        run.part = plan.name(number)
        for place, fit in enumerate(plan.fits(run, number)):
            run.score(place, fit)
            stopped = fit.stopped
        run.end_part()
        best = run.best
        if not stopped and plan.is_lost(run, number, best):
            stopped = run.part
        if stopped:
            break
    return plan.finished(run, run.outcome(best, stopped))


def plan_of(task: Task) -> Plan[Outcome]:
    """Return the plan that is stored under the name in a task."""
    stored = read_plan(task.folder, task.plan)
    return next(plan for kind in PLANS.values() if (plan := kind.of(stored)) is not None)


def attempt(task: Task, plan: Plan[Outcome] | None = None) -> Outcome:
    """Return the outcome of a task, by default by its stored plan. A failure is an outcome too: nothing is raised."""
    begun, steady = time.time(), time.monotonic()
    caught: list[warnings.WarningMessage] = []
    try:
        with warnings.catch_warnings(record=True) as caught, compiling() as spent:
            warnings.simplefilter("always")
            outcome = compiled_at_last(lambda: evaluate(plan or plan_of(task), task))
        begun, steady = begun + sum(spent), steady + sum(spent)
    except LimitReached:
        outcome = Outcome(error=f"given up after {task.limit:.3g} seconds", given_up=True)
    except Exception as error:  # one configuration may fail in any way; the study records why and continues
        outcome = Outcome(error=f"{type(error).__name__}: {error}")
    texts = () if outcome.error else tuple(dict.fromkeys(f"{w.category.__name__}: {w.message}" for w in caught))
    ended = begun + time.monotonic() - steady  # by the steady clock: the other may have jumped meanwhile
    return replace(outcome, warnings=texts, begun=begun, ended=ended, worker=str(os.getpid()))


def compiled_at_last(compute: Callable[[], T]) -> T:
    """Return what compute returns. Errors of the compiler do not depend on the configuration, and are retried.

    They occur while several processes fill one cache. The last attempt does not use the cache.
    """
    for attempted in range(1, COMPILING_TRIES):
        try:
            return compute()
        except Exception as error:
            if not is_compiling_error(error):
                raise
            if attempted == COMPILING_TRIES - 1:
                compile_anew()
    return compute()


def check_metrics(metrics: Sequence[str], queries: Queries) -> None:
    """Raise DataError if a metric cannot score queries, as an exponential gain cannot for very high grades."""
    for name in metrics:
        parse_metric(name).per_query(np.zeros(queries.n_documents), queries)
