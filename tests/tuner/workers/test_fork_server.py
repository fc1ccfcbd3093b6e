"""The process that workers are forks of: it loads once, can be replaced, and is gone with the executor."""

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ranktune.solvers.core.errors import WorkerLost
from ranktune.tuner.workers import processes
from ranktune.tuner.workers.processes import Processes
from tests.support.process_samples import SOON, alive, note, pid_in, sleeps, soon

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere workers are no forks")


def marks() -> None:
    sys.marked_by = os.getpid()  # type: ignore[attr-defined]


def marked_by() -> tuple[int, int]:
    return sys.marked_by, os.getppid()  # type: ignore[attr-defined]


def fails() -> None:
    raise ImportError("a library is damaged")


@pytest.fixture
def executor() -> Iterator[Processes]:
    executor = Processes(2, load=marks)
    yield executor
    executor.__exit__(KeyboardInterrupt, None, None)


def test_what_is_loaded_once_is_there_in_every_worker(executor: Processes, tmp_path: Path) -> None:
    executor.submit(sleeps, tmp_path / "other")
    first = executor.submit(marked_by).result(SOON)
    pid = executor.submit(os.getpid).result(SOON)
    os.kill(pid, signal.SIGKILL)
    assert executor.submit(marked_by).result(SOON) == first == (first[1], first[1])
    assert executor.submit(os.getpid).result(SOON) not in {pid, pid_in(tmp_path / "other"), first[0]}


def test_its_workers_die_with_it_and_others_take_their_place(executor: Processes, tmp_path: Path) -> None:
    lost = executor.submit(sleeps, tmp_path / "lost")
    worker, (server, _) = pid_in(tmp_path / "lost"), executor.submit(marked_by).result(SOON)
    os.kill(server, signal.SIGKILL)
    with pytest.raises(WorkerLost, match="killed by signal 9"):
        lost.result(SOON)
    assert soon(lambda: not alive(worker))
    assert executor.submit(marked_by).result(SOON)[0] != server


def test_it_is_gone_with_the_executor(executor: Processes) -> None:
    with executor:
        server, _ = executor.submit(marked_by).result(SOON)
        assert alive(server)
    assert not alive(server)


def test_workers_are_forked_where_nothing_could_be_loaded() -> None:
    with Processes(1, load=fails) as executor:
        assert executor.submit(pow, 2, 3).result(SOON) == 8


def test_workers_that_are_no_forks_serve_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "FORKS", False)
    with Processes(1, load=fails) as executor:
        lost = executor.submit(sleeps, tmp_path / "lost")
        os.kill(pid_in(tmp_path / "lost"), signal.SIGTERM)
        with pytest.raises(WorkerLost, match="killed by signal 15"):
            lost.result(SOON)
        assert executor.submit(os.getppid).result(SOON) == os.getpid()
        note(tmp_path / "end", executor.submit(os.getpid).result(SOON))
    assert not alive(pid_in(tmp_path / "end"))
