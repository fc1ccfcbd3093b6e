"""Worker processes: what dies, hangs or is stopped costs itself only; nothing of them is left afterwards."""

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, wait
from pathlib import Path

import numpy as np
import pytest

from ranktune.solvers.core.errors import ParameterError, ResultRefused, TooLong, WorkerLost
from ranktune.tuner.workers.limits import CallLimits
from ranktune.tuner.workers.processes import Processes
from tests.support.process_samples import SOON, Lasting, alive, note, pid_in, sleeps, soon


@pytest.fixture
def executor(two_lanes: Lasting) -> Iterator[Processes]:
    """Two workers that serve one test after the other, whatever was done to them; what still runs is ended."""
    yield two_lanes
    for future in list(two_lanes._jobs):
        two_lanes.stop(future)


def number(value: int) -> int:
    return value


def test_more_functions_than_lanes_wait_for_their_turn(executor: Processes) -> None:
    futures = [executor.submit(number, value) for value in range(40)]
    assert [future.result(SOON) for future in futures] == list(range(40))


def test_a_worker_that_dies_idle_is_replaced_unnoticed(executor: Processes) -> None:
    pid = executor.submit(os.getpid).result(SOON)
    os.kill(pid, signal.SIGKILL)
    assert executor.submit(os.getpid).result(SOON) != pid


def test_a_dead_worker_whose_child_holds_its_pipes_is_noticed(executor: Processes, tmp_path: Path) -> None:
    def forks() -> None:
        if os.fork() == 0:
            os.setsid()  # nothing of the worker's group
            note(tmp_path / "child", os.getpid())
            time.sleep(1000.0)
        note(tmp_path / "worker", os.getpid())
        time.sleep(1000.0)

    future = executor.submit(forks)
    child = pid_in(tmp_path / "child")
    try:
        os.kill(pid_in(tmp_path / "worker"), signal.SIGKILL)
        with pytest.raises(WorkerLost, match="killed by signal 9"):
            future.result(SOON)
        assert executor.submit(number, 5).result(SOON) == 5
    finally:
        os.kill(child, signal.SIGKILL)


