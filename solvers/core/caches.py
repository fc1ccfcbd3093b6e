"""The user's cache folder: compiled kernels, example data, data that came from other machines, crash files.

What is in it can be made again. It belongs to one user, so that its folders are readable by that user alone.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

import platformdirs


def cache_folder() -> Path:
    """Return the user's cache folder: RANKTUNE_CACHE, or that of the platform."""
    chosen = os.environ.get("RANKTUNE_CACHE")
    return Path(chosen).expanduser() if chosen else platformdirs.user_cache_path("ranktune", appauthor=False)


def private_folder(*names: str) -> Path:
    """Return a folder below the cache folder, for the user alone. Raises OSError if it cannot be written."""
    path = cache_folder().joinpath(*names)
    _probe(path)
    return path


def is_writable(path: Path) -> bool:
    """Return whether a folder can be written; it is made if it is missing."""
    try:
        _probe(path)
    except OSError:
        return False
    return True


def _probe(path: Path) -> None:
    """Make a folder for the user alone if it is missing, and write into it. Raises OSError if that fails."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    probe = path / f".{secrets.token_hex(8)}"
    probe.touch(exist_ok=False)
    probe.unlink()
