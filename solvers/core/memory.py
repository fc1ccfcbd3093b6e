"""The memory of the machine, of the container of this process, and of a limit that the user sets."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ranktune.solvers.core.errors import DataError, ParameterError

_UNITS = {"": 1, "b": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30}
_CGROUPS = Path("/sys/fs/cgroup")

_limit: int | None = None


def parse_memory(value: int | str | None, name: str) -> int | None:
    """Return a size in bytes: a number, or text such as 4GB, 512M, 2GiB. Raises ParameterError where it is no size."""
    if value is None:
        return None
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?i?)b?\s*", str(value).lower())
    size = int(float(match[1]) * _UNITS[match[2]]) if match and match[2] in _UNITS else 0
    if size <= 0 or isinstance(value, bool):
        raise ParameterError(f"{name}={value!r}: it must be a number of bytes, such as 4GB or 512M.")
    return size


def format_size(size: float) -> str:
    """Return a size in bytes as text, such as 6.5 GB."""
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{max(size, 0.0) / 1e6:.0f} MB"


@contextmanager
def limited_to(size: int | None) -> Iterator[None]:
    """Let check_room assume at most so many bytes in the block, all free bytes for None."""
    global _limit
    before, _limit = _limit, size
    try:
        yield
    finally:
        _limit = before


def free_memory() -> int:
    """Return the bytes that this process may still take."""
    import psutil  # the import takes 10 ms

    sizes = [int(psutil.virtual_memory().available), *_left_in_container()]
    if _limit is not None:
        sizes.append(_limit - int(psutil.Process().memory_info().rss))
    return max(min(sizes), 0)


def check_room(what: str, size: int) -> None:
    """Raise DataError, before anything is read, if size bytes, which what takes in memory, are more than are free."""
    free = free_memory()
    if size <= free:
        return
    bound = "" if _limit is None else f" of the {format_size(_limit)} that memory allows"
    raise DataError(
        f"{what} takes about {format_size(size)} of memory, and {format_size(free)}{bound} are free. Convert the data "
        "first, which takes little memory (ranktune.convert), or give fewer rows or columns, or more memory."
    )


def release_freed() -> None:
    """Return freed memory to the system: glibc keeps tens of megabytes after reading."""
    with suppress(AttributeError, OSError):  # another C library has no such function
        ctypes.CDLL(None).malloc_trim(0)


def _left_in_container() -> list[int]:
    """Return the bytes that the control group of this process leaves, if it has a limit: version 2, or 1."""
    groups = {""}
    with suppress(OSError):
        groups |= {line.rsplit(":", 1)[1].strip() for line in Path("/proc/self/cgroup").read_text().splitlines()}
    sizes = []
    for group in groups:
        for folder, limit, used in (
            (_CGROUPS, "memory.max", "memory.current"),
            (_CGROUPS / "memory", "memory.limit_in_bytes", "memory.usage_in_bytes"),
        ):
            place = folder / group.lstrip("/")
            with suppress(OSError, ValueError):  # "max" is no limit
                sizes.append(int((place / limit).read_text()) - int((place / used).read_text()))
    return sizes
