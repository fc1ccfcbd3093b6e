"""The side of a function that `joblib` runs: there a process of ours runs it, with its limits and the study's data.

So a function can be limited and ended, and dies alone, whatever the worker of joblib is: a process or a thread. The
processes are kept for the next functions, and end when none came for a while.
"""

from __future__ import annotations

import os
import pickle
import sys
import threading
from collections.abc import Callable
from concurrent.futures import wait
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ranktune.solvers.core.arrays import Array
from ranktune.solvers.core.errors import Damaged
from ranktune.solvers.core.files.private import is_own_folder
from ranktune.solvers.core.libraries import this_version
from ranktune.tuner.splits.archive import unpack_problem
from ranktune.tuner.splits.seals import proven
from ranktune.tuner.splits.store import store, use_instead
from ranktune.tuner.workers.limits import CallLimits, pickled
from ranktune.tuner.workers.processes import Processes

POLL_SECONDS = 1.0
"""Seconds between two checks whether a function is still wanted."""
IDLE_SECONDS = 20.0
"""Seconds without a function after which the processes end."""
MOST = 1 << 16
"""Functions at a time: as many as joblib gives."""
NEEDS = "needs"
"""The answer of a worker that has not the data."""


def versions() -> str:
    """Return what has to be the same on all workers."""
    return f"RankTune {this_version()} on Python {sys.version_info.major}.{sys.version_info.minor}"


@dataclass(frozen=True)
class Call:
    """A pickled call, its limits, and what the coordinator has.

    marks     a folder of its host, which is there as long as it; it has a file of the call's key once that is stopped
    folder    the folder of the study's data, "" where the call needs none
    name      of the folder of the data below the cache of a worker, with a digest of them; "" as long as none needs it
    versions  those of the coordinator
    """

    payload: bytes
    limits: CallLimits
    marks: Path
    key: str
    folder: str
    name: str
    versions: str

    def stopped(self) -> Callable[[], bool]:
        """Return what says whether nobody waits for the call any more, as far as this worker can know."""
        parent, is_here, is_cancelled = os.getppid(), self.marks.is_dir(), _cancelled()
        return lambda: (
            os.getppid() != parent
            or is_cancelled()
            or (is_here and ((self.marks / self.key).exists() or not self.marks.is_dir()))
        )


def run_call(call: Call, packed: Array | None) -> tuple[str, bytes]:
    """Return, pickled, whether a call returned, and its result or error; or else why it was not begun.

    packed holds the data if they are sent.
    """
    if call.versions != versions():
        return f"has {versions()}, here it is {call.versions}: install the same there", b""
    where = None
    if call.folder and not Path(call.folder).is_dir():
        if packed is not None:
            _unpacked[call.name] = unpack_problem(packed.tobytes(), call.name)
        where = _unpacked.get(call.name) or _kept(call.name)
        if where is None:
            return NEEDS, b""
    try:
        return "", pickled((True, _host.run(call, where)), None)
    except Exception as error:
        return "", pickled((False, error), None)


_unpacked: dict[str, Path] = {}
"""The data that this process has unpacked, or compared with their digests, by name."""


def _kept(name: str) -> Path | None:
    """Return the data of that name if they are in the cache, complete and as they were sent."""
    with suppress(OSError, Damaged):
        if name and is_own_folder(store() / name):
            proven(store() / name)
            return _unpacked.setdefault(name, store() / name)
    return None


class _Host:
    """The processes of this worker."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._processes: Processes | None = None
        self._running = 0
        self._end = threading.Timer(0.0, self._close)

    def run(self, call: Call, where: Path | None) -> Any:
        """Run a call, and end it when it is no longer wanted."""
        stopped = call.stopped()
        with self._lock:
            self._end.cancel()
            self._running += 1
            self._processes = processes = self._processes or Processes(MOST)
        try:
            future = processes.submit(_run_payload, call.folder, where, call.payload, limits=call.limits)
            while not wait([future], POLL_SECONDS).done:
                if stopped():
                    processes.stop(future)
            return future.result()
        finally:
            with self._lock:
                self._running -= 1
                self._end.cancel()
                self._end = threading.Timer(IDLE_SECONDS, self._close)
                self._end.daemon = True
                self._end.start()

    def _close(self) -> None:
        with self._lock:
            if self._running or self._processes is None:
                return
            processes, self._processes = self._processes, None
        processes.__exit__(KeyboardInterrupt, None, None)


_host = _Host()


def _run_payload(folder: str, where: Path | None, payload: bytes) -> Any:
    """Run payload, in a process that reads the data of folder elsewhere."""
    if where is not None:
        use_instead(folder, where)
    function, arguments = pickle.loads(payload)
    return function(*arguments)


def _cancelled() -> Callable[[], bool]:
    """Return what says whether this is a task of Dask that its scheduler no longer wants: its client may be gone."""
    if "distributed" in sys.modules:
        from distributed import get_worker

        with suppress(ValueError):  # this is no worker of Dask
            key, tasks = get_worker().get_current_task(), get_worker().state.tasks
            return lambda: key not in tasks or tasks[key].state == "cancelled"
    return lambda: False
