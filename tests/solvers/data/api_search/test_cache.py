"""The cache: whole or absent, the user's alone, and never a reason to fail."""

from __future__ import annotations

import os
import stat
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from ranktune.solvers.core.caches import cache_folder
from ranktune.solvers.core.errors import RankTuneWarning
from ranktune.solvers.data.api_search.cache import load_arrays, remove_old, save_arrays

ARRAYS = {"numbers": np.arange(1000.0), "text": np.array("a\nb\u00e9"), "none": np.zeros((0, 3), dtype=np.int8)}


def test_round_trip(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "folder" / "x.npz"
    assert save_arrays(path, ARRAYS)
    back = load_arrays(path)
    assert back is not None and back.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(back[name], array)
        assert back[name].dtype == array.dtype
    assert [each.name for each in path.parent.iterdir()] == ["x.npz"]  # no temporary file stays
    if os.name == "posix":
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_absent_file_and_folder_are_nothing(tmp_path: Path) -> None:
    assert load_arrays(tmp_path / "absent.npz") is None
    assert load_arrays(tmp_path) is None


def test_every_truncation_and_many_flipped_bytes_are_noticed(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    save_arrays(path, ARRAYS)
    sound = path.read_bytes()
    for length in range(0, len(sound), 97):
        path.write_bytes(sound[:length])
        assert load_arrays(path) is None
    generator = np.random.default_rng(0)
    for at in generator.integers(0, len(sound), 150):
        path.write_bytes(sound[:at] + bytes([sound[at] ^ 0xFF]) + sound[at + 1 :])
        back = load_arrays(path)  # a flip may hit a field that says nothing, such as a date; never an array
        assert back is None or all(np.array_equal(back[name], ARRAYS[name]) for name in back)


def test_pickles_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", bad=np.array([{}], dtype=object), allow_pickle=True)
    assert load_arrays(tmp_path / "x.npz") is None


def test_a_folder_that_cannot_be_made_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.warns(RankTuneWarning, match="RANKTUNE_CACHE"):
        assert not save_arrays(tmp_path / "file" / "x.npz", ARRAYS)


def test_a_file_that_cannot_be_replaced_leaves_no_temporary_file(tmp_path: Path) -> None:
    (tmp_path / "x.npz").mkdir()
    with pytest.warns(RankTuneWarning):
        assert not save_arrays(tmp_path / "x.npz", ARRAYS)
    assert [each.name for each in tmp_path.iterdir()] == ["x.npz"]


def test_where_the_cache_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANKTUNE_CACHE", str(tmp_path))
    assert cache_folder() == tmp_path
    monkeypatch.delenv("RANKTUNE_CACHE")
    if sys.platform != "linux":
        return  # platformdirs has the folders of other systems
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "ranktune"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert cache_folder() == Path.home() / ".cache" / "ranktune"


def test_only_old_files_of_the_pattern_are_forgotten(tmp_path: Path) -> None:
    for name, age in (("a-old.npz", 31), ("a-new.npz", 29), ("b-old.npz", 31)):
        (tmp_path / name).write_text("")
        os.utime(tmp_path / name, times=(time.time() - age * 86_400,) * 2)
    remove_old(tmp_path, "a-*.npz", 30)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a-new.npz", "b-old.npz"]
    remove_old(tmp_path / "absent", "*", 30)
