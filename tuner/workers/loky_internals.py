"""Everything taken from joblib's copy of loky, whose modules are private, in one place.

process_executor.ProcessPoolExecutor   a pool with an environment of its own and `shutdown(kill_workers=True)`
ProcessPoolExecutor._processes         its processes by number, for their exit codes
ProcessPoolExecutor._executor_manager_thread    its thread, which is joined after a shutdown
process_executor._MAX_MEMORY_LEAK_SIZE          the growth after which loky replaces a process
backend.reduction.dump                 pickles functions by value (cloudpickle)

A test checks that they exist in the installed joblib.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from multiprocessing.process import BaseProcess
from threading import Thread
from typing import Protocol, TypeVar

T = TypeVar("T")


class Pool(Protocol):
    """A loky pool of one process."""

    _processes: dict[int, BaseProcess]
    _executor_manager_thread: Thread | None

    def submit(self, function: Callable[..., T], *arguments: object) -> Future[T]:
        """Start function(*arguments); the first call starts the process."""
        ...

    def shutdown(self, wait: bool, kill_workers: bool) -> None:
        """End the process."""
        ...


def start_pool(env: Mapping[str, str], initializer: Callable[..., None], arguments: tuple[object, ...]) -> Pool:
    """Return a pool whose process gets env before any library is loaded, and calls initializer(*arguments) first."""
    from joblib.externals.loky.process_executor import ProcessPoolExecutor

    pool: Pool = ProcessPoolExecutor(max_workers=1, env=dict(env), initializer=initializer, initargs=arguments)
    return pool


def process_of(pool: Pool) -> BaseProcess | None:
    """Return the process of a pool, None before it is started."""
    return next(iter(pool._processes.values()), None)


def manager_thread(pool: Pool) -> Thread | None:
    """Return the thread of this process that manages a pool."""
    return pool._executor_manager_thread


def keep_large_processes() -> None:
    """Disable loky's replacement of processes that have grown: it counts mapped files, and warns."""
    from joblib.externals.loky import process_executor

    process_executor._MAX_MEMORY_LEAK_SIZE = float("inf")


def dump(value: object, file: object) -> None:
    """Pickle value to a binary file; functions of the main module and closures by value."""
    from joblib.externals.loky.backend import reduction

    reduction.dump(value, file, protocol=pickle.HIGHEST_PROTOCOL)
