"""Worker processes of this machine, each of which can die, or be ended, alone.

A thread for each function that runs at a time gives a worker one function after the other, and waits for its messages.
Workers that are no forks end with the thread that started them, and these threads live as long as the executor. Workers
whose function has ended are kept in one list.

A worker has its orders on its standard input, and its messages on its standard output. Its environment is set before
any library is loaded. What it and its children write goes to its standard error.
"""

from __future__ import annotations

import contextlib
import math
import os
import pickle
import signal
import subprocess
import threading
import time
import warnings
from collections.abc import Callable
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, TypeVar

from ranktune.solvers.core.errors import ResultRefused, TooLong, WorkerLost, printable, warn
from ranktune.tuner.workers.fork_server import FORKS, Fork, ForkServer, started
from ranktune.tuner.workers.lanes import STOPPED, Job, Lanes
from ranktune.tuner.workers.limits import BEGUN, PAUSED, RESUMED, CallLimits

if TYPE_CHECKING:
    from ranktune.tuner.evaluation.task import Rounds


OUTPUT_TAIL = 4096
"""Bytes kept of a worker's output."""
MAX_GROWTH = 2**30
"""Bytes by which a worker may grow before it is replaced: libraries leak, and memory fragments."""
_KILL_SECONDS = 5.0
T = TypeVar("T")
START_SECONDS = 120.0
"""Seconds that a worker may take, beyond its time limit, until its function begins."""
POLL_SECONDS = 1.0
"""Seconds between two checks of a worker while its function runs."""
MAX_SENDS = 3
"""How often a function is sent, where workers die before they begin it."""
NOT_STARTED = "not started"
"""How the reason of a worker that could not be started begins."""


class WorkerProcess:
    """A worker, a fork of a server if there is one. It ends with the thread that starts it, or with the server.

    messages holds what it sends: the marks of clocks, a result (returned, payload), and None once it has ended.
    """

    def __init__(self, server: ForkServer | None = None) -> None:
        self._process: subprocess.Popen[bytes] | Fork = started("limits.serve") if server is None else server.fork()
        self.messages: SimpleQueue[Any] = SimpleQueue()
        self._tail, self._is_gone = b"", False
        self._first_memory: int | None = None
        self._output = threading.Thread(target=self._read_output, args=(self._process.stderr,), daemon=True)
        self._output.start()
        threading.Thread(target=self._read_messages, args=(self._process.stdout,), daemon=True).start()

    def send(self, payload: bytes, limits: CallLimits) -> None:
        """Run the function pickled in payload. Raises OSError where the worker is dead already."""
        assert self._process.stdin is not None
        pickle.dump((payload, limits), self._process.stdin)
        self._process.stdin.flush()

    def _read_messages(self, messages: IO[bytes]) -> None:
        with messages, contextlib.suppress(Exception):  # EOFError: it has ended, also amid a message
            while True:
                self.messages.put(pickle.load(messages))
        self.messages.put(None)

    def _read_output(self, output: IO[Any]) -> None:
        with output:
            while data := output.read1(65536):  # type: ignore[attr-defined]
                self._tail = (self._tail + data)[-OUTPUT_TAIL:]

    @property
    def pid(self) -> int:
        """The process's number."""
        return self._process.pid

    @property
    def dead(self) -> bool:
        """Whether the process has ended."""
        return self._process.poll() is not None

    def has_grown(self) -> bool:
        """Whether its memory, between functions, is much larger than after its first function. Linux only."""
        import psutil  # after the first function: it imports for 10 ms

        try:
            memory = psutil.Process(self.pid).memory_info()
        except psutil.Error:  # it is dead
            return False
        private: int = memory.rss - getattr(memory, "shared", memory.rss)
        self._first_memory = private if self._first_memory is None else self._first_memory
        return private > self._first_memory + MAX_GROWTH

    def end(self) -> None:
        """End the process and its children; its messages end."""
        if self._is_gone:  # its number may be another's
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if os.name == "posix":
                os.killpg(self.pid, signal.SIGKILL)
        self._process.kill()

    def kill(self) -> None:
        """End the process and its children, and wait until it is gone."""
        self.end()
        until = time.monotonic() + _KILL_SECONDS
        while not self.dead and time.monotonic() < until:
            time.sleep(0.001)
        self._is_gone = self.dead
        with contextlib.suppress(OSError):
            assert self._process.stdin is not None
            self._process.stdin.close()

    def exit_reason(self) -> str:
        """Return how a killed process ended, in words."""
        code = self._process.returncode
        if code is None:
            return "it ended"
        if code >= 0:
            return f"exited with code {code}"
        with contextlib.suppress(ValueError):
            name = signal.strsignal(-code) or ""
            return f"killed by signal {-code} ({'out of memory?' if -code == 9 else name.lower()})"
        return f"killed by signal {-code}"

    def last_output(self) -> str:
        """Return the end of the output of a killed process, without control characters."""
        self._output.join(1.0)
        text = self._tail.decode(errors="replace")
        return printable(text, keep="\n").strip()


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


class Processes(Lanes):
    """Worker processes with one thread each; leaving the block early, as on an interrupt, ends them at once.

    load is called once before workers are forked, and loads what they need.
    """

    def __init__(self, jobs: int, limits: CallLimits | None = None, load: Callable[[], None] | None = None) -> None:
        super().__init__(jobs, limits)
        self._free: list[WorkerProcess] = []
        self._load, self._starting = load, threading.Lock()
        self._server: ForkServer | None = None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        while self._free:
            self._free.pop().kill()
        if self._server is not None:
            self._server.end()
            self._server = None

    def call(self, function: Callable[..., T], *arguments: object) -> T:
        """Return function(*arguments), computed by a worker without limits, or here if none can be started.

        If a worker dies, another one tries again. What two workers died of is not tried here, where it would end the
        study: WorkerLost is raised.
        """
        for is_last in (False, True):
            future = self.submit(_with_warnings, function, arguments, limits=CallLimits(result=None))
            try:
                result, caught = future.result()
                break
            except WorkerLost as lost:
                if lost.reason.startswith(NOT_STARTED):
                    return function(*arguments)
                if is_last or lost.reason == STOPPED:
                    raise
        for message, category in caught:
            warn(message, category)
        return result  # type: ignore[return-value]

    def new_rounds(self, future: Future[Any]) -> Rounds | None:
        """Return the last report of the fit of a function, None if there was none since the last call."""
        job, rounds = self._jobs.get(future), None
        if job is not None:
            rounds, job.rounds = job.rounds, None
        return rounds

    def _end(self, job: Job) -> None:
        if job.worker is not None:
            job.worker.end()

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
