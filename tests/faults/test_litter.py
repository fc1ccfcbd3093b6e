"""What a command that was killed leaves is removed by the next one, and nothing that a live process still writes."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import ranktune
from ranktune.solvers.core.files import atomic as files
from ranktune.solvers.core.files.private import cache_folder
from ranktune.solvers.core.libraries import this_version
from ranktune.solvers.data.conversion import cache
from ranktune.tuner.workers.executor import InProcess
from tests.support.commands import letor, succeeded

CODE = """
import os, signal, sys
from ranktune import cli
from ranktune.solvers.data.conversion import cache

cache.SMALLEST, target, number = 0, sys.argv.pop(1), int(sys.argv.pop(1))

def renamed(kind):
    def rename(source, to):
        if os.path.basename(to).startswith(target):
            os.kill(os.getpid(), number)
        kind(source, to)
    return rename

os.rename, os.replace = renamed(os.rename), renamed(os.replace)
cli.main()
"""
"""The command line, which gets a signal just before what it has written whole becomes a file or folder of a name."""


def started(target: str, number: int, *words: object) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", CODE, target, str(int(number)), *map(str, words)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def drafts(folder: Path) -> list[Path]:
    return [*folder.rglob(".*.tmp")]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    code = cache_folder() / "kernels" / f"ranktune-{this_version()}"  # which is not compiled again
    monkeypatch.setenv("NUMBA_CACHE_DIR", os.environ.get("NUMBA_CACHE_DIR", str(code)))
    monkeypatch.setenv("RANKTUNE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(files, "_swept", set())  # as at the start of a command
    monkeypatch.setattr(cache, "SMALLEST", 0)
    letor(tmp_path / "data.txt", 20, 0)
    return tmp_path


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("data", ("data", "{}/data.txt", "-o", "{}/out/data")),
        ("", ("data", "{}/data.txt")),
        ("current", ("retune", "shop", "--rollback", "shop", "--home", "{}/home")),
    ],
)
def test_what_a_killed_command_left_is_removed_by_the_next(target: str, words: tuple[str, ...], place: Path) -> None:
    (place / "out").mkdir()
    if "shop" in words:
        given: dict[str, Any] = {"trials": 1, "executor": InProcess(), "home": place / "home"}
        ranktune.tune(place / "data.txt", name="shop", solvers="RidgeRanker", **given)
    named = [word.format(place) for word in words]
    assert started(target, signal.SIGKILL, *named).wait() == -signal.SIGKILL
    assert drafts(place)
    files._swept.clear()
    succeeded(*named)
    assert drafts(place) == []


@pytest.mark.parametrize("words", [("data", "-o"), ("interleave", "column:1", "column:2", "-o")])
def test_what_a_live_process_writes_is_left(words: tuple[str, ...], place: Path) -> None:
    """It stands still, as where a laptop is closed; another command writes into the same folder meanwhile."""
    (place / "out").mkdir()
    *command, option = words
    named = [[*command, place / "data.txt", option, place / "out" / f"{name}.jsonl"] for name in ("one", "two")]
    process = started("one", signal.SIGSTOP, *named[0])
    os.waitpid(process.pid, os.WUNTRACED)
    try:
        for path in (draft := drafts(place / "out")):
            os.utime(path, (0, 0))
        succeeded(*named[1])
        assert len(draft) == 1 and drafts(place / "out") == draft
    finally:
        process.send_signal(signal.SIGCONT)
    assert process.wait() == 0
    assert sorted(path.name for path in (place / "out").iterdir()) == ["one.jsonl", "two.jsonl"]


@pytest.mark.parametrize("owner", ["", "PID-1-0123456789abcdef.", "1-1-fedcba9876543210."])
@pytest.mark.parametrize("is_folder", [False, True])
def test_drafts_of_other_hosts_and_earlier_releases_are_removed_by_their_age(
    owner: str, is_folder: bool, place: Path
) -> None:
    found, owner = {}, owner.replace("PID", str(os.getpid()))
    for age, days in {"old": 8, "new": 6}.items():
        found[age] = place / f".{age}.txt.{owner}{'a' * 16}.tmp"
        if is_folder:
            found[age].mkdir()
            (found[age] / "features.npy").touch()
        else:
            found[age].touch()
        os.utime(found[age], (time.time() - days * 86_400,) * 2)
    (mine := place / ".mine.tmp").touch()
    os.utime(mine, (0, 0))
    files.atomic_write(place / "a.txt", "text")
    assert [found["old"].exists(), found["new"].exists(), mine.exists()] == [False, True, True]


def test_temporary_folders_of_killed_processes_are_removed(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(place))
    code = "import os, tempfile, sys; from ranktune.solvers.core.files.atomic import temporary_folder as new\n"
    code += "tempfile.tempdir = sys.argv[1]; (new() / 'rows').touch(); os.kill(os.getpid(), 9)"
    subprocess.run([sys.executable, "-c", code, str(place)], check=False)
    assert len(drafts(place)) == 1
    mine = files.temporary_folder()
    assert drafts(place) == [mine]
