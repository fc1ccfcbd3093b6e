"""The place of each folder in the package: solvers/ is ranktune.solvers, tuner/ranktune/ is ranktune itself.

A wheel gets the files under these names, but no folder of IN_CLONES; of docs/ the pages that docs/llms.txt lists,
without what the site is built by and from. An editable installation gets one link for each file or subpackage of a
folder, so that mypy, pyright and editors see what Python sees, and a new module needs no new installation; a new
subpackage does.

With RANKTUNE_KERNELS=1 a wheel also holds the machine code of the kernels, for the Python that builds it and the least
processor that it is used on (solvers/core/machine_code). The build then needs the dependencies of the package, and the
wheel is tagged for that Python and system. Any other wheel is for every Python: py3-none-any.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PACKAGES = {
    "tuner/ranktune": "ranktune",
    "solvers": "ranktune/solvers",
    "tuner": "ranktune/tuner",
    "studies": "ranktune/studies",
    "dashboards": "ranktune/dashboards",
    "docs": "ranktune/docs",
}
IN_CLONES = {"studies/benchmarks", "studies/laboratory", "studies/papers/figures"}
"""Folders for developers, which are in a clone and in no wheel."""
LINKS = "build/editable"
KERNELS = "build/kernels"
BUILD = "import sys; from ranktune.command_line.warming import build; build(sys.argv[1])"


def shipped_pages(root: Path) -> list[str]:
    """Return the files of docs/ that a wheel holds: the list of the pages, these pages, and what writes their data."""
    listed = (root / "docs" / "llms.txt").read_text(encoding="utf-8")
    return ["__init__.py", "shop.py", "llms.txt", *re.findall(r"\]\((.+\.md)\)", listed)]


class Layout(BuildHookInterface):
    """Map the folders onto the package ranktune."""

    def dependencies(self) -> list[str]:
        """Return what compiling kernels needs, where a wheel with them is wanted."""
        return list(self.metadata.core.dependencies) if _with_kernels() else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the files to a wheel, or the links to an editable installation."""
        root = Path(self.root)
        places = {
            entry: f"{package}/{entry.name}"
            for folder, package in PACKAGES.items()
            for entry in sorted((root / folder).iterdir())
            if entry.name != "__pycache__" and entry.relative_to(root).as_posix() not in PACKAGES
        }
        if version == "editable":
            _link(places, root / LINKS)
            return
        shipped = {
            file: inside
            for entry, place in places.items()
            if entry.parent.name != "docs"
            for file, inside in _shipped(entry, place, root)
        }
        shipped |= {root / "docs" / name: f"ranktune/docs/{name}" for name in shipped_pages(root)}
        if _with_kernels():
            _compile(places, root / KERNELS)
            shipped[root / KERNELS] = "ranktune/solvers/core/machine_code/built"
            build_data |= {"pure_python": False, "tag": _tag()}
        build_data["force_include"] = {str(entry): place for entry, place in shipped.items()}


def _shipped(entry: Path, place: str, root: Path) -> Iterator[tuple[Path, str]]:
    """Yield what a wheel holds of a file or folder, with its place: the whole, or parts where one is of IN_CLONES."""
    name = entry.relative_to(root).as_posix()
    if name in IN_CLONES or entry.name == "__pycache__":
        return
    if any(folder.startswith(f"{name}/") for folder in IN_CLONES):
        for child in sorted(entry.iterdir()):
            yield from _shipped(child, f"{place}/{child.name}", root)
    else:
        yield entry, place


def _with_kernels() -> bool:
    return os.environ.get("RANKTUNE_KERNELS", "0") != "0"


def _tag() -> str:
    """Return the tag of a wheel for this Python and system; machine code of kernels needs no certain glibc."""
    from packaging import tags

    tag = next(tags.sys_tags())
    is_glibc = sys.platform == "linux" and platform.libc_ver()[0] == "glibc"
    system = f"manylinux_2_17_{platform.machine()}" if is_glibc else tag.platform
    return f"{tag.interpreter}-{tag.abi}-{system}"


def _compile(places: dict[Path, str], folder: Path) -> None:
    """Compile the kernels of the package that places describe into a folder, in place of what it holds."""
    with tempfile.TemporaryDirectory() as package, tempfile.TemporaryDirectory() as kernels:
        _link(places, Path(package))
        paths = filter(None, (package, os.environ.get("PYTHONPATH")))  # pip's isolated environment is such a path
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
        subprocess.run([sys.executable, "-c", BUILD, kernels], env=environment, stdout=sys.stderr, check=True)
        if not any(Path(kernels).rglob("*.nbc")):
            raise RuntimeError("no machine code was kept: others can write to the folder of temporary files (TMPDIR)")
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(kernels, folder, ignore=shutil.ignore_patterns(".*"))  # without locks


def _link(places: dict[Path, str], folder: Path) -> None:
    """Make a folder of links to the files and subpackages, by their places."""
    shutil.rmtree(folder, ignore_errors=True)
    for entry, place in places.items():
        link = folder / place
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(entry, target_is_directory=entry.is_dir())
