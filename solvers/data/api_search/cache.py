"""Arrays kept between runs in the user's cache folder. Losing them costs time only, so no error is ever raised."""

from __future__ import annotations

import contextlib
import time
import warnings
import zipfile
import zlib
from pathlib import Path
from typing import TypeAlias

import numpy as np

from ranktune.solvers.core.arrays import Array
from ranktune.solvers.core.errors import RankTuneWarning
from ranktune.solvers.core.files import atomic_write

Arrays: TypeAlias = dict[str, Array]


def load_arrays(path: Path) -> Arrays | None:
    """Return the arrays of the .npz file at path, or None where it is absent, unreadable or damaged.

    Nothing is unpickled. Every array carries a checksum, which is verified.
    """
    try:
        with open(path, "rb") as file, zipfile.ZipFile(file) as members:  # np.load leaves a damaged file open
            names = [name for name in members.namelist() if name.endswith(".npy")]
            return {name.removesuffix(".npy"): _read(members, name) for name in names}
    except (OSError, ValueError, KeyError, EOFError, TypeError, MemoryError, zipfile.BadZipFile, zlib.error):
        return None
    except (SyntaxError, NotImplementedError, RuntimeError):  # a damaged header or zip entry
        return None


def _read(members: zipfile.ZipFile, name: str) -> Array:
    with members.open(name) as member:
        array: Array = np.lib.format.read_array(member, allow_pickle=False)
        if member.read(1):  # reading to the end is what verifies the checksum
            raise ValueError(f"{name} has bytes after its array")
    return array


def save_arrays(path: Path, arrays: Arrays) -> bool:
    """Write arrays to path atomically and return whether it worked; a RankTuneWarning gives the reason if not.

    A new folder is created for the user alone (mode 0700).
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        atomic_write(path, lambda file: np.savez(file, allow_pickle=False, **arrays), mode=0o600)
        return True
    except OSError as error:
        warnings.warn(
            f"the cache folder {path.parent} cannot be written ({error.strerror or error}): the work will be done "
            "again next time. Set RANKTUNE_CACHE to a folder that can be written.",
            RankTuneWarning,
            stacklevel=2,
        )
        return False


def remove_old(folder: Path, pattern: str, days: float) -> None:
    """Remove the files of folder that match pattern and were written more than days ago; errors are ignored."""
    oldest = time.time() - days * 86_400
    with contextlib.suppress(OSError):
        for path in sorted(folder.glob(pattern)):
            if path.stat().st_mtime < oldest:
                path.unlink()
