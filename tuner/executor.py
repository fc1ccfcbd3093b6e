"""Where trials run: in this process, or in joblib's worker processes with one thread each."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Future
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

from ranktune.solvers.checks import check_count
from ranktune.tuner.garbage import collect_seldom

T = TypeVar("T")

ONE_THREAD = {
    f"{library}_NUM_THREADS": "1"
    for library in ("OMP", "OPENBLAS", "MKL", "BLIS", "NUMEXPR", "NUMBA", "VECLIB_MAXIMUM")
}


class Executor(Protocol):
    """Runs functions, now or elsewhere. A broken future (its worker died) may be submitted again."""

    jobs: int

    def submit(self, function: Callable[..., T], *arguments: Any) -> Future[T]:
        """Start function(*arguments) and return its future."""
        ...

    def call(self, function: Callable[..., T], *arguments: Any) -> T:
        """Return function(*arguments), computed where trials run; what it warns of is told here."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class InProcess:
    """Runs at once, here: no start-up, nothing to lose."""

    jobs = 1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def submit(self, function: Callable[..., T], *arguments: Any) -> Future[T]:
        """Run function(*arguments) and return its finished future."""
        future: Future[T] = Future()
        future.set_result(function(*arguments))
        return future

    def call(self, function: Callable[..., T], *arguments: Any) -> T:
        """Return function(*arguments)."""
        return function(*arguments)


class Processes:
    """joblib's reusable pool of worker processes; leaving it early, as on an interrupt, ends the workers at once."""

    def __init__(self, jobs: int) -> None:
        self.jobs = jobs

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool().shutdown(wait=True, kill_workers=kind is not None)

    def submit(self, function: Callable[..., T], *arguments: Any) -> Future[T]:
        """Start function(*arguments) in a worker; the pool is renewed first where a worker's death has broken it."""
        future: Future[T] = self._pool().submit(function, *arguments)
        return future

    def call(self, function: Callable[..., T], *arguments: Any) -> T:
        """Return function(*arguments), computed by a worker; here, where the worker dies."""
        job: Future[tuple[T, list[tuple[str, type[Warning]]]]] = self.submit(_heard, function, arguments)
        try:
            result, told = job.result()
        except BrokenExecutor:
            return function(*arguments)
        for message, category in told:
            warnings.warn(message, category, stacklevel=2)
        return result

    def _pool(self) -> Any:
        from joblib.externals.loky import get_reusable_executor

        return get_reusable_executor(
            max_workers=self.jobs, timeout=300, env=ONE_THREAD, kill_workers=False, initializer=collect_seldom
        )


def _heard(function: Callable[..., T], arguments: tuple[Any, ...]) -> tuple[T, list[tuple[str, type[Warning]]]]:
    """Return function(*arguments), and what it warned of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = function(*arguments)
    return result, list(dict.fromkeys((str(one.message), one.category) for one in caught))


def make_executor(jobs: int) -> Executor:
    """Return an executor of that many processes; one job runs in this process."""
    check_count("jobs", jobs)
    return InProcess() if jobs == 1 else Processes(jobs)
