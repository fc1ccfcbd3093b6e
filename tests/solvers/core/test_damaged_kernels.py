"""Machine code that is damaged, of something else or of another version is left out, said once, and compiled again."""

import os
import pickle
import random
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from ranktune.solvers.core.compiled import Kernel, compiling
from ranktune.solvers.core.machine_code import folders
from ranktune.solvers.data import products
from ranktune.solvers.losses import window_sums


def _class_of_nowhere() -> bytes:
    content = pickle.dumps(np.dtype(np.float64))
    return content.replace(b"numpy", b"nowhr")


DAMAGES: dict[str, Callable[[bytes, random.Random], bytes]] = {
    "empty": lambda content, _: b"",
    "cut off": lambda content, by: content[: by.randrange(1, len(content))],
    "random bytes": lambda content, by: by.randbytes(300),
    "zeros": lambda content, _: bytes(len(content)),
    "a bit": lambda content, by: _flipped(content, by.randrange(len(content)), 1 << by.randrange(8)),
    "a bit at the end": lambda content, by: _flipped(content, len(content) - 1, 1),
    "more bytes": lambda content, _: content + b"\n",
    "a class of nowhere": lambda content, _: _class_of_nowhere() * 2,
    "another pickle": lambda content, _: pickle.dumps("0.1") + pickle.dumps(("stamp", {})),
}


def _flipped(content: bytes, place: int, bits: int) -> bytes:
    return content[:place] + bytes([content[place] ^ bits]) + content[place + 1 :]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], tuple[int, list[str]]]:
    """Load two kernels as a new process does; return how many were compiled, and what was said."""
    monkeypatch.setenv("RANKTUNE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setattr(folders, "code_folder", folders.code_folder.__wrapped__)
    monkeypatch.setattr("ranktune.solvers.core.compiled.code_folder", folders.code_folder)
    X, out = np.arange(6.0).reshape(3, 2), np.empty(3)

    def run() -> tuple[int, list[str]]:
        monkeypatch.setattr(folders, "_warned", False)
        offsets, product = (
            Kernel(cast(Any, kernel).function) for kernel in (window_sums.offsets, products.dense_times)
        )
        with warnings.catch_warnings(record=True) as said, compiling() as spent:
            warnings.simplefilter("always")
            assert offsets(4).sum() == 32
            product(X, np.ones(2), out)
        assert out.tolist() == [1.0, 5.0, 9.0]
        return len(spent), [str(warning.message) for warning in said]

    return run


def kept(place: Path) -> list[Path]:
    return sorted(place.rglob("*.nb[ci]"))


def test_each_damage_of_each_file_is_found_and_mended(run: Callable[[], tuple[int, list[str]]], tmp_path: Path) -> None:
    assert run()[0] > 0
    assert run() == (0, [])
    by = random.Random(0)
    files = [file for file in kept(tmp_path) if ".offsets-" in file.name or ".dense_times-" in file.name]
    assert {file.suffix for file in files} == {".nbi", ".nbc"}
    for name, damaged in DAMAGES.items():
        file = by.choice(files)
        file.write_bytes(damaged(file.read_bytes(), by))
        compiled, said = run()
        assert compiled > 0, name
        assert len(said) == 1 and "compiled code" in said[0], (name, said)
        assert run() == (0, []), name


def test_files_in_the_place_of_others_are_not_believed(
    run: Callable[[], tuple[int, list[str]]], tmp_path: Path
) -> None:
    run()
    for suffix in (".nbi", ".nbc"):
        one, other, *_ = (file for file in kept(tmp_path) if file.suffix == suffix)
        assert one.parent != other.parent or one.name != other.name
        content = one.read_bytes(), other.read_bytes()
        one.write_bytes(content[1])
        other.write_bytes(content[0])
        compiled, said = run()
        assert compiled > 0 and len(said) == 1
        assert run() == (0, [])
    (folder,) = (path for path in (tmp_path / "cache" / "kernels").glob("*/numba-*"))
    folder.rename(folder.with_name(folder.name.replace("numba-", "numba-0.1+")))
    assert run()[0] > 0  # of another version
    shutil.rmtree(folder)
    (folder.parent / next(iter(os.listdir(folder.parent)))).rename(folder)
    assert run()[0] > 0
    file = kept(tmp_path)[0]
    file.unlink()
    file.mkdir()
    assert len(run()[1]) == 1
    assert run() == (0, [])


@pytest.mark.thorough
@pytest.mark.parametrize("command", ["solvers", "tune"])  # `data` reads small text without kernels
def test_commands_go_on_and_say_it_once(command: str, tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text("".join(f"{k % 2} qid:{k // 4} 1:{k % 7} 2:{k % 3}\n" for k in range(80)))
    folder = folders.code_folder()
    assert folder is not None
    shutil.copytree(folder, tmp_path / "cache" / Path(folder).name)
    tune = ["train.txt", "--solver", "BestFeature", "--trials", "1", "--jobs", "1"]
    arguments = tune if command == "tune" else ["--warm", "BestFeature"]
    environment = {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "RANKTUNE_HOME": str(tmp_path / "runs")}

    def run() -> str:
        done = subprocess.run(
            [sys.executable, "-m", "ranktune", command, *arguments],
            env=os.environ | environment, cwd=tmp_path, capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stderr

    run()
    files = kept(tmp_path)
    assert files
    files[len(files) // 2].write_bytes(b"damaged")
    next(file for file in files if "decimals" in str(file) and file.suffix == ".nbi").write_bytes(b"")
    assert run().count("warning: compiled code") == 1
    assert "compiled code" not in run()
