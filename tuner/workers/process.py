"""One worker process: a loky pool of one, the marks that it sends, and the last of what it writes."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import Future
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any

from ranktune.tuner.workers.limits import Limits, load_libraries, prepare, run

ONE_THREAD = {
    f"{library}_NUM_THREADS": "1"
    for library in ("OMP", "OPENBLAS", "MKL", "BLIS", "NUMEXPR", "NUMBA", "VECLIB_MAXIMUM")
}

LAST_WORDS = 4096
"""Bytes kept of what a worker writes."""


GROWTH = 2**30
"""Bytes by which a worker may grow before another takes its place: libraries leak, and memory falls to pieces."""

PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


class WorkerProcess:
    """A worker, started by its first function. The thread that sends it must live on: the worker dies with it."""

    def __init__(self) -> None:
        from joblib.externals.loky.process_executor import ProcessPoolExecutor

        self.marks, self._its_marks = Pipe(duplex=False)
        self.output, self._its_output = Pipe(duplex=False)
        if os.name == "posix":
            os.set_blocking(self.output.fileno(), False)
        self._last = b""
        self._at_first: int | None = None
        self._process: Any = None
        self._pool = ProcessPoolExecutor(
            max_workers=1,
            env=ONE_THREAD,
            initializer=prepare,
            initargs=(os.getpid(), self._its_marks, self._its_output),
        )

    def send(self, payload: bytes, limits: Limits) -> Future[tuple[bool, bytes]]:
        """Run what is pickled in payload. Raises BrokenExecutor where the worker is dead already."""
        answer: Future[tuple[bool, bytes]] = self._submit(run, payload, limits)
        return answer

    def load(self) -> None:
        """Load what trials need, before anything that is sent; of this it tells nothing."""
        self._submit(load_libraries)

    def _submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        answer: Future[Any] = self._pool.submit(function, *arguments)
        if self._process is None:
            self._process = next(iter(self._pool._processes.values()), None)
            self._its_marks.close()
            self._its_output.close()
        return answer

    @property
    def pid(self) -> int:
        """The process's number; 0 before it is started."""
        return self._process.pid if self._process is not None else 0

    @property
    def dead(self) -> bool:
        """Whether the process has ended."""
        return self._process is not None and self._process.exitcode is not None

    def listening(self) -> list[Connection]:
        """Return what it speaks through, to wait for."""
        return [c for c in (self.marks, self.output) if not c.closed]

    def read_marks(self) -> list[bytes]:
        """Return the marks that have arrived."""
        found: list[bytes] = []
        with contextlib.suppress(EOFError, OSError):
            while not self.marks.closed and self.marks.poll():
                found.append(self.marks.recv_bytes())
            return found
        self.marks.close()
        return found

    def read_output(self) -> None:
        """Take in what it has written; only the last is kept."""
        if self.output.closed:
            return
        try:
            for _ in range(16):
                part = os.read(self.output.fileno(), 65536)
                if not part:
                    raise EOFError
                self._last = (self._last + part)[-LAST_WORDS:] if len(part) < LAST_WORDS else part[-LAST_WORDS:]
        except BlockingIOError:
            pass
        except (EOFError, OSError):
            self.output.close()

    def grown(self) -> bool:
        """Whether it keeps much more memory of its own than after its first function; to be asked between functions."""
        try:
            with open(f"/proc/{self.pid}/statm", encoding="ascii") as file:
                resident, shared = (int(pages) for pages in file.read().split()[1:3])
        except OSError:  # not Linux, or it is dead
            return False
        own = (resident - shared) * PAGE
        self._at_first = own if self._at_first is None else self._at_first
        return own > self._at_first + GROWTH

    def how_it_ended(self) -> str:
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

    def last_words(self) -> str:
        """Return the last that it wrote, without control characters."""
        self.read_output()
        text = self._last.decode(errors="replace")
        return "".join(c if c.isprintable() or c == "\n" else " " for c in text).strip()

    def kill(self) -> threading.Thread | None:
        """End the process and all that it started, at once; return the thread that tidies up after it."""
        if self._process is not None and os.name == "posix":
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            if not self.dead:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self._process.pid, signal.SIGKILL)
        thread: threading.Thread | None = self._pool._executor_manager_thread
        self._pool.shutdown(wait=False, kill_workers=True)
        for connection in (self.marks, self.output, self._its_marks, self._its_output):
            connection.close()
        return thread