def test_a_worker_that_cannot_be_started_is_told(executor: Processes, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(self: object, payload: bytes, limits: CallLimits) -> None:
        raise OSError("no more files")

    monkeypatch.setattr("ranktune.tuner.workers.processes.WorkerProcess.send", fails)
    with pytest.raises(WorkerLost, match="not started: no more files"):
        executor.submit(number, 1).result(SOON)
    monkeypatch.undo()
    assert executor.submit(number, 2).result(SOON) == 2


def test_a_worker_that_has_grown_is_replaced_between_functions(
    executor: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ranktune.tuner.workers.processes.MAX_GROWTH", 2**25)
    executor.submit(os.getpid).result(SOON)

    def keeps(size: int) -> int:
        sys.kept = bytes(bytearray(size))  # type: ignore[attr-defined]
        return os.getpid()

    small = executor.submit(keeps, 2**20).result(SOON)
    assert alive(small)
    assert executor.submit(keeps, 2**20).result(SOON) == small
    large = executor.submit(keeps, 2**27).result(SOON)
    assert large == small
    assert soon(lambda: not alive(large))
    assert executor.submit(os.getpid).result(SOON) != large


def test_a_fault_of_the_executor_leaves_nobody_waiting(executor: Processes, monkeypatch: pytest.MonkeyPatch) -> None:
    def faulty(self: Processes) -> None:
        raise ValueError("fault")

    with monkeypatch.context() as patched:
        patched.setattr(Processes, "_taken", faulty)
        with pytest.raises(RuntimeError, match="thread of the workers failed: ValueError: fault"):
            executor.submit(number, 1).result(SOON)
    assert executor.submit(number, 1).result(SOON) == 1


def test_what_waits_can_be_cancelled(executor: Processes, tmp_path: Path) -> None:
    running = [executor.submit(sleeps, tmp_path / str(n)) for n in range(2)]
    cancelled = executor.submit(number, 2)
    assert cancelled.cancel()
    for future in running:
        executor.stop(future)
    wait(running, SOON)
    with pytest.raises(CancelledError):
        cancelled.result()


def test_the_workers_are_gone_after_the_block_and_come_back() -> None:
    executor = Processes(1)
    for _ in range(2):
        with executor:
            pid = executor.submit(os.getpid).result(SOON)
            assert alive(pid)
        assert not alive(pid)


@pytest.mark.parametrize("how", ["sleeping", "holding the lock of Python", "in Python's own C", "ignoring signals"])
def test_what_hangs_is_ended_at_its_limit_with_all_that_it_started(
    executor: Processes, tmp_path: Path, how: str
) -> None:
    def hangs() -> None:
        for name in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(name, signal.SIG_IGN)
        child = subprocess.Popen(["sleep", "1000"])
        note(tmp_path / "child", child.pid)
        note(tmp_path / "worker", os.getpid())
        if how == "holding the lock of Python":
            ctypes.PyDLL(None).sleep(1000)
        elif how == "in Python's own C":
            pow(10, 10**9)
        time.sleep(1000.0)

    other = executor.submit(sleeps, tmp_path / "other")
    pid_in(tmp_path / "other")
    hanging = executor.submit(hangs, limits=CallLimits(seconds=0.5))
    with pytest.raises(TooLong, match=r"ended after its limit of 0\.5 seconds"):
        hanging.result(SOON)
    assert soon(lambda: not alive(pid_in(tmp_path / "worker")))
    assert soon(lambda: not alive(pid_in(tmp_path / "child")))
    assert executor.submit(number, 5).result(SOON) == 5
    assert not other.done()


def test_compiling_a_kernel_does_not_count(executor: Processes) -> None:
    def compiles() -> int:
        from numba.core.event import trigger_event

        with trigger_event("numba:compile"):
            time.sleep(1.5)
        return 1

    assert executor.submit(compiles, limits=CallLimits(seconds=1.0)).result(SOON) == 1


def aborts() -> None:
    os.write(2, b"the last word\n")
    os.abort()


class Unpicklable(Exception):
    def __init__(self) -> None:
        super().__init__("words")
        self.lock = __import__("threading").Lock()


class Unreadable(Exception):
    def __init__(self, first: int, second: int) -> None:
        super().__init__(f"{first} and {second}")


def raises(kind: type[Exception], *arguments: int) -> None:
    raise kind(*arguments)


def prints() -> int:
    line = "x" * 99_999 + "\n"
    for _ in range(10_000):
        sys.stdout.write(line)
    for _ in range(1_000):
        os.write(2, line.encode())
    return 7


@pytest.mark.parametrize(
    ("function", "error", "words"),
    [
        (lambda: ctypes.string_at(0), WorkerLost, r"killed by signal 11 \(segmentation fault\)"),
        (aborts, WorkerLost, r"killed by signal 6 \(aborted\); the last it wrote: (.|\n)*the last word"),
        (lambda: sys.exit(3), ResultRefused, "SystemExit: 3"),
        (lambda: raises(Unpicklable), ResultRefused, "the error cannot be pickled: Unpicklable: words"),
        (lambda: raises(Unreadable, 1, 2), ResultRefused, "Unreadable: 1 and 2"),
    ],
)
def test_however_a_function_goes_wrong_it_is_told_how(
    executor: Processes, function: Callable[[], object], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        executor.submit(function).result(SOON)
    assert executor.submit(number, 5).result(SOON) == 5


def test_what_is_printed_neither_blocks_nor_floods(executor: Processes, capfd: pytest.CaptureFixture[str]) -> None:
    assert executor.submit(prints).result(2 * SOON) == 7
    assert capfd.readouterr() == ("", "")


def test_a_worker_uses_one_thread_and_hears_no_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    def threads() -> tuple[list[int], int, int, bool]:
        import lightgbm
        import numba
        import sklearn  # noqa: F401
        from threadpoolctl import threadpool_info

        np.ones((300, 300)) @ np.ones((300, 300))
        data = lightgbm.Dataset(np.random.default_rng(0).random((5000, 20)), np.arange(5000) % 2)
        lightgbm.train({"objective": "binary", "verbose": -1}, data, 5)
        n_threads = len(os.listdir("/proc/self/task"))
        isolated = signal.getsignal(signal.SIGINT) is signal.SIG_IGN and os.getpgid(0) == os.getpid()
        return [pool["num_threads"] for pool in threadpool_info()], numba.get_num_threads(), n_threads, isolated

    for library in ("OMP", "OPENBLAS", "NUMBA"):
        monkeypatch.setenv(f"{library}_NUM_THREADS", "3")
    with Processes(1) as executor:
        pools, numbas, n_threads, isolated = executor.submit(threads).result(SOON)
        second = executor.submit(threads).result(SOON)
    assert set(pools) == {1}
    assert numbas == 1
    assert n_threads == second[2]
    assert isolated


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a worker ends when it next asks for work")
def test_workers_end_with_a_coordinator_that_is_killed_also_in_c(tmp_path: Path) -> None:
    code = f"""
import ctypes, os, time
from ranktune.tuner.workers.processes import Processes
def begins(name):
    with open(os.path.join({str(tmp_path)!r}, name), "w") as file:
        print(os.getpid(), file=file)
    ctypes.PyDLL(None).sleep(1000) if name == "c" else time.sleep(1000)
if __name__ == "__main__":
    with Processes(2) as executor:
        [future.result() for future in [executor.submit(begins, "c"), executor.submit(begins, "python")]]
"""
    (tmp_path / "run.py").write_text(code)
    with subprocess.Popen([sys.executable, str(tmp_path / "run.py")]) as coordinator:
        pids = [pid_in(tmp_path / name) for name in ("c", "python")]
        coordinator.send_signal(signal.SIGKILL)
    assert soon(lambda: not any(alive(pid) for pid in pids))


def test_a_worker_finds_modules_where_this_process_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "module_of_a_path.py").write_text("def seven() -> int:\n    return 7\n")
    monkeypatch.setattr(sys, "path", [tmp_path, *sys.path])  # a path that is no text
    with Processes(1) as executor:
        assert executor.submit(lambda: __import__("module_of_a_path").seven()).result(SOON) == 7


def test_no_lanes_are_refused() -> None:
    with pytest.raises(ParameterError, match="jobs=0"):
        Processes(0)


class InterruptedOnce:
    """A queue into which an interrupt prevents that something is put."""

    def put(self, job: object) -> None:
        raise KeyboardInterrupt


def test_an_interrupt_while_an_order_is_given_leaves_nobody_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    executor = Processes(1)
    assert executor.submit(pow, 2, 3).result() == 8
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(executor, "_waiting", InterruptedOnce())
        executor.submit(pow, 2, 4)
    leaving = threading.Thread(target=executor.__exit__, args=(KeyboardInterrupt, None, None), daemon=True)
    leaving.start()
    leaving.join(20.0)
    assert not leaving.is_alive()
