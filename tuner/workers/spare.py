"""A spare worker: it has loaded what trials need, and takes the place of one that is lost.

A worker that is started anew needs about a second until it learns; the spare one begins at once, for some 50 MB of
memory. There is one for all lanes.
"""

from __future__ import annotations

import threading
import time
from concurrent.futures import BrokenExecutor
from contextlib import suppress

from ranktune.tuner.workers.process import WorkerProcess

QUIET = 1.0
"""Seconds from the start of a worker to that of a spare one: it takes no time from those that are waited for."""


class Spare:
    """At most one worker that no lane has yet. It lives as long as the thread that keeps it, as all workers do."""

    def __init__(self) -> None:
        self.worker: WorkerProcess | None = None
        self._quiet = 0.0

    def keep(self) -> None:
        """Start it, unless there is one, or another worker was started just now."""
        if self.worker is not None:
            self.worker.read_output()
            self.worker.read_marks()
            if self.worker.dead:
                self.drop()
        if self.worker is None and time.monotonic() >= self._quiet:
            self.worker = self.loading()

    def take(self) -> WorkerProcess:
        """Return it, no longer a spare one then; where there is none, a worker that its first function starts."""
        worker, self.worker = self.worker, None
        if worker is not None and not worker.dead:
            return worker
        if worker is not None:
            worker.kill()
        self._quiet = time.monotonic() + QUIET
        return WorkerProcess()

    def loading(self) -> WorkerProcess | None:
        """Return a new worker that loads what trials need, None where it cannot be started."""
        self._quiet = time.monotonic() + QUIET
        with suppress(OSError, BrokenExecutor):
            worker = WorkerProcess()
            worker.load()
            return worker
        return None

    def drop(self) -> threading.Thread | None:
        """End it, if there is one; return the thread that tidies up after it."""
        worker, self.worker = self.worker, None
        return None if worker is None else worker.kill()
