"""Writing files atomically: a reader sees the old or the new content, whatever happens meanwhile."""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, TypeAlias

import platformdirs

Content: TypeAlias = bytes | str | Callable[[BinaryIO], object]

_REMEDIES = {
    errno.ENOSPC: "Free space",
    errno.EDQUOT: "Free space",
    errno.EFBIG: "Raise the limit on the size of files (ulimit -f)",
    errno.EIO: "Check the disk",
    errno.EROFS: "Make it writable",
    errno.EACCES: "Make it writable",
    errno.EPERM: "Make it writable",
}
_BY_SQLITE = {
    "database or disk is full": errno.ENOSPC,
    "disk I/O error": errno.EIO,
    "readonly database": errno.EROFS,
    "unable to open database file": errno.EACCES,
}
_DRAFT = re.compile(r"\..*\.[0-9a-f]{16}\.tmp")


def remedy_of(error: BaseException) -> str | None:
    """Return what helps against an error of a file system, as the beginning of a sentence; None if that is unknown."""
    return _REMEDIES.get(_number_of(error) or 0)


def refusal_of(error: BaseException) -> str | None:
    """Return what a file system refused, with the path and the remedy, as a sentence; None if the error is another.

    The error may be that of a library, raised from the error of the system or in its words.
    """
    cause: BaseException | None = error
    while cause is not None:
        number, path = _number_of(cause), getattr(cause, "filename", None)
        if number in _REMEDIES or (number not in (None, errno.ENOMEM, errno.EPIPE) and path is not None):
            remedy = remedy_of(cause) or "Check the path"
            place = "a file or the output" if path is None else os.fsdecode(path) if isinstance(path, bytes) else path
            return f"cannot use {place}: {os.strerror(number or 0)}. {remedy}, or choose another place; then try again."
        cause = cause.__cause__
    if isinstance(error, UnicodeEncodeError) and error.reason.startswith("surrogates"):
        return f"'{error.object[:200]}' is no text in UTF-8. Rename what is called so."
    return None


def _number_of(error: BaseException) -> int | None:
    """Return the number of the system's error; libraries may tell it in words alone.

    NumPy says of a write that was cut short, for lack of room: "10 requested and 3 written".
    """
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno
    text, named = str(error), {os.strerror(number): number for number in _REMEDIES} | _BY_SQLITE
    cut = errno.ENOSPC if text.endswith(" written") else None
    return next((number for words, number in named.items() if words in text), cut)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Let an error of the file system in the block name a path, where it names none, or a draft."""
    try:
        yield
    except OSError as error:
        number, name = _number_of(error), str(error.filename or "")
        if number is None or (name and not _DRAFT.fullmatch(os.path.basename(name))):
            raise
        raise OSError(number, os.strerror(number), str(path)) from error


def remove_drafts(folder: Path, before: float) -> None:
    """Remove what processes left below a folder that were ended while they wrote, and last wrote before that time."""
    for draft in folder.rglob(".*.tmp"):
        with suppress(OSError):
            if _DRAFT.fullmatch(draft.name) and draft.stat().st_mtime < before:
                draft.unlink()


def atomic_write(path: Path, content: Content, *, mode: int = 0o666) -> None:
    """Write content as the file at path: a crash, an error or a power cut leaves the old or the new file.

    What cannot be replaced, such as a pipe or a device, is written to.

    Parameters
    ----------
    path : Path
        The file to write or replace. Its folder must exist.
    content : bytes, str or callable
        What the file holds, text as UTF-8. A callable writes it into the open binary file that it is given.
    mode : int, default=0o666
        Permissions of the new file, before the umask.

    Raises
    ------
    OSError
        The file cannot be written. Nothing but the old file, if any, is left.
    """
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")

    def fill(file: BinaryIO) -> None:
        if callable(content):
            content(file)
        else:
            file.write(content.encode() if isinstance(content, str) else content)
        file.flush()

    with naming(path):
        if path.exists() and not path.is_file():
            with open(path, "wb") as special:
                fill(special)
            return
        try:
            with open(draft, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
                fill(file)
                os.fsync(file.fileno())
            os.replace(draft, path)
        except BaseException:
            with suppress(OSError):
                draft.unlink(missing_ok=True)
            raise
        sync_folder(path.parent)


def sync_file(path: Path) -> None:
    """Write the content of a file through to the disk."""
    with open(path, "rb+") as file:
        os.fsync(file.fileno())


def sync_folder(path: Path) -> None:
    """Write the names in a folder through to the disk: a new name has to survive a power cut too."""
    if os.name == "posix":
        folder = os.open(path, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """Yield a new folder beside path, which becomes path when the block ends, or is removed when it fails.

    Raises FileExistsError, at the end, if path exists by then. The caller synchronises the files that it writes.
    """
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    draft.mkdir(mode=0o777)
    try:
        yield draft
        sync_folder(draft)
        try:
            os.rename(draft, path)
        except OSError as error:
            if path.exists():
                raise FileExistsError(errno.EEXIST, "exists already", str(path)) from error
            raise
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise
    sync_folder(path.parent)


def cache_folder() -> Path:
    """Return the user's cache folder: RANKTUNE_CACHE, or that of the platform."""
    chosen = os.environ.get("RANKTUNE_CACHE")
    return Path(os.path.expanduser(chosen)) if chosen else platformdirs.user_cache_path("ranktune", appauthor=False)


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
