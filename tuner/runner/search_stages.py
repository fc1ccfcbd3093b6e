"""The stages of a study until its trials are in the record: where and of which solvers they are, and the search."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from ranktune.tuner.runner.decisions import first_look, scored_once
from ranktune.tuner.runner.repair import repair
from ranktune.tuner.runner.stage import Stage, State
from ranktune.tuner.search.look import Look, look, worth_a_look
from ranktune.tuner.search.loop import TrialLoop
from ranktune.tuner.search.searches import SearchOptions
from ranktune.tuner.selection.blending import FEW_QUERIES
from ranktune.tuner.selection.time_reserve import fit_seconds, reserve
from ranktune.tuner.storage.record import DamagedArrays, number_of
from ranktune.tuner.study.events import lost_trials
from ranktune.tuner.study.problem import Problem
from ranktune.tuner.study.tasks import Tasks


@dataclass(frozen=True, eq=False)
class Scoring:
    """The problem as its trials are scored, and the first look at the solvers, None where none was taken."""

    problem: Problem
    looked: Look | None


def _decide(state: State) -> Scoring:
    """Decide where trials are scored, and take a first look where full trials are too long to compare the solvers."""
    study, problem, session = state.study, state.problem, state.session
    folder, seconds = session.folder.split(problem.name), state.deadline.left
    begun = bool(state.record.trials())
    if scored_once(folder, problem, study, seconds * session.executor.jobs, begun=begun):
        problem = problem.by_one_part()

    def take() -> Look | None:
        if study.full or study.strict or not worth_a_look(problem, study.solvers, state.deadline.left):
            return None
        session.stage("look", "a first look at every solver, on samples of the queries")
        tasks = Tasks(study, problem.folder)
        return look(problem, study.union_space(), tasks, session.executor, state.deadline.left)

    looked = first_look(folder, take, begun=begun)
    if looked is not None and looked.parts == 1:
        problem = problem.by_one_part()
    state.record.weights = problem.judged_weights
    return Scoring(problem, looked)


LOOK = Stage("look", _decide, text=lambda state: None)


def _search(state: State) -> str:
    """Run the missing trials, and return why no more were run."""
    study, session, record = state.study, state.session, state.record
    problem, tasks = state[LOOK].problem, Tasks(state.study, state.problem.folder)
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
        partial(reserve, problem),
        options=SearchOptions(
            looked=state[LOOK].looked,
            one_part=problem.given_split,
            fit_seconds=fit_seconds(problem),
            per_solver=problem.development.n_queries < FEW_QUERIES,
        ),
        events=session.events,
        check=session.check,
    )
    try:
        loop = begin()
    except DamagedArrays:
        repair(record, study.union_space(), tasks, session.executor, session.objective, session.progress.stage)
        loop = begin()
    loop.run()
    session.check()
    return loop.ended


SEARCH = Stage("search", _search, (LOOK,))
"""Its trials are in the record, which a later run goes on with."""
