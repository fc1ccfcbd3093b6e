"""The objective of a study: fits one configuration part by part of a plan, and scores the validation queries."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.compiled import compile_anew, compiling, is_compiling_error
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.metrics.metrics import parse_metric
from ranktune.tuner.evaluation.feature_sets import solver_parameters
from ranktune.tuner.evaluation.plans import Plan, plan_of
from ranktune.tuner.evaluation.racing import is_behind
from ranktune.tuner.evaluation.refit import keep_model, keep_scores
from ranktune.tuner.evaluation.run import LimitReached, Run
from ranktune.tuner.evaluation.task import Outcome, Task, chosen_parameters
from ranktune.tuner.splits.store import read_development, read_plan

T = TypeVar("T")

COMPILING_TRIES = 3
"""How often an evaluation is tried whose compiling failed."""


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
                lambda: by_plan(plan_of(read_plan(task.folder, task.plan), task), task, read_development(task.folder))
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


def by_plan(plan: Plan, task: Task, development: Queries, deadline: float | None = None) -> Outcome:
    """Return what a configuration scores by a plan on development queries. Raises LimitReached.

    The steady clock is at the deadline when the task's limit is over, by default counted from now.
    """
    deadline = time.monotonic() + task.limit if deadline is None else deadline
    run = Run(plan.task(task), development, plan.evaluated, deadline)
    samples: list[Floats] = []
    steps: tuple[tuple[float, str, float], ...] = ()
    for place, smaller in enumerate(plan.smaller(task)):
        alone = replace(task, incumbent=None, keep=False, keep_scores=False, samples=())
        outcome = by_plan(smaller, alone, development, deadline)
        samples.append(outcome.per_query[task.metrics[0]])
        steps += outcome.steps
        if place < len(task.incumbent_samples) and is_behind(samples[-1], task.incumbent_samples[place], run.weights):
            return replace(outcome, stopped=smaller.name(1), steps=steps, samples=tuple(samples))
    best, stopped = 0, ""
    for number in range(1, len(plan.parts) + 1):
        for place, fit in enumerate(plan.fits(run, number)):
            run.score(place, fit)
            stopped = fit.stopped
        run.end_part(plan.name(number))
        best = run.best
        if not stopped and plan.is_lost(run, number, best):
            stopped = plan.name(number)
        if stopped:
            break
    outcome = plan.finished(run, run.outcome(best, stopped))
    if run.task.keep and not stopped:
        _keep(run, outcome)
    return replace(outcome, steps=(*steps, *outcome.steps), samples=tuple(samples))


def _keep(run: Run, outcome: Outcome) -> None:
    """Leave the scores of the documents that were scored, and the model of a given split, for the end of the study."""
    assert outcome.scores is not None
    final = replace(run.task, parameters=chosen_parameters(run.task, outcome))
    keep_scores(final, outcome.scores[run.development.documents_of(run.evaluated)])
    if run.model is not None:
        keep_model(final, run.model.replaced(parameters=solver_parameters(final.parameters)))
