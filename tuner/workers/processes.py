"""Worker processes of this machine, each of which can die, or be ended, alone.

Each worker is a loky pool of one process. A pool of several, loky's or pebble's, shares pipes and locks among its
workers: loky gives up all of them when one dies, and a worker killed while it holds a lock of pebble's blocks the
others. Pools of one share nothing, and still provide cloudpickle and an environment set before libraries load.

One manager thread owns the workers; other threads queue orders, functions that it calls. So only the queue needs a
lock, and the workers, which end with the thread that started them, live as long as the manager.
"""

from __future__ import annotations

import math
import pickle
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Future, InvalidStateError, wait
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import Pipe
from multiprocessing import connection as connections
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any, Self, TypeVar

from ranktune.solvers.core.checks import check_count
from ranktune.solvers.core.errors import ResultRefused, TooLong, WorkerLost
from ranktune.tuner.workers.limits import BEGUN, PAUSED, RESUMED, Limits, pickled
from ranktune.tuner.workers.spare import SpareWorker
from ranktune.tuner.workers.worker_process import WorkerProcess

T = TypeVar("T")

START_SECONDS = 120.0
"""Seconds that a worker may take, beyond its time limit, until its function begins."""
POLL_SECONDS = 1.0
"""Seconds between two checks of the workers while something runs."""
MAX_SENDS = 3
"""How often a function is sent, where workers die before they begin it."""


@dataclass(eq=False)
class Job:
    """A pickled call and its future."""

    payload: bytes
    limits: Limits
    future: Future[Any] = field(default_factory=Future)

    def fail(self, error: BaseException) -> None:
        """Set the exception of the future, unless it is done."""
        with suppress(InvalidStateError):
            self.future.set_exception(error)

    def succeed(self, value: object) -> None:
        """Set the result of the future, unless it is done."""
        with suppress(InvalidStateError):
            self.future.set_result(value)


@dataclass(eq=False)
class _Running(Job):
    """A job with its progress on a worker; deadline is on the monotonic clock."""

    sent: int = 0
    begun: bool = False
    deadline: float = math.inf
    dead_since: float = 0.0
    paused_with: float = math.inf  # seconds left on the paused clock

    def apply_mark(self, mark: bytes) -> None:
        """Update the deadline by a mark of the worker."""
        now, seconds = time.monotonic(), self.limits.seconds
        if mark == BEGUN:
            self.begun, self.deadline = True, math.inf if seconds is None else now + seconds
        elif mark == PAUSED and self.deadline < math.inf:
            self.paused_with, self.deadline = self.deadline - now, math.inf
        elif mark == RESUMED and self.paused_with < math.inf:
            self.paused_with, self.deadline = math.inf, now + self.paused_with

    def finish(self, result: tuple[bool, bytes]) -> None:
        """Set the outcome that the worker sent."""
        returned, payload = result
        try:
            value = pickle.loads(payload)
        except Exception as error:
            self.fail(ResultRefused(f"the result cannot be read: {type(error).__name__}: {error}"))
            return
        if returned:
            self.succeed(value)
        else:
            self.fail(value)


@dataclass(eq=False)
class _Slot:
    """A place for one running job; its worker is started when it is first needed."""

    worker: WorkerProcess | None = None
    job: _Running | None = None


