"""The incumbent itself, learning on: boosting adds trees to it, an online solver begins with its weights.

The first part of its configuration by share whose solver can do that is evaluated by the plan of the study. For each
fold the incumbent goes on with the queries of the other folds, so that it is judged on queries that neither knows.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ranktune.solvers.metrics.means import mean_of
from ranktune.solvers.registry import make
from ranktune.tuner.evaluation.evaluate import attempt, evaluate
from ranktune.tuner.evaluation.fitting import Continuing
from ranktune.tuner.evaluation.plans import Final
from ranktune.tuner.evaluation.task import Task, chosen_parameters
from ranktune.tuner.selection.candidates import Candidate, task_of
from ranktune.tuner.selection.finals import Entry, entry_of
from ranktune.tuner.study.abilities import can_load
from ranktune.tuner.study.declaration import Study
from ranktune.tuner.study.problem import Problem
from ranktune.tuner.study.tasks import Tasks
from ranktune.tuner.workers.executor import Executor


def continued(
    study: Study, problem: Problem, former: Candidate, model: str, executor: Executor
) -> tuple[Candidate, Task] | None:
    """Return the incumbent that goes on, with what it scores by validation and the task of its final fit.

    None where no part of its configuration can go on from its model, a file, where a system that must load the model
    could not, and where the fits fail.
    """
    parts = former.members or (former,)
    shares = [float(str(share)) for share in former.params.values()] if former.members else [1.0]
    able = [k for k, part in enumerate(parts) if isinstance(make(part.solver, {}, study.seed), Continuing)]
    if not able or study.plan == "progressive" or study.budget is not None:
        return None
    part = parts[max(able, key=lambda k: shares[k])]
    if not can_load(study.serve, former.parts | part.parts):
        return None
    task = replace(Tasks(study, problem.folder)(part.solver, part.params), keep=False, after=model)
    outcome = executor.submit(attempt, task).result()
    if outcome.error or outcome.stopped:
        return None
    values = outcome.per_query[study.metric]
    weights = problem.validation_queries.query_weights
    best = Candidate(
        part.solver, chosen_parameters(task, outcome), mean_of(values, weights), values, 1, vali_weights=weights
    )
    return best, replace(task_of(study, problem, best, study.seed), after=model)


def entry_of_continued(study: Study, problem: Problem, candidate: Candidate, task: Task, executor: Executor) -> Entry:
    """Return a candidate that goes on from the incumbent, with its model and test scores."""
    made = executor.submit(evaluate, Final(study.refit or not problem.given_split), task).result()
    entry: Entry = executor.call(entry_of, study, problem, candidate, made)
    return entry


def is_preferred(continued: Candidate, anew: Candidate, fresh: NDArray[np.bool_]) -> bool:
    """Return whether validation prefers what goes on to what is fitted anew, by queries the incumbent does not know.

    fresh, (n_vali,), says which these are.
    """
    if len(continued.vali) != len(fresh) or not fresh.any():
        return False
    if len(anew.vali) != len(fresh):
        return True
    weights = None if continued.vali_weights is None else continued.vali_weights[fresh]
    return mean_of(continued.vali[fresh], weights) > mean_of(anew.vali[fresh], weights)
