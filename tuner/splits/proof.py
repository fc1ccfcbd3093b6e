"""The proof that stored arrays are what was written: checked before they are used.

A folder of arrays that are mapped has a file of their digests, written last. An archive of arrays (.npz) has a checksum
for each of its members, which is compared with every byte of it. Whatever reads stored arrays of a study comes here.
"""

from __future__ import annotations

import hashlib
import io
import json
import struct
import zipfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from ranktune.solvers.core.errors import StudyError
from ranktune.solvers.core.files import atomic_write, sync_file, sync_folder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

DIGESTS = "digests.json"
UNREADABLE = (
    ValueError, KeyError, TypeError, OSError, EOFError, SyntaxError, ArithmeticError, NotImplementedError, RuntimeError,
    zipfile.BadZipFile, zlib.error, struct.error,
)  # fmt: skip
"""What reading damaged archives and arrays may raise."""


class Damaged(StudyError):
    """A stored file is missing, or is not what was written."""


def seal(folder: Path) -> None:
    """Write the files of a folder and of its subfolders through to the disk, and their digests into the folder."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and path != folder / DIGESTS]
    digests = {path.relative_to(folder).as_posix(): file_digest(path, sync=True) for path in files}
    for parent in {path.parent for path in files}:
        sync_folder(parent)
    atomic_write(folder / DIGESTS, json.dumps(digests, indent=0))


def reseal(folder: Path, name: str) -> None:
    """Replace the digest of one file, which was written anew."""
    digests = _digests(folder)
    atomic_write(folder / DIGESTS, json.dumps(digests | {name: file_digest(folder / name, sync=True)}, indent=0))


def prove(folder: Path) -> None:
    """Compare the files of a folder with their digests. Raises Damaged, which names the first that differs."""
    for name, digest in _digests(folder).items():
        path = folder / name
        try:
            actual = file_digest(path)
        except OSError as error:
            raise Damaged(f"cannot read {path}: {error.strerror}.") from None
        if actual != digest:
            raise Damaged(f"{path} is damaged: it is not what was written there.")


def read_archive(source: Path | bytes) -> dict[str, NDArray[np.generic]]:
    """Return the arrays of an archive, name -> array, each compared with its checksum. Raises Damaged."""
    name = "the arrays" if isinstance(source, bytes) else str(source)
    try:
        file: BinaryIO = io.BytesIO(source) if isinstance(source, bytes) else open(source, "rb")
        with file, zipfile.ZipFile(file) as archive:
            if archive.comment or any(member.comment for member in archive.infolist()):
                raise ValueError("it has comments, which may hide members")
            # The whole member is read, and its checksum compared, before its header can ask for memory.
            return {member.filename.removesuffix(".npy"): _array(archive.read(member)) for member in archive.infolist()}
    except UNREADABLE as error:
        raise Damaged(f"cannot read {name}: {type(error).__name__}: {error}.") from None


def _array(content: bytes) -> NDArray[np.generic]:
    import numpy as np

    array: NDArray[np.generic] = np.lib.format.read_array(io.BytesIO(content), allow_pickle=False)
    return array


def _digests(folder: Path) -> dict[str, str]:
    try:
        digests = json.loads((folder / DIGESTS).read_text(encoding="utf-8"))
        if not isinstance(digests, dict) or not digests:
            raise ValueError("it holds no digests")
    except (OSError, ValueError, RecursionError) as error:
        reason = getattr(error, "strerror", None) or error
        raise Damaged(f"cannot read {folder / DIGESTS}: {reason}.") from None
    return {str(name): str(digest) for name, digest in digests.items()}


def file_digest(path: Path, *, sync: bool = False) -> str:
    """Return the digest of a file, which is written through to the disk with sync."""
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if sync:
        sync_file(path)
    return digest
