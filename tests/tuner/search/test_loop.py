"""The trial loop with objectives of our own: totals, resuming, failures, dead workers."""

import zlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from optuna.trial import FrozenTrial, TrialState

from ranktune.solvers.core.errors import StudyError
from ranktune.solvers.core.space import Value
from ranktune.tuner.evaluation.evaluate import attempt
from ranktune.tuner.evaluation.task import Task, TaskOutcome
from ranktune.tuner.search.loop import FAILURES, Objective, TrialLoop
from ranktune.tuner.search.progress import Silent, TrialReport
from ranktune.tuner.splits.plans import PLAN, query_folds
from ranktune.tuner.splits.store import write_problem
from ranktune.tuner.storage.record import Record, number_of
from ranktune.tuner.study.deadline import Deadline
from ranktune.tuner.study.declaration import Study
from ranktune.tuner.study.events import Event, Events, read_events
from ranktune.tuner.workers.executor import Executor, InProcess
from tests.support.engine_samples import graded
from tests.support.process_samples import Lasting

STUDY = Study(solvers=("RankSVM", "RidgeRanker"), trials=12, sampler="random", seed=4)


def task_of(solver: str, parameters: Mapping[str, Value]) -> Task:
    return Task("", STUDY.metrics, solver, parameters, 0)


def smooth(task: Task) -> TaskOutcome:
    """A value that depends on the configuration only."""
    value = zlib.crc32(repr((task.solver, sorted(task.parameters.items(), key=str))).encode()) / 2**32
    return TaskOutcome({"ndcg@10": np.array([value, 0.5])}, 1.0, 0.01)


class Heard(Silent):
    def __init__(self) -> None:
        self.reports: list[TrialReport] = []

    def trial(self, report: TrialReport) -> None:
        self.reports.append(report)


def loop(
    folder: Path,
    study: Study = STUDY,
    objective: Objective = smooth,
    executor: Executor | None = None,
    heard: Silent | None = None,
) -> list[FrozenTrial]:
    """Run the trials that are missing; return all."""
    record = Record(folder, "s", study.metric)
    try:
        with executor or InProcess() as workers, Events(folder) as events:
            TrialLoop(study, "fold", record, task_of, workers, heard or Silent(), objective, events=events).run()
        assert record.leases.rows() == []
        return record.trials()
    finally:
        record.close()


def numbers(trials: list[FrozenTrial]) -> list[int]:
    return [number_of(trial) for trial in trials]


def test_every_number_is_run_once_and_heard_of_and_defaults_come_first(tmp_path: Path) -> None:
    heard = Heard()
    trials = loop(tmp_path, heard=heard)
    assert numbers(trials) == list(range(12))
    assert [t.done for t in heard.reports] == list(range(1, 13))
    assert heard.reports[-1].best == max(t.value for t in heard.reports if t.value is not None)

    defaults = STUDY.union_space().defaults()
    assert [t.params for t in trials[: len(defaults)]] == defaults


@pytest.mark.parametrize("sampler", ["random", "tpe", "thompson"])
def test_a_resumed_run_agrees_with_an_uninterrupted_one(tmp_path: Path, sampler: str, lane: Lasting) -> None:
    whole = replace(STUDY, sampler=sampler)
    uninterrupted = [(t.params, t.value, t.state) for t in loop(tmp_path / "whole", whole)]
    for name, executor in (("here", None), ("there", lane)):
        loop(tmp_path / name, replace(whole, trials=5), executor=executor)
        resumed = loop(tmp_path / name, whole, executor=executor)
        assert [(t.params, t.value, t.state) for t in resumed] == uninterrupted and numbers(resumed) == list(range(12))


def test_a_number_lost_in_the_middle_is_asked_for_again(tmp_path: Path) -> None:
    record = Record(tmp_path, "s", "ndcg@10")
    space = STUDY.union_space()
    record.append(7, space.defaults()[0], space.distributions, TaskOutcome({"ndcg@10": np.ones(2)}))
    record.close()
    assert numbers(loop(tmp_path)) == list(range(12))


