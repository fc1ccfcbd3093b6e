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
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from ranktune.solvers.base.ranker import BaseRanker
from ranktune.solvers.core.arrays import Floats, Ints, as_ints
from ranktune.solvers.core.compiled import compile_anew, compiling, is_compiling_error
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.scaling import moderate, subtract_means
from ranktune.solvers.metrics.means import mean_of
from ranktune.solvers.metrics.metrics import parse_metric
from ranktune.solvers.models.base import Model
from ranktune.tuner.evaluation.names import PLANS
from ranktune.tuner.evaluation.task import EVERY, Rounds, Task, TaskOutcome, report
from ranktune.tuner.splits.plans import StoredPlan
from ranktune.tuner.splits.store import read_development, read_plan

R = TypeVar("R", bound=TaskOutcome)
T = TypeVar("T")

COMPILING_TRIES = 3
"""How often an evaluation is tried whose compiling failed."""


class EvaluationPlan(ABC, Generic[R]):
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
    def fits(self, run: EvaluationRun, number: int) -> Iterator[FittedQueries]:
        """Yield the fits on a part by the values of the task's path; each is scored before the next."""

    def is_lost(self, run: EvaluationRun, number: int, best: int) -> bool:
        """Return whether a task is significantly worse than the incumbent after that many parts."""
        return False

    @abstractmethod
    def finished(self, run: EvaluationRun, outcome: TaskOutcome) -> R:
        """Return an outcome with the fields that this plan adds, and store what later stages need."""


def evaluate(plan: EvaluationPlan[R], task: Task, deadline: float | None = None) -> R:
    """Return the outcome of a configuration by a plan. Raises the errors of its fit, and LimitReached.

    The steady clock is at the deadline when the task's limit is over, by default counted from now.
    """
    task = plan.task(task)
    deadline = time.monotonic() + task.limit if deadline is None else deadline
    run = EvaluationRun(task, plan.queries(task), plan.evaluated, deadline)
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


def plan_of(task: Task) -> EvaluationPlan[TaskOutcome]:
    """Return the plan that is stored under the name in a task."""
    stored = read_plan(task.folder, task.plan)
    return next(plan for kind in PLANS.values() if (plan := kind.of(stored)) is not None)


def attempt(task: Task, plan: EvaluationPlan[TaskOutcome] | None = None) -> TaskOutcome:
    """Return the outcome of a task, by default by its stored plan. A failure is an outcome too: nothing is raised."""
    begun, steady = time.time(), time.monotonic()
    caught: list[warnings.WarningMessage] = []
    try:
        with warnings.catch_warnings(record=True) as caught, compiling() as spent:
            warnings.simplefilter("always")
            outcome = compiled_at_last(lambda: evaluate(plan or plan_of(task), task))
        begun, steady = begun + sum(spent), steady + sum(spent)
    except LimitReached:
        outcome = TaskOutcome(error=f"given up after {task.limit:.3g} seconds", given_up=True)
    except Exception as error:  # one configuration may fail in any way; the study records why and continues
        outcome = TaskOutcome(error=f"{type(error).__name__}: {error}")
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


NONE: Ints = np.empty(0, dtype=np.int64)


class LimitReached(Exception):
    """A task took longer than its limit; its fits so far are dropped."""

    def __str__(self) -> str:
        return "there was no time left for it"


@dataclass(frozen=True, eq=False)
class FittedQueries:
    """A fitted ranker, or a model, and the queries that it scores, if any.

    numbers  of these among the queries of the plan; columns: the features that it was fitted on, None for all
    scores   (n_documents,) of the queries, where they were given while it learned; None: it predicts them
    stopped  the rounds after which the fit was ended because it cannot reach the incumbent, "" if it was not
    """

    ranker: BaseRanker | Model
    queries: Queries | None
    numbers: Ints
    columns: Ints | None = None
    scores: Floats | None = None
    stopped: str = ""


