"""Stored arrays are what was written, or they are refused: any damage, of any file."""

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ranktune.solvers.core.errors import Damaged
from ranktune.solvers.core.files.archives import read_archive
from ranktune.tuner.splits.seals import (
    DIGESTS,
    FOLDER,
    check_sealed,
    is_written,
    proven,
    reseal,
    seal,
    sealing,
    write_sealed,
)


def zeroed(path: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 1)


def longer(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\0")


def one_bit(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.write_bytes(content)


def replaced_by_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


DAMAGE = (zeroed, emptied, cut, longer, one_bit, Path.unlink, replaced_by_a_folder)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "test").mkdir()
    np.save(tmp_path / "features.npy", np.arange(12.0))
    np.save(tmp_path / "test" / "features.npy", np.arange(3.0))
    seal(tmp_path)
    proven(tmp_path)
    return tmp_path


@pytest.mark.parametrize("damage", DAMAGE, ids=lambda damage: damage.__name__)
@pytest.mark.parametrize("file", ["features.npy", "test/features.npy", DIGESTS])
def test_any_damage_is_noticed(folder: Path, file: str, damage: Callable[[Path], None]) -> None:
    damage(folder / file)
    with pytest.raises(Damaged, match=r"\.npy|digests"):
        proven(folder)


def test_files_beside_do_not_matter_and_one_may_be_written_anew(folder: Path) -> None:
    (folder / "other").write_text("x")
    proven(folder)
    np.save(folder / "features.npy", np.zeros(3))
    with pytest.raises(Damaged, match=r"features\.npy"):
        proven(folder)
    reseal(folder, "features.npy")
    proven(folder)
    (folder / "test" / "features.npy").unlink()
    with pytest.raises(Damaged, match=r"features\.npy"):
        proven(folder)


@pytest.mark.parametrize("content", [b"", b"{}", b"[1]", b"null", b"\xff", b"[" * 10_000])
def test_a_folder_without_digests_is_not_proven(folder: Path, content: bytes) -> None:
    (folder / DIGESTS).write_bytes(content)
    with pytest.raises(Damaged, match=DIGESTS):
        proven(folder)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_an_archive_with_a_wrong_bit_is_refused_or_says_the_same(save: Callable[..., None], tmp_path: Path) -> None:
    arrays = {"a": np.arange(5.0), "b": np.array([[1, 2], [3, 4]], dtype=np.int32)}
    save(tmp_path / "x.npz", **arrays)
    content = (tmp_path / "x.npz").read_bytes()
    refused, directory = 0, content.index(b"PK\1\2")
    for bit in (*range(0, 8 * directory, 9), *range(8 * directory, 8 * len(content))):
        wrong = bytearray(content)
        wrong[bit // 8] ^= 1 << bit % 8
        try:
            result = read_archive(bytes(wrong))
        except Damaged as error:
            assert "\n" not in str(error)
            refused += 1
        else:
            assert result.keys() == arrays.keys()
            assert all(np.array_equal(result[name], array) for name, array in arrays.items())
    assert refused > 4 * (len(content) - directory)
    for length in range(len(content)):
        with pytest.raises(Damaged):
            read_archive(content[:length])


def test_an_archive_of_objects_is_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", a=np.array([{}], dtype=object))
    with pytest.raises(Damaged):
        read_archive(tmp_path / "x.npz")
    with pytest.raises(Damaged):
        read_archive(tmp_path / "absent.npz")


def test_a_file_that_was_written_is_proven_and_one_that_changed_is_damaged(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    write_sealed(file, "one")
    check_sealed(file)
    write_sealed(file, "two")
    check_sealed(file)
    file.write_text("twO")
    with pytest.raises(Damaged, match=r"a\.json is damaged"):
        check_sealed(file)
    file.unlink()
    with pytest.raises(Damaged, match=r"a\.json is missing"):
        check_sealed(file)
    assert is_written(file)


def test_a_file_without_a_digest_is_believed(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("of an older release")
    check_sealed(tmp_path / "a.json")
    check_sealed(tmp_path / "b.json")
    assert is_written(tmp_path / "a.json") and not is_written(tmp_path / "b.json")


@pytest.mark.parametrize("content", [b"", b"\xff\0", b"00"])
def test_a_damaged_digest_proves_nothing(content: bytes, tmp_path: Path) -> None:
    write_sealed(tmp_path / "a.json", "one")
    (tmp_path / FOLDER / "a.json").write_bytes(content)
    with pytest.raises(Damaged, match=r"a\.json"):
        check_sealed(tmp_path / "a.json")


def test_a_write_that_fails_leaves_a_file_that_is_not_damaged(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    write_sealed(file, "one")
    with pytest.raises(ZeroDivisionError), sealing(file):
        file.write_text("half")
        1 / 0  # noqa: B018
    check_sealed(file)
    file.unlink()
    file.mkdir()
    write_sealed(tmp_path / "b.json", "one")
    (tmp_path / "b.json").unlink()
    (tmp_path / "b.json").mkdir()
    with pytest.raises(Damaged, match=r"cannot read .*b\.json"):
        check_sealed(tmp_path / "b.json")
