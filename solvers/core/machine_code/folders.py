"""Where machine code is kept: in the user's cache folder, which begins as a copy of what the package was built with.

A package may hold machine code, below BUILT, for a processor that most machines surpass. It is used where numba,
llvmlite, Python, the system and the processor fit it; elsewhere kernels are compiled where they run. Numba's index
files are pickles: they are read from the installed package and from private folders of the user, and from nowhere else.
"""

from __future__ import annotations

import atexit
import os
import platform
import shutil
import sys
import sysconfig
import tempfile
import zlib
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ranktune.solvers.core.files import atomic_folder, cache_folder, is_writable
from ranktune.solvers.core.libraries import this_version

BUILT = Path(__file__).parent / "built"

_V3 = ("sse4.2", "popcnt", "cx16", "avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave")
_WARNING = (
    "compiled code cannot be kept, so that each process compiles what it uses: set RANKTUNE_CACHE to a folder that can "
    "be written."
)
_warned = False


def level() -> tuple[str, tuple[str, ...]]:
    """Return the processor that a package's machine code is for, in LLVM's words, and the features that it needs."""
    return ("x86-64-v3", _V3) if platform.machine() in ("x86_64", "AMD64") else ("generic", ())


def is_built() -> bool:
    """Return whether the package holds machine code for these versions and this system. It does not load numba."""
    return (BUILT / _name(level()[0], "")).is_dir()


@cache
def loaded() -> Any:
    """Import numba and return it, set to compile for the processor of the package's machine code where that fits.

    Numba compiles for one processor a process. That is left alone where something else loaded numba before, and where
    a processor was chosen.
    """
    from llvmlite import binding

    is_first = "numba" not in sys.modules
    import numba

    config: Any = numba.config  # whose settings have no types
    processor, needed = level()
    features = binding.get_host_cpu_features()
    fits = config.CPU_NAME is None and config.CPU_FEATURES is None and all(features.get(name) for name in needed)
    if is_first and fits and is_built():
        config.CPU_NAME, config.CPU_FEATURES = processor, ""
    return numba


@cache
def code_folder() -> str | None:
    """Return the folder of the machine code, made if it is missing, None if none can be written.

    Each release has a folder: numba reads the cached code before it compares the sources, and fails where an earlier
    release cached a type whose module was removed. What the package holds is used from a temporary folder at least.
    """
    from llvmlite import binding

    config = loaded().config
    features = binding.get_host_cpu_features().flatten() if config.CPU_FEATURES is None else config.CPU_FEATURES
    name = _name(config.CPU_NAME or binding.get_host_cpu_name(), features)
    for place in (_place, _temporary) if (BUILT / name).is_dir() else (_place,):
        if (folder := place()) is not None and is_writable(folder / name):
            return str(folder / name)
    return None


def kept(name: str) -> Path:
    """Return the folder of that name in `code_folder`, begun as a copy of the package's where that has one."""
    folder = Path(code_folder() or "", name)
    built = BUILT / folder.parent.name / name
    if built.is_dir() and not folder.exists():
        with suppress(FileExistsError), atomic_folder(folder) as draft:
            for file in built.iterdir():
                shutil.copyfile(file, draft / file.name)  # without its rights: it may be read-only
    return folder


def remark_on_cache() -> str:
    """Return the line to show where machine code cannot be kept, "" where it can, or where it was returned before.

    It does not load numba. A worker calls it too and ignores the line, which its coordinator has shown.
    """
    global _warned
    if _warned:
        return ""
    _warned = True
    place = _place()
    return "" if is_built() or (place is not None and is_writable(place)) else _WARNING


def _name(processor: str, features: str) -> str:
    """Return the name of the folder of what is compiled for a processor, by all that machine code depends on."""
    code = f"numba-{version('numba')}-llvmlite-{version('llvmlite')}-{sys.implementation.cache_tag}"
    return f"{code}-{sysconfig.get_platform()}-{processor}-{zlib.crc32(features.encode()):08x}"


def _place() -> Path | None:
    """Return the folder for what this release compiles, None where the user has no home."""
    with suppress(RuntimeError):
        return Path(os.environ.get("NUMBA_CACHE_DIR") or cache_folder() / "kernels" / f"ranktune-{this_version()}")
    return None


def _temporary() -> Path | None:
    """Return a folder that is removed when this process ends, None where none can be made."""
    with suppress(OSError):
        folder = tempfile.mkdtemp(prefix="ranktune-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        return Path(folder)
    return None
