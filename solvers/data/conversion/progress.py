"""Progress of a conversion as a line a second, once it takes longer than two seconds."""

from __future__ import annotations

import time
from collections.abc import Callable

AFTER, EVERY = 2.0, 1.0


class ShareReport:
    """Says how much of a file is done, and how long the rest takes at the speed since the first call."""

    def __init__(self, what: str, say: Callable[[str], object], clock: Callable[[], float] = time.monotonic) -> None:
        self.what, self._say, self._clock = what, say, clock
        self._last = clock() + AFTER - EVERY
        self._first: tuple[float, float] | None = None

    def __call__(self, share: float) -> None:
        """Say that a share of the file, at most 1, is done, if it is time to."""
        now, share = self._clock(), min(share, 1.0)
        if self._first is None:  # what comes before it, such as compiling, is done once
            self._first = now, share
        if now - self._last >= EVERY:
            self._last = now
            start, done = self._first
            left = f", about {(now - start) * (1.0 - share) / (share - done):.0f} s left" if share > done else ""
            self._say(f"{self.what}: {share:.0%}{left}")
