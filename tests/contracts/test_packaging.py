"""What is built is whole: a wheel, installed in a fresh environment, has its modules and files, and all import."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest
from packaging.tags import parse_tag, sys_tags
from packaging.utils import parse_wheel_filename

from tests.support.commands import letor as file_of
from tests.support.paths import FOLDERS, ROOT

pytestmark = pytest.mark.thorough

DATA = (".npy", "portfolio.json", ".toml", ".html", ".css", ".js", ".typed", ".npz", "-LICENSE.txt", "NOTICE.txt")
"""Endings of the files that a wheel holds beside modules."""

IN_CLONES = ("benchmarks/", "laboratory/", "papers/figures/")
"""Folders of studies/ that a wheel does not hold."""

EDITABLE = "import sys; from hatchling.build import build_editable; print(build_editable(sys.argv[1]))"

BUILD = """
import sys
from hatchling.build import build_sdist, build_wheel
build_sdist(sys.argv[1])
build_wheel(sys.argv[1])
"""

IMPORT_ALL = """
import importlib, sys
for name in sys.argv[1:]:
    module = importlib.import_module(name)
    assert module.__file__.startswith(sys.prefix), module.__file__
print(len(sys.argv) - 1)
"""


def expected() -> set[str]:
    """The files of the repository's folders by their names in the package, without those for developers."""
    files = {
        path.relative_to(ROOT).as_posix()
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*")
        if path.name.endswith((".py", *DATA))
    }
    for folder in IN_CLONES:
        names = {name for name in files if name.startswith(f"studies/{folder}")}
        assert len(names) > 4
        files -= names
    face = "tuner/ranktune/"
    listed = re.findall(r"\((.+\.md)\)", (ROOT / "docs" / "llms.txt").read_text())
    assert {"howto/data.md", "reference/files.md"} <= set(listed)
    files |= {f"docs/{name}" for name in ("__init__.py", "shop.py", "llms.txt", *listed)}
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


def test_the_same_sources_give_the_same_bits(tmp_path: Path) -> None:
    """Wherever, whenever and in whatever order the files were written."""
    files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False).stdout
    names = [name.decode() for name in files.split(b"\0") if name and (ROOT / name.decode()).is_file()]
    if not names:
        pytest.skip("not a clone: the files of the repository are not known")
    built = []
    for order, moment in ((names, 1_000_000_000), (names[::-1], 1_700_000_000)):
        source, output = tmp_path / f"source-{moment}", tmp_path / f"built-{moment}"
        for name in order:
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, source / name)
            os.utime(source / name, (moment, moment))
        output.mkdir()
        environment = {**os.environ, "SOURCE_DATE_EPOCH": "1767225600"}
        subprocess.run([sys.executable, "-c", BUILD, str(output)], cwd=source, env=environment, check=True)
        built.append({path.name: path.read_bytes() for path in output.iterdir()})
    assert len(built[0]) == 2
    assert built[0] == built[1]
    (sources,) = (tmp_path / "built-1000000000").glob("*.tar.gz")
    shutil.unpack_archive(sources, tmp_path / "unpacked", filter="data")
    (unpacked,) = (tmp_path / "unpacked").iterdir()
    (tmp_path / "again").mkdir()
    command = [sys.executable, "-c", BUILD, str(tmp_path / "again")]
    subprocess.run(command, cwd=unpacked, env=environment, check=True)
    (wheel,) = (tmp_path / "again").glob("*.whl")
    assert wheel.read_bytes() == built[0][wheel.name]


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
    letor = tmp_path / "letor"
    for fold in (1, 2):
        (letor / f"Fold{fold}").mkdir(parents=True)
        for seed, part in enumerate(("train", "vali", "test")):
            file_of(letor / f"Fold{fold}" / f"{part}.txt", 9, 10 * fold + seed)
    for words, code, said in (
        (("reproduce", "solar"), 2, "no data were given. Add --data FOLDER"),
        (
            ("reproduce", "solar", "--data", "LETOR", "--figures", "out"),
            2,
            "installed from a wheel, which does not hold",
        ),
        (("reproduce", "adarank", "--data", str(letor), "--dataset", "OHSUMED", "--jobs", "1"), 0, "RankBoost"),
    ):
        command = [str(python), "-m", "ranktune", *words]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == code and said in done.stdout + done.stderr, done.stderr


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A copy of the sources."""
    source = tmp_path / "source"
    source.mkdir()
    for name in (*FOLDERS, "docs", ".gitignore", "pyproject.toml", "hatch_build.py", "README.md", "LICENSE"):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, source / name)
    return source


def test_a_wheel_holds_machine_code_if_it_is_asked_for_and_the_sources_never(source: Path, tmp_path: Path) -> None:
    warming = source / "tuner" / "ranktune" / "command_line" / "warming.py"
    warming.write_text(warming.read_text().replace("    warm(())", '    compile_solver("BestFeature")'))  # for brevity
    stale = source / "build" / "kernels" / "numba-0-cpython-399" / "module" / "stale.nbc"  # of another Python
    stale.parent.mkdir(parents=True)
    stale.touch()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    program = "from ranktune.command_line.warming import compile_solver; print(compile_solver('BestFeature') == 0.0)"
    for kernels in ("1", "0"):
        built, installed = tmp_path / f"built-{kernels}", tmp_path / f"installed-{kernels}"
        built.mkdir()
        command = [sys.executable, "-c", BUILD, str(built)]
        subprocess.run(command, cwd=source, env=environment | {"RANKTUNE_KERNELS": kernels}, check=True)
        (sources,), (wheel,) = built.glob("*.tar.gz"), built.glob("*.whl")
        shutil.unpack_archive(sources, tmp_path / f"unpacked-{kernels}", filter="data")
        zipfile.ZipFile(wheel).extractall(installed)
        _, _, _, tags = parse_wheel_filename(wheel.name)
        assert tags <= set(sys_tags())
        python = "py3" if kernels == "0" else f"cp{sys.version_info.major}{sys.version_info.minor}"
        assert {tag.interpreter for tag in tags} == {python}
        assert (tags == parse_tag("py3-none-any")) == (kernels == "0")
        (about,) = installed.glob("*.dist-info/WHEEL")
        assert f"Root-Is-Purelib: {'true' if kernels == '0' else 'false'}\n" in about.read_text()
        assert not any(installed.rglob("stale.nbc"))
        assert list((tmp_path / f"unpacked-{kernels}").rglob("*.nb?")) == []
        paths = {"PYTHONPATH": str(installed), "RANKTUNE_CACHE": str(tmp_path / f"cache-{kernels}")}
        command = [sys.executable, "-c", program]
        done = subprocess.run(command, env=environment | paths, capture_output=True, text=True, check=True)
        assert done.stdout == f"{kernels == '1'}\n"
        assert any(installed.rglob("*.nb?")) == (kernels == "1")


def test_an_editable_installation_sees_a_new_module_at_once(source: Path, tmp_path: Path) -> None:
    built = tmp_path / "built"
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
