"""The memory that a trial may take, of this process."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

_allowed: int | None = None


@contextlib.contextmanager
def uncounted() -> Iterator[None]:
    """Within it memory is taken that does not count: the data of the study, mapped at the first use."""
    if _allowed is None:
        yield
        return
    allowed, before = _allowed, own_memory()
    allow(None)
    try:
        yield
    finally:
        allow(allowed + max(0, own_memory() - before))


def allow(size: int | None) -> None:
    """Let this process have so many bytes of its own; None is as many as there are."""
    global _allowed
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    soft = hard if size is None else size if hard == resource.RLIM_INFINITY else min(hard, size)
    resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))
    _allowed = size


def own_memory() -> int:
    """Return the bytes of writable memory that this process has of its own, whether it has touched them or not."""
    import resource

    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[5]) * resource.getpagesize()
