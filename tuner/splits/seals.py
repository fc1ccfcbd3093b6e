"""The proof that stored files are what was written: digests, which are compared before the files are used.

A folder that is written once has a file of the digests of all its files, written last. A file that is replaced has a
digest of its own in digests/NAME beside it. That is removed before the file is replaced and written afterwards:
wherever a process ends in between, the file is as it was or as it shall be, and unproven. Files of older releases are
unproven too.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ranktune.solvers.core.errors import Damaged
from ranktune.solvers.core.files.atomic import Content, atomic_write, sync_file, sync_folder

if TYPE_CHECKING:
    from ranktune.solvers.core.arrays import Array, Json

DIGESTS = "digests.json"
FOLDER = "digests"
_ATTEMPTS = 3


def seal(folder: Path) -> None:
    """Write the files of a folder and of its subfolders through to the disk, and their digests into the folder."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and path != folder / DIGESTS]
    digests = {path.relative_to(folder).as_posix(): file_digest(path, sync=True) for path in files}
    for parent in {path.parent for path in files}:
        sync_folder(parent)
    atomic_write(folder / DIGESTS, json.dumps(digests, indent=0))


def reseal(folder: Path, name: str) -> None:
    """Replace the digest of one file, which was written anew."""
    digests = _digests(folder) | {name: file_digest(folder / name, sync=True)}
    atomic_write(folder / DIGESTS, json.dumps(digests, indent=0))


def proven(folder: Path) -> dict[str, str]:
    """Return the digests of the files of a folder. Raises Damaged, which names the first that has another one."""
    digests = _digests(folder)
    for name, digest in digests.items():
        if fault := _fault(folder / name, digest):
            raise Damaged(fault)
    return digests


def _digests(folder: Path) -> dict[str, str]:
    try:
        digests = json.loads((folder / DIGESTS).read_text(encoding="utf-8"))
        if not isinstance(digests, dict) or not digests:
            raise ValueError("it holds no digests")
    except (OSError, ValueError, RecursionError) as error:
        raise Damaged(f"cannot read {folder / DIGESTS}: {getattr(error, 'strerror', None) or error}.") from None
    return {str(name): str(digest) for name, digest in digests.items()}


def file_digest(path: Path, *, sync: bool = False) -> str:
    """Return the digest of a file, which is written through to the disk with sync."""
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if sync:
        sync_file(path)
    return digest


def _fault(path: Path, digest: str) -> str:
    """Return how a file is not what has that digest, "" where it is."""
    try:
        return "" if file_digest(path) == digest else f"{path} is damaged: it is not what was written there."
    except FileNotFoundError:
        return f"{path} is missing."
    except OSError as error:
        raise Damaged(f"cannot read {path}: {error.strerror}.") from None


def write_sealed(path: Path, content: Content) -> None:
    """Write a file atomically, and its digest. Raises OSError."""
    with sealing(path):
        atomic_write(path, content)


@contextmanager
def sealing(path: Path) -> Iterator[None]:
    """Let the block write the file at path, and then write its digest. Raises OSError."""
    seal = _seal_of(path)
    seal.unlink(missing_ok=True)
    yield
    seal.parent.mkdir(exist_ok=True)
    atomic_write(seal, f"{file_digest(path)}\n")


def remove_sealed(path: Path) -> None:
    """Remove a file and its digest, if they are there. Raises OSError."""
    _seal_of(path).unlink(missing_ok=True)
    path.unlink(missing_ok=True)


def is_written(path: Path) -> bool:
    """Return whether the file at path was written, even if it is gone since."""
    return path.exists() or _seal_of(path).exists()


def check_sealed(path: Path) -> None:
    """Raise Damaged where the file at path is gone, or is not what was written there."""
    for attempt in range(_ATTEMPTS):
        expected = _known(path)
        fault = "" if expected is None else _fault(path, expected)
        if not fault:
            return
        if attempt and _known(path) == expected:  # else it is being replaced at this moment
            raise Damaged(fault)


def read_sealed(path: Path) -> Any:
    """Return the JSON in a file, None where there is none. Raises Damaged where it is not what was written there."""
    check_sealed(path)
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise Damaged(f"cannot read {path}: {error}.") from None


def read_sealed_arrays(path: Path) -> tuple[Json, dict[str, Array]]:
    """Return the header and the arrays of a sealed archive. Raises Damaged where it is not what was written."""
    from ranktune.solvers.core.files.archives import read_headed  # loads numpy, which a list of studies does without

    check_sealed(path)
    return read_headed(path)


def _seal_of(path: Path) -> Path:
    return path.parent / FOLDER / path.name


def _known(path: Path) -> str | None:
    """Return the digest of a file, None where it has none."""
    try:
        return _seal_of(path).read_text(encoding="ascii", errors="replace").strip()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Damaged(f"cannot read {_seal_of(path)}: {error.strerror}.") from None
