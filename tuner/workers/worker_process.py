"""One worker process: its orders on its standard input, its messages on its standard output, and its output.

Its environment is set before any library is loaded. What it and its children write goes to its standard error.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import subprocess
import threading
import time
from queue import SimpleQueue
from typing import IO, Any

from ranktune.solvers.core.errors import printable
from ranktune.tuner.workers.fork_server import Fork, ForkServer, started
from ranktune.tuner.workers.limits import CallLimits

OUTPUT_TAIL = 4096
"""Bytes kept of a worker's output."""
MAX_GROWTH = 2**30
"""Bytes by which a worker may grow before it is replaced: libraries leak, and memory fragments."""
_KILL_SECONDS = 5.0


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
            while part := output.read1(65536):  # type: ignore[attr-defined]
                self._tail = (self._tail + part)[-OUTPUT_TAIL:]

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
