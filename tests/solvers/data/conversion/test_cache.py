"""The cache of large files: used while neither the file nor the cache has changed, and given up where it cannot be."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import ranktune
from ranktune.solvers.core.errors import RankTuneWarning
from ranktune.solvers.data.conversion import cache, convert


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the cache, which keeps files of any size."""
    monkeypatch.setattr(cache, "SMALLEST", 1)
    monkeypatch.setattr(cache, "private_folder", lambda name: tmp_path / "cache" / name)
    (tmp_path / "cache" / "data").mkdir(parents=True)
    return tmp_path / "cache" / "data"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "data.txt"
    path.write_text("".join(f"{k % 3} qid:{k // 9} 1:{k / 8} 2:{k % 5}\n" for k in range(90)))
    return path


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The folders that were written so far."""
    done: list[Path] = []
    write = convert.write_into

    def noted(folder: Path, *arguments: Any, **options: Any) -> None:
        done.append(folder)
        write(folder, *arguments, **options)

    monkeypatch.setattr(cache, "write_into", noted)
    return done


def test_the_second_reading_maps_what_the_first_left(source: Path, folder: Path, written: list[Path]) -> None:
    first, second = ranktune.read(source), ranktune.read(source)
    assert len(written) == 1 and len(list(folder.iterdir())) == 1
    assert (
        first.fingerprint
        == second.fingerprint
        == ranktune.read((first.features, first.grades, first.query_of_document)).fingerprint
    )


def test_options_are_part_of_the_name(source: Path, folder: Path, written: list[Path]) -> None:
    assert ranktune.read(source, layout="sparse").is_sparse and not ranktune.read(source).is_sparse
    assert len(written) == 2


def test_a_changed_source_is_reread(source: Path, written: list[Path]) -> None:
    before = ranktune.read(source)
    text = source.read_text()
    source.write_text(text.replace("1:1.0", "1:9.0"))
    assert ranktune.read(source).fingerprint != before.fingerprint
    about = source.stat()
    source.write_text(text)
    os.utime(source, ns=(about.st_atime_ns, about.st_mtime_ns))  # the size is the same too
    assert ranktune.read(source).fingerprint == before.fingerprint
    assert len(written) == 3


@pytest.mark.parametrize("name", ["features.npy", "grades.npy", "queries.json"])
@pytest.mark.parametrize("size", [-1, 10])
def test_a_damaged_cache_is_rebuilt(source: Path, folder: Path, written: list[Path], name: str, size: int) -> None:
    before = ranktune.read(source).fingerprint
    path = next(folder.iterdir()) / name
    content = bytearray(path.read_bytes())
    path.write_bytes(content[:size] if size > 0 else content[:-9] + bytes([content[-9] ^ 4]) + content[-8:])
    assert ranktune.read(source).fingerprint == before
    assert len(written) == 2


def test_reading_goes_on_where_nothing_can_be_kept(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: object, **options: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(cache, "write_into", full)
    with pytest.warns(RankTuneWarning, match=r"its converted form cannot be kept \(No space left on device\)"):
        assert ranktune.read(source).n_documents == 90


def test_the_cache_can_be_switched_off(
    source: Path, folder: Path, written: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANKTUNE_DATA_CACHE", "off")
    assert ranktune.read(source).n_documents == 90
    assert written == [] and list(folder.iterdir()) == []


def test_what_was_used_longest_ago_makes_room(source: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def used(number: int) -> None:
        before = set(folder.iterdir())
        ranktune.read(source, n_features=number)
        (new,) = set(folder.iterdir()) - before
        os.utime(new / "queries.json", (number, number))

    used(2)
    first = next(folder.iterdir())
    used(3)
    monkeypatch.setattr(cache, "LIMIT", int(2.6 * cache._size(first)))
    used(4)
    assert not first.exists() and len(list(folder.iterdir())) == 2


READ = """
import sys
from pathlib import Path
import ranktune
from ranktune.solvers.data.conversion import cache
cache.SMALLEST = 1
cache.private_folder = lambda name: Path(sys.argv[2])
print(ranktune.read(sys.argv[1]).fingerprint)
"""


def test_two_processes_make_one_cache(tmp_path: Path, folder: Path) -> None:
    source = tmp_path / "large.txt"
    source.write_text("".join(f"{k % 3} qid:{k // 9} 1:{k / 8} 2:{k % 5}\n" for k in range(60_000)))
    command = [sys.executable, "-c", READ, str(source), str(folder)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    result = {process.communicate()[0] for process in running}
    assert [process.returncode for process in running] == [0, 0]
    assert len(result) == 1 and result != {""}
    assert len(list(folder.iterdir())) == 1


def test_changed_judgments_are_reread(tmp_path: Path, written: list[Path]) -> None:
    data, judged = tmp_path / "data.csv", tmp_path / "judged.qrels"
    data.write_text("qid,docid,bm25\n7,a,0.5\n7,b,0.25\n")
    for grade in (2.0, 1.0):
        judged.write_text(f"7 0 a {grade:g}\n7 0 b 0\n")
        assert ranktune.read(data, qrels=judged).grades.tolist() == [grade, 0.0]
    assert len(written) == 2
