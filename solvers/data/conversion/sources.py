"""The file that data come from: what is noted of it, so that a change is noticed before its converted form is used."""

from __future__ import annotations

import hashlib
from pathlib import Path

from ranktune.solvers.core.arrays import Json
from ranktune.solvers.core.errors import DataError

_SAMPLES, _SAMPLE = 16, 1 << 14


def facts_of(path: Path) -> Json:
    """Return the size of a file, when it changed, and a digest of 16 samples of it, its beginning and its end too.

    Raises DataError where it cannot be read.
    """
    try:
        about = path.stat()
        digest = hashlib.blake2b(digest_size=16)
        with open(path, "rb", buffering=0) as file:
            last = max(about.st_size - _SAMPLE, 0)
            for number in range(_SAMPLES):
                file.seek(last * number // (_SAMPLES - 1))
                digest.update(file.read(_SAMPLE))
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}).") from None
    return {
        "path": str(path.absolute()),
        "size": about.st_size,
        "mtime_ns": about.st_mtime_ns,
        "digest": digest.hexdigest(),
    }


def check_unchanged(path: Path, before: Json) -> None:
    """Raise DataError unless a file is what it was when it was opened."""
    if facts_of(path) != before:
        raise DataError(f"{path}: changed while it was read. Read it again when nothing writes to it any more.")
