"""An executor whose workers know the solvers and metrics that the user registered in this process.

Each function is sent with them. Classes and functions of modules are sent by name, those of a script or a notebook by
value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Self, TypeVar

from ranktune.solvers.core.registrations import REGISTERED, Registration
from ranktune.solvers.metrics.custom import CustomMetric
from ranktune.solvers.metrics.presets import CUSTOM
from ranktune.tuner.workers.executor import Executor, InProcess, Limits

T = TypeVar("T")


class CustomExecutor:
    """Another executor, whose functions run where everything is known that is registered here when they are sent."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor

    @property
    def jobs(self) -> int:
        """Functions that run at a time; of a cluster it changes."""
        return self._executor.jobs

    def submit(self, function: Callable[..., T], *arguments: Any, limits: Limits | None = None) -> Future[T]:
        """Start function(*arguments), as the other executor does."""
        return self._executor.submit(*_with_custom(function, arguments), limits=limits)

    def call(self, function: Callable[..., T], *arguments: Any) -> T:
        """Return function(*arguments), as the other executor does."""
        result: T = self._executor.call(*_with_custom(function, arguments))
        return result

    def stop(self, future: Future[Any]) -> None:
        """End the function of future."""
        self._executor.stop(future)

    def __enter__(self) -> Self:
        self._executor.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._executor.__exit__(kind, error, trace)


def with_custom(executor: Executor) -> Executor:
    """Return an executor whose functions know what is registered here."""
    return executor if isinstance(executor, InProcess) else CustomExecutor(executor)


def _with_custom(function: Callable[..., T], arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return what to call, and its arguments."""
    solvers, metrics = tuple(REGISTERED.values()), tuple(CUSTOM.values())
    if not solvers and not metrics:
        return (function, *arguments)
    return (call_with_custom, solvers, metrics, function, *arguments)


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
