"""The plans of a study's trials: folds, a given split, and orders of all queries; and the final fit."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self

import numpy as np

from ranktune.solvers.base.ranker import BaseRanker
from ranktune.solvers.boosting.base import BoostedRanker
from ranktune.solvers.boosting.growth import Patience
from ranktune.solvers.core.arrays import Floats, Ints
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.metrics.means import mean_of
from ranktune.solvers.models.base import Model
from ranktune.solvers.registry import solver_class
from ranktune.tuner.evaluation.evaluate import EvaluationPlan, EvaluationRun, FittedQueries, LimitReached
from ranktune.tuner.evaluation.feature_costs import solver_parameters
from ranktune.tuner.evaluation.feature_order import selected_columns
from ranktune.tuner.evaluation.fitting import fitted, grown, n_rounds, progressive, read_for_fit, unfitted
from ranktune.tuner.evaluation.models import (
    as_model,
    growing_model,
    keep_final,
    keep_growing,
    keep_model,
    keep_scores,
    kept_model,
    rounds_of,
)
from ranktune.tuner.evaluation.task import Task, TaskOutcome, chosen_parameters
from ranktune.tuner.policy.racing import MIN_ORDERS, is_significantly_worse, still_racing
from ranktune.tuner.splits.plans import Fold, Progressive, StoredPlan
from ranktune.tuner.splits.store import read_part, training_numbers

LEARNING_POINTS = 20
"""Points of a learning curve."""


@dataclass(frozen=True, eq=False)
class PlanOfFolds(EvaluationPlan[TaskOutcome]):
    """A plan whose parts are the queries that a model is fitted to and those to score; of an order both are all."""

    parts: tuple[Fold, ...]

    @cached_property
    def evaluated(self) -> Ints:
        """The numbers of the queries that are scored, rising."""
        return np.unique(np.concatenate([part.vali for part in self.parts]))

    def finished(self, run: EvaluationRun, outcome: TaskOutcome) -> TaskOutcome:
        """Return the outcome, and keep the scores of the documents where the task says so."""
        if run.task.keep and not outcome.stopped:
            assert outcome.scores is not None
            keep_scores(_chosen(run, outcome), outcome.scores[run.queries.documents_of(run.evaluated)])
        return outcome


class Folds(PlanOfFolds):
    """Each fold is scored by a model of the others; a query that several folds score gets the mean.

    Boosting continues until its fold stops it; later folds compare no more rounds than it has reached.
    """

    @classmethod
    def of(cls, stored: StoredPlan) -> Self | None:
        """Return the plan of several folds."""
        return None if isinstance(stored, Progressive) else cls(stored)

    def fits(self, run: EvaluationRun, number: int) -> Iterator[FittedQueries]:
        """Yield the fits of the path, until boosting no longer improves."""
        task, fold = run.task, self.parts[number - 1]
        train, vali, columns = _read(task, fold)
        grows = task.bound and task.path
        patience = Patience(int(unfitted(task).get_params()["patience"])) if grows else None
        for place, ranker in enumerate(fitted(run, train.with_columns(columns))):
            yield FittedQueries(ranker, vali, fold.vali, columns)
            if patience is not None:
                patience.update(int(task.path[place]), run.parts[place][-1])
                run.report(time.monotonic(), int(task.path[place]), run.parts[place][-1])
                if patience.over:
                    run.racing = place + 1
                    return

    def is_lost(self, run: EvaluationRun, number: int, best: int) -> bool:
        """Return whether no value of the path remains, where some queries have not been scored yet.

        Never where times are known: the folds are no random samples, and what loses early may win later.
        """
        if run.queries.times is not None:
            return False
        scored = np.cumsum([len(fold.vali) for fold in self.parts])
        looks = int(np.count_nonzero(scored < len(self.evaluated)))
        if number > looks:
            return False
        values = [run.values(place) for place in range(run.racing)]
        run.racing = still_racing(values, best, run.task.incumbent, looks, run.weights, run.task.race)
        return run.racing == 0


class GivenSplit(PlanOfFolds):
    """Given training and validation queries.

    Boosting grows until the validation queries stop it, or the time limit: one fit finds the number of rounds.
    """

    @classmethod
    def of(cls, stored: StoredPlan) -> Self | None:
        """Return the plan of one fold."""
        return None if isinstance(stored, Progressive) or len(stored) != 1 else cls(stored)

    def name(self, number: int) -> str:
        """Return what the queries are called."""
        return "all queries"

    def task(self, task: Task) -> Task:
        """Return a task without the path of a model that grows."""
        return replace(task, path=()) if task.bound else task

    def fits(self, run: EvaluationRun, number: int) -> Iterator[FittedQueries]:
        """Yield the model that has grown, or the fits of the path."""
        task, (fold,) = run.task, self.parts
        if task.bound and run.is_over and (model := growing_model(task)) is not None:  # it counts as it is
            run.rounds, run.model = rounds_of(task, model), model
            run.unfinished = max(run.rounds, task.least) < task.bound
            yield FittedQueries(model, read_part(task.folder, fold.vali), fold.vali)
            return
        whole, vali, columns = _read(task, fold)
        train = whole.with_columns(columns)

        def keep(ranker: BaseRanker) -> None:
            rounds = {task.path_parameter: run.rounds + n_rounds(ranker)}
            parameters = {**solver_parameters(task.parameters), **rounds}
            keep_growing(task, as_model(ranker, task, whole, columns).replaced(parameters=parameters))

        # Without a limit nothing is kept: then trials have the same bits however often they were interrupted.
        keeping = keep if task.keep and task.limit < float("inf") else None
        grows = iter([grown(run, train, vali, keeping)]) if task.bound else None
        rankers = grows or ((ranker, "") for ranker in fitted(run, train))
        for place, (ranker, stopped) in enumerate(rankers):
            run.racing = place + 1
            yield FittedQueries(ranker, vali, fold.vali, columns, stopped=stopped)
            if task.keep and run.best == place and not stopped:
                run.model = as_model(ranker, task, whole, columns)

    def finished(self, run: EvaluationRun, outcome: TaskOutcome) -> TaskOutcome:
        """Return the outcome with the number of rounds that the model has grown to, and keep the model too."""
        if run.task.bound:
            value = mean_of(outcome.per_query[run.task.metrics[0]], run.weights)
            chosen = float(max(run.rounds, run.task.least))
            outcome = replace(outcome, chosen=chosen, path=((chosen, value),))
        if run.task.keep:
            keep_growing(run.task, None)
        if run.model is not None and not outcome.stopped:
            final = _chosen(run, outcome)
            model = run.model.replaced(parameters=solver_parameters(final.parameters))
            keep_model(final, model)
            if run.unfinished:
                keep_growing(final, model)
        return super().finished(run, outcome)


class Orders(PlanOfFolds):
    """Each query is scored before the ranker learns from it; its value is the mean over the orders."""

    noun = "order"

    @classmethod
    def of(cls, stored: StoredPlan) -> Self | None:
        """Return the plan of the orders."""
        return cls(tuple(Fold(order, order) for order in stored.orders)) if isinstance(stored, Progressive) else None

    def task(self, task: Task) -> Task:
        """Return a task whose scores are not kept: no blend is made of them."""
        return replace(task, keep=False)

    def fits(self, run: EvaluationRun, number: int) -> Iterator[FittedQueries]:
        """Yield the ranker that has gone through the queries in that order."""
        order = self.parts[number - 1].train
        ranker, scores = progressive(run, run.queries, order)
        yield FittedQueries(ranker, run.queries, self.evaluated, scores=scores)
        run.collected.append(run.latest[order])

    def is_lost(self, run: EvaluationRun, number: int, best: int) -> bool:
        """Return whether the means of the orders so far are significantly worse."""
        incumbent, race = run.task.incumbent, run.task.race
        if incumbent is None:
            return False
        means = np.full(len(self.parts), np.nan)
        means[:number] = run.parts[0]
        race = replace(race, min_queries=MIN_ORDERS)
        return is_significantly_worse(means, incumbent, len(self.parts) - 1, race=race)

    def finished(self, run: EvaluationRun, outcome: TaskOutcome) -> TaskOutcome:
        """Return the outcome with its learning curve."""
        weights = run.queries.query_weights
        orders = [part.train for part in self.parts[: len(run.collected)]]
        weighed = None if weights is None else [weights[order] for order in orders]
        return replace(outcome, learning_curve=learning_curve(run.collected, weighed))


@dataclass(frozen=True)
class FinalOutcome(TaskOutcome):
    """The outcome of a final fit, with its model, and whether that was fitted to all development queries."""

    model: Model = field(kw_only=True)
    on_everything: bool = True


@dataclass(frozen=True, eq=False)
class Final(EvaluationPlan[FinalOutcome]):
    """One fit to all that a delivered model learns from. The model is scored on test queries, where these are given.

    on_everything  whether it learns from all development queries, not only from the training queries of the first fold
    instead        the trial whose model is delivered once the limit is over; if its model is missing, boosting has the
                   rounds until there
    model          a model to deliver as it is, such as a blend
    """

    on_everything: bool = True
    instead: Task | None = None
    model: Model | None = None
    test: Queries | None = None
    parts = ("all queries",)

    def queries(self, task: Task) -> Queries:
        """Return the test queries."""
        return super().queries(task) if self.test is None else self.test

    @property
    def evaluated(self) -> Ints:
        """The numbers of all test queries."""
        return np.arange(0 if self.test is None else self.test.n_queries)

    def task(self, task: Task) -> Task:
        """Return a task without a limit where there is nothing to deliver once it is over."""
        if self.instead is None or issubclass(solver_class(task.solver), BoostedRanker) or kept_model(self.instead):
            return task
        return replace(task, limit=float("inf"))

    def fits(self, run: EvaluationRun, number: int) -> Iterator[FittedQueries]:
        """Yield the model."""
        model, stopped = self.model, ""
        if model is None and not self.on_everything:
            model = kept_model(run.task)
        with suppress(LimitReached):
            run.model = model or kept_model(_final(run.task)) or self._fitted(run)
        if run.unfinished or run.model is None:
            saved = None if self.instead is None else kept_model(self.instead)
            run.model, stopped = (run.model, "") if saved is None else (saved, "its time")
        if run.model is None:
            raise LimitReached
        test = None if self.test is None else replace(self.test, rows=None)  # scores in their order, not the caller's
        yield FittedQueries(run.model, test, self.evaluated, stopped=stopped)

    def _fitted(self, run: EvaluationRun) -> Model:
        task = run.task
        numbers = np.arange(super().queries(task).n_queries) if self.on_everything else training_numbers(task.folder)
        whole = read_for_fit(task, numbers)
        columns = selected_columns(task.folder, numbers, task.budget, task.parameters)
        (ranker,) = fitted(run, whole.with_columns(columns), cut=True)
        return as_model(ranker, task, whole, columns)

    def finished(self, run: EvaluationRun, outcome: TaskOutcome) -> FinalOutcome:
        """Return the outcome with the model, without values by query where there are no test queries."""
        assert run.model is not None
        fields = vars(outcome) if self.test is not None else {**vars(outcome), "per_query": {}}
        if self.model is None and self.on_everything and not (outcome.stopped or run.unfinished):
            fields = {**fields, "seconds": keep_final(_final(run.task), run.model, outcome.seconds)}
        return FinalOutcome(**fields, model=run.model, on_everything=self.on_everything and not outcome.stopped)


def _final(task: Task) -> Task:
    """Return the task under whose name the model of a final fit is kept, for a run that goes on after a stop."""
    return replace(task, plan="final")


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


def _chosen(run: EvaluationRun, outcome: TaskOutcome) -> Task:
    """Return the task whose parameters have the best value of the path; a trial stores its results under its name."""
    return replace(run.task, parameters=chosen_parameters(run.task, outcome))


def _read(task: Task, fold: Fold) -> tuple[Queries, Queries, Ints | None]:
    """Return the queries to fit with all features, those to score, and the columns of the features to fit."""
    columns = selected_columns(task.folder, fold.train, task.budget, task.parameters)
    return read_for_fit(task, fold.train), read_part(task.folder, fold.vali).with_columns(columns), columns
