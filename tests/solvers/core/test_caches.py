"""Machine code is kept where the user can write, and is not needed where nobody can."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from ranktune.solvers.core.compiled import code_folder
from ranktune.solvers.core.files import is_writable, private_folder


def test_a_private_folder_is_for_the_user_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANKTUNE_CACHE", str(tmp_path / "cache"))
    result = private_folder("kernels", "x")
    assert result == tmp_path / "cache" / "kernels" / "x"
    assert result.stat().st_mode & 0o777 == 0o700
    assert list(result.iterdir()) == []
    (tmp_path / "file").touch()
    assert not is_writable(tmp_path / "file" / "below")


def test_each_release_keeps_separate_machine_code(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setenv("RANKTUNE_CACHE", str(tmp_path))
    folders = []
    for release in ("0.2.1", "0.3.0"):
        monkeypatch.setattr(metadata, "version", lambda _, release=release: release)
        folders.append(code_folder.__wrapped__())
    assert len(set(folders)) == 2 and all(folder is not None and Path(folder).is_dir() for folder in folders)


PROGRAM = """
import warnings
warnings.simplefilter("always")
from ranktune.solvers.core.grade_tree import offsets
from ranktune.solvers.core.compiled import code_folder
offsets(4)
print(code_folder())
"""


def ran(read_only: list[Path], cwd: Path, **environment: str) -> tuple[str, str]:
    """Run a program with a kernel where folders are mounted read-only, without a home, and return its two outputs."""
    unshare = shutil.which("unshare")
    if unshare is None or os.geteuid() != 0:
        pytest.skip("only root can mount folders read-only")
    mounts = "".join(f"mount --bind -o ro '{path}' '{path}' && " for path in read_only)
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    done = subprocess.run(
        [unshare, "--mount", "sh", "-c", f'{mounts}cd "{cwd}" && exec {sys.executable} -c "$PROGRAM"'],
        env=kept | {"PROGRAM": PROGRAM, "HOME": "/nonexistent", "PYTHONDONTWRITEBYTECODE": "1"} | environment,
        capture_output=True, text=True,
    )  # fmt: skip
    if "unshare" in done.stderr or "mount:" in done.stderr:
        pytest.skip(f"mounting is not allowed here: {done.stderr}")
    assert done.returncode == 0, done.stderr
    return done.stdout.strip(), done.stderr


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A copy of the package as it is installed, to be mounted read-only."""
    import ranktune

    assert ranktune.__file__ is not None
    installed = tmp_path / "site-packages"
    shutil.copytree(
        Path(ranktune.__file__).parent, installed / "ranktune", ignore=shutil.ignore_patterns("__pycache__", "*.nb?")
    )
    return installed


@pytest.mark.thorough
def test_code_is_kept_in_the_cache_where_the_package_is_read_only(package: Path, tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    cache = tmp_path / "cache"
    said = [
        ran([package, tmp_path / "here"], tmp_path / "here", PYTHONPATH=str(package), RANKTUNE_CACHE=str(cache))
        for _ in range(2)
    ]
    assert said[0] == said[1]
    assert said[0][1] == ""
    folder = Path(said[0][0])
    assert folder.is_relative_to(cache / "kernels")
    assert list(folder.rglob("*.nbi"))


def test_without_any_cache_one_line_says_so(package: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    out, errors = ran([package, cache], cache, PYTHONPATH=str(package), RANKTUNE_CACHE=str(cache))
    assert out == "None"
    assert errors.count("Warning: compiled code cannot be kept") == 1
    assert "RANKTUNE_CACHE" in errors