def test_a_failing_configuration_costs_its_trial_only(tmp_path: Path) -> None:
    def sometimes(task: Task) -> TaskOutcome:
        return TaskOutcome(error="ValueError: no") if task.solver == "RankSVM" else smooth(task)

    states = [t.state for t in loop(tmp_path, objective=sometimes)]
    assert len(states) == 12
    assert {TrialState.FAIL, TrialState.COMPLETE} == set(states)


def test_a_study_where_everything_fails_stops_with_the_cause(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="OSError: the disk is gone"):
        loop(tmp_path, replace(STUDY, trials=100), lambda task: TaskOutcome(error="OSError: the disk is gone"))
    record = Record(tmp_path, "s", "ndcg@10")
    assert len(record.trials()) == FAILURES
    record.close()


def events_of(executor: Lasting, folder: Path, outcome: TaskOutcome) -> list[tuple[str, int]]:
    record = Record(folder, "s", "ndcg@10")
    with executor, Events(folder) as events:
        TrialLoop(STUDY, "s", record, task_of, executor, Silent(), lambda task: outcome, events=events).run()
    record.close()
    return [(event["event"], event["trial"]) for event in read_events(folder) if "trial" in event]


def test_the_next_trial_is_requested_while_all_worker_processes_are_busy(tmp_path: Path, two_lanes: Lasting) -> None:
    events = events_of(two_lanes, tmp_path, TaskOutcome({"ndcg@10": np.array([0.5, 0.6])}, 1.0, 0.01))
    first_end = next(place for place, (what, _) in enumerate(events) if what == Event.FINISHED)
    assert (Event.ASKED, 2) in events[:first_end]
    assert sorted(number for what, number in events if what == Event.FINISHED) == list(range(12))


def test_a_trial_that_waits_is_not_started_once_another_was_given_up(tmp_path: Path, two_lanes: Lasting) -> None:
    events = events_of(two_lanes, tmp_path, TaskOutcome(error="given up", given_up=True))
    assert (Event.ASKED, 2) in events
    assert [number for what, number in events if what == Event.STARTED] == [0, 1]


def test_what_is_given_up_for_lack_of_time_never_was(tmp_path: Path) -> None:
    """The third trial is given up: it is not in the record, no other is begun, and a resumed run asks for it again."""
    count = 0

    def limited(task: Task) -> TaskOutcome:
        nonlocal count
        count += 1
        return TaskOutcome(error="given up", given_up=True) if count == 3 else smooth(task)

    assert numbers(loop(tmp_path, objective=limited)) == [0, 1]
    assert count == 3
    assert numbers(loop(tmp_path)) == list(range(12))


def test_the_end_has_its_time_put_aside(tmp_path: Path) -> None:
    """Each trial takes 10 seconds of a clock of ours, the end 35 of 100: trials are begun while they still fit."""
    now = [0.0]

    def slow(task: Task) -> TaskOutcome:
        now[0] += 10.0
        return replace(smooth(task), begun=now[0] - 10.0, ended=now[0])

    record = Record(tmp_path, "s", STUDY.metric)
    deadline = Deadline.after(100.0, lambda: now[0])
    with InProcess() as executor:
        TrialLoop(STUDY, "s", record, task_of, executor, Silent(), slow, deadline, lambda *known: 35.0).run()
    assert len(record.trials()) == 6
    record.close()


def test_learning_is_given_up_between_two_steps(tmp_path: Path) -> None:
    queries = graded(20, 0)
    write_problem(queries, {PLAN: query_folds(queries, 3, 0)}, tmp_path)
    task = Task(str(tmp_path), ("ndcg@10",), "RankSVM", {"C": 1.0}, 0)
    late = attempt(replace(task, limit=0.0))
    assert late.given_up
    assert late.error == "given up after 0 seconds"
    assert attempt(replace(task, limit=60.0)).error is None
