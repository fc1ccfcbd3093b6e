"""The functions that run on the workers of a Dask cluster."""

from __future__ import annotations

import multiprocessing
import threading
from pathlib import Path
from typing import Any

from distributed import WorkerPlugin, get_worker

from ranktune.solvers.core.errors import WorkerLost
from ranktune.tuner.workers.clusters.host import ClusterHost, WorkerInfo, described, unpacked
from ranktune.tuner.workers.limits import Limits

_hosts: dict[str, ClusterHost] = {}
_folders: dict[str, Path] = {}
_lock = threading.Lock()


class ProblemPlugin(WorkerPlugin):  # type: ignore[misc]
    """Brings the problem of a folder to every worker."""

    def __init__(self, folder: str, packed: bytes) -> None:
        self.folder, self.packed = folder, packed

    def setup(self, worker: Any) -> None:
        """Unpack it, unless the worker has the folder itself."""
        path = unpacked(self.folder, self.packed)
        if path is not None:
            _folders[self.folder] = path


def describe(dask_worker: Any) -> WorkerInfo:
    """Return the description of this worker."""
    return described(dask_worker.id, dask_worker.state.nthreads)


def run_on_worker(worker_id: str, client: str, key: str, payload: bytes, limits: Limits) -> Any:
    """Run payload on a worker process of client; refuse it if this worker was restarted since it was sent."""
    worker = get_worker()
    if worker.id != worker_id:
        raise WorkerLost("its Dask worker was restarted")
    with _lock:
        if client not in _hosts:
            # Dask's workers are daemons, which may not have children that could outlive them: these do not.
            multiprocessing.process.current_process()._config["daemon"] = False  # type: ignore[attr-defined]
            _hosts[client] = ClusterHost(worker.state.nthreads, _folders)
        host = _hosts[client]

    def wanted() -> bool:
        task = worker.state.tasks.get(key)  # None where the client is gone, or stopped it
        return task is not None and task.state != "cancelled"

    return host.run(key, payload, limits, wanted)


def stop_on_worker(client: str, key: str) -> None:
    """End the function of that key, or prevent its start."""
    with _lock:
        host = _hosts.get(client)
    if host is not None:
        host.stop(key)


def close_client(client: str) -> None:
    """End the worker processes that this worker has for client."""
    with _lock:
        host = _hosts.pop(client, None)
    if host is not None:
        host.close()
