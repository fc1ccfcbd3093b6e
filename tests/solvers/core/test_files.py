"""A file is written whole or not at all."""

import os
import stat
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pytest

from ranktune.solvers.core.arrays import python_value
from ranktune.solvers.core.errors import listed
from ranktune.solvers.core.files.atomic import Content, atomic_write
from tests.support.faults import Faults


def halves(file: BinaryIO) -> None:
    file.write(b"ne")
    file.write("w é".encode())


@pytest.mark.parametrize("content", ["new é", "new é".encode(), halves])
def test_content_replaces_the_file(tmp_path: Path, content: Content) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old and longer")
    atomic_write(path, content)
    assert path.read_text(encoding="utf-8") == "new é" and list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("kind", ["open", "fsync", "replace"])
def test_an_error_leaves_the_old_file_alone(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(OSError, match="No space"), Faults(1, tmp_path, kinds=(kind,)):
        atomic_write(path, "new")
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]


def test_a_writer_that_stops_half_way_leaves_nothing(tmp_path: Path) -> None:
    def stops(file: BinaryIO) -> None:
        file.write(b"half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        atomic_write(tmp_path / "a.txt", stops)
    assert not list(tmp_path.iterdir())


def test_file_and_folder_are_flushed_around_the_rename(tmp_path: Path) -> None:
    with Faults(99, tmp_path, kinds=("fsync", "replace")) as faults:
        atomic_write(tmp_path / "a.txt", "new")
    assert faults.count == 3


@pytest.mark.parametrize(("mode", "expected"), [(0o666, 0o644), (0o600, 0o600)])
def test_permissions_follow_mode_and_umask(tmp_path: Path, mode: int, expected: int) -> None:
    before = os.umask(0o022)
    try:
        atomic_write(tmp_path / "a.txt", "new", mode=mode)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a.txt").stat().st_mode) == expected


def test_names_are_listed_as_a_sentence_has_them() -> None:
    assert [listed("abc"[:n]) for n in range(4)] == ["", "a", "a and b", "a, b and c"]
    assert listed([1, "b"]) == "1 and b"
    assert listed(range(12)) == "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ... (12 in all)"
    assert listed("abc", most=3) == "a, b and c" and listed("abcd", most=3) == "a, b, c, ... (4 in all)"


def test_numpy_scalars_become_python_values() -> None:
    for value, kind in ((np.float64(0.1), float), (np.int32(3), int), (np.bool_(True), bool), (np.str_("a"), str)):
        assert type(python_value(value)) is kind and python_value(value) == value
    for other in (1, "a", None, [np.int64(1)]):
        assert python_value(other) is other
