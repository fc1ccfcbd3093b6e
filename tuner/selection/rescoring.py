"""The scores that blends are made of: those on fresh folds where there is time, else those that the trials left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ranktune.solvers.core.errors import Damaged
from ranktune.solvers.core.files.archives import read_archive, write_archive
from ranktune.tuner.evaluation.evaluate import attempt
from ranktune.tuner.evaluation.models import kept_scores
from ranktune.tuner.evaluation.task import Task, TaskOutcome
from ranktune.tuner.policy.actions import Rescore
from ranktune.tuner.selection.finals import Candidate, task_of
from ranktune.tuner.splits.plans import FRESH
from ranktune.tuner.splits.seals import check_sealed, write_sealed
from ranktune.tuner.study.deadline import Deadline
from ranktune.tuner.study.declaration import Study
from ranktune.tuner.study.home import writing
from ranktune.tuner.study.problem import SplitProblem
from ranktune.tuner.workers.executor import Executor

RESCORED = "rescored.npz"
"""File beside the record of a split until its study is finished: what candidates scored on fresh folds."""


def rescored(
    study: Study, problem: SplitProblem, candidates: list[Candidate], executor: Executor, deadline: Deadline
) -> list[Candidate]:
    """Return the candidates with the scores of finalists; unchanged if strict, since nothing is blended then.

    With a deadline, and time for at least two of them, they are trained on fresh folds with another seed. Else, and
    where one does not end in time, the scores are those of their trials.
    """
    if study.strict or not isinstance(problem.plan, tuple):
        return candidates
    durations = problem.durations
    action = durations.after_search(candidates, study.seed, executor.jobs, deadline.left)
    if isinstance(action, Rescore):
        tasks = {k: task_of(study, problem, candidates[k]) for k in action.places}
        fresh = {k: replace(task, seed=study.seed + 1, plan=FRESH, keep_scores=True) for k, task in tasks.items()}
        refits = sum(durations.refit(candidates[k].fit_seconds) for k in fresh) / executor.jobs
        until = deadline.before(refits + durations.reporting(len(fresh)))
        outcomes = _evaluated(executor, fresh, until)
        if until.left > 0.0 or len(outcomes) == len(fresh):
            weights = problem.development.query_weights
            for k, outcome in outcomes.items():
                again = outcome.per_query[study.metric]
                candidates[k] = replace(candidates[k], rescored=again, rescored_weights=weights, scores=outcome.scores)
            return candidates
    return _of_trials(study, problem, candidates, action.places, executor, deadline)


def _evaluated(executor: Executor, tasks: Mapping[int, Task], deadline: Deadline) -> dict[int, TaskOutcome]:
    """Return the outcomes of tasks by their places, of those that did not fail and had ended at the deadline."""
    jobs = {k: executor.submit(attempt, replace(task, limit=deadline.left)) for k, task in tasks.items()}
    deadline.end(jobs.values(), executor.stop)
    done = {k: job.result() for k, job in jobs.items() if job.exception() is None}
    return {k: outcome for k, outcome in done.items() if outcome.error is None}


def _of_trials(
    study: Study,
    problem: SplitProblem,
    candidates: list[Candidate],
    places: Sequence[int],
    executor: Executor,
    deadline: Deadline,
) -> list[Candidate]:
    """Return the candidates with the scores that their trials left; a trial without scores is repeated in time."""
    documents = problem.development.documents_of(problem.validation)
    count = int(problem.development.lengths[problem.validation].sum())
    repeated: dict[int, Task] = {}
    left, margin = problem.durations.free(deadline.left, executor.jobs), problem.policy.time.margin
    for k in places:
        task = task_of(study, problem, candidates[k])
        scores = kept_scores(task, count)
        if scores is not None:
            candidates[k] = replace(candidates[k], scores=scores)
        elif margin * candidates[k].seconds < left:
            left -= margin * candidates[k].seconds
            name, path = candidates[k].path  # the same fits as in the trial, so that blends are the same
            repeated[k] = replace(task, keep_scores=True, path_parameter=name, path=path)
    for k, outcome in _evaluated(executor, repeated, deadline).items():
        candidates[k] = replace(candidates[k], scores=None if outcome.scores is None else outcome.scores[documents])
    return candidates


def write_rescored(path: Path, candidates: Sequence[Candidate]) -> None:
    """Write what candidates scored on fresh folds, if any was scored there."""
    rescored = {f"again{c.number}": c.rescored for c in candidates if c.rescored is not None}
    scores = {f"scores{c.number}": c.scores for c in candidates if c.rescored is not None and c.scores is not None}
    if rescored:
        numbers = np.array([candidate.number for candidate in candidates])
        with writing(path.parent):
            write_sealed(path, write_archive({"numbers": numbers, **rescored, **scores}))


def read_rescored(path: Path, candidates: list[Candidate], problem: SplitProblem) -> list[Candidate] | None:
    """Return the candidates with what write_rescored wrote of them; None where it wrote nothing, or of others."""
    try:
        check_sealed(path)
        arrays: dict[str, Any] = dict(read_archive(path))
    except (Damaged, OSError):
        return None
    if [candidate.number for candidate in candidates] != arrays.pop("numbers").tolist():
        return None
    weights = problem.development.query_weights
    return [
        replace(
            c, rescored=arrays[f"again{c.number}"], rescored_weights=weights, scores=arrays.get(f"scores{c.number}")
        )
        if f"again{c.number}" in arrays
        else c
        for c in candidates
    ]
