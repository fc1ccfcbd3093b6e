"""Where trials run: in this process, in worker processes of this machine, or on the workers of a backend of joblib."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

from ranktune.solvers.core.checks import check_choice, check_count
from ranktune.solvers.core.errors import ParameterError
from ranktune.solvers.core.table import named
from ranktune.tuner.workers.limits import CallLimits, check_limits
from ranktune.tuner.workers.processes import Processes

T = TypeVar("T")

CLUSTERS = {"dask": "tcp://HOST:8786", "ray": "HOST:6379"}
"""The backends of joblib that are clusters, and what their addresses look like."""

__all__ = ["CLUSTERS", "CallLimits", "Executor", "InProcess", "Processes", "make_executor"]


class Executor(Protocol):
    """Runs functions, at most `jobs` at a time; more are queued.

    `ranktune.tune(executor=...)` takes any object with these methods. It is used as a context manager, whose exit ends
    all workers.

    Attributes
    ----------
    jobs : int
        Functions that run at a time.

    Notes
    -----
    A future fails with the exception of its function, or with

    - `WorkerLost` where its worker died or was stopped (it may be submitted again),
    - `TooLong` where it reached its time limit,
    - `ResultRefused` where its result cannot be sent.

    Solvers and metrics that are registered in this process are known where Processes and JoblibWorkers run functions.
    An executor that sends functions elsewhere itself sends what `ranktune.tuner.workers.limits.payload_of` makes of a
    function and its arguments: a pickled pair of what to call and its arguments.

    Examples
    --------
    >>> from ranktune.tuner.workers.executor import InProcess
    >>> with InProcess() as executor:
    ...     futures = [executor.submit(pow, 2, n) for n in range(4)]
    >>> [future.result() for future in futures]
    [1, 2, 4, 8]
    """

    @property
    def jobs(self) -> int:
        """Functions that run at a time."""
        ...

    def submit(self, function: Callable[..., T], *arguments: Any, limits: CallLimits | None = None) -> Future[T]:
        """Start a function.

        Parameters
        ----------
        function : callable
            Function to run as `function(*arguments)`.
        *arguments : object
            Picklable arguments.
        limits : Limits or None, default=None
            Limits of this function; None for those of the executor.

        Returns
        -------
        concurrent.futures.Future
        """
        ...

    def call(self, function: Callable[..., T], *arguments: Any) -> T:
        """Return function(*arguments), computed where trials run; its warnings are issued here."""
        ...

    def stop(self, future: Future[Any]) -> None:
        """End the function of future at once: the future fails with WorkerLost, others continue."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class InProcess:
    """Runs functions at once in this process, without limits."""

    jobs = 1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def submit(self, function: Callable[..., T], *arguments: Any, limits: CallLimits | None = None) -> Future[T]:
        """Run function(*arguments) and return its finished future; KeyboardInterrupt and SystemExit are raised."""
        future: Future[T] = Future()
        try:
            future.set_result(function(*arguments))
        except Exception as error:
            future.set_exception(error)
        return future

    def call(self, function: Callable[..., T], *arguments: Any) -> T:
        """Return function(*arguments)."""
        return function(*arguments)

    def stop(self, future: Future[Any]) -> None:
        """Do nothing: submitted functions have ended."""


def check_executor(kind: str, address: str | None) -> str:
    """Return the backend of joblib that kind names, "" for processes.

    Raises ParameterError for an unknown kind, and unless a cluster and an address come together.
    """
    if kind in CLUSTERS:
        raise ParameterError(f"executor={kind!r}: joblib runs trials there. Give executor='joblib:{kind}'.")
    name, _, backend = kind.partition(":") if kind.startswith("joblib:") else (kind, "", "")
    check_choice("executor", name, ("processes", "joblib"))
    if (backend in CLUSTERS) != (address is not None):
        backend = backend if backend in CLUSTERS else "dask"
        place = f"executor='joblib:{backend}' and address={CLUSTERS[backend]!r}"
        raise ParameterError(f"{place}, that of the cluster, go together.")
    return "" if name == "processes" else backend or "loky"


def make_executor(
    jobs: int,
    limits: CallLimits | None = None,
    kind: str = "processes",
    address: str | None = None,
    *,
    in_process: bool = True,
    load: Callable[[], None] | None = None,
) -> Executor:
    """Return an executor: "processes", that many, or "joblib" or "joblib:BACKEND", at most that many unless it is 0.

    With in_process one job without limits runs in this process. load loads what processes need. Raises ParameterError
    for invalid parameters, StudyError without a cluster.
    """
    backend, limits = check_executor(kind, address), limits or CallLimits()
    check_limits(limits)
    if backend:
        connect = named("ranktune.tuner.workers.joblib_executor:JoblibWorkers")  # it loads joblib
        workers: Executor = connect(backend, jobs or None, address, limits)
        return workers
    check_count("jobs", jobs)
    return InProcess() if in_process and jobs == 1 and limits == CallLimits() else Processes(jobs, limits, load)
