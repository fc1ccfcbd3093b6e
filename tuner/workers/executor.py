"""Where trials run: in this process, in worker processes of this machine, or on a cluster of Dask or Ray."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from importlib import import_module
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

from ranktune.solvers.core.checks import check_choice, check_count
from ranktune.solvers.core.errors import ParameterError, StudyError
from ranktune.tuner.workers.limits import Limits, check_limits
from ranktune.tuner.workers.processes import Processes

T = TypeVar("T")

CLUSTERS = {"dask": ("tcp://HOST:8786", "DaskWorkers"), "ray": ("HOST:6379", "RayWorkers")}
"""The executors that are clusters: what their addresses look like, and the class of their module NAME_executor."""
EXECUTORS = ("processes", *CLUSTERS)

__all__ = ["EXECUTORS", "Executor", "InProcess", "Limits", "Processes", "make_executor"]


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

    Solvers and metrics that are registered in this process are known where Processes and clusters run functions. An
    executor that sends functions elsewhere itself sends what `ranktune.tuner.workers.limits.payload_of` makes of a
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

    def submit(self, function: Callable[..., T], *arguments: Any, limits: Limits | None = None) -> Future[T]:
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

    def submit(self, function: Callable[..., T], *arguments: Any, limits: Limits | None = None) -> Future[T]:
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


def check_executor(kind: str, address: str | None) -> None:
    """Raise ParameterError for an unknown kind, and unless a cluster and an address come together."""
    check_choice("executor", kind, EXECUTORS)
    if (kind in CLUSTERS) != (address is not None):
        name = kind if kind in CLUSTERS else "dask"
        shape, _ = CLUSTERS[name]
        raise ParameterError(f"executor={name!r} and address={shape!r}, that of the cluster, go together.")


def make_executor(
    jobs: int,
    limits: Limits | None = None,
    kind: str = "processes",
    address: str | None = None,
    *,
    in_process: bool = True,
    load: Callable[[], None] | None = None,
) -> Executor:
    """Return an executor: "processes", that many, or "dask" or "ray", all workers of the cluster at address.

    With in_process one job without limits runs in this process. load loads what processes need. Raises ParameterError
    for invalid parameters, StudyError without a scheduler.
    """
    check_executor(kind, address)
    limits = limits or Limits()
    check_limits(limits)
    if address is not None:
        try:
            module = import_module(f"ranktune.tuner.workers.clusters.{kind}_executor")
            cluster: Executor = getattr(module, CLUSTERS[kind][1])(address, limits)
            return cluster
        except ImportError:
            raise StudyError(
                f'the workers of {kind.capitalize()} need another package: pip install "ranktune[{kind}]"'
            ) from None
    check_count("jobs", jobs)
    return InProcess() if in_process and jobs == 1 and limits == Limits() else Processes(jobs, limits, load)
