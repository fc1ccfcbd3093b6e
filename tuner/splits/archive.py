"""Archives of problems for hosts that do not share a file system: packed, sent, and unpacked under the user's cache.

An archive is an uncompressed zip file of the arrays (.npy, .npz) and JSON files of the problem's folder, without its
subfolders, which hold the test queries. Equal folders give equal bytes.
"""

from __future__ import annotations

import hashlib
import io
import re
import zipfile
from contextlib import suppress
from pathlib import Path

from ranktune.solvers.core.errors import Damaged, DataError
from ranktune.solvers.core.files.archives import read_members
from ranktune.solvers.core.files.private import cached
from ranktune.tuner.splits.seals import DIGESTS, proven, seal
from ranktune.tuner.splits.store import store

KINDS = (".json", ".npy", ".npz")


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
    files = _files(packed)
    digests = {file: hashlib.sha256(content).hexdigest() for file, content in files.items()}

    def is_there(folder: Path) -> Path | None:
        with suppress(Damaged):
            if proven(folder) == digests:
                return folder
        return None

    def write(folder: Path) -> None:
        for file, content in files.items():
            (folder / file).write_bytes(content)
        seal(folder)

    return cached(store() / name, is_there, write)


def _files(packed: bytes) -> dict[str, bytes]:
    """Return file name -> content, which is not compressed and takes no more memory than packed."""
    try:
        files = read_members(packed, len(packed))
    except Damaged as damage:
        raise DataError(f"the packed problem is damaged: {damage}") from None
    if not files or not all(re.fullmatch(r"\w[\w.-]*\.(json|npy|npz)", file) for file in files):
        raise DataError("the packed problem is damaged: it has members that no problem has.")
    return files
