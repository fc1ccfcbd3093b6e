"""Worker processes of this machine, each of which can die, or be ended, alone.

A thread for each function that runs at a time gives a worker one function after the other, and waits for its messages.
Workers that are no forks end with the thread that started them, and these threads live as long as the executor. Workers
whose function has ended are kept in one list.
"""

from __future__ import annotations

import math
import pickle
import threading
import time
import warnings
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError, wait
from contextlib import suppress
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from ranktune.solvers.core.checks import check_count
from ranktune.solvers.core.errors import ResultRefused, TooLong, WorkerLost
from ranktune.tuner.workers.fork_server import FORKS, ForkServer
from ranktune.tuner.workers.limits import BEGUN, PAUSED, RESUMED, Limits, payload_of
from ranktune.tuner.workers.worker_process import WorkerProcess

if TYPE_CHECKING:
    from ranktune.tuner.evaluation.task import Rounds

T = TypeVar("T")

START_SECONDS = 120.0
"""Seconds that a worker may take, beyond its time limit, until its function begins."""
POLL_SECONDS = 1.0
"""Seconds between two checks of a worker while its function runs."""
MAX_SENDS = 3
"""How often a function is sent, where workers die before they begin it."""
NOT_STARTED = "not started"
"""How the reason of a worker that could not be started begins."""
STOPPED = "stopped"
"""The reason of a worker that was ended with its function."""


@dataclass(eq=False)
class Job:
    """A pickled call, its future, the worker that it runs on, and the last report of its fit."""

    payload: bytes
    limits: Limits
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


class _Clock:
    """The time limit of a function: it begins with the function, and is paused by marks of the worker."""

    def __init__(self, seconds: float | None) -> None:
        self.begun = False
        self._limit = math.inf if seconds is None else seconds
        self._deadline = time.monotonic() + self._limit + START_SECONDS
        self._paused_with = math.inf  # seconds left on the paused clock

    @property
    def left(self) -> float:
        """Seconds until the limit."""
        return self._deadline - time.monotonic()

    def apply(self, mark: bytes) -> None:
        """Update the limit by a mark of the worker."""
        now = time.monotonic()
        if mark == BEGUN:
            self.begun, self._deadline = True, now + self._limit
        elif mark == PAUSED and self._deadline < math.inf:
            self._paused_with, self._deadline = self._deadline - now, math.inf
        elif mark == RESUMED and self._paused_with < math.inf:
            self._paused_with, self._deadline = math.inf, now + self._paused_with


