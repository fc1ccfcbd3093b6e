"""The objective of a study: fits one configuration part by part of a plan, and scores the validation queries."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol, TypeVar, runtime_checkable

import numpy as np

from ranktune.solvers.core.arrays import Floats, Ints
from ranktune.solvers.core.compiled import compile_anew, compiling, is_compiling_error
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.metrics.means import mean_of
from ranktune.solvers.metrics.metrics import parse_metric
from ranktune.solvers.registry import make
from ranktune.tuner.evaluation.accumulator import ScoreAccumulator
from ranktune.tuner.evaluation.feature_sets import selected_columns
from ranktune.tuner.evaluation.fitting import LimitReached, fitted, patience_of
from ranktune.tuner.evaluation.holdout import by_split, chosen_parameters
from ranktune.tuner.evaluation.kept import keep_scores
from ranktune.tuner.evaluation.racing import MIN_ORDERS, is_significantly_worse, still_racing
from ranktune.tuner.evaluation.samples import read_for_fit
from ranktune.tuner.evaluation.task import Outcome, Task
from ranktune.tuner.splits.parts import read_part
from ranktune.tuner.splits.plans import FRESH, Fold, Plan, Progressive
from ranktune.tuner.splits.store import read_development, read_plan

T = TypeVar("T")

COMPILING_TRIES = 3
"""How often an evaluation is tried whose compiling failed."""
LEARNING_POINTS = 20
"""Points of a learning curve."""


@runtime_checkable
class _OnePassRanker(Protocol):
    def progressive(self, queries: Queries, order: Ints) -> Floats: ...


def check_metrics(metrics: Sequence[str], queries: Queries) -> None:
    """Raise DataError if a metric cannot score queries, as an exponential gain cannot for very high grades."""
    for name in metrics:
        parse_metric(name).per_query(np.zeros(queries.n_documents), queries)


def evaluate(task: Task) -> Outcome:
    """Return what a configuration scores by a plan. A failure is an outcome too: no exception is raised."""
    begun = time.time()
    caught: list[warnings.WarningMessage] = []
    try:
        with warnings.catch_warnings(record=True) as caught, compiling() as spent:
            warnings.simplefilter("always")
            outcome = compiled_at_last(
                lambda: _by_plan(task, read_plan(task.folder, task.plan), read_development(task.folder))
            )
        begun += sum(spent)
    except LimitReached:
        outcome = Outcome(error=f"given up after {task.limit:.3g} seconds", given_up=True)
    except Exception as error:  # one configuration may fail in any way; the study records why and goes on
        outcome = Outcome(error=f"{type(error).__name__}: {error}")
    texts = () if outcome.error else tuple(dict.fromkeys(f"{w.category.__name__}: {w.message}" for w in caught))
    return replace(outcome, warnings=texts, begun=begun, ended=time.time(), worker=str(os.getpid()))


def compiled_at_last(compute: Callable[[], T]) -> T:
    """Return what compute returns. An error of the compiler is no fault of the configuration: it is tried again.

    Such errors were seen while several processes filled one cache. The last try does without what is kept there.
    """
    for attempt in range(1, COMPILING_TRIES):
        try:
            return compute()
        except Exception as error:
            if not is_compiling_error(error):
                raise
            if attempt == COMPILING_TRIES - 1:
                compile_anew()
    return compute()


def _by_plan(task: Task, plan: Plan, development: Queries) -> Outcome:
    if isinstance(plan, Progressive):
        return _by_orders(task, plan, development)
    if len(plan) == 1 and task.plan != FRESH:
        return by_split(task, plan[0], development)
    return _by_folds(task, plan, development)


def _by_folds(task: Task, plan: tuple[Fold, ...], development: Queries) -> Outcome:
    """Score each fold by a model of the others; a query that several folds score gets the mean.

    Boosting goes on until its fold stops it; the folds after it compare no more rounds than those that it has reached.
    """
    judged = np.unique(np.concatenate([fold.vali for fold in plan]))
    looks = _interim_looks(plan, len(judged))
    racing, stopped = max(len(task.path), 1), ""
    scores = ScoreAccumulator(development, task)
    deadline = time.monotonic() + task.limit
    for place, fold in enumerate(plan, start=1):
        columns = selected_columns(task.folder, task.plan, place - 1, task.budget, task.parameters)
        parts = read_for_fit(task, fold.train), read_part(task.folder, fold.vali)
        train, vali = (part.with_columns(columns) for part in parts)
        documents = development.documents_of(fold.vali) if task.keep_scores or task.keep else None
        patience = patience_of(task)
        for k, ranker in enumerate(fitted(task, task.path[:racing], train, scores, deadline)):
            scores.score(k, ranker, vali, fold.vali, documents, columns)
            if patience is None:
                continue
            patience.update(int(task.path[k]), float(scores.parts(k, place)[-1]))
            if patience.over:
                racing = k + 1
                break
        part, best = f"fold {place} of {len(plan)}", scores.best(judged, racing)
        scores.end_part(part)
        if place <= looks:
            values = [scores.values(k, judged) for k in range(racing)]
            racing = still_racing(values, best, task.incumbent, looks, scores.weights(judged))
            if racing == 0:
                stopped = part
                break
    outcome = scores.outcome(best, judged, stopped)
    if task.keep and not stopped and outcome.scores is not None:
        final = replace(task, parameters=chosen_parameters(task, outcome))
        keep_scores(final, outcome.scores[development.documents_of(judged)])
    return outcome


def _interim_looks(plan: tuple[Fold, ...], queries: int) -> int:
    """Return after how many folds some queries have not been scored yet."""
    seen = np.cumsum([len(fold.vali) for fold in plan])
    return int(np.count_nonzero(seen < queries))


def _by_orders(task: Task, plan: Progressive, development: Queries) -> Outcome:
    """Score each query before it is learnt from; its value is the mean over the orders."""
    count, stopped = len(plan.orders), ""
    in_order = []
    scores = ScoreAccumulator(development, task)
    deadline = time.monotonic() + task.limit
    for place, order in enumerate(plan.orders, start=1):
        if time.monotonic() > deadline:
            raise LimitReached
        ranker = make(task.solver, task.parameters, task.seed)
        assert isinstance(ranker, _OnePassRanker)
        with scores.fitting():
            values = ranker.progressive(development, order)
        in_order.append(scores.add(0, ranker, values, development, slice(None))[order])
        part = f"order {place} of {count}"
        scores.end_part(part)
        if task.incumbent is not None and is_significantly_worse(
            scores.parts(0, count), task.incumbent, count - 1, min_differing=MIN_ORDERS
        ):
            stopped = part
            break
    outcome = scores.outcome(0, np.arange(development.n_queries), stopped)
    weights = development.query_weights
    weighed = None if weights is None else [weights[order] for order in plan.orders[: len(in_order)]]
    return replace(outcome, learning_curve=learning_curve(in_order, weighed))


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
