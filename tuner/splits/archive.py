"""Archives of problems for hosts that do not share a file system: packed, sent, and unpacked under the user's cache.

An archive is an uncompressed zip file of the arrays (.npy, .npz) and JSON files of the problem's folder, without its
subfolders, which hold the test queries. Equal folders give equal bytes.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import shutil
import zipfile
from contextlib import suppress
from pathlib import Path

from ranktune.solvers.core.errors import DataError
from ranktune.solvers.core.files import draft_of, is_own_folder
from ranktune.tuner.splits.proof import DIGESTS, UNREADABLE, Damaged, prove, seal
from ranktune.tuner.splits.store import store

KINDS = (".json", ".npy", ".npz")
DIGEST = "packed.sha256"


def pack_problem(folder: Path) -> bytes:
    """Return an archive of the files in folder, without subfolders."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_STORED) as archive:
        for path in sorted(folder.iterdir()):
            if path.suffix in KINDS and path.name != DIGESTS and path.is_file():
                archive.writestr(zipfile.ZipInfo(path.name), path.read_bytes())
    return packed.getvalue()


def unpack_problem(packed: bytes, name: str) -> Path:
    """Unpack an archive under the cache folder by name, as a whole or not at all, and return where.

    Nothing happens if it is there already. Raises DataError if `packed` is no archive of a problem.
    """
    if not re.fullmatch(r"[^/\\\0:]{1,200}", name) or name.startswith("."):
        raise DataError(f"{name!r} is not a valid name of a problem's folder.")
    target, digest = store() / name, hashlib.sha256(packed).hexdigest()
    if _is_there(target, digest):
        return target
    files = _members(packed)
    fresh = draft_of(target)
    fresh.mkdir(mode=0o700)
    try:
        for file, content in files.items():
            (fresh / file).write_bytes(content)
        seal(fresh)
        (fresh / DIGEST).write_text(digest)
        _put(fresh, target, digest)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return target


def _is_there(folder: Path, digest: str) -> bool:
    """Return whether a folder holds, whole, what this user unpacked from an archive of that digest."""
    with suppress(OSError, UnicodeDecodeError, Damaged):
        if is_own_folder(folder) and (folder / DIGEST).read_text() == digest:
            prove(folder)
            return True
    return False


def _put(fresh: Path, target: Path, digest: str) -> None:
    """Replace the folder target by fresh; another process may do the same at the same time."""
    for _ in range(10):
        with suppress(OSError):
            os.rename(fresh, target)
            return
        if _is_there(target, digest):
            return
        with suppress(OSError):  # other content is moved away and removed
            old = draft_of(target)
            os.rename(target, old)
            shutil.rmtree(old, ignore_errors=True)
    raise OSError(f"{target} cannot be written.")


def _members(packed: bytes) -> dict[str, bytes]:
    """Return file name -> content, which is not compressed and takes no more memory than packed."""
    try:
        with zipfile.ZipFile(io.BytesIO(packed)) as archive:
            members = archive.infolist()
            names = {member.filename for member in members}
            starts = min((member.header_offset for member in members), default=-1)  # not 0: the file was cut
            if (
                starts != 0
                or len(names) < len(members)
                or not all(_is_plain(member, len(packed)) for member in members)
            ):
                raise DataError("the packed problem is damaged: it has members that no problem has.")
            return {member.filename: archive.read(member) for member in members}
    except UNREADABLE as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"the packed problem is damaged: {error}") from None


def _is_plain(member: zipfile.ZipInfo, size: int) -> bool:
    """Whether member is a plain, uncompressed file of a problem."""
    stored = member.compress_type == zipfile.ZIP_STORED and member.compress_size == member.file_size <= size
    return stored and re.fullmatch(r"\w[\w.-]*\.(json|npy|npz)", member.filename) is not None
