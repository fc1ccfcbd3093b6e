"""The scores that blends are made of: those on fresh folds where there is time, else those that the trials left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ranktune.tuner.evaluation.objective import evaluate
from ranktune.tuner.evaluation.refit import kept_scores
from ranktune.tuner.selection.candidates import Candidate, finalists, task_of
from ranktune.tuner.selection.time_reserve import MARGIN, fit_in_time, reporting
from ranktune.tuner.splits.plans import FRESH
from ranktune.tuner.study.deadline import Deadline
from ranktune.tuner.study.declaration import Study
from ranktune.tuner.study.problem import Problem
from ranktune.tuner.workers.executor import Executor


def rescored(
    study: Study, problem: Problem, found: list[Candidate], executor: Executor, deadline: Deadline
) -> list[Candidate]:
    """Return found with the scores of finalists; unchanged if strict, since nothing is blended then.

    With a deadline, and time for at least two of them, they are trained on fresh folds with another seed. Else the
    scores are those of their trials.
    """
    if study.strict or not isinstance(problem.plan, tuple):
        return found
    places = finalists(found, np.random.default_rng([study.seed, 4]))
    if problem.fresh and deadline.left < float("inf"):
        affordable = fit_in_time(places, found, problem, executor.jobs, deadline)
        if len(affordable) > 1:
            return _on_fresh_folds(study, problem, found, affordable, executor)
    every = finalists(found, np.random.default_rng([study.seed, 4]), worse=True)
    return _of_trials(study, problem, found, every, executor, deadline)


def _on_fresh_folds(
    study: Study, problem: Problem, found: list[Candidate], places: Sequence[int], executor: Executor
) -> list[Candidate]:
    jobs = [
        executor.submit(
            evaluate, replace(task_of(study, problem, found[k], study.seed + 1), plan=FRESH, keep_scores=True)
        )
        for k in places
    ]
    for k, job in zip(places, jobs, strict=True):
        if job.exception() is None and job.result().error is None:
            outcome = job.result()
            found[k] = replace(
                found[k],
                again=outcome.per_query[study.metric],
                again_weights=problem.development.query_weights,
                scores=outcome.scores,
            )
    return found


def _of_trials(
    study: Study,
    problem: Problem,
    found: list[Candidate],
    places: Sequence[int],
    executor: Executor,
    deadline: Deadline,
) -> list[Candidate]:
    """Return found with the scores that the trials left; a trial that left none is repeated if there is time."""
    documents = problem.development.documents_of(problem.judged)
    count = int(problem.development.lengths[problem.judged].sum())
    jobs = {}
    left = (deadline.left - reporting(problem)) * executor.jobs
    for k in places:
        task = task_of(study, problem, found[k], study.seed)
        scores = kept_scores(task, count)
        if scores is not None:
            found[k] = replace(found[k], scores=scores)
        elif MARGIN * found[k].seconds < left:
            left -= MARGIN * found[k].seconds
            jobs[k] = executor.submit(evaluate, replace(task, keep_scores=True))
    for k, job in jobs.items():
        if job.exception() is None and job.result().error is None:
            scores = job.result().scores
            found[k] = replace(found[k], scores=None if scores is None else scores[documents])
    return found
