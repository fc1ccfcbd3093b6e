"""What happens inside a worker process around the function that it runs: its limits, its result, its last words.

A worker belongs to its coordinator: it leads a process group of its own, which is ended as a whole, is deaf to Ctrl-C
(the coordinator decides what becomes of running trials), and dies with the coordinator. What it prints goes to the
coordinator, which keeps the last lines.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import pickle
import signal
import sys
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from ranktune.solvers.core.errors import ParameterError, ResultRefused
from ranktune.tuner.evaluation.memory import allow, own_memory
from ranktune.tuner.workers.garbage import collect_seldom

RESULT_CAP = 64 * 2**20
"""Bytes that the pickled result of a trial may take."""

BEGUN, PAUSED, RESUMED = b"b", b"p", b"r"
"""What a worker tells of a function: its clock starts; stands still, while kernels are compiled; goes on."""

_marks: Connection | None = None


@dataclass(frozen=True)
class Limits:
    """What one function may take: seconds by the clock, bytes of memory beside mapped files, bytes of its result.

    The clock starts with the function, not with its worker, and stands still while numba compiles its kernels.
    """

    seconds: float | None = None
    bytes: int | None = None
    result: int | None = RESULT_CAP


def check_limits(limits: Limits) -> None:
    """Raise ParameterError for limits that nothing could keep to, or that this system does not know."""
    for name, value in (("trial_timeout", limits.seconds), ("trial_memory", limits.bytes)):
        if value is not None and not 0 < value < float("inf"):
            raise ParameterError(f"{name}={value!r}: it must be above 0.")
    if limits.bytes is not None and sys.platform != "linux":
        raise ParameterError("trial_memory: memory can be limited on Linux only. Leave it out.")


def prepare(coordinator: int, marks: Connection, output: Connection) -> None:
    """Make this process a worker of the process coordinator; marks and output lead there."""
    global _marks
    _marks = marks
    collect_seldom()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if os.name == "posix":
        os.setpgid(0, 0)
    _die_with(coordinator)
    _redirect(output)
    _keep_processes()


def run(payload: bytes, limits: Limits) -> tuple[bool, bytes]:
    """Return whether the function pickled in payload, with its arguments, returned, and its pickled result or error."""
    try:
        function, arguments = pickle.loads(payload)
        with _clock(limits), _memory(limits):
            result = function(*arguments)
        return True, pickled(result, limits.result)
    except BaseException as error:  # whatever it is, this process goes on
        return False, _pickled_error(error)


def load_libraries() -> None:
    """Load what trials need, which takes most of a second."""
    from numba.core.registry import cpu_target

    import ranktune.tuner.evaluation.objective  # noqa: F401

    cpu_target.typing_context.refresh()  # as the first kernel does that is called
    cpu_target.target_context.refresh()


def pickled(result: Any, cap: int | None) -> bytes:
    """Return result pickled. Raises ResultRefused where that takes more than cap bytes, or cannot be done."""
    from joblib.externals.loky.backend import reduction

    file = _Capped(cap)
    try:
        reduction.dump(result, file, protocol=pickle.HIGHEST_PROTOCOL)
    except ResultRefused:
        raise
    except Exception as error:
        raise ResultRefused(f"it cannot be pickled: {type(error).__name__}: {error}") from error
    return b"".join(file.parts)


class _Capped:
    """A file that refuses to grow over cap bytes; large parts are refused before they are copied."""

    def __init__(self, cap: int | None) -> None:
        self.parts: list[bytes] = []
        self._cap, self._size = cap, 0

    def write(self, part: bytes | memoryview) -> int:
        size = memoryview(part).nbytes
        self._size += size
        if self._cap is not None and self._size > self._cap:
            raise ResultRefused(f"the result takes more than {self._cap / 2**20:g} MiB, which is all that is allowed")
        self.parts.append(bytes(part))
        return size


def _pickled_error(error: BaseException) -> bytes:
    """Return error pickled, with its traceback as a note; another of the same words, where it cannot be."""
    told = f"{type(error).__name__}: {error}"
    note = "In the worker process:\n" + "".join(traceback.format_exception(error))
    if isinstance(error, Exception):
        with contextlib.suppress(Exception):
            error.add_note(note)
            error.__traceback__ = None
            payload = pickled(error, RESULT_CAP)
            if isinstance(pickle.loads(payload), type(error)):
                return payload
        told = f"the error cannot be pickled: {told}"
    refused = ResultRefused(told[:10_000])
    refused.add_note(note[:100_000])
    return pickled(refused, None)


@contextlib.contextmanager
def _clock(limits: Limits) -> Iterator[None]:
    """Tell the coordinator when the function begins, and when its clock stands still."""
    if limits.seconds is None:
        _tell(BEGUN)
        yield
        return
    from numba.core.event import Listener, install_listener

    class Compiling(Listener):
        depth = 0

        def on_start(self, event: Any) -> None:
            self.depth += 1
            if self.depth == 1:
                _tell(PAUSED)

        def on_end(self, event: Any) -> None:
            self.depth -= 1
            if self.depth == 0:
                _tell(RESUMED)

    with install_listener("numba:compile", Compiling()):
        _tell(BEGUN)
        yield


def _tell(mark: bytes) -> None:
    if _marks is not None:
        _marks.send_bytes(mark)


@contextlib.contextmanager
def _memory(limits: Limits) -> Iterator[None]:
    """Have allocations fail that would take the process over what it has now and limits.bytes more.

    Of writable memory of its own, that is (RLIMIT_DATA, Linux): what it shares with others does not count.
    """
    if limits.bytes is None:
        yield
        return
    allow(own_memory() + limits.bytes)
    try:
        yield
    except MemoryError as error:
        raise MemoryError(f"it needs more than the {limits.bytes / 2**20:g} MiB that it may take") from error
    finally:
        allow(None)


def _die_with(coordinator: int) -> None:
    """Have this process killed when its parent dies, whatever it computes then. Linux; elsewhere loky sees to it."""
    if sys.platform != "linux":
        return
    set_death_signal = 1  # PR_SET_PDEATHSIG
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(set_death_signal, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != coordinator:  # it died before the line above
        os._exit(1)


def _redirect(output: Connection) -> None:
    """Have all that this process writes on its standard streams go to output, C libraries' words too."""
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    target = output.fileno() if os.name == "posix" else nothing
    os.dup2(target, 1)
    os.dup2(target, 2)
    os.close(nothing)
    sys.stdout = open(1, "w", buffering=1, errors="backslashreplace", closefd=False)
    sys.stderr = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)


def _keep_processes() -> None:
    """Have loky not replace this process when it has grown: it would count mapped files, and tell by a warning."""
    from joblib.externals.loky import process_executor

    process_executor._MAX_MEMORY_LEAK_SIZE = float("inf")
