"""The workers of a Dask cluster as an executor.

Each function is assigned to one worker of the cluster: Dask would silently restart it elsewhere when its worker dies,
but the coordinator counts how often a trial is begun. On its host it runs on worker processes
(ranktune.tuner.workers.processes), as many as the Dask worker has threads, with the same limits and error messages as
on one machine.

The data of a study are sent once: a plugin unpacks them on every worker, including those that join later.
"""

from __future__ import annotations

import hashlib
import sys
import threading
import warnings
from collections.abc import Callable
from concurrent.futures import Future, wait
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeAlias, TypeVar

import dask
from distributed import Client

from ranktune.solvers.core.errors import RankTuneWarning, StudyError, WorkerLost
from ranktune.solvers.core.version import this_version
from ranktune.tuner.splits.archive import pack_problem
from ranktune.tuner.workers.dask_worker import (
    ProblemPlugin,
    WorkerInfo,
    close_client,
    describe,
    run_on_worker,
    stop_on_worker,
)
from ranktune.tuner.workers.limits import Limits, pickled
from ranktune.tuner.workers.processes import Job, Processes

T = TypeVar("T")
DaskFuture: TypeAlias = Any
"""distributed has no types."""

CONNECT_SECONDS = 5.0
"""Seconds to wait for a scheduler to answer."""
POLL_SECONDS = 0.5
"""Seconds between two updates of the list of workers."""


@dataclass(eq=False)
class _DaskJob(Job):
    """A job with its key on the cluster, and the worker it was sent to."""

    key: str = ""
    address: str = ""
    answer: DaskFuture | None = None


