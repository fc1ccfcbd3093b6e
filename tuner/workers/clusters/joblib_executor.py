"""A backend of joblib as an executor: loky, threading, multiprocessing, or one that another package has registered.

joblib can neither stop one call nor limit its time, and where a worker of its own dies, all calls under way are lost.
So a worker of joblib runs each function in a worker process (ranktune.tuner.workers.processes) that it starts itself:
that one is limited, stopped, and may die alone. It asks a folder of this machine whether a function is still wanted; a
worker elsewhere, which does not see that folder, ends a stopped function at its time limit only.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import warnings
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from joblib import Parallel, delayed

from ranktune.solvers.core.checks import check_count
from ranktune.solvers.core.errors import WorkerLost
from ranktune.tuner.workers.clusters.host import ClusterHost
from ranktune.tuner.workers.limits import Limits, check_limits, pickled
from ranktune.tuner.workers.processes import Job, Processes

T = TypeVar("T")

POLL_SECONDS = 1.0
"""Seconds between two checks of a worker whether its executor is still there."""

_hosts: dict[str, ClusterHost] = {}
_lock = threading.Lock()


class JoblibWorkers:
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

    def __init__(self, jobs: int, backend: str = "loky", limits: Limits | None = None) -> None:
        check_count("jobs", jobs)
        self.jobs, self.backend, self.limits = jobs, backend, limits or Limits()
        check_limits(self.limits)
        self._here = Processes(1)
        self._open: dict[Future[Any], str] = {}
        self._count = 0
        self._folder = ""
        self._threads: ThreadPoolExecutor | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            wait(list(self._open))
        for future in list(self._open):
            self.stop(future)
        shutil.rmtree(self._folder, ignore_errors=True)  # the workers end what they run
        if self._threads is not None:
            self._threads.shutdown(wait=True, cancel_futures=True)
            self._threads, self._folder = None, ""
        self._here.__exit__(kind, error, trace)

    def submit(self, function: Callable[..., T], *arguments: object, limits: Limits | None = None) -> Future[T]:
        """Start ``function(*arguments)`` on a free worker, or queue it; limits replace the executor's."""
        if self._threads is None:
            self._folder = tempfile.mkdtemp(prefix="ranktune-joblib-")
            self._threads = ThreadPoolExecutor(self.jobs, thread_name_prefix="ranktune joblib")
        self._count += 1
        key = str(self._count)
        job = Job(pickled((function, arguments), None), self.limits if limits is None else limits)
        self._open[job.future] = key
        job.future.add_done_callback(lambda future: self._open.pop(future, None))
        self._threads.submit(self._run, job, key)
        return job.future

    def call(self, function: Callable[..., T], *arguments: object) -> T:
        """Return ``function(*arguments)``, computed by a local worker process, where the files of the study are."""
        return self._here.call(function, *arguments)

    def stop(self, future: Future[Any]) -> None:
        """End the function of future: it fails with WorkerLost at once, its worker is free a moment later."""
        key = self._open.get(future)
        if key is not None:
            (Path(self._folder) / key).touch()
            Job(b"", self.limits, future).fail(WorkerLost("stopped"))

    def _run(self, job: Job, key: str) -> None:
        """Run a job by a worker of joblib. In a thread of its own, which waits for it."""
        if job.future.done():
            return
        call = delayed(run_job)(self._folder, self.jobs, key, job.payload, job.limits)
        try:
            with warnings.catch_warnings():  # of backends that cannot be used from a thread: it computes by itself
                warnings.simplefilter("ignore")
                ((returned, value),) = Parallel(n_jobs=self.jobs, backend=self.backend)([call])
        except Exception as error:
            job.fail(WorkerLost(f"a worker of joblib is lost ({type(error).__name__}: {error})"))
            return
        if returned:
            job.succeed(value)
        else:
            job.fail(value)


def run_job(folder: str, jobs: int, key: str, payload: bytes, limits: Limits) -> tuple[bool, Any]:
    """Return whether the call in payload returned, and its result or error. On a worker of joblib."""
    stopped = Path(folder) / key
    try:
        return True, _host(folder, jobs).run(key, payload, limits, lambda: not stopped.exists())
    except Exception as error:
        return False, error


def _host(folder: str, jobs: int) -> ClusterHost:
    """Return the worker processes of this worker for the executor with that folder; they end with it."""
    with _lock:
        if folder not in _hosts:
            _hosts[folder] = ClusterHost(jobs, {})
            if Path(folder).is_dir():
                watcher = threading.Thread(target=_close_with, args=(folder, os.getppid()), daemon=True)
                watcher.start()
        return _hosts[folder]


def _close_with(folder: str, parent: int) -> None:
    """End the worker processes of the executor once its folder, or the process that started this one, is gone."""
    gone = threading.Event()
    while Path(folder).is_dir() and os.getppid() == parent:
        gone.wait(POLL_SECONDS)
    with _lock:
        host = _hosts.pop(folder)
    host.close()
