"""The spare worker: there where one may be lost, taken by the lane that lost its own, gone with the executor."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path

import pytest

from ranktune.solvers.core.errors import TooLong, WorkerLost
from ranktune.tuner.workers import spare
from ranktune.tuner.workers.limits import BEGUN, Limits, pickled
from ranktune.tuner.workers.processes import Processes
from tests.support.process_samples import SOON, alive, note, pid_in, soon

LONG = Limits(seconds=1000.0)


@pytest.fixture
def executor(monkeypatch: pytest.MonkeyPatch) -> Iterator[Processes]:
    """Two executor whose spare worker is started at once."""
    monkeypatch.setattr(spare, "SPARE_DELAY", 0.0)
    executor = Processes(2)
    yield executor
    executor.__exit__(KeyboardInterrupt, None, None)


def spare_of(executor: Processes) -> int:
    """The process of the spare worker, once there is one."""
    assert soon(lambda: (worker := executor._spare.worker) is not None and worker.pid > 0)
    worker = executor._spare.worker
    assert worker is not None
    return worker.pid


def runs(executor: Processes, path: Path, function: Callable[[], object], limits: Limits) -> tuple[int, Future[object]]:
    """Begin function; its process and future."""

    def begins() -> object:
        note(path, os.getpid())
        return function()

    future = executor.submit(begins, limits=limits)
    return pid_in(path), future


def sleeps() -> None:
    time.sleep(1000.0)


def test_there_is_none_while_nothing_can_be_lost(executor: Processes, tmp_path: Path) -> None:
    pid, future = runs(executor, tmp_path / "one", sleeps, Limits())
    assert executor.submit(os.getpid).result(SOON) != pid  # the keeper has gone round since the first began
    assert executor._spare.worker is None
    executor.stop(future)
    with pytest.raises(WorkerLost, match="stopped"):
        future.result(SOON)
    assert executor.submit(os.getpid).result(SOON)
    assert executor._spare.worker is None, "who was stopped was not lost"


def test_after_a_limit_the_next_function_runs_on_the_spare_worker(executor: Processes, tmp_path: Path) -> None:
    runs(executor, tmp_path / "other", sleeps, LONG)
    ended, future = runs(executor, tmp_path / "one", sleeps, Limits(seconds=1.0))
    waiting = spare_of(executor)
    with pytest.raises(TooLong):
        future.result(SOON)
    assert executor.submit(os.getpid).result(SOON) == waiting
    assert soon(lambda: not alive(ended))


def test_after_one_was_lost_there_is_one_without_limits_too(executor: Processes, tmp_path: Path) -> None:
    pid, future = runs(executor, tmp_path / "killed", sleeps, Limits())
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(WorkerLost, match="killed by signal 9"):
        future.result(SOON)
    second, future = runs(executor, tmp_path / "second", sleeps, Limits())
    waiting = spare_of(executor)
    os.kill(second, signal.SIGKILL)
    with pytest.raises(WorkerLost):
        future.result(SOON)
    third, _ = runs(executor, tmp_path / "third", sleeps, Limits())
    assert third == waiting
    assert spare_of(executor) not in {pid, second, third}, "another has taken its place"


def test_a_spare_worker_that_dies_costs_nothing(executor: Processes, tmp_path: Path) -> None:
    _, future = runs(executor, tmp_path / "one", sleeps, Limits(seconds=5.0))
    dead = spare_of(executor)
    os.kill(dead, signal.SIGKILL)
    assert soon(lambda: not alive(dead))
    assert soon(lambda: (worker := executor._spare.worker) is not None and worker.pid != dead)
    executor.stop(future)
    assert executor.submit(os.getpid).result(SOON) != dead


def test_a_spare_worker_that_cannot_be_started_costs_nothing(
    executor: Processes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = []

    def fails(self: object) -> None:
        tried.append(self)
        raise OSError("no more processes")

    monkeypatch.setattr("ranktune.tuner.workers.worker_process.WorkerProcess.load", fails)
    _, future = runs(executor, tmp_path / "one", sleeps, Limits(seconds=0.2))
    with pytest.raises(TooLong):
        future.result(SOON)
    assert tried
    assert executor.submit(abs, -3).result(SOON) == 3


def test_loading_is_not_taken_for_the_function(executor: Processes) -> None:
    """What a worker tells, by which clocks start, is of the functions that it is sent."""
    worker = executor._spare.take()  # as the keeper would
    try:
        worker.load()
        answer = worker.send(pickled((os.getpid, ()), None), Limits())
        assert answer.result(SOON)[0]
        assert soon(lambda: worker.marks.poll())
        assert worker.read_marks() == [BEGUN]
    finally:
        worker.kill()


def test_it_is_gone_with_the_lanes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spare, "SPARE_DELAY", 0.0)
    with Processes(1) as executor:
        begun = executor.submit(time.sleep, 1.0, limits=LONG)
        pid = spare_of(executor)
        assert alive(pid)
        begun.result(SOON)
    assert soon(lambda: not alive(pid))
    with pytest.raises(KeyboardInterrupt), Processes(1) as executor:
        executor.submit(sleeps, limits=LONG)
        pid = spare_of(executor)
        raise KeyboardInterrupt
    assert soon(lambda: not alive(pid))


def test_no_more_than_one_is_kept_and_none_at_once_after_a_start() -> None:
    """Workers that are waited for come first: the spare one is not started beside them."""
    kept = spare.SpareWorker()
    first = kept.start()
    assert first is not None
    kept.ensure()
    assert kept.worker is None
    kept._not_before = 0.0
    kept.ensure()
    only = kept.worker
    kept._not_before = 0.0
    kept.ensure()
    assert kept.worker is only is not None
    assert kept.take() is only
    assert kept.worker is None
    for worker in (first, only):
        worker.kill()
