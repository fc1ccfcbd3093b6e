"""Who runs trials, by a clock set by hand and leases of a real file: offers, losses, stopping, starting."""

import os
import time
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ranktune.solvers.core.errors import ResultRefused, TooLong, WorkerLost, WorkersAway
from ranktune.tuner.evaluation.task import Rounds, Task, TaskOutcome, report
from ranktune.tuner.search.dispatcher import GRACE, LANES, Clock, Dispatcher, Running, own_name
from ranktune.tuner.storage.leases import LEASED, WAITING, Lease, Leases, Offer
from ranktune.tuner.storage.record import Record
from ranktune.tuner.study.events import Events, read_events
from ranktune.tuner.workers.executor import InProcess
from tests.support.process_samples import soon
from tests.tuner.search.test_loop import STUDY, task_of

SPACE = STUDY.union_space()
DONE = TaskOutcome({"ndcg@10": np.array([0.25, 0.75])})


class ByHand(Clock):
    """A clock that moves when somebody waits for it; what is to happen at a time happens when it is reached."""

    def __init__(self) -> None:
        self.time = 1000.0
        self.agenda: list[tuple[float, Callable[[], None]]] = []

    def now(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self._until(self.time + seconds, set)

    def wait(self, futures: Collection[Future[Any]], seconds: float) -> set[Future[Any]]:
        return self._until(self.time + seconds, lambda: {future for future in futures if future.done()})

    def _until(self, end: float, done: Callable[[], set[Future[Any]]]) -> set[Future[Any]]:
        while not done():
            self.agenda.sort(key=lambda one: one[0])
            if not self.agenda or self.agenda[0][0] > end:
                self.time = end
                break
            self.time, act = self.agenda.pop(0)
            act()
        return done()


class Lanes:
    """Lanes whose functions end when the test says so, by the number of the trial in their task's seed."""

    def __init__(self, jobs: int) -> None:
        self.jobs = jobs
        self.futures: dict[int, Future[Any]] = {}
        self.stopped: list[int] = []

    def submit(self, function: Callable[..., Any], *arguments: Any, limits: Any = None) -> Future[Any]:
        task: Task = arguments[0]
        self.futures[task.seed] = Future()
        return self.futures[task.seed]

    def __exit__(self, *_: object) -> None:
        """All have ended."""

    def stop(self, future: Future[Any]) -> None:
        self.stopped += [number for number, own in self.futures.items() if own is future]


class Place:
    """A folder with a record, one dispatcher after another, and workers that joined."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.clock = folder, ByHand()
        self.record = Record(folder, "s", STUDY.metric)
        self.leases = Leases(self.record.storage, self.record.study.study_name, clock=self.clock.now)
        self.theirs = Leases(self.record.storage, self.record.study.study_name, clock=self.clock.now)
        self.events = Events(folder)
        self.lanes: Any = None

    def dispatcher(self, jobs: int) -> Dispatcher:
        self.lanes = Lanes(jobs)
        return Dispatcher(self.lanes, self.leases, lambda task: DONE, self.events, self.clock, "fold")

    def join(self, name: str = "far:1/joined", jobs: int = 1) -> None:
        self.theirs.join(name, "far", 1, jobs, "1")

    def claim(self, name: str = "far:1/joined") -> Lease:
        (lease,) = self.theirs.claim(name)
        return lease

    def rows(self) -> dict[int, Lease]:
        return {lease.number: lease for lease in self.leases.rows()}

    def said(self) -> list[tuple[str, int]]:
        return [(event["event"], event["trial"]) for event in read_events(self.folder) if "trial" in event]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    result = Place(tmp_path)
    yield result
    result.events.close()
    result.leases.disconnect()
    result.theirs.disconnect()
    result.record.close()


def requested(number: int) -> Running:
    params = SPACE.defaults()[number % 2] | {}
    task = task_of(*SPACE.split(params))
    return Running(number, params, replace(task, seed=number))


def start(dispatcher: Dispatcher, *numbers: int) -> None:
    for number in numbers:
        dispatcher.start(requested(number))
    dispatcher.offer()


def test_there_is_room_for_own_lanes_and_for_those_of_who_joined(place: Place) -> None:
    dispatcher = place.dispatcher(2)
    assert dispatcher.free == 2
    place.join(jobs=3)
    assert dispatcher.free == 2, "it looks once a second"
    place.clock.time += 1.5
    assert dispatcher.free == 5
    start(dispatcher, 0, 1, 2)
    assert dispatcher.free == 2
    assert [lease.state for lease in place.rows().values()] == [LEASED, LEASED, WAITING]
    assert place.rows()[0].worker == own_name() + LANES


def test_what_nobody_took_is_taken_by_a_lane_that_is_free(place: Place) -> None:
    dispatcher = place.dispatcher(1)
    place.join()
    start(dispatcher, 0, 1)
    place.lanes.futures[0].set_result(DONE)
    ((trial, outcome),) = dispatcher.completed()
    assert (trial.number, outcome.restarts, outcome.error) == (0, 0, None)
    assert 1 not in place.lanes.futures
    dispatcher.completed()
    assert 1 in place.lanes.futures
    assert place.rows()[1].state == LEASED
    assert not place.rows()[1].joined


def test_what_was_taken_elsewhere_is_left_there_and_collected(place: Place) -> None:
    dispatcher = place.dispatcher(1)
    place.join()
    start(dispatcher, 0, 1)
    lease = place.claim()
    assert lease.number == 1
    place.lanes.futures[0].set_result(DONE)
    assert [trial.number for trial, _ in dispatcher.completed()] == [0]
    assert dispatcher.completed() == []
    assert dispatcher.busy
    assert place.theirs.deliver(1, lease.token, DONE)
    ((trial, outcome),) = dispatcher.completed()
    assert (trial.number, outcome.restarts, outcome.worker) == (1, 0, "far:")
    assert not dispatcher.busy


def test_a_trial_whose_lane_is_lost_is_begun_once_more_and_fails_the_second_time(place: Place) -> None:
    dispatcher = place.dispatcher(1)
    start(dispatcher, 7)
    before = place.rows()[7]
    place.lanes.futures[7].set_exception(WorkerLost("killed by signal 9"))
    assert dispatcher.completed() == []
    assert place.rows()[7].attempt == 2
    assert place.rows()[7].params == before.params
    dispatcher.completed()
    assert place.rows()[7].token != before.token
    place.lanes.futures[7].set_exception(WorkerLost("killed by signal 11"))
    ((_, outcome),) = dispatcher.completed()
    assert outcome.restarts == 1
    assert outcome.error is not None
    assert "lost twice" in outcome.error
    assert "signal 11" in outcome.error
    assert place.said() == [("started", 7), ("reissued", 7), ("started", 7)]
    assert {event["split"] for event in read_events(place.folder)} == {"fold"}


@pytest.mark.parametrize("error", [TooLong(5.0), MemoryError("too much"), ResultRefused("too large")])
def test_what_a_function_does_on_its_lane_is_the_failure_of_its_trial(place: Place, error: Exception) -> None:
    dispatcher = place.dispatcher(1)
    start(dispatcher, 0)
    place.lanes.futures[0].set_exception(error)
    ((_, outcome),) = dispatcher.completed()
    assert str(error) in str(outcome.error) and outcome.restarts == 0 and not place.lanes.futures.keys() - {0}


@pytest.mark.parametrize("times", [1, 2])
def test_a_loss_that_trials_have_in_common_costs_no_attempt(place: Place, times: int) -> None:
    """As where the system ends all workers for want of memory; then one of the trials ends its own worker twice."""
    dispatcher = place.dispatcher(3)
    start(dispatcher, 0, 1, 2)
    for _ in range(times):
        for number in (0, 1, 2):
            place.lanes.futures[number].set_exception(WorkerLost("killed by signal 9"))
        assert dispatcher.completed() == []
        assert [row.attempt for row in place.rows().values()] == [1, 1, 1]
        assert dispatcher.completed() == []
    for number in (0, 1):
        place.lanes.futures[number].set_result(DONE)
    assert sorted(trial.number for trial, _ in dispatcher.completed()) == [0, 1]
    for attempt in (1, 2):
        assert place.rows()[2].attempt == attempt
        place.lanes.futures[2].set_exception(WorkerLost("killed by signal 9"))
        result = dispatcher.completed()
        dispatcher.completed()
    ((trial, outcome),) = result
    assert trial.number == 2 and "lost twice" in str(outcome.error)


@pytest.mark.parametrize("reason", ["not started: no space left on device", "not started: too many open files"])
def test_workers_that_cannot_be_started_end_the_study_and_no_trial(place: Place, reason: str) -> None:
    dispatcher = place.dispatcher(1)
    start(dispatcher, 5)
    with pytest.raises(WorkersAway, match=f"{reason}.*`ranktune resume` goes on"):
        for _ in range(10):
            place.lanes.futures[5].set_exception(WorkerLost(reason))
            dispatcher.completed()
            dispatcher.completed()
    assert list(dispatcher.stop(0.0)) == []
    assert (place.rows()[5].state, place.rows()[5].attempt) == (WAITING, 1)


def test_stopping_returns_what_finishes_and_puts_the_rest_back(place: Place) -> None:
    dispatcher = place.dispatcher(3)
    start(dispatcher, 0, 1, 2)
    begun = place.clock.time
    place.clock.agenda.append((begun + 1.0, lambda: place.lanes.futures[1].set_result(DONE)))
    place.clock.agenda.append((begun + GRACE + 1.0, lambda: place.lanes.futures[2].set_result(DONE)))
    results = []
    for trial, _ in dispatcher.stop(GRACE):
        results.append(trial.number)
        dispatcher.recorded(trial.number)
    assert results == [1]
    assert place.clock.time == pytest.approx(begun + GRACE)
    assert sorted(place.lanes.stopped) == [0, 2]
    assert dispatcher.put_back == 2
    assert {number: (row.state, row.attempt) for number, row in place.rows().items()} == {
        0: (WAITING, 1),
        2: (WAITING, 1),
    }
    assert sorted(place.said())[:2] == [("requeued", 0), ("requeued", 2)]


def test_what_finished_but_was_not_recorded_is_put_back_too(place: Place) -> None:
    dispatcher = place.dispatcher(2)
    start(dispatcher, 0, 1)
    place.lanes.futures[0].set_result(DONE)
    place.lanes.futures[1].set_result(DONE)
    ending = dispatcher.stop(GRACE)
    next(ending)
    ending.close()
    assert dispatcher.put_back == 2
    assert {row.state for row in place.rows().values()} == {WAITING}


def test_stopping_takes_back_what_no_worker_has_begun_and_leaves_what_it_has(place: Place) -> None:
    dispatcher = place.dispatcher(1)
    place.join(jobs=2)
    start(dispatcher, 0, 1, 2)
    dispatcher.start(requested(3))
    lease = place.claim()
    assert lease.number == 1
    dispatcher.withdraw()
    assert set(place.rows()) == {0, 1}
    start(dispatcher, 4)
    assert list(dispatcher.stop(0.0)) == [] and dispatcher.put_back == 1
    assert set(place.rows()) == {0, 1} and place.rows()[1].token == lease.token
    assert place.theirs.deliver(1, lease.token, DONE)


@pytest.mark.parametrize(("seconds", "ahead"), [(4.9, 3), (5.1, 0)])
def test_one_is_ahead_for_each_worker_that_joined_where_trials_are_short(
    place: Place, seconds: float, ahead: int
) -> None:
    dispatcher = place.dispatcher(1)
    place.join(jobs=3)
    assert dispatcher.free == 4, "not before it is known how long they take"
    start(dispatcher, 0, 1)
    lease = place.claim()
    assert place.theirs.deliver(1, lease.token, replace(DONE, begun=100.0, ended=100.0 + seconds))
    assert len(dispatcher.completed()) == 1
    assert dispatcher.free == 3 + ahead


def left(place: Place, *wanted: int, jobs: int = 1) -> dict[int, Any]:
    """Return what another coordinator finds, having resumed it."""
    dispatcher = place.dispatcher(jobs)
    results = dict(dispatcher.unfinished(wanted))
    for number in results:
        dispatcher.resume(requested(number))
    place.lanes.after = dispatcher
    return results


def test_lanes_of_a_coordinator_that_is_gone_cost_no_attempt(place: Place) -> None:
    start(place.dispatcher(2), 3, 4)
    params = {number: row.params for number, row in place.rows().items()}
    assert left(place, 3, 4, 5) == params
    assert {(row.state, row.attempt) for row in place.rows().values()} == {(WAITING, 1)}
    dispatcher: Dispatcher = place.lanes.after
    dispatcher.completed()
    assert [(row.state, row.attempt) for row in place.rows().values()] == [(LEASED, 1), (WAITING, 1)]


def test_what_ran_in_a_coordinator_that_is_gone_costs_no_attempt_and_gets_its_own_process(place: Place) -> None:
    """The coordinator may have been killed any number of times; only the process of the trial counts."""
    for _ in range(4):
        lease = place.leases.give(Offer(3, requested(3).params), own_name())
        assert lease is not None
        assert lease.attempt == 1
        assert list(left(place, 3)) == [3]
    apart: Any = Lanes(1)
    dispatcher = Dispatcher(
        InProcess(), place.leases, lambda task: DONE, place.events, place.clock, "fold", lambda: apart
    )
    assert place.leases.give(Offer(3, requested(3).params), own_name()) is not None
    assert list(dispatcher.unfinished([3])) == [3]
    dispatcher.resume(requested(3))
    for attempt in (1, 2):
        result = dispatcher.completed()
        assert not result
        assert [row.attempt for row in place.rows().values()] == [attempt]
        apart.futures[3].set_exception(WorkerLost("it died"))
        result = dispatcher.completed()
    assert result[0][0].number == 3
    assert "lost twice" in str(result[0][1].error)
    dispatcher.start(requested(4))
    assert [trial.number for trial, _ in dispatcher.completed()] == [4]
    assert set(apart.futures) == {3}
    dispatcher.close()


def test_a_process_of_its_own_ends_with_the_trials_and_both_are_heard_while_they_run(place: Place) -> None:
    assert place.leases.give(Offer(3, requested(3).params), own_name()) is not None
    folder = place.folder

    def objective(task: Task) -> TaskOutcome:
        report(Rounds("", task.seed, 0, 0.0, 0.0))
        assert soon((folder / str(task.seed)).exists)
        return replace(DONE, worker=str(os.getpid()))

    dispatcher = Dispatcher(InProcess(), place.leases, objective, place.events)
    dispatcher.on_rounds = lambda trial, rounds: (folder / str(rounds.done)).touch()
    assert list(dispatcher.unfinished([3])) == [3]
    for number, begin in ((3, dispatcher.resume), (4, dispatcher.start)):
        begin(requested(number))
        while not (result := dispatcher.completed()):
            time.sleep(0.01)
        assert result[0][1].error is None
        assert (result[0][1].worker != str(os.getpid())) == (number == 3)
    dispatcher.close()


def test_an_outcome_that_arrived_while_nobody_owned_the_study_is_collected(place: Place) -> None:
    dispatcher = place.dispatcher(1)
    place.join()
    start(dispatcher, 0, 1)
    lease = place.claim()
    del dispatcher
    assert place.theirs.deliver(1, lease.token, DONE)
    assert sorted(left(place, 0, 1)) == [0, 1]
    after: Dispatcher = place.lanes.after
    ((trial, outcome),) = after.completed()
    assert (trial.number, outcome.error) == (1, None)
    np.testing.assert_array_equal(outcome.per_query["ndcg@10"], DONE.per_query["ndcg@10"])
    assert list(place.lanes.futures) == [0], "and the other one runs"


def test_leases_of_own_lanes_are_renewed(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    renewed: list[list[str]] = []
    monkeypatch.setattr(place.leases, "renew", lambda tokens: renewed.append(list(tokens)))
    dispatcher = place.dispatcher(1)
    start(dispatcher, 0)
    while place.clock.time < 1000.0 + 3.0 * place.leases.period:
        dispatcher.completed()
    assert 6 <= len(renewed) <= 10
    assert renewed[0] == [place.rows()[0].token]
