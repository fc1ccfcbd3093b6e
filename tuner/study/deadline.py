"""The time limit of a study."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True)
class Deadline:
    """A moment in seconds of clock, which is monotonic; infinity if there is no deadline."""

    at: float = float("inf")
    clock: Callable[[], float] = time.monotonic

    @classmethod
    def after(cls, seconds: float | None, clock: Callable[[], float] = time.monotonic) -> Self:
        """Return the deadline after so many seconds, None for no deadline."""
        return cls(float("inf") if seconds is None else clock() + seconds, clock)

    @property
    def left(self) -> float:
        """Seconds until the deadline; negative after it."""
        return self.at - self.clock()

    def share(self, parts: int) -> Deadline:
        """Return the deadline of the first of so many equal parts of the time that is left."""
        return self if self.at == float("inf") else Deadline(self.clock() + self.left / parts, self.clock)
