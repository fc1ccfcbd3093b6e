"""Plans: which queries a configuration learns from and which it scores, part by part, and when that ends early.

A new plan is a class with its line in PLANS; `objective.by_plan` evaluates them all.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Self

import numpy as np

from ranktune.solvers.boosting.early_stopping import Patience
from ranktune.solvers.core.arrays import Floats, Ints
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.metrics.means import mean_of
from ranktune.tuner.evaluation.feature_sets import selected_columns
from ranktune.tuner.evaluation.fitting import fitted, grown, n_rounds, progressive, read_for_fit, sample, unfitted
from ranktune.tuner.evaluation.racing import MIN_ORDERS, is_significantly_worse, still_racing
from ranktune.tuner.evaluation.refit import as_model
from ranktune.tuner.evaluation.run import Fit, Run
from ranktune.tuner.evaluation.task import Outcome, Task
from ranktune.tuner.splits.plans import FRESH, Fold, Progressive, StoredPlan
from ranktune.tuner.splits.store import read_part

LEARNING_POINTS = 20
"""Points of a learning curve."""


@dataclass(frozen=True, eq=False)
class Plan(ABC):
    """The parts of a plan, evaluated one after another.

    parts  what one model is fitted to and scores each; of an order both are all queries, in that order
    """

    parts: tuple[Fold, ...]
    noun: ClassVar[str] = "fold"

    @classmethod
    @abstractmethod
    def of(cls, stored: StoredPlan, task: Task) -> Self | None:
        """Return the plan of this kind that a stored plan is for a task; None where it is of another kind."""

    def name(self, number: int) -> str:
        """Return what the part of that number, from 1, is called."""
        return f"{self.noun} {number} of {len(self.parts)}"

    @cached_property
    def evaluated(self) -> Ints:
        """The numbers of the queries that are scored, rising."""
        return np.unique(np.concatenate([part.vali for part in self.parts]))

    def task(self, task: Task) -> Task:
        """Return a task as this plan evaluates it."""
        return task

    def smaller(self, task: Task) -> Iterator[Plan]:
        """Yield the plans by which a task is evaluated first: it is stopped where it is behind by one of them."""
        yield from ()

    @abstractmethod
    def fits(self, run: Run, number: int) -> Iterator[Fit]:
        """Yield the fits on a part by the values of the task's path; each is scored before the next."""

    def is_lost(self, run: Run, number: int, best: int) -> bool:
        """Return whether a task is significantly worse than the incumbent after that many parts."""
        return False

    def finished(self, run: Run, outcome: Outcome) -> Outcome:
        """Return an outcome with what this plan has to add."""
        return outcome


class Folds(Plan):
    """Each fold is scored by a model of the others; a query that several folds score gets the mean.

    Boosting goes on until its fold stops it; the folds after it compare no more rounds than those that it has reached.
    """

    @classmethod
    def of(cls, stored: StoredPlan, task: Task) -> Self | None:
        """Return the plan of several folds."""
        return None if isinstance(stored, Progressive) else cls(stored)

    def fits(self, run: Run, number: int) -> Iterator[Fit]:
        """Yield the fits of the path, until boosting no longer improves."""
        task, fold = run.task, self.parts[number - 1]
        train, vali, columns = _read(task, fold, number - 1)
        grows = task.bound and task.path
        patience = Patience(int(unfitted(task).get_params()["patience"])) if grows else None
        for place, ranker in enumerate(fitted(run, train.with_columns(columns))):
            yield Fit(ranker, vali, fold.vali, columns)
            if patience is not None:
                patience.update(int(task.path[place]), run.parts[place][-1])
                if patience.over:
                    run.racing = place + 1
                    return

    def is_lost(self, run: Run, number: int, best: int) -> bool:
        """Return whether no value of the path goes on, where some queries have not been scored yet."""
        scored = np.cumsum([len(fold.vali) for fold in self.parts])
        looks = int(np.count_nonzero(scored < len(self.evaluated)))
        if number > looks:
            return False
        values = [run.values(place) for place in range(run.racing)]
        run.racing = still_racing(values, best, run.task.incumbent, looks, run.weights)
        return run.racing == 0


