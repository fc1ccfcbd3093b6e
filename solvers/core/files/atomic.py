"""Writing files atomically: a reader sees the old or the new content, whatever happens meanwhile."""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, BinaryIO, TypeAlias

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
_DRAFT = re.compile(r"\..*?\.(?:(\d+)-(\d+)-(\w+)\.)?[0-9a-f]{16}\.tmp", re.DOTALL)
_AGE = 7 * 86_400.0
"""Seconds after which a draft is removed whose process cannot be seen from here, such as one of another host."""
_LOCKED_BYTE = 1 << 30
_swept: set[Path] = set()
_BY_SQLITE = {
    "database or disk is full": errno.ENOSPC,
    "disk I/O error": errno.EIO,
    "readonly database": errno.EROFS,
    "unable to open database file": errno.EACCES,
}


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


def remove_drafts(folder: Path, before: float | None = None, pattern: str = ".*.tmp") -> None:
    """Remove the drafts in a folder, files and folders, whose process has ended.

    Those whose process cannot be seen from here, on other hosts or of earlier releases, are removed if they were last
    written before that time, by default a week ago.
    """
    for draft in list(folder.glob(pattern)):
        with suppress(OSError):
            if (named := _DRAFT.fullmatch(draft.name)) and not _is_owned(draft, named, before):
                shutil.rmtree(draft, ignore_errors=True)
                draft.unlink(missing_ok=True)  # where it is a file or a link


def _is_owned(draft: Path, named: re.Match[str], before: float | None) -> bool:
    pid, ticks, place = named.groups()
    if pid and place == _place():
        return is_alive(int(pid), f"{boot()}:{ticks}")
    return draft.lstat().st_mtime >= (time.time() - _AGE if before is None else before)


def draft_of(path: Path) -> Path:
    """Return a path beside path that nothing has, for a draft of it; its name says which process owns it.

    The first time that a process asks for one in a folder, it removes what processes that have ended left there.
    """
    if path.parent not in _swept:
        _swept.add(path.parent)
        remove_drafts(path.parent)
    ticks = started(os.getpid()).rpartition(":")[2]
    owner = f"{os.getpid()}-{ticks}-{_place()}." if ticks else ""
    return path.with_name(f".{path.name[:40]}.{owner}{secrets.token_hex(8)}.tmp")


def temporary_folder() -> Path:
    """Return a new folder for temporary files, for the user alone. The caller removes it."""
    folder = draft_of(Path(tempfile.gettempdir(), "ranktune"))
    folder.mkdir(mode=0o700)
    return folder


def boot() -> str:
    """Return what identifies this boot of the machine, "" if the system does not say."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""


def started(pid: int) -> str:
    """Return what identifies a process among those of its number: "boot:ticks", "" if unknown."""
    try:
        state, *numbers = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
        return f"{boot()}:ended" if state in "ZX" else f"{boot()}:{numbers[18]}"
    except (OSError, ValueError, IndexError):
        return ""


def is_alive(pid: int, before: str) -> bool:
    """Return whether the process of a number runs on this machine, and began as `started` has it."""
    if os.name != "posix":  # there signal 0 would end it
        return True
    try:
        os.kill(pid, 0)
    except PermissionError:
        pass
    except (OSError, OverflowError):
        return False
    now = started(pid)
    return not before or not now or now == before


def _place() -> str:
    """Return what identifies this boot of the machine, and the container whose numbers of processes are seen."""
    numbers = 0
    with suppress(OSError):
        numbers = os.stat("/proc/self/ns/pid").st_ino
    return f"{numbers:x}{boot()[:8]}"


def try_lock(file: IO[str]) -> bool:
    """Lock an open file for this process until it is closed, by the system; return False where another one holds it."""
    try:
        import fcntl
    except ImportError:  # Windows, where locked bytes cannot be read: lock one far behind the text
        import msvcrt

        file.seek(_LOCKED_BYTE)
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
        except OSError:
            return False
        return True
    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    return True


@contextmanager
def locked(path: Path, seconds: float = 60.0) -> Iterator[None]:
    """Hold the lock of what is at path, in a hidden file beside it, once no other process does.

    Raises OSError: a TimeoutError where another one holds it for so many seconds.
    """
    until = time.monotonic() + seconds
    with open(path.with_name(f".{path.name}.lock"), "a+", encoding="utf-8") as file:
        while not try_lock(file):
            if time.monotonic() > until:
                raise TimeoutError(errno.ETIMEDOUT, "another process has locked it", str(path))
            time.sleep(0.005)
        yield


def atomic_write(path: Path, content: Content, *, mode: int = 0o666, sync: bool = True) -> None:
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
    sync : bool, default=True
        Whether it is written through to the disk. If not, a power cut may leave a damaged file.

    Raises
    ------
    OSError
        The file cannot be written. Nothing but the old file, if any, is left.
    """
    draft = draft_of(path)

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
                if sync:
                    os.fsync(file.fileno())
            os.replace(draft, path)
        except BaseException:
            with suppress(OSError):
                draft.unlink(missing_ok=True)
            raise
        if sync:
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
def atomic_folder(path: Path, mode: int = 0o777) -> Iterator[Path]:
    """Yield a new folder beside path, which becomes path when the block ends, or is removed when it fails.

    Raises FileExistsError, at the end, if path exists by then. The caller synchronises the files that it writes.
    """
    draft = draft_of(path)
    draft.mkdir(mode)
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
