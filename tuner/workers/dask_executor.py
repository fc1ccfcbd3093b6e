"""The workers of a Dask cluster as an executor.

A function is given to one worker of the cluster, by us: Dask would start it again elsewhere, unheard, where its worker
dies, and we are the ones who say how often a trial is begun. On its host it runs on lanes
(ranktune.tuner.workers.lanes), as many as the Dask worker has threads, so that limits, deaths and last words are what
they are on one machine.

The data of a study are sent once: a plugin unpacks them on every worker, on those too that join later.
"""

from __future__ import annotations

import hashlib
import math
import sys
import threading
import warnings
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError, wait
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import dask
from distributed import Client

from ranktune.solvers.core.errors import RankTuneWarning, StudyError, WorkerLost
from ranktune.solvers.models.base import this_version
from ranktune.tuner.evaluation.archive import pack_problem
from ranktune.tuner.workers.dask_worker import Data, Host, leave, run_there, say, stop_there
from ranktune.tuner.workers.lanes import Processes
from ranktune.tuner.workers.limits import Limits, pickled

T = TypeVar("T")

PATIENCE = 5.0
"""Seconds to wait for a scheduler to answer."""

LOOKING = 0.5
"""Seconds between two looks at which workers there are."""


@dataclass(eq=False)
class _Job:
    """A function with its arguments, pickled, and where it was sent."""

    key: str
    payload: bytes
    limits: Limits
    future: Future[Any] = field(default_factory=Future)
    address: str = ""
    answer: Any = None

    def fails(self, error: BaseException) -> None:
        with suppress(InvalidStateError):
            self.future.set_exception(error)


