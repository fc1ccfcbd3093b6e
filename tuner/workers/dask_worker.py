"""What runs on the workers of a Dask cluster: lanes of their own, and the data of the study."""

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
from ranktune.solvers.models.base import this_version
from ranktune.tuner.evaluation.archive import unpack_problem, use_instead
from ranktune.tuner.workers.lanes import Processes
from ranktune.tuner.workers.limits import Limits


@dataclass(frozen=True)
class Host:
    """What a worker of the cluster says of itself; id is another each time that it is started."""

    id: str
    python: str
    version: str
    lanes: int


LOOKING = 2.0
"""Seconds between two looks at whether a function is still wanted."""

_lanes: dict[str, Processes] = {}
_running: dict[str, Future[Any]] = {}
_stopped: set[str] = set()
_places: dict[str, Path] = {}
_guard = threading.Lock()


class Data(WorkerPlugin):  # type: ignore[misc]
    """Brings the problem of a folder to every worker."""

    def __init__(self, folder: str, packed: bytes) -> None:
        self.folder, self.packed = folder, packed

    def setup(self, worker: Any) -> None:
        """Unpack it, under a name that tells its content, where the worker has not that folder itself."""
        if not Path(self.folder).is_dir():
            digest = hashlib.sha256(self.packed).hexdigest()[:16]
            _places[self.folder] = unpack_problem(self.packed, f"{Path(self.folder).name}-{digest}")


def say(dask_worker: Any) -> Host:
    """Return what this worker is."""
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    return Host(dask_worker.id, python, this_version(), dask_worker.state.nthreads)


def run_there(worker_id: str, client: str, key: str, payload: bytes, limits: Limits) -> Any:
    """Run what is in payload on a lane that this worker has for client, unless it is another than it was sent to."""
    worker = get_worker()
    if worker.id != worker_id:
        raise WorkerLost("its Dask worker was started anew")
    with _guard:
        if client not in _lanes:
            # Dask's workers are daemons, which may not have children lest these outlive them: lanes do not.
            multiprocessing.process.current_process()._config["daemon"] = False  # type: ignore[attr-defined]
            _lanes[client] = Processes(worker.state.nthreads)
        future = _lanes[client].submit(_with_places, dict(_places), payload, limits=limits)
        _running[key] = future
        if key in _stopped:
            _lanes[client].stop(future)
    try:
        while not wait([future], LOOKING).done:
            task = worker.state.tasks.get(key)
            if task is None or task.state == "cancelled":  # by a client that is gone, or gave it up
                _lanes[client].stop(future)
        return future.result()
    finally:
        with _guard:
            del _running[key]
            _stopped.discard(key)


def _with_places(places: dict[str, Path], payload: bytes) -> Any:
    """Run what is in payload, in a lane that knows where the data are."""
    for folder, path in places.items():
        use_instead(folder, path)
    function, arguments = pickle.loads(payload)
    return function(*arguments)


def stop_there(client: str, key: str) -> None:
    """End the function of that key, or have it not begin."""
    with _guard:
        _stopped.add(key)
        if key in _running:
            _lanes[client].stop(_running[key])


def leave(client: str) -> None:
    """End the lanes that this worker has for client."""
    with _guard:
        lanes = _lanes.pop(client, None)
        _stopped.difference_update([key for key in _stopped if client in key])
    if lanes is not None:
        lanes.__exit__(KeyboardInterrupt, None, None)