class Processes:
    """Worker processes with one thread each; leaving the block early, as on an interrupt, ends them at once.

    load is called once before workers are forked, and loads what they need.
    """

    def __init__(self, jobs: int, limits: Limits | None = None, load: Callable[[], None] | None = None) -> None:
        check_count("jobs", jobs)
        self.jobs = jobs
        self.limits = limits or Limits()
        self._lock = threading.RLock()
        self._waiting: SimpleQueue[Job | None] = SimpleQueue()
        self._jobs: dict[Future[Any], Job] = {}  # waiting or running
        self._threads: list[threading.Thread] = []
        self._free: list[WorkerProcess] = []
        self._load, self._starting = load, threading.Lock()
        self._server: ForkServer | None = None

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
        self._waiting = SimpleQueue()
        while self._free:
            self._free.pop().kill()
        if self._server is not None:
            self._server.end()
            self._server = None

    def submit(self, function: Callable[..., T], *arguments: object, limits: Limits | None = None) -> Future[T]:
        """Start function(*arguments) on a free worker, or queue it; limits replace the executor's.

        The future fails with WorkerLost, TooLong or ResultRefused where the function did not end by itself.
        """
        job = Job(payload_of(function, arguments), self.limits if limits is None else limits)
        self._jobs[job.future] = job
        job.future.add_done_callback(lambda future: self._jobs.pop(future, None))
        self._waiting.put(job)
        with self._lock:
            if len(self._threads) < self.jobs:
                self._threads.append(threading.Thread(target=self._serve, name="ranktune", daemon=True))
                self._threads[-1].start()
        return job.future

    def call(self, function: Callable[..., T], *arguments: object) -> T:
        """Return function(*arguments), computed by a worker without limits, or here if none can be started.

        If a worker dies, another one tries again. What two workers died of is not tried here, where it would end the
        study: WorkerLost is raised.
        """
        for is_last in (False, True):
            future = self.submit(_with_warnings, function, arguments, limits=Limits(result=None))
            try:
                result, caught = future.result()
                break
            except WorkerLost as lost:
                if lost.reason.startswith(NOT_STARTED):
                    return function(*arguments)
                if is_last or lost.reason == STOPPED:
                    raise
        for message, category in caught:
            warnings.warn(message, category, stacklevel=2)
        return result  # type: ignore[return-value]

    def new_rounds(self, future: Future[Any]) -> Rounds | None:
        """Return the last report of the fit of a function, None if there was none since the last call."""
        job, rounds = self._jobs.get(future), None
        if job is not None:
            rounds, job.rounds = job.rounds, None
        return rounds

    def stop(self, future: Future[Any]) -> None:
        """End the function of future at once, with its worker: the future fails with WorkerLost."""
        with self._lock:
            job = self._jobs.get(future)
            if job is not None:
                job.fail(WorkerLost(STOPPED))
                if job.worker is not None:
                    job.worker.end()

    # What follows runs in these threads.

    def _serve(self) -> None:
        while (job := self._waiting.get()) is not None:
            with self._lock:
                begins = not job.future.done() and job.future.set_running_or_notify_cancel()
            try:
                if begins:
                    self._run(job)
            except Exception as error:  # a bug: no future may stay pending
                job.fail(RuntimeError(f"a thread of the workers failed: {type(error).__name__}: {error}"))

    def _run(self, job: Job) -> None:
        """Run a job; it is sent again where its worker dies before it begins."""
        cause = ""
        for _ in range(MAX_SENDS):
            try:
                worker = self._taken()
            except OSError as error:
                cause = f"{NOT_STARTED}: {error}"
                continue
            with self._lock:
                if job.future.done():  # it was stopped
                    self._free.append(worker)
                    return
                job.worker = worker
            try:
                worker.send(job.payload, job.limits)
            except OSError as error:  # it has died just now
                cause = f"{NOT_STARTED}: {error}"
                worker.kill()
                continue
            if self._is_done(job, worker):
                return
            worker.kill()
            cause = worker.exit_reason()
        job.fail(WorkerLost(cause))

    def _is_done(self, job: Job, worker: WorkerProcess) -> bool:
        """Wait for the end of a job that was sent; return False where the worker died before it began."""
        clock, was_dead = _Clock(job.limits.seconds), False
        while True:
            try:
                message = worker.messages.get(timeout=min(POLL_SECONDS, max(0.0, clock.left)))
            except Empty:
                if clock.left <= 0.0:
                    worker.kill()
                    late = TooLong(job.limits.seconds or 0.0) if clock.begun else WorkerLost("it never began to work")
                    job.fail(late)
                    return True
                # A child may hold its pipe, so that its messages do not end; a last result has arrived by now.
                was_dead, message = worker.dead, None if was_dead else b""
            if isinstance(message, tuple):
                self._finish(job, worker, *message)
                return True
            if message is None:
                return self._is_lost(job, worker, clock)
            if isinstance(message, bytes):
                clock.apply(message)
            else:
                job.rounds = message

    def _finish(self, job: Job, worker: WorkerProcess, returned: bool, payload: bytes) -> None:
        """Set the outcome that the worker sent, once the worker is free."""
        grown = worker.has_grown()
        with self._lock:
            job.worker = None
            if not grown:
                self._free.append(worker)
        if grown:
            worker.kill()
        try:
            value = pickle.loads(payload)
        except Exception as error:
            returned, value = False, ResultRefused(f"the result cannot be read: {type(error).__name__}: {error}")
        (job.succeed if returned else job.fail)(value)

    def _is_lost(self, job: Job, worker: WorkerProcess, clock: _Clock) -> bool:
        """Fail the job of a worker that died; return False where the job had not begun, nor was stopped."""
        worker.kill()
        if not job.future.done() and not clock.begun:
            return False
        job.fail(WorkerLost(worker.exit_reason(), worker.last_output()))
        return True

    def _taken(self) -> WorkerProcess:
        """Return a free worker that lives, or a new one."""
        with self._lock:
            while self._free:
                worker = self._free.pop()
                if not worker.dead:
                    return worker
                worker.kill()
        with self._starting:
            if self._server is not None and self._server.dead:
                self._server.end()
                self._server = None
            if FORKS and self._server is None:
                self._server = ForkServer(self._load)
        return WorkerProcess(self._server)


def _with_warnings(
    function: Callable[..., object], arguments: tuple[object, ...]
) -> tuple[object, list[tuple[str, type[Warning]]]]:
    """Return function(*arguments) and its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = function(*arguments)
    return result, list(dict.fromkeys((str(warning.message), warning.category) for warning in caught))