class DaskWorkers:
    """The workers of the cluster whose scheduler is at address. Raises StudyError where none answers there.

    jobs is the number of threads of the workers that there are now; workers may come and go.
    """

    def __init__(self, address: str, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self._client = _connected(address)
        self._here = Processes(1)
        self._lock = threading.RLock()
        self._jobs: list[_Job] = []  # in the order of submission
        self._sent: set[str] = set()
        self._refused: set[str] = set()
        self._count = 0
        self._closing = threading.Event()
        self._hosts: dict[str, Host] = {}
        try:
            self._look()
            if not self._hosts:
                raise StudyError(f"the Dask scheduler at {address} has no worker. Start one: `dask worker {address}`.")
        except BaseException:
            self._client.close()
            raise
        self._looking = threading.Thread(target=self._keep_looking, name="ranktune dask", daemon=True)
        self._looking.start()

    @property
    def jobs(self) -> int:
        """Functions that run at a time."""
        return max(1, sum(host.lanes for host in self._hosts.values()))

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
            self._give_up(job, WorkerLost("stopped"))
        self._looking.join()
        with suppress(Exception):  # workers that are gone, or a scheduler
            self._client.run(leave, self._client.id, on_error="ignore")
            for folder in self._sent:
                self._client.unregister_worker_plugin(_plugin_name(folder))
        self._client.close()
        self._here.__exit__(kind, error, trace)

    def submit(self, function: Callable[..., T], *arguments: Any, limits: Limits | None = None) -> Future[T]:
        """Send function(*arguments) to the worker with the most lanes free; folder of an argument names its data."""
        for argument in arguments:
            folder = getattr(argument, "folder", None)
            if isinstance(folder, str | Path):
                self._send_data(str(folder))
        with self._lock:
            self._count += 1
            key = f"ranktune-{self._client.id}-{self._count}"
            job = _Job(key, pickled((function, arguments), None), self.limits if limits is None else limits)
            job.future.set_running_or_notify_cancel()
            self._jobs.append(job)
        self._send()
        return job.future

    def call(self, function: Callable[..., T], *arguments: Any) -> T:
        """Return function(*arguments), computed by a worker process here, where the files of the study are."""
        return self._here.call(function, *arguments)

    def stop(self, future: Future[Any]) -> None:
        """End the function of future: it fails with WorkerLost."""
        for job in self._unfinished():
            if job.future is future:
                self._give_up(job, WorkerLost("stopped"))

    def watch(self) -> float:
        """Return infinity: limits are seen to where functions run."""
        return math.inf

    def worker_of(self, future: Future[Any]) -> str:
        """Return the address of the worker that has the function of future, "" where none has."""
        return next((job.address for job in self._unfinished() if job.future is future), "")

    def _unfinished(self) -> list[_Job]:
        with self._lock:
            self._jobs = [job for job in self._jobs if not job.future.done()]
            return list(self._jobs)

    def _send_data(self, folder: str) -> None:
        with self._lock:
            if folder in self._sent or not Path(folder).is_dir():
                return
            self._sent.add(folder)
            self._client.register_plugin(Data(folder, pack_problem(Path(folder))), name=_plugin_name(folder))

    def _send(self) -> None:
        """Give jobs that wait to workers with a free lane; the rest waits for one."""
        with self._lock:
            jobs = self._unfinished()
            free = {address: host.lanes for address, host in self._hosts.items()}
            for job in jobs:
                if job.address in free:
                    free[job.address] -= 1
            for job in jobs:
                address = max(free, key=free.__getitem__, default="")
                if not job.address and address and free[address] > 0:
                    free[address] -= 1
                    self._start(job, address)

    def _start(self, job: _Job, address: str) -> None:
        job.address = address
        job.answer = self._client.submit(
            run_there, self._hosts[address].id, self._client.id, job.key, job.payload, job.limits,
            key=job.key, workers=[address], allow_other_workers=False, pure=False, retries=0,
        )  # fmt: skip
        job.answer.add_done_callback(lambda answer: self._answered(job, answer))

    def _answered(self, job: _Job, answer: Any) -> None:
        try:
            if answer.status == "cancelled":
                return
            if answer.status == "error":
                job.fails(answer.exception())
            else:
                value = answer.result()
                with suppress(InvalidStateError):
                    job.future.set_result(value)
        except Exception as error:
            job.fails(WorkerLost(f"{type(error).__name__}: {error}"))
        if not self._closing.is_set():
            self._send()

    def _give_up(self, job: _Job, error: WorkerLost) -> None:
        job.fails(error)
        with suppress(Exception):
            if job.answer is not None:
                job.answer.cancel(force=True)
            if job.address in self._hosts:
                self._client.run(stop_there, self._client.id, job.key, workers=[job.address])

    def _keep_looking(self) -> None:
        while not self._closing.wait(LOOKING):
            try:
                self._look()
            except Exception as error:  # the scheduler is away: distributed keeps trying to reach it
                if self._client.status not in ("running", "connecting"):
                    for job in self._unfinished():
                        job.fails(WorkerLost(f"the Dask scheduler is gone ({error})"))
                continue
            self._send()

    def _look(self) -> None:
        """Take note of the workers that there are; what ran on others has lost its worker."""
        there = self._client.nthreads()
        new = [address for address in there if address not in self._hosts and address not in self._refused]
        answers = self._client.run(say, workers=new, on_error="return") if new else {}
        with self._lock:
            gone = set(self._hosts) - set(there)
            self._hosts = {address: host for address, host in self._hosts.items() if address in there}
            for address, answer in answers.items():
                if wrong := _unlike_us(answer):
                    if not self._hosts and len(answers) == len(there):
                        raise StudyError(f"the Dask worker {address} {wrong}.")
                    self._refused.add(address)
                    warnings.warn(f"the Dask worker {address} {wrong}: it gets no trial.", RankTuneWarning, 2)
                else:
                    self._hosts[address] = answer
            for job in self._jobs:
                if job.address in gone:
                    self._give_up(job, WorkerLost(f"the Dask worker {job.address} left or died"))


def _connected(address: str) -> Client:
    """Return a client of the scheduler at address."""
    try:
        with warnings.catch_warnings():  # of other versions of distributed; of ours we tell below
            warnings.simplefilter("ignore")
            with dask.config.set({"distributed.comm.timeouts.connect": PATIENCE}):
                return Client(address, timeout=PATIENCE, set_as_default=False, name="ranktune")
    except Exception as error:
        raise StudyError(
            f"no Dask scheduler answers at {address!r} ({' '.join(str(error).split())[:200]}). "
            "Start one with `dask scheduler`, and give the address that it prints, as tcp://host:8786."
        ) from None


def _plugin_name(folder: str) -> str:
    return f"ranktune-{hashlib.sha256(folder.encode()).hexdigest()[:16]}"


def _unlike_us(answer: Any) -> str:
    """Return what is wrong with a worker that answered so, "" if nothing."""
    if isinstance(answer, ModuleNotFoundError | AttributeError):
        return f"has no RankTune {this_version()}: install the same version there"
    if not isinstance(answer, Host):
        return f"does not answer as it should ({answer})"
    ours = f"{sys.version_info.major}.{sys.version_info.minor}"
    if answer.version != this_version():
        return f"has RankTune {answer.version}, here it is {this_version()}: install the same version there"
    return "" if answer.python == ours else f"runs Python {answer.python}, here it is {ours}: use the same there"
