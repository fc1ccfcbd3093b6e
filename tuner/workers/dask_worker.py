"""The functions that run on the workers of a Dask cluster: worker processes there, and the data of the study."""

from __future__ import annotations

import hashlib
import multiprocessing
import pickle
import sys
import threading
from concurrent.futures import Future, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from distributed import WorkerPlugin, get_worker

from ranktune.solvers.core.errors import WorkerLost
from ranktune.solvers.core.version import this_version
from ranktune.tuner.splits.archive import unpack_problem, use_instead
from ranktune.tuner.workers.limits import Limits
from ranktune.tuner.workers.processes import Processes


@dataclass(frozen=True)
class WorkerInfo:
    """Description of a worker; id changes with each start."""

    id: str
    python: str
    version: str
    threads: int


POLL_SECONDS = 2.0
"""Seconds between two checks whether a function is still wanted."""

_executors: dict[str, Processes] = {}
_running: dict[str, Future[Any]] = {}
_stopped: set[str] = set()
_folders: dict[str, Path] = {}
_lock = threading.Lock()


class ProblemPlugin(WorkerPlugin):  # type: ignore[misc]
    """Brings the problem of a folder to every worker."""

    def __init__(self, folder: str, packed: bytes) -> None:
        self.folder, self.packed = folder, packed

    def setup(self, worker: Any) -> None:
        """Unpack it, under a name with a digest of its content, unless the worker has the folder itself."""
        if not Path(self.folder).is_dir():
            digest = hashlib.sha256(self.packed).hexdigest()[:16]
            _folders[self.folder] = unpack_problem(self.packed, f"{Path(self.folder).name}-{digest}")


def describe(dask_worker: Any) -> WorkerInfo:
    """Return the description of this worker."""
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    return WorkerInfo(dask_worker.id, python, this_version(), dask_worker.state.nthreads)


def run_on_worker(worker_id: str, client: str, key: str, payload: bytes, limits: Limits) -> Any:
    """Run payload on a worker process of client; refuse it if this worker was restarted since it was sent."""
    worker = get_worker()
    if worker.id != worker_id:
        raise WorkerLost("its Dask worker was restarted")
    with _lock:
        if client not in _executors:
            # Dask's workers are daemons, which may not have children that could outlive them: these do not.
            multiprocessing.process.current_process()._config["daemon"] = False  # type: ignore[attr-defined]
            _executors[client] = Processes(worker.state.nthreads)
        future = _executors[client].submit(_run_payload, dict(_folders), payload, limits=limits)
        _running[key] = future
        if key in _stopped:
            _executors[client].stop(future)
    try:
        while not wait([future], POLL_SECONDS).done:
            task = worker.state.tasks.get(key)
            if task is None or task.state == "cancelled":  # the client is gone, or stopped it
                _executors[client].stop(future)
        return future.result()
    finally:
        with _lock:
            del _running[key]
            _stopped.discard(key)


def _run_payload(folders: dict[str, Path], payload: bytes) -> Any:
    """Run payload, in a process with the folders of the data."""
    for folder, path in folders.items():
        use_instead(folder, path)
    function, arguments = pickle.loads(payload)
    return function(*arguments)


def stop_on_worker(client: str, key: str) -> None:
    """End the function of that key, or prevent its start."""
    with _lock:
        _stopped.add(key)
        if key in _running:
            _executors[client].stop(_running[key])


def close_client(client: str) -> None:
    """End the worker processes that this worker has for client."""
    with _lock:
        executor = _executors.pop(client, None)
        _stopped.difference_update([key for key in _stopped if client in key])
    if executor is not None:
        executor.__exit__(KeyboardInterrupt, None, None)
