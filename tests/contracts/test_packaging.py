"""What is built is whole: a wheel, installed in a fresh environment, has every module and file, and all import."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from tests.support.paths import FOLDERS, ROOT

pytestmark = pytest.mark.thorough

DATA = (".toml", ".html", ".css", ".js", ".typed", "-LICENSE.txt")
"""Endings of the files that a wheel holds beside modules."""

EDITABLE = "import sys; from hatchling.build import build_editable; print(build_editable(sys.argv[1]))"

IMPORT_ALL = """
import importlib, sys
for name in sys.argv[1:]:
    module = importlib.import_module(name)
    assert module.__file__.startswith(sys.prefix), module.__file__
print(len(sys.argv) - 1)
"""


def expected() -> set[str]:
    """The files of the repository's folders by their names in the package."""
    files = {
        path.relative_to(ROOT).as_posix()
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*")
        if path.name.endswith((".py", *DATA))
    }
    face = "tuner/ranktune/"
    return {"ranktune/" + (name.removeprefix(face) if name.startswith(face) else name) for name in files}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-cache-dir"]
    subprocess.run([*command, "--wheel-dir", str(folder), str(ROOT)], check=True, capture_output=True)
    (built,) = folder.glob("ranktune-*.whl")
    return built


def test_a_wheel_holds_every_file_and_nothing_else(wheel: Path) -> None:
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert names == expected()


def test_every_module_imports_from_a_fresh_environment(wheel: Path, tmp_path: Path) -> None:
    """The libraries are those of this environment; the package is the one that was installed."""
    fresh = tmp_path / "fresh"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(fresh)], check=True)
    python = fresh / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*install, str(wheel)], check=True, capture_output=True)
    (site,) = fresh.rglob("site-packages")
    (site / "libraries.pth").write_text(sysconfig.get_path("purelib"))
    modules = sorted(
        name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        for name in expected()
        if name.endswith(".py") and not name.endswith("__main__.py")
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    command = [str(python), "-c", IMPORT_ALL, *modules]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == len(modules) > 200


def test_an_editable_installation_sees_a_new_module_at_once(tmp_path: Path) -> None:
    source, built = tmp_path / "source", tmp_path / "built"
    for name in (*FOLDERS, "pyproject.toml", "hatch_build.py", "README.md", "LICENSE"):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        source.mkdir(exist_ok=True)
        copy(ROOT / name, source / name)
    built.mkdir()
    subprocess.run([sys.executable, "-c", EDITABLE, str(built)], cwd=source, check=True, capture_output=True)
    (path,) = [
        zipfile.ZipFile(wheel).read(name).decode()
        for wheel in built.iterdir()
        for name in zipfile.ZipFile(wheel).namelist()
        if name.endswith(".pth")
    ]
    (source / "solvers" / "linear" / "new_module.py").write_text("WHERE = __file__\n")
    program = "from ranktune.solvers.linear.new_module import WHERE; import ranktune; print(WHERE, ranktune.__file__)"
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert all(Path(name).resolve().is_relative_to(source.resolve()) for name in done.stdout.split())
