"""Where trials run: in this process, in worker processes of this machine, or on the workers of a cluster."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

from ranktune.solvers.core.checks import check_choice, check_count
from ranktune.solvers.core.errors import ParameterError, StudyError
from ranktune.tuner.workers.lanes import Processes
from ranktune.tuner.workers.limits import Limits, check_limits

T = TypeVar("T")

KINDS = ("processes", "dask")

__all__ = ["KINDS", "Executor", "InProcess", "Limits", "Processes", "make_executor"]


class Executor(Protocol):
    """Runs functions, now or elsewhere, at most jobs at a time; more wait for their turn.

    A future fails with what the function raised; with WorkerLost where its worker died or was stopped (it may be
    submitted again), TooLong where it reached its time limit, ResultRefused where its result cannot be sent.
    """

    jobs: int

    def submit(self, function: Callable[..., T], *arguments: Any, limits: Limits | None = None) -> Future[T]:
        """Start function(*arguments) within limits, the executor's where there are none, and return its future."""
        ...

    def call(self, function: Callable[..., T], *arguments: Any) -> T:
        """Return function(*arguments), computed where trials run; what it warns of is told here."""
        ...

    def stop(self, future: Future[Any]) -> None:
        """End the function of future at once: the future fails with WorkerLost, others go on."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class InProcess:
    """Runs at once, here: no start-up, nothing to lose, no limits."""

    jobs = 1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def submit(self, function: Callable[..., T], *arguments: Any, limits: Limits | None = None) -> Future[T]:
        """Run function(*arguments) and return its finished future; only what ends this process passes through."""
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
        """Do nothing: what was submitted has ended."""


def make_executor(
    jobs: int, limits: Limits | None = None, kind: str = "processes", address: str | None = None
) -> Executor:
    """Return an executor of kind "processes", that many, or "dask", all workers of the scheduler at address.

    One job without limits runs in this process. Raises ParameterError for what cannot be, StudyError where there is no
    such scheduler.
    """
    check_choice("executor", kind, KINDS)
    limits = limits or Limits()
    check_limits(limits)
    if (kind == "dask") != (address is not None):
        raise ParameterError("an address of a scheduler and executor='dask' go together: give both, or neither.")
    if address is not None:
        try:
            from ranktune.tuner.workers.dask_executor import DaskWorkers
        except ImportError:
            raise StudyError('Dask\'s workers need another package: pip install "ranktune[dask]"') from None
        return DaskWorkers(address, limits)
    check_count("jobs", jobs)
    return InProcess() if jobs == 1 and limits == Limits() else Processes(jobs, limits)
