"""The home folder: places with strange names work, places that cannot be written are refused before anything runs."""

import errno
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ranktune
from ranktune.solvers.core.errors import ParameterError, StudyError
from ranktune.tuner.study.home import FORMAT, StudyFolder, find_folder, make_folder
from tests.support.commands import ended
from tests.support.engine_samples import graded
from tests.support.released_studies import ASSETS, FINISHED, UNFINISHED, unpacked

STRANGE = ("-rf ünï — 漢字 🙂 [bold]x[/bold]", "two\nlines\tand\x1b[31m", "100%20?x=1#y;z&'\"")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    queries = graded(24, 0)
    np.savez(tmp_path / "d.npz", X=queries.features, y=queries.grades, qid=np.repeat(np.arange(24), 12))
    return tmp_path / "d.npz"


@pytest.mark.parametrize("place", STRANGE)
def test_a_study_runs_and_resumes_in_a_home_with_a_strange_name(tmp_path: Path, place: str) -> None:
    home = tmp_path / place
    options: dict[str, Any] = {"solvers": "RidgeRanker", "sampler": "random", "home": home, "jobs": 1}
    result = ranktune.tune(graded(24, 0), trials=1, name="s ü %20?#", **options)
    assert Path(result.folder) == home / "s ü %20?#"
    assert Path(result.model).is_file()
    assert ranktune.tune(graded(24, 0), trials=2, name="s ü %20?#", **options).trials == 2
    assert [folder.name for folder in home.iterdir()] == ["s ü %20?#"]


@pytest.mark.parametrize("name", ["", "..", ".hidden", "a/b", "a\\b", "a\nb", "a\0b", "a\x1b[2J", "\u202eb"])
def test_a_name_that_cannot_be_a_folder_is_refused(tmp_path: Path, name: str) -> None:
    if name:
        with pytest.raises(ParameterError, match="a study's name becomes a folder"):
            ranktune.tune(graded(24, 0), name=name, home=tmp_path, jobs=1)
    with pytest.raises((ParameterError, StudyError)):
        find_folder(tmp_path, name)
    assert list(tmp_path.iterdir()) == []


def test_missing_folders_are_made(tmp_path: Path) -> None:
    assert make_folder(tmp_path / "a" / "b", "s").path.is_dir()
    with pytest.raises(StudyError, match=r"no study 's' in .*It holds no studies yet"):
        find_folder(tmp_path / "nowhere", "s")


def bound(folder: Path) -> Iterator[None]:
    """Make a folder one that cannot be written, also for root, who may do anything else."""
    if os.geteuid() != 0:
        folder.chmod(0o500)
        yield
        folder.chmod(0o700)
        return
    if subprocess.run(["mount", "--bind", folder, folder], capture_output=True).returncode:
        pytest.skip("nothing can be mounted here")
    subprocess.run(["mount", "-o", "remount,ro,bind", folder], check=True, capture_output=True)
    yield
    subprocess.run(["umount", folder], check=True, capture_output=True)


@pytest.fixture
def locked(tmp_path: Path) -> Iterator[Path]:
    home = unpacked(ASSETS / f"format-{FORMAT}", tmp_path / "locked")
    binding = bound(home)
    next(binding)
    yield home
    next(binding, None)


def test_a_home_that_cannot_be_written_gives_one_message_and_exit_code_2(
    locked: Path, data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(locked.rglob("*"))
    for arguments in (
        ("tune", data, "--home", locked, "--name", "new", "--jobs", 1),
        ("tune", data, "--home", locked / "deeper", "--jobs", 1),
        ("tune", data, "--home", locked, "--name", UNFINISHED, "--jobs", 1),
        ("resume", UNFINISHED, "--home", locked, "--jobs", 1),
        ("resume", FINISHED, "--trials", 99, "--home", locked, "--jobs", 1),
    ):
        assert ended(monkeypatch, *arguments) == 2, arguments
        said = capsys.readouterr()
        assert said.out == ""
        assert said.err.count("\n") == 1, said.err
        assert said.err.startswith("error: cannot ")
        assert "--home" in said.err
        assert "Read-only file system" in said.err or "Permission denied" in said.err
    assert sorted(locked.rglob("*")) == before


def test_studies_in_a_home_that_cannot_be_written_are_shown(
    locked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for arguments in (("show",), ("show", FINISHED), ("show", UNFINISHED)):
        assert ended(monkeypatch, *arguments, "--home", locked) == 0
        assert UNFINISHED in capsys.readouterr().out or arguments == ("show", FINISHED)
    pytest.importorskip("plotly")
    report = tmp_path / "report.html"
    assert ended(monkeypatch, "show", UNFINISHED, "--home", locked, "--page", report) == 0
    assert UNFINISHED in report.read_text()


def test_a_file_where_the_folder_should_be_is_told(
    tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "s").write_text("")
    (tmp_path / "dangling").symlink_to(tmp_path / "gone")
    (tmp_path / "gone").symlink_to(tmp_path / "dangling")
    for home, said in (
        (data, "Not a directory"),
        (tmp_path / "home", "File exists"),
        (tmp_path / "dangling", "symbolic links"),
        (tmp_path / ("x" * 300), "File name too long"),
    ):
        assert ended(monkeypatch, "tune", data, "--home", home, "--name", "s", "--jobs", 1) == 2
        error = capsys.readouterr().err
        assert error.startswith("error: cannot write to ") and error.count("\n") == 1
        assert said in error


def test_a_home_that_cannot_be_a_path_is_told() -> None:
    with pytest.raises(StudyError, match="null"):
        make_folder(Path("a\0b"), "s")


def test_the_declaration_is_whole_or_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = unpacked(ASSETS / f"format-{FORMAT}", tmp_path)
    folder = StudyFolder(home / UNFINISHED)
    before = (folder.path / "study.json").read_bytes()

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StudyError, match=r"cannot write to .*: No space left on device\. Free space, or"):
        folder.declare(folder.study(), folder.digests())
    assert (folder.path / "study.json").read_bytes() == before


def test_drafts_of_a_killed_process_are_removed_at_the_end(tmp_path: Path) -> None:
    folder = StudyFolder(unpacked(ASSETS / f"format-{FORMAT}", tmp_path) / UNFINISHED)
    names = [f".x.npz.{digit * 16}.tmp" for digit in "0a"]
    dead, other, alive = (folder.path / name for name in (names[0], ".x.tmp", f"artifacts/{names[1]}"))
    alive.parent.mkdir(exist_ok=True)
    for path in (dead, other):
        path.touch()
        os.utime(path, (0, 0))
    with folder.owned():
        alive.touch()
    assert [path.exists() for path in (dead, other, alive)] == [False, True, True]


def test_data_that_find_no_room_are_told_and_those_of_before_are_kept(tmp_path: Path) -> None:
    folder = make_folder(tmp_path, "s")
    with folder.replace_data() as fresh:
        (fresh / "x").write_text("before")
    with (
        pytest.raises(StudyError, match=r"cannot write to .*: 10 requested and 3 written"),
        folder.replace_data() as fresh,
    ):
        (fresh / "x").write_text("after")
        raise OSError("10 requested and 3 written")
    assert (folder.data / "x").read_text() == "before"
