"""Digests of single files: damage is noticed, and no end of a process in between makes a file look damaged."""

from __future__ import annotations

from pathlib import Path

import pytest

from ranktune.tuner.splits.proof import Damaged
from ranktune.tuner.splits.sealing import FOLDER, check_sealed, is_written, sealing, write_sealed


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
