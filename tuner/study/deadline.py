"""The time limit of a study."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Self, TypeVar

T = TypeVar("T")

AFTERWARDS = 0.8
"""Seconds that a command takes once its study has ended: for its table, its page, and the end of its processes."""
POLL = 0.02
"""Seconds between two looks at whether what has ended suffices."""
_BEGUN = ContextVar("begun", default=0.0)


@contextmanager
def limits_of_command(begun: float) -> Iterator[None]:
    """Let time limits count from the moment of the steady clock at which a command began, and hold for all of it."""
    token = _BEGUN.set(begun - AFTERWARDS)
    try:
        yield
    finally:
        _BEGUN.reset(token)


@dataclass(frozen=True)
class Deadline:
    """A moment in seconds of clock, which is monotonic; infinity if there is no deadline."""

    at: float = float("inf")
    clock: Callable[[], float] = time.monotonic

    @classmethod
    def after(cls, seconds: float | None, clock: Callable[[], float] = time.monotonic) -> Self:
        """Return the deadline after so many seconds, of a command since it began; None for no deadline."""
        from ranktune.solvers.core.checks import check_positive  # it loads NumPy, which --help does without

        if seconds is not None:
            check_positive("timeout", seconds)
        return cls(float("inf") if seconds is None else (_BEGUN.get() or clock()) + seconds, clock)

    @property
    def left(self) -> float:
        """Seconds until the deadline; negative after it."""
        return self.at - self.clock()

    def share(self, parts: int) -> Deadline:
        """Return the deadline of the first of so many equal parts of the time that is left."""
        return self if self.at == float("inf") else Deadline(self.clock() + self.left / parts, self.clock)

    def before(self, seconds: float) -> Deadline:
        """Return the deadline so many seconds earlier."""
        return Deadline(self.at - seconds, self.clock)

    def end(
        self,
        jobs: Collection[Future[T]],
        stop: Callable[[Future[T]], None],
        suffices: Callable[[], bool] = lambda: True,
    ) -> bool:
        """Wait until all functions have ended, and return whether they have by themselves.

        Those that still run at the deadline are stopped, but not before those that have ended suffice.
        """
        while running := [job for job in jobs if not job.done()]:
            if self.left <= 0.0 and suffices():
                for job in running:
                    stop(job)
                return False
            wait(running, min(max(self.left, POLL), 1.0), FIRST_COMPLETED)
        return True
