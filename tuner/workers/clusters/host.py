"""The functions of a coordinator on one member of a cluster: worker processes there, with the data of the study.

A process may be the member of several coordinators; each has a token.
"""

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
from ranktune.tuner.splits.archive import unpack_problem
from ranktune.tuner.splits.store import use_instead
from ranktune.tuner.workers.limits import Limits, pickled
from ranktune.tuner.workers.processes import Processes

POLL_SECONDS = 2.0
"""Seconds between two checks whether a function is still wanted."""


@dataclass(frozen=True)
class Versions:
    """The versions of a member."""

    python: str
    ranktune: str


class Host:
    """Runs the functions of one coordinator on worker processes."""

    def __init__(self, threads: int) -> None:
        self.folders: dict[str, Path] = {}
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


_hosts: dict[str, Host] = {}
_lock = threading.Lock()


def open_host(token: str, threads: int) -> Versions:
    """Make this process a member for the coordinator with that token, which runs so many functions at a time."""
    with _lock:
        if token not in _hosts:
            _hosts[token] = Host(threads)
    return versions()


def versions() -> Versions:
    """Return the versions of this process."""
    return Versions(f"{sys.version_info.major}.{sys.version_info.minor}", this_version())


def receive(token: str, folder: str, packed: bytes) -> None:
    """Unpack the problem of a folder, under a name with a digest of its content, unless the folder is here."""
    if token in _hosts and not Path(folder).is_dir():
        digest = hashlib.sha256(packed).hexdigest()[:16]
        _hosts[token].folders[folder] = unpack_problem(packed, f"{Path(folder).name}-{digest}")


def run(
    token: str, key: str, payload: bytes, limits: Limits, wanted: Callable[[], bool] = lambda: True
) -> bytes | None:
    """Return, pickled, whether the call in payload returned, and its result or error; None: this is no member."""
    host = _hosts.get(token)
    if host is None:
        return None
    try:
        return pickled((True, host.run(key, payload, limits, wanted)), None)
    except Exception as error:
        return pickled((False, error), None)


def stop(token: str, key: str) -> None:
    """End the function of that key, or prevent its start."""
    if token in _hosts:
        _hosts[token].stop(key)


def close_host(token: str) -> None:
    """End the worker processes for the coordinator with that token."""
    with _lock:
        host = _hosts.pop(token, None)
    if host is not None:
        host.close()


def _run_payload(folders: dict[str, Path], payload: bytes) -> Any:
    """Run payload, in a process with the folders of the data."""
    for folder, path in folders.items():
        use_instead(folder, path)
    function, arguments = pickle.loads(payload)
    return function(*arguments)