class DaskWorkers:
    """The workers of the cluster whose scheduler is at address. Raises StudyError where none answers there.

    jobs is the number of threads of the present workers; workers may come and go.
    """

    def __init__(self, address: str, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self._client = _connect(address)
        self._here = Processes(1)
        self._lock = threading.RLock()
        self._jobs: list[_DaskJob] = []  # in the order of submission
        self._sent: set[str] = set()
        self._refused: set[str] = set()
        self._count = 0
        self._closing = threading.Event()
        self._workers: dict[str, WorkerInfo] = {}
        try:
            self._refresh()
            if not self._workers:
                raise StudyError(f"the Dask scheduler at {address} has no worker. Start one: `dask worker {address}`.")
        except BaseException:
            self._client.close()
            raise
        self._watcher = threading.Thread(target=self._watch_workers, name="ranktune dask", daemon=True)
        self._watcher.start()

    @property
    def jobs(self) -> int:
        """Functions that run at a time."""
        return max(1, sum(info.threads for info in self._workers.values()))

    @jobs.setter
    def jobs(self, value: int) -> None:
        raise AttributeError("the cluster says how many jobs there are")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            while jobs := self._unfinished():
                wait([job.future for job in jobs])
        self._closing.set()
        for job in self._unfinished():
            self._abandon(job, WorkerLost("stopped"))
        self._watcher.join()
        with suppress(Exception):  # workers or the scheduler may be gone
            self._client.run(close_client, self._client.id, on_error="ignore")
            for folder in self._sent:
                self._client.unregister_worker_plugin(_plugin_name(folder))
        self._client.close()
        self._here.__exit__(kind, error, trace)

    def submit(self, function: Callable[..., T], *arguments: object, limits: Limits | None = None) -> Future[T]:
        """Send function(*arguments) to the worker with the most free threads; folder of an argument names its data."""
        for argument in arguments:
            folder = getattr(argument, "folder", None)
            if isinstance(folder, str | Path):
                self._send_data(str(folder))
        with self._lock:
            self._count += 1
            key = f"ranktune-{self._client.id}-{self._count}"
            payload = pickled((function, arguments), None)
            job = _DaskJob(payload, self.limits if limits is None else limits, key=key)
            job.future.set_running_or_notify_cancel()
            self._jobs.append(job)
        self._send()
        return job.future

    def call(self, function: Callable[..., T], *arguments: object) -> T:
        """Return function(*arguments), computed by a local worker process, where the files of the study are."""
        return self._here.call(function, *arguments)

    def stop(self, future: Future[Any]) -> None:
        """End the function of future: it fail with WorkerLost."""
        for job in self._unfinished():
            if job.future is future:
                self._abandon(job, WorkerLost("stopped"))

    def _unfinished(self) -> list[_DaskJob]:
        with self._lock:
            self._jobs = [job for job in self._jobs if not job.future.done()]
            return list(self._jobs)

    def _send_data(self, folder: str) -> None:
        with self._lock:
            if folder in self._sent or not Path(folder).is_dir():
                return
            self._sent.add(folder)
            self._client.register_plugin(ProblemPlugin(folder, pack_problem(Path(folder))), name=_plugin_name(folder))

    def _send(self) -> None:
        """Send waiting jobs to workers with a free thread."""
        with self._lock:
            jobs = self._unfinished()
            free = {address: info.threads for address, info in self._workers.items()}
            for job in jobs:
                if job.address in free:
                    free[job.address] -= 1
            for job in jobs:
                address = max(free, key=free.__getitem__, default="")
                if not job.address and address and free[address] > 0:
                    free[address] -= 1
                    self._start(job, address)

    def _start(self, job: _DaskJob, address: str) -> None:
        job.address = address
        job.answer = self._client.submit(
            run_on_worker, self._workers[address].id, self._client.id, job.key, job.payload, job.limits,
            key=job.key, workers=[address], allow_other_workers=False, pure=False, retries=0,
        )  # fmt: skip
        job.answer.add_done_callback(lambda answer: self._completed(job, answer))

    def _completed(self, job: _DaskJob, answer: DaskFuture) -> None:
        try:
            if answer.status == "cancelled":
                return
            if answer.status == "error":
                job.fail(answer.exception())
            else:
                job.succeed(answer.result())
        except Exception as error:
            job.fail(WorkerLost(f"{type(error).__name__}: {error}"))
        if not self._closing.is_set():
            self._send()

    def _abandon(self, job: _DaskJob, error: WorkerLost) -> None:
        job.fail(error)
        with suppress(Exception):
            if job.answer is not None:
                job.answer.cancel(force=True)
            if job.address in self._workers:
                self._client.run(stop_on_worker, self._client.id, job.key, workers=[job.address])

    def _watch_workers(self) -> None:
        while not self._closing.wait(POLL_SECONDS):
            try:
                self._refresh()
            except Exception as error:  # distributed reconnects to the scheduler
                if self._client.status not in ("running", "connecting"):
                    for job in self._unfinished():
                        job.fail(WorkerLost(f"the Dask scheduler is gone ({error})"))
                continue
            self._send()

    def _refresh(self) -> None:
        """Update the list of workers; jobs on workers that are gone fail."""
        there = self._client.nthreads()
        new = [address for address in there if address not in self._workers and address not in self._refused]
        answers = self._client.run(describe, workers=new, on_error="return") if new else {}
        with self._lock:
            gone = set(self._workers) - set(there)
            self._workers = {address: info for address, info in self._workers.items() if address in there}
            for address, answer in answers.items():
                if wrong := _mismatch(answer):
                    if not self._workers and len(answers) == len(there):
                        raise StudyError(f"the Dask worker {address} {wrong}.")
                    self._refused.add(address)
                    warnings.warn(f"the Dask worker {address} {wrong}: it gets no trial.", RankTuneWarning, 2)
                else:
                    self._workers[address] = answer
            for job in self._jobs:
                if job.address in gone:
                    self._abandon(job, WorkerLost(f"the Dask worker {job.address} left or died"))


def _connect(address: str) -> Client:
    """Return a client of the scheduler at address."""
    try:
        with warnings.catch_warnings():  # about versions of distributed; those of RankTune are checked below
            warnings.simplefilter("ignore")
            with dask.config.set({"distributed.comm.timeouts.connect": CONNECT_SECONDS}):
                return Client(address, timeout=CONNECT_SECONDS, set_as_default=False, name="ranktune")
    except Exception as error:
        raise StudyError(
            f"no Dask scheduler answers at {address!r} ({' '.join(str(error).split())[:200]}). "
            "Start one with `dask scheduler`, and give the address that it prints, as tcp://host:8786."
        ) from None


def _plugin_name(folder: str) -> str:
    return f"ranktune-{hashlib.sha256(folder.encode()).hexdigest()[:16]}"


def _mismatch(answer: object) -> str:
    """Return why a worker with this answer cannot be used, "" if it can."""
    if isinstance(answer, ModuleNotFoundError | AttributeError):
        return f"has no RankTune {this_version()}: install the same version there"
    if not isinstance(answer, WorkerInfo):
        return f"does not answer as it should ({answer})"
    ours = f"{sys.version_info.major}.{sys.version_info.minor}"
    if answer.version != this_version():
        return f"has RankTune {answer.version}, here it is {this_version()}: install the same version there"
    return "" if answer.python == ours else f"runs Python {answer.python}, here it is {ours}: use the same there"
