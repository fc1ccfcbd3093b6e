"""One worker process: a loky pool of one, its marks and the end of its output."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import Future
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import TypeVar

from ranktune.tuner.workers.limits import Limits, load_libraries, prepare, run
from ranktune.tuner.workers.loky_internals import manager_thread, process_of, start_pool

T = TypeVar("T")

ONE_THREAD = {
    f"{library}_NUM_THREADS": "1"
    for library in ("OMP", "OPENBLAS", "MKL", "BLIS", "NUMEXPR", "NUMBA", "VECLIB_MAXIMUM")
}
OUTPUT_TAIL = 4096
"""Bytes kept of a worker's output."""
MAX_GROWTH = 2**30
"""Bytes by which a worker may grow before it is replaced: libraries leak, and memory fragments."""


class WorkerProcess:
    """A worker, started by its first function. It ends with the thread that starts it."""

    def __init__(self) -> None:
        self.marks, self._worker_marks = Pipe(duplex=False)
        self.output, self._worker_output = Pipe(duplex=False)
        if os.name == "posix":
            os.set_blocking(self.output.fileno(), False)
        self._tail = b""
        self._first_memory: int | None = None
        self._process: BaseProcess | None = None
        self._pool = start_pool(ONE_THREAD, prepare, (os.getpid(), self._worker_marks, self._worker_output))

    def send(self, payload: bytes, limits: Limits) -> Future[tuple[bool, bytes]]:
        """Run the function pickled in payload. Raises BrokenExecutor where the worker is dead already."""
        return self._submit(run, payload, limits)

    def load(self) -> None:
        """Load the libraries of trials; this sends no marks."""
        self._submit(load_libraries)

    def _submit(self, function: Callable[..., T], *arguments: object) -> Future[T]:
        future = self._pool.submit(function, *arguments)
        if self._process is None:
            self._process = process_of(self._pool)
            self._worker_marks.close()
            self._worker_output.close()
        return future

    @property
    def pid(self) -> int:
        """The process's number; 0 before it is started."""
        return 0 if self._process is None else self._process.pid or 0

    @property
    def dead(self) -> bool:
        """Whether the process has ended."""
        return self._process is not None and self._process.exitcode is not None

    def connections(self) -> list[Connection]:
        """Return the open connections to wait on."""
        return [c for c in (self.marks, self.output) if not c.closed]

    def read_marks(self) -> list[bytes]:
        """Return the marks that have arrived."""
        found: list[bytes] = []
        try:
            while not self.marks.closed and self.marks.poll():
                found.append(self.marks.recv_bytes())
        except (EOFError, OSError):
            self.marks.close()
        return found

    def read_output(self) -> None:
        """Read what has arrived of the output; only its end is kept."""
        if self.output.closed:
            return
        try:
            for _ in range(16):
                part = os.read(self.output.fileno(), 65536)
                if not part:
                    raise EOFError
                self._tail = (self._tail + part)[-OUTPUT_TAIL:] if len(part) < OUTPUT_TAIL else part[-OUTPUT_TAIL:]
        except BlockingIOError:
            pass
        except (EOFError, OSError):
            self.output.close()

    def has_grown(self) -> bool:
        """Whether its own memory, between functions, is much larger than after its first one. Linux only."""
        import psutil  # after the first function: it imports for 10 ms

        try:
            memory = psutil.Process(self.pid).memory_info()
        except psutil.Error:  # it is dead
            return False
        own: int = memory.rss - getattr(memory, "shared", memory.rss)
        self._first_memory = own if self._first_memory is None else self._first_memory
        return own > self._first_memory + MAX_GROWTH

    def exit_reason(self) -> str:
        """Return how the process ended, in words."""
        code = self._process.exitcode if self._process is not None else None
        if code is None:
            return "it ended"
        if code >= 0:
            return f"exited with code {code}"
        with contextlib.suppress(ValueError):
            name = signal.strsignal(-code) or ""
            return f"killed by signal {-code} ({'out of memory?' if -code == 9 else name.lower()})"
        return f"killed by signal {-code}"

    def last_output(self) -> str:
        """Return the end of its output, without control characters."""
        self.read_output()
        text = self._tail.decode(errors="replace")
        return "".join(c if c.isprintable() or c == "\n" else " " for c in text).strip()

    def kill(self) -> threading.Thread | None:
        """End the process and its children at once; return the thread that cleans up after it."""
        if self.pid and os.name == "posix":
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
            if not self.dead:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self.pid, signal.SIGKILL)
        thread = manager_thread(self._pool)
        self._pool.shutdown(wait=False, kill_workers=True)
        for connection in (self.marks, self.output, self._worker_marks, self._worker_output):
            connection.close()
        return thread
