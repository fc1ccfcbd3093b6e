"""A spare worker with its libraries loaded, which replaces a lost one.

A new worker needs about a second until it trains; the spare one begins at once, for some 50 MB of memory.
"""

from __future__ import annotations

import threading
import time
from concurrent.futures import BrokenExecutor
from contextlib import suppress

from ranktune.tuner.workers.worker_process import WorkerProcess

SPARE_DELAY = 1.0
"""Seconds after the start of another worker before the spare one starts, so that it does not delay that one."""


class SpareWorker:
    """At most one worker that has no slot yet."""

    def __init__(self) -> None:
        self.worker: WorkerProcess | None = None
        self._not_before = 0.0

    def ensure(self) -> None:
        """Start it, unless there is one or another worker was started just now."""
        if self.worker is not None:
            self.worker.read_output()
            self.worker.read_marks()
            if self.worker.dead:
                self.kill()
        if self.worker is None and time.monotonic() >= self._not_before:
            self.worker = self.start()

    def take(self) -> WorkerProcess:
        """Return it, which is then no longer the spare one; without one, a worker that its first function starts."""
        worker, self.worker = self.worker, None
        if worker is not None and not worker.dead:
            return worker
        if worker is not None:
            worker.kill()
        self._not_before = time.monotonic() + SPARE_DELAY
        return WorkerProcess()

    def start(self) -> WorkerProcess | None:
        """Return a new worker that loads the libraries of trials, None if it cannot be started."""
        self._not_before = time.monotonic() + SPARE_DELAY
        with suppress(OSError, BrokenExecutor):
            worker = WorkerProcess()
            worker.load()
            return worker
        return None

    def kill(self) -> threading.Thread | None:
        """End it, if there is one; return the thread that cleans up after it."""
        worker, self.worker = self.worker, None
        return None if worker is None else worker.kill()
