"""Arrays kept between runs in the user's cache folder. Losing them costs time only, so nothing here ever fails."""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
import warnings
import zipfile
import zlib
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ranktune.solvers.core.errors import RankTuneWarning
from ranktune.tuner.evaluation.archive import cache_folder as cache_folder

Arrays: TypeAlias = dict[str, NDArray[Any]]


def load_arrays(path: Path) -> Arrays | None:
    """Return the arrays of the .npz file at path, or None where it is absent, unreadable or damaged.

    Nothing is unpickled. Every array carries a checksum, which is verified.
    """
    try:
        with open(path, "rb") as file, zipfile.ZipFile(file) as members:  # np.load leaves a damaged file open
            return {
                name.removesuffix(".npy"): _read(members, name) for name in members.namelist() if name.endswith(".npy")
            }
    except (OSError, ValueError, KeyError, EOFError, TypeError, MemoryError, zipfile.BadZipFile, zlib.error):
        return None
    except (SyntaxError, NotImplementedError, RuntimeError):  # a header or a zip entry of nonsense
        return None


def _read(members: zipfile.ZipFile, name: str) -> NDArray[Any]:
    with members.open(name) as member:
        array: NDArray[Any] = np.lib.format.read_array(member, allow_pickle=False)
        if member.read(1):  # reading to the end is what verifies the checksum
            raise ValueError(f"{name} goes on after its array")
    return array


def save_arrays(path: Path, arrays: Arrays) -> bool:
    """Write arrays to path, whole or not at all, and return whether it worked; a RankTuneWarning says why not.

    A folder that has to be made is the user's alone (mode 0700).
    """
    temporary: str | None = None
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(prefix=f".{path.stem}-", suffix=".tmp", dir=path.parent)
        with os.fdopen(handle, "wb") as file:
            np.savez(file, allow_pickle=False, **arrays)
        os.replace(temporary, path)
        return True
    except OSError as error:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)
        warnings.warn(
            f"the cache folder {path.parent} cannot be written ({error.strerror or error}): the work will be done "
            "again next time. Set RANKTUNE_CACHE to a folder that can be.",
            RankTuneWarning,
            stacklevel=2,
        )
        return False


def forget_old(folder: Path, pattern: str, days: float) -> None:
    """Remove the files of folder that match pattern and were written more than days ago, where that is possible."""
    oldest = time.time() - days * 86_400
    with contextlib.suppress(OSError):
        for path in sorted(folder.glob(pattern)):
            if path.stat().st_mtime < oldest:
                path.unlink()
