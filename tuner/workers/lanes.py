"""Lanes: worker processes of this machine, each of which can die, or be ended, alone.

A lane is a loky pool of one process. One pool of many, loky's or pebble's, shares its pipes and their locks among the
workers: loky gives all of them up when one dies, and a worker killed while it holds a lock of pebble's blocks the
others. Pools of one share nothing, and bring what else is needed: cloudpickle, and an environment set before the
libraries load.

One thread, the keeper, owns the lanes. Others tell it what to do by functions that it calls, so nothing needs a lock
but the list of them; and workers, which die with the thread that started them, live as long as it does.
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
from ranktune.tuner.workers.process import WorkerProcess
from ranktune.tuner.workers.spare import Spare

T = TypeVar("T")

STARTING = 120.0
"""Seconds that a worker may take, over its time limit, until its function begins."""

LOOKING = 1.0
"""Seconds between two looks at workers while something runs."""

SENDINGS = 3
"""How often a function is sent, where workers die before they begin it."""


@dataclass(eq=False)
class _Job:
    """A function with its arguments, pickled; what became of it; until when, of the steady clock, it may run."""

    payload: bytes
    limits: Limits
    future: Future[Any] = field(default_factory=Future)
    sent: int = 0
    begun: bool = False
    deadline: float = math.inf
    alone: float = 0.0  # since when its worker is seen dead
    left: float = math.inf  # seconds that its standing clock still shows

    def hears(self, mark: bytes) -> None:
        """Set the deadline by what its worker tells."""
        now, seconds = time.monotonic(), self.limits.seconds
        if mark == BEGUN:
            self.begun, self.deadline = True, math.inf if seconds is None else now + seconds
        elif mark == PAUSED and self.deadline < math.inf:
            self.left, self.deadline = self.deadline - now, math.inf
        elif mark == RESUMED and self.left < math.inf:
            self.left, self.deadline = math.inf, now + self.left

    def fails(self, error: Exception) -> None:
        """Have its future fail, unless it has ended already."""
        with suppress(InvalidStateError):
            self.future.set_exception(error)

    def returns(self, answer: tuple[bool, bytes]) -> None:
        """Have its future end as its function did."""
        returned, payload = answer
        try:
            value = pickle.loads(payload)
        except Exception as error:
            self.fails(ResultRefused(f"the result cannot be read: {type(error).__name__}: {error}"))
            return
        if not returned:
            self.fails(value)
            return
        with suppress(InvalidStateError):
            self.future.set_result(value)


@dataclass(eq=False)
class _Lane:
    """A place where one function runs at a time; its worker is started when it is first needed."""

    name: str
    worker: WorkerProcess | None = None
    job: _Job | None = None


class Processes:
    """Worker processes with one thread each; leaving the block early, as on an interrupt, ends them at once."""

    def __init__(self, jobs: int, limits: Limits | None = None) -> None:
        check_count("jobs", jobs)
        self.jobs = jobs
        self.limits = limits or Limits()
        self._lanes = [_Lane(f"lane-{number}") for number in range(jobs)]
        self._waiting: deque[_Job] = deque()
        self._lock = threading.Lock()
        self._told: deque[Callable[[], None]] = deque()
        self._keeper: threading.Thread | None = None
        self._wake: Connection | None = None
        self._open: set[Future[Any]] = set()
        self._spare = Spare()
        self._ending = self._warm = self._losing = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            while self._open:
                wait(list(self._open))
        keeper = self._keeper
        if keeper is not None:
            self._tell(self._end)
            keeper.join()

    def submit(self, function: Callable[..., T], *arguments: Any, limits: Limits | None = None) -> Future[T]:
        """Start function(*arguments) on a free lane, or have it wait for one; limits are other than the executor's.

        The future fails with WorkerLost, TooLong or ResultRefused where the function did not end by itself.
        """
        job = _Job(pickled((function, arguments), None), self.limits if limits is None else limits)
        self._open.add(job.future)
        job.future.add_done_callback(self._open.discard)
        self._tell(partial(self._waiting.append, job))
        return job.future

    def call(self, function: Callable[..., T], *arguments: Any) -> T:
        """Return function(*arguments), computed by a worker without limits; here, where the worker dies.

        The first call is to read data, which trials follow: the other lanes load their libraries meanwhile.
        """
        job: Future[tuple[T, list[tuple[str, type[Warning]]]]]
        job = self.submit(_heard, function, arguments, limits=Limits(result=None))
        if not self._warm:
            self._warm = True
            self._tell(self._warm_up)
        try:
            result, told = job.result()
        except WorkerLost:
            return function(*arguments)
        for message, category in told:
            warnings.warn(message, category, stacklevel=2)
        return result

    def stop(self, future: Future[Any]) -> None:
        """End the function of future at once, with its worker: the future fails with WorkerLost."""
        self._tell(partial(self._stop, future))

    def watch(self) -> float:
        """Return the seconds until the next function reaches its time limit; the keeper ends it then."""
        deadlines = [job.deadline for lane in self._lanes if (job := lane.job) is not None]
        return max(0.0, min(deadlines, default=math.inf) - time.monotonic())

    def worker_of(self, future: Future[Any]) -> str:
        """Return the name of the lane that runs the function of future, "" where none does."""
        return next((lane.name for lane in self._lanes if (job := lane.job) is not None and job.future is future), "")

    # What follows runs in the keeper's thread.

    def _tell(self, order: Callable[[], None]) -> None:
        """Have the keeper call order; the first order starts it. From any thread."""
        with self._lock:
            self._told.append(order)
            if self._keeper is None:
                wake, self._wake = Pipe(duplex=False)
                self._keeper = threading.Thread(target=self._keep, args=(wake,), name="ranktune lanes", daemon=True)
                self._keeper.start()
            if len(self._told) == 1 and self._wake is not None:
                self._wake.send_bytes(b"")

    def _keep(self, wake: Connection) -> None:
        try:
            while not self._ending:
                self._turn(wake)
        except BaseException as error:  # a fault of ours: nobody is to wait for ever
            self._end(RuntimeError(f"the keeper of the lanes failed: {type(error).__name__}: {error}"))
            raise
        finally:
            with self._lock:
                self._keeper, self._ending = None, False
                wake.close()
                if self._wake is not None:
                    self._wake.close()

    def _turn(self, wake: Connection) -> None:
        """Wait until there is something to do, and do it."""
        heard: list[Connection] = [wake]
        for worker in [self._spare.worker, *(lane.worker for lane in self._lanes)]:
            if worker is not None:
                heard += worker.listening()
        if wake in connections.wait(heard, self._patience()):
            wake.recv_bytes()
        for lane in self._lanes:
            self._listen(lane)
        with self._lock:
            orders = list(self._told)
            self._told.clear()
        for order in orders:
            order()
        self._enforce()
        self._send()
        self._provide()

    def _patience(self) -> float | None:
        """Return for how long nothing needs to be done, if nobody says anything."""
        if all(lane.job is None for lane in self._lanes):
            return None
        return min(LOOKING, self.watch())

    def _listen(self, lane: _Lane) -> None:
        if lane.worker is not None:
            lane.worker.read_output()
            for mark in lane.worker.read_marks():
                if lane.job is not None:
                    lane.job.hears(mark)

    def _enforce(self) -> None:
        """End what is over its time; see to dead workers that loky takes for alive, as their children hold its pipe."""
        for lane in self._lanes:
            job = lane.job
            if job is not None and job.deadline <= time.monotonic():
                error = TooLong(job.limits.seconds or 0.0) if job.begun else WorkerLost("it never began to work")
                self._losing = True
                self._free(lane, error)
            elif job is not None and lane.worker is not None and lane.worker.dead:
                job.alone = job.alone or time.monotonic()
                if time.monotonic() > job.alone + LOOKING:  # what it answered last has arrived by now
                    self._lost(lane, lane.worker, job)

    def _send(self) -> None:
        """Give waiting functions to free lanes, to those with a worker first."""
        free = [lane for lane in self._lanes if lane.job is None]
        for lane in sorted(free, key=lambda one: one.worker is None or one.worker.dead):
            while self._waiting and lane.job is None:
                job = self._waiting.popleft()
                if job.sent or job.future.set_running_or_notify_cancel():
                    self._start(lane, job)

    def _provide(self) -> None:
        """Keep a spare worker while something runs that may cost its own: under limits, or where one was lost."""
        running = [lane.job for lane in self._lanes if lane.job is not None]
        limited = any(job.limits.seconds is not None or job.limits.bytes is not None for job in running)
        if running and (limited or self._losing) and all(job.begun for job in running):
            self._spare.keep()

    def _warm_up(self) -> None:
        """Start the workers that there are not yet, once what waits has been given out."""
        self._send()
        for lane in self._lanes:
            lane.worker = lane.worker or self._spare.loading()

    def _start(self, lane: _Lane, job: _Job) -> None:
        job.sent += 1
        seconds = job.limits.seconds
        job.deadline = math.inf if seconds is None else time.monotonic() + seconds + STARTING
        if lane.worker is not None and lane.worker.dead:
            lane.worker.kill()
            lane.worker = None
        try:
            try:
                lane.worker = lane.worker or self._spare.take()
                answer = lane.worker.send(job.payload, job.limits)
            except BrokenExecutor:  # it has died just now
                self._free(lane, None)
                lane.worker = self._spare.take()
                answer = lane.worker.send(job.payload, job.limits)
        except (OSError, BrokenExecutor) as error:
            self._free(lane, None)
            job.fails(WorkerLost(f"not started: {error}"))
            return
        lane.job = job
        answered = partial(self._answered, lane, lane.worker, job)
        answer.add_done_callback(lambda ended: self._tell(partial(answered, ended)))

    def _answered(self, lane: _Lane, worker: WorkerProcess, job: _Job, answer: Future[tuple[bool, bytes]]) -> None:
        """Take in what a worker answers, or that it died."""
        if lane.job is not job or lane.worker is not worker:
            return  # given up before
        if answer.exception() is not None:
            self._lost(lane, worker, job)
            return
        lane.job = None
        if worker.grown():
            self._free(lane, None)
        job.returns(answer.result())

    def _lost(self, lane: _Lane, worker: WorkerProcess, job: _Job) -> None:
        """Have the function of a worker that died fail, or send it again where it had not begun."""
        if lane.job is not job or lane.worker is not worker:
            return
        self._losing = True
        self._listen(lane)
        if not job.begun and job.sent < SENDINGS:
            self._free(lane, None)
            self._waiting.appendleft(job)
        else:
            self._free(lane, WorkerLost(worker.how_it_ended(), worker.last_words()))

    def _free(self, lane: _Lane, error: Exception | None) -> None:
        """End the worker of lane; its function's future fails with error."""
        job, worker = lane.job, lane.worker
        lane.job = lane.worker = None
        if worker is not None:
            worker.kill()
        if job is not None and error is not None:
            job.fails(error)

    def _stop(self, future: Future[Any]) -> None:
        for job in [job for job in self._waiting if job.future is future]:
            self._waiting.remove(job)
            job.fails(WorkerLost("stopped"))
        for lane in self._lanes:
            if lane.job is not None and lane.job.future is future:
                self._free(lane, WorkerLost("stopped"))

    def _end(self, error: Exception | None = None) -> None:
        """End all workers, and the keeper; what runs or waits fails with error."""
        tidying = [self._spare.drop(), *(lane.worker.kill() for lane in self._lanes if lane.worker is not None)]
        jobs = [lane.job for lane in self._lanes if lane.job is not None] + list(self._waiting)
        for lane in self._lanes:
            lane.job = lane.worker = None
        self._waiting.clear()
        for job in jobs:
            job.fails(error or WorkerLost("stopped"))
        for thread in tidying:
            if thread is not None:
                thread.join(5.0)
        self._ending = True


def _heard(function: Callable[..., T], arguments: tuple[Any, ...]) -> tuple[T, list[tuple[str, type[Warning]]]]:
    """Return function(*arguments), and what it warned of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = function(*arguments)
    return result, list(dict.fromkeys((str(one.message), one.category) for one in caught))