class GivenSplit(Plan):
    """Given training and validation queries, or samples of them: on samples of growing size first, then on all.

    Boosting grows until the validation queries stop it, or the time limit: one fit finds the number of rounds. A sample
    is the first queries of one random order, so that a smaller sample is a part of a larger one.
    """

    @classmethod
    def of(cls, stored: StoredPlan, task: Task) -> Self | None:
        """Return the plan of one fold, and of the task's sample of it."""
        if isinstance(stored, Progressive) or len(stored) != 1 or task.plan == FRESH:
            return None
        train = sample(stored[0].train, task.queries, task.seed)
        return cls((Fold(train, sample(stored[0].vali, task.vali_queries, task.seed)),))

    def name(self, number: int) -> str:
        """Return what the queries are called."""
        return "all queries"

    def task(self, task: Task) -> Task:
        """Return a task without the path of a model that grows."""
        return replace(task, path=()) if task.bound else task

    def smaller(self, task: Task) -> Iterator[Plan]:
        """Yield the task's samples of the training queries."""
        (fold,) = self.parts
        for size in task.samples:
            yield Sample((Fold(sample(fold.train, size, task.seed), fold.vali),))

    def fits(self, run: Run, number: int) -> Iterator[Fit]:
        """Yield the model that has grown, or the fits of the path."""
        task, (fold,) = run.task, self.parts
        whole, vali, columns = _read(task, fold, 0)
        train = whole.with_columns(columns)
        rankers = iter([grown(run, train, vali)]) if task.bound else ((ranker, "") for ranker in fitted(run, train))
        for place, (ranker, stopped) in enumerate(rankers):
            run.racing = place + 1
            yield Fit(ranker, vali, fold.vali, columns, stopped=stopped)
            if task.keep and run.best == place and not stopped:
                run.model = as_model(ranker, task, whole, columns)
            run.rounds = n_rounds(ranker) if task.bound else 0

    def finished(self, run: Run, outcome: Outcome) -> Outcome:
        """Return the outcome with the number of rounds that the model has grown to."""
        if not run.task.bound:
            return outcome
        value = mean_of(outcome.per_query[run.task.metrics[0]], run.weights)
        chosen = float(max(run.rounds, run.task.least))
        return replace(outcome, chosen=chosen, path=((chosen, value),))


class Sample(GivenSplit):
    """A sample of the training queries, by which a task is evaluated first."""

    def name(self, number: int) -> str:
        """Return what the sample is called."""
        return f"a sample of {len(self.parts[0].train)} queries"


class Orders(Plan):
    """Each query is scored before it is learnt from; its value is the mean over the orders."""

    noun = "order"

    @classmethod
    def of(cls, stored: StoredPlan, task: Task) -> Self | None:
        """Return the plan of the orders."""
        return cls(tuple(Fold(order, order) for order in stored.orders)) if isinstance(stored, Progressive) else None

    def task(self, task: Task) -> Task:
        """Return a task whose scores are not kept: no blend is made of them."""
        return replace(task, keep=False)

    def fits(self, run: Run, number: int) -> Iterator[Fit]:
        """Yield the ranker that has gone through the queries in that order."""
        order = self.parts[number - 1].train
        ranker, scores = progressive(run, run.development, order)
        yield Fit(ranker, run.development, self.evaluated, scores=scores)
        run.by_part.append(run.latest[order])

    def is_lost(self, run: Run, number: int, best: int) -> bool:
        """Return whether the means of the orders so far are significantly worse."""
        if run.task.incumbent is None:
            return False
        means = np.full(len(self.parts), np.nan)
        means[:number] = run.parts[0]
        return is_significantly_worse(means, run.task.incumbent, len(self.parts) - 1, min_differing=MIN_ORDERS)

    def finished(self, run: Run, outcome: Outcome) -> Outcome:
        """Return the outcome with its learning curve."""
        weights = run.development.query_weights
        orders = [part.train for part in self.parts[: len(run.by_part)]]
        weighed = None if weights is None else [weights[order] for order in orders]
        return replace(outcome, learning_curve=learning_curve(run.by_part, weighed))


PLANS: tuple[type[Plan], ...] = (Orders, GivenSplit, Folds)
"""All plans; a stored one is of the first kind that takes it."""


def plan_of(stored: StoredPlan, task: Task) -> Plan:
    """Return the plan that a stored plan is for a task."""
    return next(plan for kind in PLANS if (plan := kind.of(stored, task)) is not None)


def vali_weights(task: Task, fold: Fold, development: Queries) -> Floats | None:
    """Return the weights of the validation queries that score a task on a given split, None if they have none."""
    weights = development.query_weights
    return None if weights is None else weights[sample(fold.vali, task.vali_queries, task.seed)]


def learning_curve(
    in_order: Sequence[Floats], weights: Sequence[Floats] | None = None
) -> tuple[tuple[float, float], ...]:
    """Return how many queries had been learned from, and the mean of the next ones, means over orders of all queries.

    in_order: the metric in each order, (n_queries,), NaN where it skips a query; weights likewise. The queries make up
    to LEARNING_POINTS blocks of nearly equal size, each counted from its middle.
    """
    values = np.array(in_order)
    weighed = None if weights is None else np.array(weights)
    blocks = np.array_split(np.arange(values.shape[1]), min(LEARNING_POINTS, values.shape[1]))
    points = (
        (float(block.mean()), mean_of(values[:, block], None if weighed is None else weighed[:, block]))
        for block in blocks
    )
    return tuple(point for point in points if point[1] == point[1])


def _read(task: Task, fold: Fold, number: int) -> tuple[Queries, Queries, Ints | None]:
    """Return the queries to fit with all features, those to score, and the columns of the features to fit."""
    columns = selected_columns(task.folder, task.plan, number, task.budget, task.parameters)
    return read_for_fit(task, fold.train), read_part(task.folder, fold.vali).with_columns(columns), columns
