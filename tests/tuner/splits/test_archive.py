"""Problems that travel: the same bytes for the same files, and no file where none belongs."""

import io
import os
import shutil
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest

from ranktune.solvers.core.errors import DataError, StudyError
from ranktune.tuner.evaluation.evaluate import attempt
from ranktune.tuner.evaluation.task import Task
from ranktune.tuner.splits.archive import pack_problem, unpack_problem
from ranktune.tuner.splits.plans import PLAN, query_folds
from ranktune.tuner.splits.store import located, read_development, store, use_instead, write_problem
from tests.support.engine_samples import graded


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RANKTUNE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def problem(tmp_path: Path) -> Path:
    queries = graded(20, 0)
    folder = tmp_path / "home" / "all-0123"
    write_problem(queries, {PLAN: query_folds(queries, 3, 0)}, folder)
    (folder / "test").mkdir()
    (folder / "test" / "grades.npy").write_bytes(b"secret")
    return folder


def test_a_problem_is_computed_alike_where_it_was_unpacked(problem: Path, tmp_path: Path) -> None:
    task = Task(str(problem), ("ndcg@10",), "RidgeRanker", {}, 0)
    here = attempt(task).per_query["ndcg@10"]
    path = unpack_problem(pack_problem(problem), problem.name)
    shutil.rmtree(problem)
    assert located(str(problem)) == path == store() / problem.name
    read_development.cache_clear()
    there = attempt(task)
    assert there.error is None
    np.testing.assert_array_equal(there.per_query["ndcg@10"], here)
    assert not (path / "test").exists()
    assert sorted(p.name for p in store().iterdir()) == [problem.name]  # nothing half-made beside it


def test_packing_depends_on_the_files_alone(problem: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(problem, other)
    for path in other.iterdir():
        os.utime(path, (0, time.time() + 1000))
    assert pack_problem(other) == pack_problem(problem)


def test_other_content_of_the_same_name_takes_its_place(problem: Path) -> None:
    first = unpack_problem(pack_problem(problem), "name")
    inode = first.stat().st_ino
    assert unpack_problem(pack_problem(problem), "name").stat().st_ino == inode  # nothing was done
    (problem / "more.json").write_text("1")
    assert (unpack_problem(pack_problem(problem), "name") / "more.json").read_text() == "1"
    assert [p.name for p in store().iterdir()] == ["name"]


def test_a_process_is_told_of_another_place(problem: Path, tmp_path: Path) -> None:
    use_instead("/nowhere/x", problem)
    assert located("/nowhere/x") == problem
    assert located(str(problem)) == problem
    with pytest.raises(StudyError, match="not on this host"):
        located("/nowhere/y")


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "/etc", "a\\b", "C:x", ".hidden", "a\0", "n" * 201])
def test_names_that_lead_elsewhere_are_refused(name: str, problem: Path) -> None:
    with pytest.raises(DataError, match="not a valid name"):
        unpack_problem(pack_problem(problem), name)


def zipped(*names: str, compression: int = zipfile.ZIP_STORED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name in names:
            archive.writestr(name, b"0" * 1000)
    return file.getvalue()


@pytest.mark.parametrize("name", ["../x.npy", "/x.npy", "a/x.npy", "..\\x.npy", "x.py", "x.npy/", ".npy", "x.so"])
def test_files_that_no_problem_has_are_refused(name: str, cache: Path) -> None:
    with pytest.raises(DataError, match="damaged"):
        unpack_problem(zipped(name), "p")
    assert not cache.exists() or list(cache.rglob("*.npy")) == []


def test_bombs_and_damage_are_refused(problem: Path) -> None:
    with pytest.raises(DataError, match="damaged"):
        unpack_problem(zipped("x.npy", compression=zipfile.ZIP_DEFLATED), "p")
    whole = bytearray(pack_problem(problem))
    for cut in range(0, len(whole), 199):
        with pytest.raises(DataError, match="damaged"):
            unpack_problem(bytes(whole[:cut]), "p")
    whole[200] ^= 255
    with pytest.raises(DataError, match="damaged"):
        unpack_problem(bytes(whole), "p")
    assert not (store() / "p").exists()
