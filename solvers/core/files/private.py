"""Folders that only the user can change, of which code and arrays are believed."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TypeVar

import platformdirs

from ranktune.solvers.core.files.atomic import atomic_folder, draft_of

T = TypeVar("T")


def cache_folder() -> Path:
    """Return the user's cache folder: RANKTUNE_CACHE, or that of the platform."""
    chosen = os.environ.get("RANKTUNE_CACHE")
    return Path(os.path.expanduser(chosen)) if chosen else platformdirs.user_cache_path("ranktune", appauthor=False)


class NotPrivate(OSError):
    """Others than the user could change what a folder holds."""


def private_folder(*names: str) -> Path:
    """Return a folder below the cache folder that only the user can change. Raises what `made_private` raises."""
    return made_private(cache_folder().joinpath(*names))


def made_private(path: Path) -> Path:
    """Return the real path of a folder that only the user and root can change, made where it is missing.

    Code and arrays are believed from such folders alone. Raises NotPrivate, or OSError if it cannot be written.
    """
    path = path.absolute()
    with suppress(FileNotFoundError):
        path.stat()  # it raises where links form a circle
    path = _made(path)
    probe = path / f".{secrets.token_hex(8)}"
    probe.touch(exist_ok=False)
    probe.unlink()
    return path


def cached(folder: Path, read: Callable[[Path], T | None], write: Callable[[Path], object]) -> T:
    """Return what read finds in a folder that the user alone can change. Where that is None, write makes it anew.

    Another process may do the same at the same time. Raises OSError where the folder cannot be written.
    """
    for _ in range(3):
        with suppress(FileNotFoundError, NotADirectoryError):
            if is_own_folder(folder) and (found := read(folder)) is not None:
                return found
        with suppress(OSError):
            folder.lstat()  # it raises where there is none
            old = draft_of(folder)
            folder.rename(old)  # at once, so that no process sees half of it
            shutil.rmtree(old, ignore_errors=True)
        with suppress(FileExistsError), atomic_folder(folder, 0o700) as draft:
            write(draft)
    raise OSError(errno.EBUSY, "another user or process changes it", str(folder))


def is_writable(path: Path) -> bool:
    """Return whether a folder can be written, and by the user alone; it is made if it is missing."""
    with suppress(OSError):
        return made_private(path).is_dir()
    return False


def is_own(path: Path) -> bool:
    """Return whether only the user and root can change a file or folder that is in a private one."""
    return not _weakness(path.lstat())


def is_own_folder(path: Path) -> bool:
    """Return whether a folder in a private one is the user's, and all that is in it."""
    return is_own(path) and not any(_is_foreign(entry.lstat()) for entry in path.iterdir())


def _made(path: Path, *, is_way: bool = False) -> Path:
    """Return the real path of a folder, made where it is missing; each level and link is checked before the next.

    So nobody can replace one that was checked. is_way: what is in it is checked as well.
    """
    if path.parent != path:
        path = _made(path.parent, is_way=True) / path.name
        if path.name == "..":
            path = path.parent.parent
        if not os.path.lexists(path):
            with suppress(FileExistsError):
                path.mkdir(mode=0o700)
    is_link = path.is_symlink()
    if weakness := _weakness(path.lstat(), is_way=is_way or is_link):
        raise NotPrivate(f"{path} {weakness}")
    return _made(path.parent / os.readlink(path), is_way=is_way) if is_link else path


def _weakness(about: os.stat_result, *, is_way: bool = False) -> str:
    """Return how others than the user could change what has this status, "" where they cannot.

    On the way, a link can be changed in its folder only, and what the user has in a folder for all by nobody else where
    that has the sticky bit, as /tmp does.
    """
    if _is_foreign(about):
        return f"belongs to another user ({about.st_uid})"
    if os.name != "posix" or (is_way and (stat.S_ISLNK(about.st_mode) or about.st_mode & stat.S_ISVTX)):
        return ""
    if about.st_mode & 0o002 or (about.st_mode & 0o020 and not _is_private(about.st_gid)):
        return f"can be written by others (mode {about.st_mode & 0o777:03o})"
    return ""


def _is_foreign(about: os.stat_result) -> bool:
    return os.name == "posix" and about.st_uid not in (0, os.geteuid())


@cache
def _is_private(group: int) -> bool:
    """Return whether the user alone is in a group, as where systems make one with each user, and the umask is 002."""
    import grp
    import pwd

    with suppress(KeyError):
        members = {*grp.getgrgid(group).gr_mem, *(user.pw_name for user in pwd.getpwall() if user.pw_gid == group)}
        return members == {pwd.getpwuid(os.geteuid()).pw_name}
    return False
