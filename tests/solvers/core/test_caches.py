"""Machine code is kept where the user can write, and is not needed where nobody can."""

import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from pathlib import Path

import pytest
from llvmlite import binding

from ranktune.solvers.core.files.private import is_writable, private_folder
from ranktune.solvers.core.machine_code.folders import code_folder, level
from ranktune.solvers.core.machine_code.kernel_files import KernelFiles


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


def test_one_compiles_what_is_missing_and_the_others_wait_for_it(tmp_path: Path) -> None:
    place = (str(tmp_path / "kernels"), "kernel", "stamp")
    first, second = (KernelFiles(*place) for _ in range(2))  # type: ignore[no-untyped-call]
    assert first.load("types") is None
    assert first.load("types") is None  # an error ended compiling
    with ThreadPoolExecutor(1) as thread:
        waiting = thread.submit(second.load, "types")
        with pytest.raises(TimeoutError):
            waiting.result(0.1)
        first.save("types", "code")
        assert waiting.result() == "code"


PROGRAM = """
import warnings
warnings.simplefilter("always")
from ranktune.solvers.losses.window_sums import offsets
from ranktune.solvers.core.machine_code.folders import code_folder
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


@pytest.mark.thorough
def test_without_any_cache_one_line_says_so(package: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    out, errors = ran([package, cache], cache, PYTHONPATH=str(package), RANKTUNE_CACHE=str(cache))
    assert out == "None"
    assert errors.count("Warning: compiled code cannot be kept") == 1
    assert "RANKTUNE_CACHE" in errors


COUNTED = """
import json, sys
{first}
import numpy as np
from ranktune.solvers.core.compiled import compiling
from ranktune.solvers.core.machine_code.folders import code_folder
from ranktune.solvers.data.products import dense_times
out, X = np.empty(64), np.random.default_rng(0).normal(size=(64, 37)).astype(np.float32)
with compiling() as spent:
    dense_times(X, np.linspace(-1.0, 1.0, 37), out)
print(json.dumps([out.tobytes().hex(), len(spent), code_folder()]))
"""
BUILT = Path("ranktune", "solvers", "core", "machine_code", "built")


def counted(site: Path, cache: Path, first: str = "", **environment: str) -> tuple[str, int, Path]:
    """Return the bits of a product, how many kernels were compiled for it, and where machine code is kept."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    done = subprocess.run(
        [sys.executable, "-c", COUNTED.format(first=first)],
        env=kept | {"PYTHONPATH": str(site), "RANKTUNE_CACHE": str(cache)} | environment,
        cwd=site, capture_output=True, text=True, check=True,
    )  # fmt: skip
    bits, compiles, folder = json.loads(done.stdout)
    return bits, compiles, Path(folder)


@pytest.fixture
def built(package: Path, tmp_path: Path) -> Path:
    """The package, with the machine code of one kernel as a wheel holds it."""
    environment = {"NUMBA_CPU_NAME": level()[0], "NUMBA_CPU_FEATURES": ""}
    _, compiles, folder = counted(package, tmp_path / "at-build", **environment)
    assert compiles > 0
    shutil.move(folder.parent, package / BUILT)
    return package


@pytest.mark.thorough
def test_machine_code_of_the_package_gives_the_bits_of_the_hosts_in_another_place(built: Path, tmp_path: Path) -> None:
    host = counted(built, tmp_path / "host", NUMBA_CPU_NAME=binding.get_host_cpu_name())
    elsewhere = built.rename(tmp_path / "elsewhere")
    for file in (elsewhere / BUILT).rglob("*"):
        file.chmod(file.stat().st_mode & 0o555)
    for cache in (
        tmp_path / "cache",
        tmp_path / "cache",
        elsewhere / "ranktune" / "__init__.py",
    ):  # a file is no folder
        bits, compiles, folder = counted(elsewhere, cache)
        assert (bits, compiles) == (host[0], 0)
        assert not folder.is_relative_to(elsewhere)
    assert not folder.exists()  # it was a temporary one
    assert counted(elsewhere, tmp_path / "cache", "import numba.typed; numba.njit(lambda x: x + 1)(1)")[0] == host[0]


@pytest.mark.thorough
@pytest.mark.parametrize(
    "first",
    [
        "import importlib.metadata as m; real = m.version; m.version = lambda name: real(name) + '.post1'",
        "import platform; platform.machine = lambda: 'riscv64'",
        "from ranktune.solvers.core.machine_code import folders; folders._V3 = ('amx-of-the-future',)",
        "import sys; sys.implementation.cache_tag = 'cpython-399'",
        "from pathlib import Path; Path('ranktune/solvers/data/products.py').open('a').write('# changed')",
        "import numba",
    ],
)
def test_machine_code_that_does_not_fit_is_left_alone(built: Path, tmp_path: Path, first: str) -> None:
    expected = counted(built, tmp_path / "fits")
    assert expected[1] == 0
    bits, compiles, _ = counted(built, tmp_path / "other", first)
    assert (bits, compiles > 0) == (expected[0], True)
