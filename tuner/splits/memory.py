"""The limit on the memory of a trial, which is that of its process."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import psutil

_allowed: int | None = None


@contextlib.contextmanager
def uncounted() -> Iterator[None]:
    """Do not count the memory that the block takes or gives back: the data of the study, mapped at the first use."""
    if _allowed is None:
        yield
        return
    allowed, before = _allowed, own_memory()
    allow(None)
    try:
        yield
    finally:
        allow(allowed + own_memory() - before)


def allow(size: int | None) -> None:
    """Limit the data segments of this process to that many bytes, None for no limit."""
    global _allowed
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    soft = hard if size is None else size if hard == resource.RLIM_INFINITY else min(hard, size)
    resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))
    _allowed = size


def left() -> int | None:
    """Return how many bytes this process may still take, None without a limit."""
    return None if _allowed is None else max(_allowed - own_memory(), 0)


def own_memory() -> int:
    """Return the bytes of the data segments of this process, touched or not, which RLIMIT_DATA counts."""
    return int(psutil.Process().memory_info().data)
