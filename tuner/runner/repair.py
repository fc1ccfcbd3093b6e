"""Trials whose arrays are damaged: each is evaluated again, and its arrays are written anew.

What the record says of a trial stays: its value is a function of its parameters, so that the arrays are the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from optuna.trial import FrozenTrial, TrialState

from ranktune.solvers.core.errors import StudyError
from ranktune.solvers.metrics.means import mean_of
from ranktune.tuner.evaluation.task import Outcome, Task
from ranktune.tuner.samplers.space import UnionSpace
from ranktune.tuner.search.dispatcher import outcome_of
from ranktune.tuner.storage.attributes import PATH
from ranktune.tuner.storage.record import DamagedArrays, Record, number_of
from ranktune.tuner.study.tasks import Tasks, without_path
from ranktune.tuner.workers.executor import Executor

ALIKE = 1e-9
"""Largest difference between the value of a trial and its mean evaluated again."""


def repair(
    record: Record,
    space: UnionSpace,
    tasks: Tasks,
    executor: Executor,
    objective: Callable[[Task], Outcome],
    say: Callable[[str], None],
) -> None:
    """Evaluate the trials whose arrays are gone or damaged again, and write their arrays.

    Raises StudyError where that gives no value, or no trial has its arrays: then they are elsewhere.
    """
    complete = [trial for trial in record.trials() if trial.state == TrialState.COMPLETE]
    damaged = [trial for trial in complete if _is_damaged(record, trial)]
    if not damaged:
        return
    if len(damaged) == len(complete) > 1:
        raise StudyError(
            f"the arrays of all {len(complete)} trials are gone or damaged. Are they elsewhere? Go on where the study "
            "began (home=, artifacts=), or begin a study of another name."
        )
    numbers = ", ".join(str(number_of(trial)) for trial in damaged)
    say(f"the stored arrays of trial {numbers} are damaged: evaluated again from the same parameters")
    for trial in damaged:
        outcome, mean = Outcome(), math.nan
        for task in _tasks(trial, space, tasks):
            returned = outcome_of(executor.submit(objective, replace(task, incumbent=None)))
            outcome = returned if isinstance(returned, Outcome) else Outcome(error=str(returned))
            mean = math.nan if outcome.error else mean_of(outcome.per_query[record.metric], record.weights)
            if math.isclose(mean, trial.value or 0.0, rel_tol=0.0, abs_tol=ALIKE):
                break
        else:
            if outcome.error is not None:
                raise StudyError(f"trial {number_of(trial)} cannot be evaluated again: {outcome.error}")
            say(f"trial {number_of(trial)} scored {trial.value:g}, and {mean:g} when it was evaluated again")
        record.rewrite(trial, outcome.per_query)


def _is_damaged(record: Record, trial: FrozenTrial) -> bool:
    try:
        record.per_query(trial)
    except DamagedArrays:
        return True
    return False


def _tasks(trial: FrozenTrial, space: UnionSpace, tasks: Tasks) -> tuple[Task, Task]:
    """Return the task that the trial was, as a path of values if it was one, and that of its parameters alone."""
    solver, parameters = space.split(trial.params)
    alone = without_path(tasks(solver, parameters))
    for name, points in dict[str, list[tuple[float, float]]](trial.user_attrs.get(PATH) or {}).items():
        requested = int(points[-1][0]) if isinstance(parameters[name], int) else float(points[-1][0])
        return tasks(solver, {**parameters, name: requested}), alone
    return alone, alone
