"""The worker in reserve: kept where one may be lost, taken in the place of one that was, gone with the executor."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path

import pytest

from ranktune.solvers.core.errors import TooLong, WorkerLost
from ranktune.tuner.workers import processes
from ranktune.tuner.workers.limits import BEGUN, Limits, pickled
from ranktune.tuner.workers.processes import Processes
from ranktune.tuner.workers.worker_process import WorkerProcess
from tests.support.process_samples import SOON, alive, note, pid_in, soon

LONG = Limits(seconds=1000.0)


@pytest.fixture
def executor(monkeypatch: pytest.MonkeyPatch) -> Iterator[Processes]:
    """Two workers, with one in reserve that is started at once, and loads nothing."""
    monkeypatch.setattr(processes, "RESERVE_DELAY", 0.0)
    monkeypatch.setattr(WorkerProcess, "load", lambda self: None)
    executor = Processes(2)
    yield executor
    executor.__exit__(KeyboardInterrupt, None, None)


def reserve_of(executor: Processes) -> int:
    """The process of the worker in reserve, once there is one."""
    assert soon(lambda: len(executor._free) > 0)
    (worker,) = executor._free
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
    second = executor.submit(os.getpid).result(SOON)
    assert second != pid
    assert reserve_of(executor) == second
    executor.stop(future)
    with pytest.raises(WorkerLost, match="stopped"):
        future.result(SOON)
    assert executor.submit(os.getpid).result(SOON) == second
    assert not executor._had_loss, "who was stopped was not lost"


def test_after_a_limit_the_next_function_runs_on_the_worker_in_reserve(executor: Processes, tmp_path: Path) -> None:
    runs(executor, tmp_path / "other", sleeps, LONG)
    ended, future = runs(executor, tmp_path / "one", sleeps, Limits(seconds=1.0))
    waiting = reserve_of(executor)
    with pytest.raises(TooLong):
        future.result(SOON)
    assert executor.submit(os.getpid).result(SOON) == waiting
    assert soon(lambda: not alive(ended))


def test_after_a_lost_worker_there_is_also_a_worker_without_limits(executor: Processes, tmp_path: Path) -> None:
    pid, future = runs(executor, tmp_path / "killed", sleeps, Limits())
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(WorkerLost, match="killed by signal 9"):
        future.result(SOON)
    second, future = runs(executor, tmp_path / "second", sleeps, Limits())
    waiting = reserve_of(executor)
    os.kill(second, signal.SIGKILL)
    with pytest.raises(WorkerLost):
        future.result(SOON)
    third, _ = runs(executor, tmp_path / "third", sleeps, Limits())
    assert third == waiting
    assert reserve_of(executor) not in {pid, second, third}, "another has taken its place"


def test_a_reserve_worker_that_dies_costs_nothing(executor: Processes, tmp_path: Path) -> None:
    _, future = runs(executor, tmp_path / "one", sleeps, Limits(seconds=5.0))
    dead = reserve_of(executor)
    os.kill(dead, signal.SIGKILL)
    assert soon(lambda: not alive(dead))
    assert soon(lambda: any(worker.pid != dead for worker in executor._free))
    executor.stop(future)
    assert executor.submit(os.getpid).result(SOON) != dead


def test_a_reserve_worker_that_cannot_be_started_costs_nothing(
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


def test_loading_is_not_taken_for_the_function() -> None:
    """What a worker tells, by which clocks start, is of the functions that it is sent."""
    worker = WorkerProcess()
    try:
        worker.load()
        worker.send(pickled((os.getpid, ()), None), Limits())
        assert worker.messages.get(timeout=SOON) == BEGUN
        assert worker.messages.get(timeout=SOON)[0] is True
    finally:
        worker.kill()


def test_it_is_gone_with_the_lanes(executor: Processes, tmp_path: Path) -> None:
    with executor:
        begun = executor.submit(time.sleep, 0.5, limits=LONG)
        pid = reserve_of(executor)
        assert alive(pid)
        begun.result(SOON)
    assert soon(lambda: not alive(pid))
    with pytest.raises(KeyboardInterrupt), executor:
        executor.submit(sleeps, limits=LONG)
        pid = reserve_of(executor)
        raise KeyboardInterrupt
    assert soon(lambda: not alive(pid))


def test_none_is_started_beside_a_worker_that_is_waited_for(
    executor: Processes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "RESERVE_DELAY", 1000.0)
    monkeypatch.setattr(processes, "POLL_SECONDS", 0.02)
    runs(executor, tmp_path / "one", sleeps, LONG)
    time.sleep(0.3)  # it looks several times
    assert executor._free == []
    monkeypatch.setattr(executor, "_reserve_from", 0.0)
    only = reserve_of(executor)
    time.sleep(0.3)
    assert reserve_of(executor) == only
