"""Where machine code is kept: in the user's cache folder, which begins as a copy of what the package was built with.

A package may hold machine code, below BUILT, for a processor that most machines surpass. It is used where numba,
llvmlite, Python, the system and the processor fit it; elsewhere kernels are compiled where they run. The files hold
pickles: they are read from private folders of the user, which copy those of the installed package, and only if they are
whole and their user's. What is not is as if it were missing.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import platform
import secrets
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

from ranktune.solvers.core.files.atomic import atomic_folder, atomic_write
from ranktune.solvers.core.files.private import NotPrivate, cache_folder, is_own, is_writable, made_private
from ranktune.solvers.core.libraries import this_version

BUILT = Path(__file__).parent / "built"

_V3 = ("sse4.2", "popcnt", "cx16", "avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave")
_SHA256 = 32
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
    """Return the folder of the machine code, made if it is missing, None if none can be written by the user alone.

    Each release has a folder: numba reads the cached code before it compares the sources, and fails where an earlier
    release cached a type whose module was removed. What the package holds is used from a temporary folder at least.
    """
    from llvmlite import binding

    config = loaded().config
    features = binding.get_host_cpu_features().flatten() if config.CPU_FEATURES is None else config.CPU_FEATURES
    name = _name(config.CPU_NAME or binding.get_host_cpu_name(), features)
    for place in (_place, _temporary) if (BUILT / name).is_dir() else (_place,):
        with suppress(OSError, RuntimeError):
            if is_writable(folder := place() / name):
                return str(folder)
    return None


def folder_of(name: str) -> Path:
    """Return the folder of that name in `code_folder`, begun as a copy of the package's where that has one."""
    folder = Path(code_folder() or "", name)
    built = BUILT / folder.parent.name / name
    if built.is_dir() and not folder.exists():
        with suppress(OSError), atomic_folder(folder, 0o700) as draft:
            for file in built.iterdir():
                (draft / file.name).touch(mode=0o600)
                shutil.copyfile(file, draft / file.name)  # without its rights: it may be read-only
    return folder


def keep(path: Path, content: bytes) -> None:
    """Write machine code, or its index, with a digest at the end."""
    atomic_write(path, content + _digest(path, content), mode=0o600)


def is_believed(path: Path) -> bool:
    """Return whether a file is what `keep` wrote there, and the user's alone."""
    with suppress(OSError):
        if is_own(path.parent) and is_own(path):
            stored = path.read_bytes()
            return stored[-_SHA256:] == _digest(path, stored[:-_SHA256])
    return False


def remark_on_cache(*, aloud: bool = True) -> str:
    """Return the line to show where machine code cannot be kept or believed, "" where it can; only once a process.

    What is not believed is removed. It does not load numba. Without aloud, as in a worker, nothing is looked at: its
    coordinator has shown the line.
    """
    global _warned
    is_first, _warned = aloud and not _warned, True
    try:
        return _cleared(made_private(_place())) if is_first else ""
    except (OSError, RuntimeError) as error:
        if is_built() and not isinstance(error, NotPrivate):
            return ""
        return (
            f"compiled code cannot be kept, so that each process compiles what it uses: {error}. Set RANKTUNE_CACHE to "
            "a folder that you alone can write."
        )


def _cleared(place: Path) -> str:
    """Remove what is not believed of the folders and files of a release, and return the line to show."""
    n_refused = 0
    levels = ("numba-*", is_own), ("numba-*/[!.]*", is_own), ("numba-*/[!.]*/[!.]*.nb[ci]", is_believed)
    for pattern, is_good in levels:
        for path in list(place.glob(pattern)):
            with suppress(OSError):  # another process has removed it
                if not is_good(path):
                    n_refused += 1
                    path = path.rename(path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp"))
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
    what = f"compiled code in {place} is damaged, or not yours alone"
    return f"{what}: it is left out ({n_refused} files or folders), and compiled again." if n_refused else ""


def _digest(path: Path, content: bytes) -> bytes:
    """Return the digest of content and of what it is for, which the path names below the folder of the release."""
    return hashlib.sha256("/".join(path.parts[-3:]).encode() + content).digest()


def _name(processor: str, features: str) -> str:
    """Return the name of the folder of what is compiled for a processor, by all that machine code depends on."""
    code = f"numba-{version('numba')}-llvmlite-{version('llvmlite')}-{sys.implementation.cache_tag}"
    return f"{code}-{sysconfig.get_platform()}-{processor}-{zlib.crc32(features.encode()):08x}"


def _place() -> Path:
    """Return the folder for what this release compiles. Raises RuntimeError where the user has no home."""
    return Path(os.environ.get("NUMBA_CACHE_DIR") or cache_folder() / "kernels" / f"ranktune-{this_version()}")


def _temporary() -> Path:
    """Return a folder that is removed when this process ends."""
    folder = tempfile.mkdtemp(prefix="ranktune-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)
