"""The stages of a study until its trials are in the record: where and of which solvers they are, and the search.

Where trials are scored: on all folds, or once, on the validation queries as given, or on the first fold. Folds choose
better where fits are cheap; where they would leave time for few fits, a single split leaves time to grow. What a study
decides before its trials is kept beside its record: a resumed study goes on by the same.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from optuna.trial import FrozenTrial, TrialState

from ranktune.solvers.core.arrays import Json
from ranktune.solvers.core.errors import Damaged, StudyError
from ranktune.solvers.metrics.means import mean_of
from ranktune.tuner.evaluation.task import Task, TaskOutcome
from ranktune.tuner.retuning.earlier import load_earlier
from ranktune.tuner.runner.stage import SplitState, Stage
from ranktune.tuner.samplers.space import UnionSpace
from ranktune.tuner.search.dispatcher import outcome_of
from ranktune.tuner.search.loop import CTRL_C, TrialLoop
from ranktune.tuner.search.searches import SearchOptions
from ranktune.tuner.splits.seals import check_sealed, write_sealed
from ranktune.tuner.storage.attributes import PATH
from ranktune.tuner.storage.record import DamagedArrays, Record, number_of
from ranktune.tuner.study.declaration import Study
from ranktune.tuner.study.events import lost_trials
from ranktune.tuner.study.home import writing
from ranktune.tuner.study.problem import SplitProblem
from ranktune.tuner.study.tasks import Tasks, without_path
from ranktune.tuner.workers.executor import Executor

T = TypeVar("T")

SCORED, ANSWERED = "scored.json", "answered.json"
"""Files beside the record of a split: whether trials are scored once, and how far the search was that the study has an
answer from, until it is finished."""


def scored_once(path: Path, problem: SplitProblem, study: Study, seconds: float, *, begun: bool) -> bool:
    """Return whether trials are scored once; seconds are those of all workers together.

    Studies that have begun without the decision go on with their folds.
    """
    stored = _kept(path / SCORED, lambda text: {"once": True, "folds": False}[text], begun=begun)
    if stored is not None:
        return stored
    chosen = study.folds is not None or study.repeats > 1 or study.plan != "auto" or study.full
    if begun or chosen or not isinstance(problem.plan, tuple) or not math.isfinite(seconds):
        return False
    once = problem.durations.is_scored_once(seconds, is_given=problem.has_given_queries)
    _keep(path / SCORED, "once" if once else "folds")
    return once


def _kept(path: Path, parse: Callable[[str], T], *, begun: bool) -> T | None:
    """Return what a file says, None where there is none.

    Raises StudyError where it cannot be read and trials have begun, which were chosen and scored by it.
    """
    try:
        check_sealed(path)
        return parse(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (Damaged, OSError, ValueError, KeyError, TypeError) as error:
        if begun:
            raise StudyError(
                f"{path}, by which trials were chosen and scored, cannot be read: {error}. Restore it from a backup, "
                "or begin a study of another name."
            ) from error
        return None


def _keep(path: Path, text: str) -> None:
    with writing(path.parent):
        write_sealed(path, text)


def _decide(state: SplitState) -> SplitProblem:
    """Return the problem as its trials are scored."""
    problem, folder = state.problem, state.session.folder.split(state.problem.name)
    seconds, begun = state.deadline.left * state.session.executor.jobs, bool(state.record.trials())
    if scored_once(folder, problem, state.study, seconds, begun=begun):
        problem = problem.by_one_part()
    state.record.weights = problem.validation_weights
    return problem


SCORING = Stage("scoring", _decide, text=lambda state: None)


def _search(state: SplitState) -> str:
    """Run the missing trials, and return why no more were run."""
    study, session, record = state.study, state.session, state.record
    problem, tasks = state[SCORING], Tasks(state.study, state.problem.folder)
    label = f"{problem.name}: " if problem.name else ""
    if lost := lost_trials(session.folder.path, problem.name, map(number_of, record.trials())):
        session.stage("repairing", label + lost)
    begin = partial(
        TrialLoop,
        study,
        problem.name,
        record,
        tasks,
        session.executor,
        session.progress,
        session.objective,
        state.deadline,
        problem.durations.reserve,
        options=SearchOptions(
            one_part=problem.given_split,
            fit_seconds=problem.durations.a_fit * problem.durations.parts,
            earlier=load_earlier(session.folder.path) if study.after else None,
        ),
        events=session.events,
        check=session.check,
        policy=problem.policy,
        may_end=problem.name == session.folder.split_names()[-1],  # others have no trials to choose from yet
    )
    try:
        loop = begin()
    except DamagedArrays:
        repair(record, study.union_space(), tasks, session.executor, session.objective, session.progress.stage)
        loop = begin()
    if answer := answered(session.folder.split(problem.name), record, study):
        return answer
    loop.run()
    if loop.ended == CTRL_C:
        done, name = len(record.trials()), session.folder.path.name
        text = f"{CTRL_C} after {done} trial{'s' * (done != 1)}; choosing from these."
        session.stage("ended", f"{text} Ctrl-C again stops; `ranktune resume {name}` goes on.")
    session.check()
    return loop.ended


def search_of(record: Record, study: Study, ended: str) -> Json:
    """Return how far a search is, and why it ended."""
    return {"trials": len(record.trials()), "wanted": study.n_trials, "timeout": study.timeout, "ended": ended}


def keep_answered(folder: Path, search: Json) -> None:
    """Note that the study has an answer from this search."""
    _keep(folder / ANSWERED, json.dumps(search))


def answered(folder: Path, record: Record, study: Study) -> str:
    """Return why the search ended that an answer was given from; "" without one, or where trials were added since."""
    stored: Json = _kept(folder / ANSWERED, json.loads, begun=False) or {"ended": ""}
    return str(stored["ended"]) if stored == search_of(record, study, stored["ended"]) else ""


SEARCH = Stage("search", _search, (SCORING,))
"""Its trials are in the record, which a later run goes on with."""


ALIKE = 1e-9
"""Largest difference between the value of a trial and its mean evaluated again."""


def repair(
    record: Record,
    space: UnionSpace,
    tasks: Tasks,
    executor: Executor,
    objective: Callable[[Task], TaskOutcome],
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
        outcome, mean = TaskOutcome(), math.nan
        for task in _tasks(trial, space, tasks):
            returned = outcome_of(executor.submit(objective, replace(task, incumbent=None)))
            outcome = returned if isinstance(returned, TaskOutcome) else TaskOutcome(error=str(returned))
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
