"""A backend of joblib as an executor: loky, threading, multiprocessing, or one that another package has registered.

joblib can neither stop a call nor limit its time, and when one of its workers dies, all running calls are lost.
So a worker of joblib runs each function in a worker process (ranktune.tuner.workers.clusters.host) that it starts
itself, which has limits, can be stopped, and may die alone. It reads in a folder of this machine whether a function is
still wanted; a worker elsewhere, which does not see that folder, ends a stopped function at its time limit only.
"""

from __future__ import annotations

import os
import shutil
import threading
import warnings
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, ClassVar

from joblib import Parallel, delayed

from ranktune.solvers.core.checks import check_count
from ranktune.solvers.core.files.atomic import temporary_folder
from ranktune.tuner.workers.clusters.base import ClusterJob, ClusterWorkers
from ranktune.tuner.workers.clusters.host import close_host, open_host, run, stop, versions
from ranktune.tuner.workers.limits import Limits, check_limits

POLL_SECONDS = 1.0
"""Seconds between two checks of a worker whether its executor is still there."""


class JoblibWorkers(ClusterWorkers):
    """So many workers of a backend of joblib, for `ranktune.tune(executor=...)`.

    All workers must see the folder of the study.

    Parameters
    ----------
    jobs : int
        Functions that run at a time.
    backend : str, default="loky"
        Name of the backend, as `joblib.parallel_config` takes it.
    limits : Limits or None, default=None
        Limits of a function that has none of its own.
    """

    engine: ClassVar[str] = "joblib"
    start: ClassVar[str] = ""
    shares_files: ClassVar[bool] = True

    def __init__(self, jobs: int, backend: str = "loky", limits: Limits | None = None) -> None:
        check_count("jobs", jobs)
        check_limits(limits or Limits())
        self.backend, self._size = backend, jobs
        self._folder = str(temporary_folder())
        self._waiting = ThreadPoolExecutor(jobs, thread_name_prefix="ranktune joblib")
        super().__init__(backend, limits)

    def _connect(self) -> None:
        pass

    def _members(self) -> Mapping[str, int]:
        return {self.backend: self._size}

    def _tell(self, addresses: Collection[str], function: Callable[..., object], *arguments: Any) -> dict[str, object]:
        """Leave the order to stop a function in the folder; workers open and close themselves."""
        if function is stop:
            (Path(self._folder) / arguments[1]).touch()
        return {address: versions() for address in addresses}

    def _begin(self, job: ClusterJob) -> Future[bytes | None]:
        return self._waiting.submit(self._run, job)

    def _run(self, job: ClusterJob) -> bytes | None:
        """Run a job by a worker of joblib; this thread waits for it."""
        if job.future.done():
            return None
        call = delayed(run_job)(self._folder, self._size, job.key, job.payload, job.limits)
        with warnings.catch_warnings():  # of backends that cannot be used from a thread: it computes by itself
            warnings.simplefilter("ignore")
            (packed,) = Parallel(n_jobs=self._size, backend=self.backend)([call])
        return packed  # type: ignore[no-any-return]

    def _disconnect(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)  # the workers end what they run
        self._waiting.shutdown(wait=True, cancel_futures=True)


_watchers: dict[str, threading.Thread] = {}
_lock = threading.Lock()


def run_job(folder: str, jobs: int, key: str, payload: bytes, limits: Limits) -> bytes | None:
    """Run the call in payload on a worker of joblib, which is a member for the executor with that folder."""
    with _lock:
        if folder not in _watchers and Path(folder).is_dir():
            open_host(folder, jobs)
            _watchers[folder] = threading.Thread(target=_close_with, args=(folder, os.getppid()), daemon=True)
            _watchers[folder].start()
    return run(folder, key, payload, limits, lambda: not (Path(folder) / key).exists())


def _close_with(folder: str, parent: int) -> None:
    """End the worker processes of the executor once its folder, or the process that started this one, is gone."""
    gone = threading.Event()
    while Path(folder).is_dir() and os.getppid() == parent:
        gone.wait(POLL_SECONDS)
    close_host(folder)
