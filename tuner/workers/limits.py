"""The worker's side of a function: its limits, its pickled result or error, and its output.

A worker leads a process group, which is ended as a whole; it ignores SIGINT, because the coordinator decides about
running trials; and it dies with the coordinator.
"""

from __future__ import annotations

import ctypes
import gc
import os
import pickle
import signal
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import IO, Any, TypeVar

from ranktune.solvers.core.errors import ParameterError, ResultRefused
from ranktune.solvers.core.machine_code.folders import remark_on_cache
from ranktune.solvers.core.numba_internals import load_types
from ranktune.solvers.core.registrations import REGISTERED, Registration
from ranktune.solvers.metrics.custom import CustomMetric
from ranktune.solvers.metrics.presets import CUSTOM
from ranktune.tuner.splits.memory import allow, own_memory

MAX_RESULT_BYTES = 64 * 2**20
"""Bytes that the pickled result of a trial may take."""

BEGUN, PAUSED, RESUMED = b"b", b"p", b"r"
"""Marks of a function's clock: started; paused, while kernels are compiled; resumed."""

_messages: IO[bytes] | None = None


@dataclass(frozen=True)
class CallLimits:
    """Limits of one function: seconds of wall time, bytes of memory besides mapped files, bytes of its result.

    The clock starts with the function, not with its worker, and is paused while numba compiles kernels.
    """

    seconds: float | None = None
    bytes: int | None = None
    result: int | None = MAX_RESULT_BYTES


def check_limits(limits: CallLimits) -> None:
    """Raise ParameterError for limits that are not positive, or that this system does not support."""
    for name, value in (("trial_timeout", limits.seconds), ("trial_memory", limits.bytes)):
        if value is not None and not 0 < value < float("inf"):
            raise ParameterError(f"{name}={value!r}: it must be above 0.")
    if limits.bytes is not None and sys.platform != "linux":
        raise ParameterError("trial_memory: memory can be limited on Linux only. Leave it out.")


def serve(coordinator: int) -> None:
    """Run what comes on the standard input, until that ends: this process is a worker of its parent, coordinator.

    An order is a pickled call with its limits. Marks, reports of fits and results go to the standard output, what is
    printed to the standard error.
    """
    global _messages
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.set_threshold(10_000)  # loading the libraries makes half a million lasting objects
    orders, _messages = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    _end_with(coordinator)
    remark_on_cache(aloud=False)
    with suppress(EOFError):
        while True:
            _send(run(*pickle.load(orders)))


def run(payload: bytes, limits: CallLimits) -> tuple[bool, bytes]:
    """Return whether the call pickled in payload returned, and its pickled result or error."""
    try:
        function, arguments = pickle.loads(payload)
        from ranktune.tuner.evaluation.task import listening  # it loads numpy, as what is called does

        with _clock(limits), _memory(limits), listening(_send):
            result = function(*arguments)
        return True, pickled(result, limits.result)
    except BaseException as error:  # the process continues in any case
        return False, _pickled_error(error)


def load_libraries() -> None:
    """Load the libraries of trials, which takes most of a second."""
    import ranktune.tuner.evaluation.evaluate  # noqa: F401

    load_types()


def pickled(value: object, cap: int | None) -> bytes:
    """Return value pickled. Raises ResultRefused where that takes more than cap bytes, or fails."""
    import cloudpickle  # functions of the main module and closures are pickled by value

    file = _BoundedBuffer(cap)
    try:
        cloudpickle.dump(value, file, protocol=pickle.HIGHEST_PROTOCOL)
    except ResultRefused:
        raise
    except Exception as error:
        raise ResultRefused(f"it cannot be pickled: {type(error).__name__}: {error}") from error
    return b"".join(file.parts)


class _BoundedBuffer:
    """A file of at most cap bytes; larger parts are refused before they are copied."""

    def __init__(self, cap: int | None) -> None:
        self.parts: list[bytes] = []
        self._cap, self._size = cap, 0

    def write(self, data: bytes | memoryview) -> int:
        size = memoryview(data).nbytes
        self._size += size
        if self._cap is not None and self._size > self._cap:
            raise ResultRefused(f"the result takes more than {self._cap / 2**20:g} MiB, which is all that is allowed")
        self.parts.append(bytes(data))
        return size


def _pickled_error(error: BaseException) -> bytes:
    """Return error pickled, with its traceback as a note; if it cannot be, a ResultRefused with its message."""
    message = f"{type(error).__name__}: {error}"
    note = "In the worker process:\n" + "".join(traceback.format_exception(error))
    if isinstance(error, Exception):
        with suppress(Exception):
            error.add_note(note)
            error.__traceback__ = None
            payload = pickled(error, MAX_RESULT_BYTES)
            if isinstance(pickle.loads(payload), type(error)):
                return payload
        message = f"the error cannot be pickled: {message}"
    refused = ResultRefused(message[:10_000])
    refused.add_note(note[:100_000])
    return pickled(refused, None)


@contextmanager
def _clock(limits: CallLimits) -> Iterator[None]:
    """Send marks when the function begins, and when its clock is paused and resumed."""
    if limits.seconds is None:
        _send(BEGUN)
        yield
        return
    load_types()
    from numba.core.event import Listener, install_listener

    from ranktune.solvers.core.machine_code.kernel_files import WAITING

    class Compiling(Listener):
        depth = 0

        def on_start(self, event: object) -> None:
            self.depth += 1
            if self.depth == 1:
                _send(PAUSED)

        def on_end(self, event: object) -> None:
            self.depth -= 1
            if self.depth == 0:
                _send(RESUMED)

    pauses = Compiling()
    with install_listener("numba:compile", pauses), install_listener(WAITING, pauses):
        _send(BEGUN)
        yield


def _send(message: object) -> None:
    if _messages is not None:
        pickle.dump(message, _messages)
        _messages.flush()


@contextmanager
def _memory(limits: CallLimits) -> Iterator[None]:
    """Let allocations fail beyond limits.bytes more than now of private writable memory (RLIMIT_DATA, Linux)."""
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


def _end_with(coordinator: int) -> None:
    """Have this process killed when the thread dies that started it. Linux; elsewhere it ends with its orders."""
    if sys.platform != "linux":
        return
    set_death_signal = 1  # PR_SET_PDEATHSIG
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(set_death_signal, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != coordinator:  # it died before the line above
        os._exit(1)


T = TypeVar("T")


def payload_of(function: Callable[..., object], arguments: tuple[Any, ...]) -> bytes:
    """Return function(*arguments) as it is sent. Raises ResultRefused for what cannot be pickled."""
    solvers, metrics = tuple(REGISTERED.values()), tuple(CUSTOM.values())
    if not solvers and not metrics:
        return pickled((function, arguments), None)
    return pickled((call_with_custom, (solvers, metrics, function, *arguments)), None)


def call_with_custom(
    solvers: Sequence[Registration],
    metrics: Sequence[CustomMetric],
    function: Callable[..., T],
    *arguments: Any,
) -> T:
    """Return function(*arguments), called where solvers and metrics are known."""
    for registration in solvers:
        REGISTERED[registration.name] = registration
    for metric in metrics:
        CUSTOM[metric.name] = metric
    return function(*arguments)
