"""One process runs a study: locks, whom they name, and what dead holders leave."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from ranktune.solvers.core.errors import StudyError
from ranktune.tuner.study import lock as owner
from ranktune.tuner.study.home import StudyFolder
from ranktune.tuner.study.lock import LOCK, BeingRun, Holder, holder, owning
from tests.support.process_samples import FORK, forked


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    study = tmp_path / "s"
    study.mkdir()
    (study / "study.json").write_text("{}")
    return study


@contextmanager
def another(folder: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Run a process that holds the study until it is killed."""
    code = (
        "import sys, time, pathlib; from ranktune.tuner.study.lock import owning; sys.argv[0] = 'bin/ranktune'\n"
        "with owning(pathlib.Path(sys.argv[1])): print('held', flush=True); time.sleep(60)"
    )
    command = [sys.executable, "-c", code, str(folder), *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None and process.stdout.readline() == "held\n"
            yield process
        finally:
            process.kill()


def test_the_message_names_the_holder_since_when_and_what_to_do(folder: Path) -> None:
    before = datetime.now().replace(microsecond=0)
    with another(folder, "--storage", "postgresql://me:pass@word@db/x") as process:
        with pytest.raises(BeingRun) as caught, StudyFolder(folder).owned():
            pytest.fail("there were two owners")
    holder = caught.value.holder
    assert holder is not None and holder.pid == process.pid
    assert before.astimezone(UTC) <= datetime.fromisoformat(holder.began) <= datetime.now(UTC)
    message = str(caught.value)
    assert message.startswith(f"study 's' is being run by process {process.pid} on {holder.host} since 2")
    assert f"since {datetime.fromisoformat(holder.began).astimezone():%Y-%m-%d %H:%M:%S} (ranktune {folder}" in message
    assert "--storage ***" in message and "word" not in message
    assert message.endswith("Wait for it, help it by ranktune.api.work, or choose another name (name=).")


def test_a_dead_holder_is_not_named_and_its_study_is_taken_over(folder: Path) -> None:
    with another(folder) as process:
        assert holder(folder) == Holder(**json.loads((folder / LOCK).read_text()))
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert (folder / LOCK).read_text() != ""
        assert holder(folder) is None
        with owning(folder):
            result = holder(folder)
            assert result is not None and result.pid == os.getpid()
    assert holder(folder) is None
    assert (folder / LOCK).read_text() == ""


def test_a_process_that_has_the_number_of_a_dead_holder_is_not_it(folder: Path) -> None:
    me = Holder.here()
    if not me.started:
        pytest.skip("this system does not say when a process was started")
    boot, ticks = me.started.split(":")
    former = {
        "another process": replace(me, started=f"{boot}:{int(ticks) - 1}"),
        "before the machine was started again": replace(me, started=f"other:{ticks}"),
        "no such process": replace(me, pid=2**22 + 1),
        "no number at all": replace(me, pid=2**80),
    }
    for what, former_holder in former.items():
        (folder / LOCK).write_text(json.dumps(asdict(former_holder)))
        assert holder(folder) is None, what
        assert not StudyFolder(folder).is_running(), what
    (folder / LOCK).write_text(json.dumps(asdict(me)))
    assert holder(folder) == me


def test_a_process_that_ended_but_was_not_waited_for_is_dead(folder: Path) -> None:
    with another(folder) as process:
        process.kill()
        until = time.monotonic() + 10
        while holder(folder) is not None and time.monotonic() < until:
            time.sleep(0.01)
        assert holder(folder) is None


def test_a_holder_on_another_host_counts_as_alive_unless_the_host_was_only_renamed(folder: Path) -> None:
    me = Holder.here()
    away = replace(me, host="elsewhere", pid=2**22 + 1)
    assert replace(away, started="other:1").alive()
    assert replace(away, started="").alive()
    assert not me.started or not away.alive()


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", "process ", "process x", '{"pid": 1, "colour": 2}', "[" * 9999]
)
def test_a_damaged_lock_names_nobody_and_is_taken_over(folder: Path, text: str) -> None:
    (folder / LOCK).write_text(text)
    assert holder(folder) is None
    with owning(folder):
        assert holder(folder) is not None


def test_what_a_holder_says_of_itself_cannot_harm_a_terminal() -> None:
    assert str(Holder(1, "h\x1b[2J", "nonsense", "", "a\nb")) == "process 1 on h?[2J (a b)"


def test_a_lock_held_without_a_name_is_told_after_a_moment(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(owner, "PATIENCE", 0.05)
    with owning(folder):
        (folder / LOCK).write_text("")
        with pytest.raises(BeingRun, match="by another process"), owning(folder):
            pytest.fail("there were two owners")


def _come_and_go(home: Path, turns: int, ready: Any, failed: Any) -> None:
    ready.wait()
    for _ in range(turns):
        try:
            with StudyFolder(home / "s").owned():  # comes to nothing: the lock and the folder are removed
                try:
                    os.close(os.open(home / "alone", os.O_CREAT | os.O_EXCL))
                except FileExistsError:
                    failed.set()
                time.sleep(0.0005)
                (home / "alone").unlink(missing_ok=True)
        except BeingRun:
            continue


def test_studies_that_come_to_nothing_never_have_two_owners(tmp_path: Path) -> None:
    ready, failed = FORK.Barrier(4), FORK.Event()
    processes = [forked(_come_and_go, tmp_path, 200, ready, failed) for _ in range(4)]
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * 4
    assert not failed.is_set()
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_locked_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StudyError, match=r"cannot lock .*Not a directory.*home="), owning(tmp_path / "file" / "s"):
        pytest.fail("nothing was locked")
    fcntl = pytest.importorskip("fcntl")

    def none(*_: Any) -> None:
        raise OSError(37, "No locks available")

    monkeypatch.setattr(fcntl, "flock", none)
    with pytest.raises(StudyError, match="No locks available"), owning(tmp_path / "s"):
        pytest.fail("nothing was locked")


def test_a_full_disk_does_not_keep_from_owning(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", full)
        with owning(folder):
            assert (folder / LOCK).read_text() == ""
    with owning(folder):
        assert holder(folder) is not None
