"""Functions that wait for their turn, and threads which run them elsewhere: each thread one after the other."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError, wait
from contextlib import suppress
from dataclasses import dataclass, field
from queue import SimpleQueue
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from ranktune.solvers.core.checks import check_count
from ranktune.solvers.core.errors import WorkerLost
from ranktune.tuner.workers.limits import CallLimits, payload_of

if TYPE_CHECKING:
    from ranktune.tuner.evaluation.task import Rounds
    from ranktune.tuner.workers.processes import WorkerProcess

T = TypeVar("T")

STOPPED = "stopped"
"""The reason of a worker that was ended with its function."""


@dataclass(eq=False)
class Job:
    """A pickled call, the folder of its data, its future, its process, and the last report of its fit."""

    payload: bytes
    limits: CallLimits
    folder: str = ""
    future: Future[Any] = field(default_factory=Future)
    worker: WorkerProcess | None = None
    rounds: Rounds | None = None

    def fail(self, error: BaseException) -> None:
        """Set the exception of the future, unless it is done."""
        with suppress(InvalidStateError):
            self.future.set_exception(error)

    def succeed(self, value: object) -> None:
        """Set the result of the future, unless it is done."""
        with suppress(InvalidStateError):
            self.future.set_result(value)


class Lanes(ABC):
    """At most jobs functions at a time; leaving the block early, as on an interrupt, ends them at once."""

    def __init__(self, jobs: int, limits: CallLimits | None = None) -> None:
        check_count("jobs", jobs)
        self.jobs = jobs
        self.limits = limits or CallLimits()
        self._lock = threading.RLock()
        self._waiting: SimpleQueue[Job | None] = SimpleQueue()
        self._jobs: dict[Future[Any], Job] = {}  # waiting or running
        self._threads: list[threading.Thread] = []
        self._spare = 0  # threads that are free, less jobs that wait

    @abstractmethod
    def _run(self, job: Job) -> None:
        """Run a job until its future is done; in one of the threads."""

    @abstractmethod
    def _end(self, job: Job) -> None:
        """End a job that runs, whose future is done."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            while self._jobs:
                wait(list(self._jobs))
        for future in list(self._jobs):
            self.stop(future)
        threads, self._threads = self._threads, []
        for _ in threads:
            self._waiting.put(None)
        for thread in threads:
            with suppress(RuntimeError):  # an interrupt came before it was started
                thread.join()
        self._waiting, self._spare = SimpleQueue(), 0

    def submit(self, function: Callable[..., T], *arguments: object, limits: CallLimits | None = None) -> Future[T]:
        """Start function(*arguments), or queue it; limits replace the executor's.

        The future fails with WorkerLost, TooLong or ResultRefused where the function did not end by itself.
        """
        folder = next(filter(None, (getattr(one, "folder", None) for one in arguments)), "")
        job = Job(payload_of(function, arguments), self.limits if limits is None else limits, str(folder))
        self._jobs[job.future] = job
        job.future.add_done_callback(lambda future: self._jobs.pop(future, None))
        self._waiting.put(job)
        with self._lock:
            self._spare -= 1
            if self._spare < 0 and len(self._threads) < self.jobs:
                self._spare += 1
                self._threads.append(threading.Thread(target=self._serve, name="ranktune", daemon=True))
                self._threads[-1].start()
        return job.future

    def stop(self, future: Future[Any]) -> None:
        """End the function of future at once: the future fails with WorkerLost."""
        with self._lock:
            job = self._jobs.get(future)
            if job is not None:
                job.fail(WorkerLost(STOPPED))
                self._end(job)

    def _serve(self) -> None:
        while (job := self._waiting.get()) is not None:
            with self._lock:
                begins = not job.future.done() and job.future.set_running_or_notify_cancel()
            try:
                if begins:
                    self._run(job)
            except Exception as error:  # a bug: no future may stay pending
                job.fail(RuntimeError(f"a thread of the workers failed: {type(error).__name__}: {error}"))
            with self._lock:
                self._spare += 1
