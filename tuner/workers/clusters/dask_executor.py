"""The workers of a Dask cluster as an executor."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future
from typing import Any, ClassVar

import dask
from distributed import Client, get_worker

from ranktune.solvers.core.errors import StudyError
from ranktune.tuner.workers.clusters.base import ClusterJob, ClusterWorkers
from ranktune.tuner.workers.clusters.host import run
from ranktune.tuner.workers.limits import Limits

CONNECT_SECONDS = 5.0
"""Seconds to wait for a scheduler to answer."""


class DaskWorkers(ClusterWorkers):
    """The workers of the cluster whose scheduler is at address. Raises StudyError where none answers there."""

    engine: ClassVar[str] = "Dask"
    start: ClassVar[str] = "dask worker {address}"

    _client: Any = None

    def _connect(self) -> None:
        self._disconnect()
        self._client = connect(self._address)
        self._executor = self._client.get_executor(pure=False, retries=0, allow_other_workers=False)

    def _members(self) -> Mapping[str, int]:
        return dict(self._client.nthreads())

    def _tell(
        self, addresses: Collection[str], function: Callable[..., object], *arguments: object
    ) -> dict[str, object]:
        return dict(self._client.run(function, *arguments, workers=list(addresses), on_error="return"))

    def _begin(self, job: ClusterJob) -> Future[bytes | None]:
        answer: Future[bytes | None] = self._executor.submit(
            _run, self._token, job.key, job.payload, job.limits, key=job.key, workers=[job.address]
        )
        job.future.add_done_callback(lambda _: answer.cancel())  # where it is stopped before
        return answer

    def _disconnect(self) -> None:
        if self._client is not None:
            self._client.close(timeout=CONNECT_SECONDS)


def _run(token: str, key: str, payload: bytes, limits: Limits) -> bytes | None:
    """Run payload on a worker of Dask, as long as its scheduler wants it: not where the client is gone."""
    tasks = get_worker().state.tasks

    def wanted() -> bool:
        task = tasks.get(key)
        return task is not None and task.state != "cancelled"

    return run(token, key, payload, limits, wanted)


def connect(address: str) -> Client:
    """Return a client of the scheduler at address."""
    try:
        with warnings.catch_warnings():  # about versions of distributed; those of RankTune are compared later
            warnings.simplefilter("ignore")
            with dask.config.set({"distributed.comm.timeouts.connect": CONNECT_SECONDS}):
                return Client(address, timeout=CONNECT_SECONDS, set_as_default=False, name="ranktune")
    except Exception as error:
        raise StudyError(
            f"no Dask scheduler answers at {address!r} ({' '.join(str(error).split())[:200]}). "
            "Start one with `dask scheduler`, and give the address that it prints, as tcp://host:8786."
        ) from None
