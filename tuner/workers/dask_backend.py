"""Dask as a backend of joblib."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

import dask
from distributed import Client
from joblib._dask import DaskDistributedBackend

CONNECT_SECONDS = 5.0
"""Seconds to wait for a scheduler to answer."""


class PatientDaskBackend(DaskDistributedBackend):  # type: ignore[misc]
    """As joblib's, which waits for ever for what fails before it begins, cancels nothing, and spares a lone worker."""

    def effective_n_jobs(self, n_jobs: int) -> int:
        """Return a number with which joblib does not run a function by itself."""
        return 2

    def submit(self, func: Any, callback: Callable[[object], object]) -> Future[object]:
        """Start a function; callback gets its result or error."""
        job: Future[object] = super().submit(func, callback)
        job.add_done_callback(lambda done: done.exception() and callback(done.exception()))
        return job

    def abort_everything(self, ensure_ready: bool = True) -> None:
        """Cancel what runs: its worker ends it."""
        with suppress(Exception):  # the scheduler may be gone
            self.client.cancel(list(self._results))


class DaskWorkers:
    """The workers of the scheduler at an address."""

    name = "Dask"
    start = (
        "Start one with `dask scheduler` and `dask worker ADDRESS`, and give the address that it prints, as "
        "tcp://host:8786."
    )

    def __init__(self, address: str) -> None:
        self._address = address
        self._client: Client | None = None

    def size(self) -> int:
        """Return the threads of the workers."""
        if self._client is None:
            with warnings.catch_warnings():  # about versions of distributed; those of RankTune are compared later
                warnings.simplefilter("ignore")
                with dask.config.set({"distributed.comm.timeouts.connect": CONNECT_SECONDS}):
                    self._client = Client(self._address, timeout=CONNECT_SECONDS, set_as_default=False, name="ranktune")
        return sum(self._client.nthreads().values())

    def backend(self) -> PatientDaskBackend:
        """Return a backend for one function at a time."""
        return PatientDaskBackend(client=self._client)

    def close(self) -> None:
        """End the connection."""
        client, self._client = self._client, None
        if client is not None:
            with suppress(Exception):  # the scheduler may be gone
                client.close(timeout=CONNECT_SECONDS)
