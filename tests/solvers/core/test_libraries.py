"""Where a tree library is missing or broken, its solvers are left out, with one line that says what to install."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from ranktune.solvers.core import libraries
from ranktune.solvers.core.errors import ParameterError
from ranktune.solvers.registry import NAMES, SOLVERS, loadable
from tests.support.commands import write_letor

THREE = "GBDTRanker, LambdaMART and RandomForestRanker"
LACKING = {"lightgbm": THREE, "xgboost": "XGBoostRanker"}
REMEDY = {"lightgbm": "pip install lightgbm", "xgboost": 'pip install "ranktune[trees]"'}
BLOCKED = """
import importlib.abc, sys

class Blocked(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name == "LIBRARY":
            raise ModuleNotFoundError(name)

import importlib.util
original = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name == "LIBRARY" else original(name, package)
sys.meta_path.insert(0, Blocked())
"""
"""A sitecustomize module that makes a library look as if it were not installed."""


@pytest.fixture
def data(tmp_path: Path) -> Path:
    generator = np.random.default_rng(0)
    X = generator.random((72, 2))
    write_letor(tmp_path / "train.txt", X, X[:, 0] + 0.3 * generator.random(72) > 0.6, np.arange(72) // 6)
    return tmp_path


def run(folder: Path, path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command line, with path before everything else that is imported."""
    environment = {**os.environ, "PYTHONPATH": str(path), "RANKTUNE_HOME": str(folder / "runs"), "COLUMNS": "120"}
    return subprocess.run(
        [sys.executable, "-m", "ranktune", *arguments],
        capture_output=True, text=True, cwd=folder, env=environment, check=False,
    )  # fmt: skip


def not_installed(folder: Path, library: str) -> Path:
    (folder / "path").mkdir()
    (folder / "path" / "sitecustomize.py").write_text(BLOCKED.replace("LIBRARY", library))
    return folder / "path"


def without_openmp(folder: Path, library: str) -> Path:
    """A package whose shared library wants an OpenMP that is not there."""
    spec = find_spec(library)
    if sys.platform != "linux" or spec is None or spec.origin is None:
        pytest.skip("needs the library of Linux")
    (shared,) = (Path(spec.origin).parent / "lib").glob("*.so")
    data = shared.read_bytes()
    if b"libgomp.so.1\0" not in data:
        pytest.skip("brings its own OpenMP")
    (folder / "path" / library / "lib").mkdir(parents=True)
    (folder / "path" / library / "lib" / shared.name).write_bytes(data.replace(b"libgomp.so.1\0", b"libgomp.so.9\0"))
    (folder / "path" / library / "__init__.py").write_text("raise OSError('libgomp.so.9: cannot open it')\n")
    return folder / "path"


def without_a_library(folder: Path, library: str) -> Path:
    (folder / "path" / library).mkdir(parents=True)
    (folder / "path" / library / "__init__.py").write_text("raise ImportError('built for another Python')\n")
    return folder / "path"


MISSING = {
    "not installed": (not_installed, "{title} is not installed: {remedy}"),
    "no OpenMP": (without_openmp, "{title} cannot be loaded (libgomp.so.9: cannot open shared object file"),
    "broken": (without_a_library, "{title} cannot be loaded (built for another Python): install it again ({remedy})"),
}
WAYS = [*(("lightgbm", way) for way in MISSING), ("xgboost", "not installed")]


@pytest.mark.thorough
@pytest.mark.parametrize(("library", "way"), WAYS)
def test_a_study_goes_on_without_what_cannot_be_loaded(data: Path, library: str, way: str) -> None:
    make, said = MISSING[way]
    said = said.format(title=libraries.NAMES[library], remedy=REMEDY[library])
    path = make(data, library)

    listed = run(data, path, "solvers")
    assert listed.returncode == 0, listed.stderr
    (line,) = (line for line in listed.stderr.splitlines() if line)
    assert said in line and line.endswith("left out.") and LACKING[library] in line
    assert "RankSVM" in listed.stdout and LACKING[library].split()[-1] not in listed.stdout
    assert ("apt install libgomp1" in line) == (way == "no OpenMP")

    by_name = run(data, path, "tune", "train.txt", "--solver", LACKING[library].split()[-1], "--trials", "2")
    assert by_name.returncode == 2
    assert said in by_name.stderr and "Traceback" not in by_name.stderr


@pytest.mark.thorough
def test_the_usual_competition_goes_on_without_lightgbm(data: Path) -> None:
    path = not_installed(data, "lightgbm")
    done = run(data, path, "tune", "train.txt", "--trials", "7", "--jobs", "1", "--sampler", "random")
    assert done.returncode == 0, done.stderr
    assert (
        done.stderr.count("LightGBM is not installed: pip install lightgbm; GBDTRanker and LambdaMART are left out.")
        == 1
    )
    assert "RankSVM" in done.stdout and "LambdaMART" not in done.stdout


def test_what_is_there_is_loadable() -> None:
    assert loadable(NAMES) == NAMES == tuple(SOLVERS)


def test_a_library_in_an_unknown_place_is_told_when_it_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libraries, "_shared_libraries", lambda library: [])
    with pytest.raises(ParameterError, match=r"LightGBM cannot be loaded \(its package holds no shared library\)"):
        libraries.shared("lightgbm")