class EvaluationRun:
    """The results of a task so far, by part of its plan; means are weighted where the queries have weights.

    `place` counts the values of the task's path; a task without a path has one place.

    Attributes
    ----------
    evaluated : array of int
        Numbers of the queries that the plan scores.
    racing : int
        How many of the first values of the path remain.
    parts : list of list of float
        By place, the metric after each part of the plan so far.
    model : Model or None
        The best model so far of a plan that keeps one.
    rounds : int
        The rounds that a boosted model has grown to.
    unfinished : bool
        Whether the deadline ended its growth.
    part : str
        The part of the plan that is evaluated.
    latest : array of shape (n_queries,)
        The first metric of the fit that was scored last, by query of those that it scored.
    collected : list of array
        What a plan keeps of each fit for its outcome.
    """

    def __init__(self, task: Task, queries: Queries, evaluated: Ints = NONE, deadline: float = float("inf")) -> None:
        size = self.racing = max(len(task.path), 1)
        self.task, self.queries, self.evaluated, self.deadline = task, queries, evaluated, deadline
        self.model: Model | None = None
        self.rounds, self.unfinished, self.part = 0, False, ""
        self._begun = self._reported = time.monotonic()
        self.latest, self.collected = np.empty(0), list[Floats]()
        weights = queries.query_weights
        self.weights = None if weights is None else weights[evaluated]
        self._metrics = {name: parse_metric(name) for name in task.metrics}
        self._sums = {name: np.zeros((size, queries.n_queries)) for name in task.metrics}
        self._times = np.zeros((size, queries.n_queries))
        self._scores = np.zeros((size, queries.n_documents)) if task.keep_scores or task.keep else None
        self._part_of = np.zeros(queries.n_queries, dtype=np.int64)
        self._sizes: list[list[tuple[int, int, float]]] = [[] for _ in range(size)]
        self.parts: list[list[float]] = [[] for _ in range(size)]
        costs = None if task.budget is None else task.budget.costs
        self._features = costs.of(queries) if costs is not None and costs.entries else None
        self._steps: list[tuple[float, str]] = []
        self._fitting, self._scoring, self._scored = 0.0, np.zeros(size), np.zeros(size)

    @contextmanager
    def fitting(self) -> Iterator[None]:
        """Count the processor time of the block as that of fitting."""
        begun = time.process_time()
        yield
        self._fitting += time.process_time() - begun

    def report(self, now: float, done: int, value: float = float("nan")) -> None:
        """Let whoever listens know of the iterations done, and the metric of boosting, once every EVERY seconds."""
        if now - self._reported >= EVERY:
            self._reported = now
            report(Rounds(self.part, done, self.task.bound, value, now - self._begun))

    @property
    def is_over(self) -> bool:
        """Whether the time is over."""
        return time.monotonic() > self.deadline

    def check_time(self) -> None:
        """Raise LimitReached once the time is over."""
        if self.is_over:
            raise LimitReached

    def score(self, place: int, fit: FittedQueries) -> None:
        """Add what a fit scores on its queries, and the size of its model."""
        mean = float("nan") if fit.queries is None else self._measured(place, fit, fit.queries)
        self.parts[place].append(mean)
        model = fit.ranker if isinstance(fit.ranker, Model) else fit.ranker.as_model()
        cost = float("nan")
        if self._features is not None:
            used = model.used_features if fit.columns is None else fit.columns[model.used_features]
            cost = self._features.cost_of(used)
        self._sizes[place].append((model.nonzeros, model.bytes, cost))

    def _measured(self, place: int, fit: FittedQueries, queries: Queries) -> float:
        """Add the metrics of a fit by query, and return the mean of the first one."""
        scores = self._predicted(place, fit, queries) if fit.scores is None else fit.scores
        self._times[place, fit.numbers] += 1.0
        self._part_of[fit.numbers] = len(self._steps)
        by_query = {name: metric.per_query(scores, queries) for name, metric in self._metrics.items()}
        for name, values in by_query.items():
            self._sums[name][place, fit.numbers] += values
        self.latest = by_query[self.task.metrics[0]]
        return mean_of(self.latest, queries.query_weights)

    def _predicted(self, place: int, fit: FittedQueries, queries: Queries) -> Floats:
        begun = time.process_time()
        scores = fit.ranker.predict(queries)
        self._scoring[place] += time.process_time() - begun
        self._scored[place] += queries.n_documents
        if self._scores is not None:
            self._scores[place, self.queries.documents_of(fit.numbers)] += scores
        return scores

    def end_part(self) -> None:
        """Note that all models that remain have been scored on the part of the plan."""
        self._steps.append((time.time(), self.part))

    def values(self, place: int | Ints, name: str | None = None, numbers: Ints | None = None) -> Floats:
        """Return the metric by query, of those evaluated unless numbers are given, (n,); NaN for those to come.

        place is that of all queries, or of each.
        """
        numbers = self.evaluated if numbers is None else numbers
        sums, times = self._sums[name or self.task.metrics[0]][place, numbers], self._times[place, numbers]
        values: Floats = np.divide(sums, times, out=np.full(len(times), np.nan), where=times > 0.0)
        return values

    @property
    def best(self) -> int:
        """The best place of those that remain, the first of equals; all were scored on the same queries."""
        means = [mean_of(self.values(place), self.weights) for place in range(self.racing)]
        return int(np.argmax(np.nan_to_num(means, nan=-np.inf)))

    def outcome(self, best: int, stopped: str) -> TaskOutcome:
        """Return the outcome of the model at the best place."""
        task = self.task
        places = self._nested(best, stopped)
        scores = None if self._scores is None else _rounded(self._scores[best], self.queries)
        steps = zip(self._steps, self.parts[best], strict=True)
        nonzeros, size, cost = (float(np.mean(column)) for column in zip(*self._sizes[best], strict=True))
        return TaskOutcome(
            {name: self.values(places, name) for name in self._metrics},
            nonzeros,
            self._fitting,
            bytes=size,
            cost=cost,
            microseconds=float(self._scoring[best] / self._scored[best] * 1e6) if self._scored[best] else float("nan"),
            scores=scores,
            steps=tuple((at, part, value) for (at, part), value in steps),
            stopped=stopped,
            path_parameter=task.path_parameter,
            chosen=task.path[best] if task.path else None,
            unfinished=self.unfinished,
            bulk=float(np.mean([bulk for _, bulk, _ in self._sizes[self._reached(best) - 1]])) if task.path else 0.0,
            path=tuple(zip(task.path, self._means(best), strict=False)) if task.path else (),
        )

    def _nested(self, best: int, stopped: str) -> Ints:
        """Return the place by which each query is scored, (n,): the best by the queries of the other parts.

        So a score has no share in the choice of its place. Queries of a single part, and of a task that was stopped,
        are scored by the best place of all.
        """
        places = np.full(len(self.evaluated), best)
        if self.racing == 1 or len(self._steps) == 1 or stopped:
            return places
        values = np.stack([self.values(place) for place in range(self.racing)])
        groups = self._part_of[self.evaluated]
        for group in np.unique(groups):
            others = groups != group
            weights = None if self.weights is None else self.weights[others]
            means = [mean_of(each[others], weights) for each in values]
            places[~others] = int(np.argmax(np.nan_to_num(means, nan=-np.inf)))
        return places

    def _reached(self, best: int) -> int:
        """Return how many values of the path were scored; of rounds of boosting, by as many folds as the best ones."""
        least = len(self.parts[best]) if self.task.bound else 1
        return sum(len(parts) >= least for parts in self.parts)

    def _means(self, best: int) -> Sequence[float]:
        """Return the mean of the metric at each place: that of the best, and the mean differences from it."""
        leader = self.values(best)
        ahead = [mean_of(self.values(place) - leader, self.weights) for place in range(self._reached(best))]
        return [mean_of(leader, self.weights) + difference for difference in ahead]


def _rounded(scores: Floats, queries: Queries) -> NDArray[np.float32]:
    """Return scores, (n_documents,), less the mean of their query, in single precision, scaled where that needs it.

    Blends take no notice of either: what all documents of a query have in common would take the digits of the rest.
    """
    centred, _ = moderate(scores)
    subtract_means(centred, as_ints(queries.starts))
    return moderate(centred)[0].astype(np.float32)
