"""Where machine code is kept: in the user's cache folder, which begins as a copy of what the package was built with.

A package may hold machine code, below BUILT, for the least processor of its kind that numba's wheels are used on. It is
used where the versions of numba, llvmlite and Python, the system and the processor are those of a folder there.
Otherwise kernels are compiled where they run. Numba's index files are pickles: they are read from the installed package
and from the user's own cache folder, and from nowhere else.
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
import sysconfig
import zlib
from contextlib import suppress
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from ranktune.solvers.core.files import atomic_folder, cache_folder, is_writable, private_folder

BUILT = Path(__file__).parent / "built"

_V3 = ("sse4.2", "popcnt", "cx16", "avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave")
LEVELS = {"x86_64": ("x86-64-v3", _V3), "AMD64": ("x86-64-v3", _V3), "aarch64": ("generic", ()), "arm64": ("generic", ())}
"""The processor that machine code is built for, by the name of the machine, and the features it needs, as LLVM has them."""

_warned = False
_WARNING = (
    "compiled code cannot be kept, so that each process compiles what it uses: set RANKTUNE_CACHE to a folder that can "
    "be written."
)


@cache
def loaded() -> Any:
    """Import numba and return it, set to compile for the processor of the package's machine code where that fits.

    Numba compiles for one processor a process. Its setting is left alone where something else loaded numba before, and
    where the user chose a processor.
    """
    from llvmlite import binding

    is_first = "numba" not in sys.modules
    import numba

    config: Any = numba.config  # whose settings have no types
    cpu, needed = LEVELS.get(platform.machine(), ("", ()))
    has = binding.get_host_cpu_features()
    if (
        is_first
        and config.CPU_NAME is None
        and config.CPU_FEATURES is None
        and config.ENABLE_AVX is not False
        and all(has.get(name) for name in needed)
        and (BUILT / _name(cpu, "")).is_dir()
    ):
        config.CPU_NAME, config.CPU_FEATURES = cpu, ""
    return numba


def _name(cpu: str, features: str) -> str:
    """Return the name of the folder of what is compiled for a processor, by all that machine code depends on."""
    import llvmlite
    import numba

    code = f"numba-{numba.__version__}-llvmlite-{llvmlite.__version__}-{sys.implementation.cache_tag}"
    return f"{code}-{sysconfig.get_platform()}-{cpu}-{zlib.crc32(features.encode()):08x}"


@cache
def code_folder() -> str | None:
    """Return the folder of the machine code, made if it is missing, None if none can be written.

    Each release has a folder: numba reads the cached code before it compares the sources, and fails where an earlier
    release cached a type whose module was removed.
    """
    from llvmlite import binding

    config = loaded().config
    features = binding.get_host_cpu_features().flatten() if config.CPU_FEATURES is None else config.CPU_FEATURES
    name = _name(config.CPU_NAME or binding.get_host_cpu_name(), features)
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    try:
        if chosen:
            return str(Path(chosen, name)) if is_writable(Path(chosen, name)) else None
        return str(private_folder("kernels", f"ranktune-{_release()}", name))
    except (OSError, RuntimeError):  # RuntimeError: no home folder
        return None


def kept(name: str) -> Path:
    """Return the folder of that name in `code_folder`: a copy of the package's, if that has one, where it is missing."""
    folder = Path(code_folder() or "", name)
    built = BUILT / folder.parent.name / name
    if built.is_dir() and not folder.exists():
        with suppress(FileExistsError), atomic_folder(folder) as draft:
            shutil.copytree(built, draft, dirs_exist_ok=True)
    return folder


def _release() -> str:
    try:
        return metadata.version("ranktune")
    except metadata.PackageNotFoundError:  # run from a folder, without an installation
        return "0"


def remark_on_cache() -> str:
    """Return the line to show where machine code cannot be kept, "" where it can, or where it was returned before.

    It does not load numba. A worker calls it too and ignores the line, which its coordinator has shown.
    """
    global _warned
    if _warned:
        return ""
    _warned = True
    try:
        chosen = os.environ.get("NUMBA_CACHE_DIR")
        keeps = is_writable(Path(chosen) if chosen else cache_folder() / "kernels")
    except RuntimeError:  # no home folder
        keeps = False
    return "" if keeps else _WARNING