class Processes:
    """Worker processes with one thread each; leaving the block early, as on an interrupt, ends them at once."""

    def __init__(self, jobs: int, limits: Limits | None = None) -> None:
        check_count("jobs", jobs)
        self.jobs = jobs
        self.limits = limits or Limits()
        self._slots = [_Slot() for _ in range(jobs)]
        self._waiting: deque[_Running] = deque()
        self._lock = threading.Lock()
        self._orders: deque[Callable[[], None]] = deque()
        self._manager: threading.Thread | None = None
        self._wake: Connection | None = None
        self._open: set[Future[Any]] = set()
        self._spare = SpareWorker()
        self._ending = self._warmed_up = self._had_loss = self._woken = self._is_left = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_left = kind is not None
        if kind is None:
            while self._open:
                wait(list(self._open))
        manager = self._manager
        if manager is not None:
            self._order(self._end)
            with suppress(RuntimeError):  # an interrupt came before it was started
                manager.join()

    def submit(self, function: Callable[..., T], *arguments: object, limits: Limits | None = None) -> Future[T]:
        """Start function(*arguments) on a free worker, or queue it; limits replace the executor's.

        The future fails with WorkerLost, TooLong or ResultRefused where the function did not end by itself.
        """
        job = _Running(pickled((function, arguments), None), self.limits if limits is None else limits)
        self._open.add(job.future)
        job.future.add_done_callback(self._open.discard)
        self._order(partial(self._waiting.append, job))
        return job.future

    def call(self, function: Callable[..., T], *arguments: object) -> T:
        """Return function(*arguments), computed by a worker without limits, or here if the worker dies.

        The first call usually reads the data, before the trials: meanwhile the other workers load their libraries.
        """
        future = self.submit(_with_warnings, function, arguments, limits=Limits(result=None))
        if not self._warmed_up:
            self._warmed_up = True
            self._order(self._warm_up)
        try:
            result, caught = future.result()
        except WorkerLost:
            return function(*arguments)
        for message, category in caught:
            warnings.warn(message, category, stacklevel=2)
        return result  # type: ignore[return-value]

    def stop(self, future: Future[Any]) -> None:
        """End the function of future at once, with its worker: the future fails with WorkerLost."""
        self._order(partial(self._stop, future))

    # What follows runs in the manager's thread.

    def _order(self, order: Callable[[], None]) -> None:
        """Queue order for the manager, which the first one starts. From any thread."""
        with self._lock:
            self._orders.append(order)
            if self._manager is None:
                wake, self._wake = Pipe(duplex=False)
                self._manager = threading.Thread(
                    target=self._manage, args=(wake,), name="ranktune workers", daemon=True
                )
                self._manager.start()
            # An interrupt may come between any two of these lines: then the next order wakes the manager for both.
            if not self._woken and self._wake is not None:
                self._wake.send_bytes(b"")
                self._woken = True

    def _manage(self, wake: Connection) -> None:
        try:
            while not self._ending:
                self._step(wake)
        except BaseException as error:  # a bug: no future may stay pending
            self._end(RuntimeError(f"the manager of the workers failed: {type(error).__name__}: {error}"))
            if not self._is_left:  # else Python may be ending, and starts no process any more
                raise
        finally:
            with self._lock:
                self._manager, self._ending, self._woken = None, False, False
                wake.close()
                if self._wake is not None:
                    self._wake.close()

    def _step(self, wake: Connection) -> None:
        """Wait until there is something to do, and do it."""
        waited: list[Connection] = [wake]
        for worker in [self._spare.worker, *(slot.worker for slot in self._slots)]:
            if worker is not None:
                waited += worker.connections()
        if wake in connections.wait(waited, self._wait_seconds()):
            wake.recv_bytes()
        for slot in self._slots:
            self._read(slot)
        with self._lock:
            orders = list(self._orders)
            self._orders.clear()
            self._woken = False
        for order in orders:
            order()
        self._enforce_deadlines()
        self._send()
        self._keep_spare()

    def _wait_seconds(self) -> float | None:
        """Return how long to wait for messages, None without limit: until the next check or deadline."""
        running = [slot.job for slot in self._slots if slot.job is not None]
        if not running:
            return None
        left = min(job.deadline for job in running) - time.monotonic()
        return min(POLL_SECONDS, max(0.0, left))

    def _read(self, slot: _Slot) -> None:
        if slot.worker is not None:
            slot.worker.read_output()
            for mark in slot.worker.read_marks():
                if slot.job is not None:
                    slot.job.apply_mark(mark)

    def _enforce_deadlines(self) -> None:
        """End jobs over their time, and find dead workers that loky misses because a child holds their pipe."""
        now = time.monotonic()
        for slot in self._slots:
            job = slot.job
            if job is not None and job.deadline <= now:
                error = TooLong(job.limits.seconds or 0.0) if job.begun else WorkerLost("it never began to work")
                self._had_loss = True
                self._release(slot, error)
            elif job is not None and slot.worker is not None and slot.worker.dead:
                job.dead_since = job.dead_since or now
                if now > job.dead_since + POLL_SECONDS:  # a last result has arrived by now
                    self._handle_loss(slot, slot.worker, job)

    def _send(self) -> None:
        """Give waiting jobs to free slots, to those with a worker first."""
        free = [slot for slot in self._slots if slot.job is None]
        for slot in sorted(free, key=lambda one: one.worker is None or one.worker.dead):
            while self._waiting and slot.job is None:
                job = self._waiting.popleft()
                if job.sent or job.future.set_running_or_notify_cancel():
                    self._start(slot, job)

    def _keep_spare(self) -> None:
        """Keep a spare worker while a running job may cost its worker: under limits, or after a loss."""
        running = [slot.job for slot in self._slots if slot.job is not None]
        limited = any(job.limits.seconds is not None or job.limits.bytes is not None for job in running)
        if running and (limited or self._had_loss) and all(job.begun for job in running):
            self._spare.ensure()

    def _warm_up(self) -> None:
        """Start the missing workers, once the waiting jobs are sent."""
        self._send()
        for slot in self._slots:
            slot.worker = slot.worker or self._spare.start()

    def _start(self, slot: _Slot, job: _Running) -> None:
        job.sent += 1
        seconds = job.limits.seconds
        job.deadline = math.inf if seconds is None else time.monotonic() + seconds + START_SECONDS
        if slot.worker is not None and slot.worker.dead:
            slot.worker.kill()
            slot.worker = None
        try:
            try:
                slot.worker = slot.worker or self._spare.take()
                answer = slot.worker.send(job.payload, job.limits)
            except BrokenExecutor:  # it has died just now
                self._release(slot, None)
                slot.worker = self._spare.take()
                answer = slot.worker.send(job.payload, job.limits)
        except (OSError, BrokenExecutor) as error:
            self._release(slot, None)
            job.fail(WorkerLost(f"not started: {error}"))
            return
        slot.job = job
        completed = partial(self._completed, slot, slot.worker, job)
        answer.add_done_callback(lambda done: self._order(partial(completed, done)))

    def _completed(self, slot: _Slot, worker: WorkerProcess, job: _Running, answer: Future[tuple[bool, bytes]]) -> None:
        """Handle the result of a worker, or its death."""
        if slot.job is not job or slot.worker is not worker:
            return  # given up before
        if answer.exception() is not None:
            self._handle_loss(slot, worker, job)
            return
        slot.job = None
        if worker.has_grown():
            self._release(slot, None)
        job.finish(answer.result())

    def _handle_loss(self, slot: _Slot, worker: WorkerProcess, job: _Running) -> None:
        """Fail the job of a worker that died, or send it again if it had not begun."""
        self._had_loss = True
        self._read(slot)
        if not job.begun and job.sent < MAX_SENDS:
            self._release(slot, None)
            self._waiting.appendleft(job)
        else:
            self._release(slot, WorkerLost(worker.exit_reason(), worker.last_output()))

    def _release(self, slot: _Slot, error: Exception | None) -> None:
        """End the worker of slot; its job fails with error, if there is one."""
        job, worker = slot.job, slot.worker
        slot.job = slot.worker = None
        if worker is not None:
            worker.kill()
        if job is not None and error is not None:
            job.fail(error)

    def _stop(self, future: Future[Any]) -> None:
        for job in [job for job in self._waiting if job.future is future]:
            self._waiting.remove(job)
            job.fail(WorkerLost("stopped"))
        for slot in self._slots:
            if slot.job is not None and slot.job.future is future:
                self._release(slot, WorkerLost("stopped"))

    def _end(self, error: Exception | None = None) -> None:
        """End all workers and the manager; running and waiting jobs fail with error."""
        threads = [self._spare.kill(), *(slot.worker.kill() for slot in self._slots if slot.worker is not None)]
        jobs = [slot.job for slot in self._slots if slot.job is not None] + list(self._waiting)
        for slot in self._slots:
            slot.job = slot.worker = None
        self._waiting.clear()
        for job in jobs:
            job.fail(error or WorkerLost("stopped"))
        for thread in threads:
            if thread is not None:
                thread.join(5.0)
        self._ending = True


def _with_warnings(
    function: Callable[..., object], arguments: tuple[object, ...]
) -> tuple[object, list[tuple[str, type[Warning]]]]:
    """Return function(*arguments) and its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = function(*arguments)
    return result, list(dict.fromkeys((str(one.message), one.category) for one in caught))
