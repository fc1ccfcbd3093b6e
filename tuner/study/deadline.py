"""How long a study may take, and when its search must end so that choosing and learning again fit in too."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True)
class Deadline:
    """A moment of clock (seconds), or none; clock is steady: it does not jump when the system's time is set."""

    at: float = float("inf")
    clock: Callable[[], float] = time.monotonic

    @classmethod
    def after(cls, seconds: float | None, clock: Callable[[], float] = time.monotonic) -> Self:
        """Return the moment so many seconds from now; None is never."""
        return cls(float("inf") if seconds is None else clock() + seconds, clock)

    @property
    def left(self) -> float:
        """Seconds until then, infinity where there is no deadline; negative when it is over."""
        return self.at - self.clock()

    def share(self, parts: int) -> Deadline:
        """Return the deadline of the first of so many equal parts of the time that is left."""
        return self if self.at == float("inf") else Deadline(self.clock() + self.left / parts, self.clock)
