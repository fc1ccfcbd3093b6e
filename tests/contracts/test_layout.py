"""The layout shows the architecture: packages, import arrows, public names."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import ranktune
from tests.support.paths import ROOT

FOLDERS = ("tuner", "solvers", "studies", "dashboards")
MAY_IMPORT = {
    "solvers": {"solvers"},
    "tuner": {"solvers", "tuner"},
    "studies": {"solvers", "tuner", "studies"},
    "dashboards": {"solvers", "tuner", "dashboards"},
}


def test_every_package_is_listed() -> None:
    mapping = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-dir"]
    found = {p.parent.relative_to(ROOT).as_posix() for d in FOLDERS for p in (ROOT / d).rglob("__init__.py")}
    assert found == set(mapping.values())


def imports(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


@pytest.mark.parametrize("folder", FOLDERS)
def test_imports_point_one_way(folder: str) -> None:
    wrong = [
        f"{file.name}: {module}"
        for file in (ROOT / folder).glob("*.py")
        for module in imports(file)
        if module.split(".")[0] == "ranktune"
        and module.split(".")[1:2] != []
        and module.split(".")[1] not in MAY_IMPORT[folder]
    ]
    assert wrong == []


def test_solvers_never_import_a_tuning_library() -> None:
    used = {module.split(".")[0] for file in (ROOT / "solvers").glob("*.py") for module in imports(file)}
    assert "numpy" in used
    assert not used & {"optuna", "skopt", "joblib", "typer", "rich"}


def test_public_names_exist_and_are_sorted() -> None:
    assert ranktune.__all__ == sorted(ranktune.__all__)
    assert len(ranktune.__all__) <= 12
    assert all(getattr(ranktune, name) is not None for name in ranktune.__all__)
    with pytest.raises(AttributeError, match="nonsense"):
        _ = ranktune.nonsense


def test_version_is_that_of_the_package_and_the_changelog() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert ranktune.__version__ == project["version"]
    assert f"## {project['version']}" in (ROOT / "CHANGELOG.md").read_text()


def test_importing_the_root_loads_nothing_heavy() -> None:
    code = "import sys, ranktune, ranktune.cli; print(*sorted({m.split('.')[0] for m in sys.modules}))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "ranktune" in loaded
    assert not {"numpy", "scipy", "numba", "optuna", "sklearn"} & set(loaded)


def test_files_stay_readable() -> None:
    lines = {p.name: len(p.read_text().splitlines()) for d in FOLDERS for p in (ROOT / d).rglob("*.py")}
    assert {name: count for name, count in lines.items() if count > 400} == {}
