"""Where trials run: in this process, or in joblib's worker processes with one thread each."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

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

    def _pool(self) -> Any:
        from joblib.externals.loky import get_reusable_executor

        return get_reusable_executor(max_workers=self.jobs, timeout=300, env=ONE_THREAD, kill_workers=False)


def make_executor(jobs: int) -> Executor:
    """Return an executor of that many processes; one job runs in this process."""
    return InProcess() if jobs == 1 else Processes(jobs)
