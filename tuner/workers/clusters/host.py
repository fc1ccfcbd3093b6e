"""The functions of a study on one member of a cluster: worker processes there, with the data of the study."""

from __future__ import annotations

import hashlib
import pickle
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ranktune.solvers.core.libraries import this_version
from ranktune.tuner.splits.archive import unpack_problem, use_instead
from ranktune.tuner.workers.limits import Limits
from ranktune.tuner.workers.processes import Processes

POLL_SECONDS = 2.0
"""Seconds between two checks whether a function is still wanted."""


@dataclass(frozen=True)
class WorkerInfo:
    """Description of a member; id changes with each start."""

    id: str
    python: str
    version: str
    threads: int


def described(member: str, threads: int) -> WorkerInfo:
    """Return the description of the member that this process is."""
    return WorkerInfo(member, f"{sys.version_info.major}.{sys.version_info.minor}", this_version(), threads)


def unpacked(folder: str, packed: bytes) -> Path | None:
    """Unpack the problem of a folder, under a name with a digest of its content; None where the folder is here."""
    if Path(folder).is_dir():
        return None
    digest = hashlib.sha256(packed).hexdigest()[:16]
    return unpack_problem(packed, f"{Path(folder).name}-{digest}")


class ClusterHost:
    """Runs the functions of one coordinator on worker processes; folders say where the data of studies are here."""

    def __init__(self, threads: int, folders: dict[str, Path]) -> None:
        self.folders = folders
        self._executor = Processes(threads)
        self._running: dict[str, Future[Any]] = {}
        self._stopped: set[str] = set()
        self._lock = threading.Lock()

    def run(self, key: str, payload: bytes, limits: Limits, wanted: Callable[[], bool]) -> Any:
        """Run the call in payload, and end it when it is no longer wanted."""
        with self._lock:
            future = self._executor.submit(_run_payload, dict(self.folders), payload, limits=limits)
            self._running[key] = future
            if key in self._stopped:
                self._executor.stop(future)
        try:
            while not wait([future], POLL_SECONDS).done:
                if not wanted():
                    self._executor.stop(future)
            return future.result()
        finally:
            with self._lock:
                del self._running[key]
                self._stopped.discard(key)

    def stop(self, key: str) -> None:
        """End the function of that key, or prevent its start."""
        with self._lock:
            self._stopped.add(key)
            if key in self._running:
                self._executor.stop(self._running[key])

    def close(self) -> None:
        """End all worker processes."""
        self._executor.__exit__(KeyboardInterrupt, None, None)


def _run_payload(folders: dict[str, Path], payload: bytes) -> Any:
    """Run payload, in a process with the folders of the data."""
    for folder, path in folders.items():
        use_instead(folder, path)
    function, arguments = pickle.loads(payload)
    return function(*arguments)
