"""The workers of a Dask cluster as an executor. The data of a study are sent by a plugin, which unpacks them."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any, ClassVar

import dask
from distributed import Client

from ranktune.solvers.core.errors import StudyError, WorkerLost
from ranktune.tuner.workers.clusters.base import ClusterJob, ClusterWorkers
from ranktune.tuner.workers.clusters.dask_worker import (
    ProblemPlugin,
    close_client,
    describe,
    run_on_worker,
    stop_on_worker,
)
from ranktune.tuner.workers.limits import Limits

CONNECT_SECONDS = 5.0
"""Seconds to wait for a scheduler to answer."""


class DaskWorkers(ClusterWorkers):
    """The workers of the cluster whose scheduler is at address. Raises StudyError where none answers there."""

    engine: ClassVar[str] = "Dask"
    start: ClassVar[str] = "dask worker {address}"

    def __init__(self, address: str, limits: Limits | None = None) -> None:
        self._client = connect(address)
        super().__init__(address, self._client.id, limits)

    def _present(self) -> Collection[str]:
        return list(self._client.nthreads())

    def _described(self, new: Sequence[str]) -> Mapping[str, object]:
        answers: Mapping[str, object] = self._client.run(describe, workers=list(new), on_error="return")
        return answers

    def _publish(self, folder: str, packed: bytes) -> None:
        self._client.register_plugin(ProblemPlugin(folder, packed), name=_plugin_name(folder))

    def _begin(self, job: ClusterJob) -> None:
        job.answer = self._client.submit(
            run_on_worker, self._workers[job.address].id, self._client.id, job.key, job.payload, job.limits,
            key=job.key, workers=[job.address], allow_other_workers=False, pure=False, retries=0,
        )  # fmt: skip
        job.answer.add_done_callback(lambda answer: self._answered(job, answer))

    def _answered(self, job: ClusterJob, answer: Any) -> None:
        def found() -> object:
            if answer.status == "error":
                raise answer.exception()
            try:
                return answer.result()
            except Exception as error:
                raise WorkerLost(f"{type(error).__name__}: {error}") from None

        if answer.status != "cancelled":
            self._completed(job, found)

    def _cancel(self, job: ClusterJob) -> None:
        job.answer.cancel(force=True)
        if job.address in self._workers:
            self._client.run(stop_on_worker, self._client.id, job.key, workers=[job.address])

    def _is_gone(self) -> bool:
        return self._client.status not in ("running", "connecting")

    def _disconnect(self, folders: Collection[str]) -> None:
        with suppress(Exception):  # workers or the scheduler may be gone
            self._client.run(close_client, self._client.id, on_error="ignore")
            for folder in folders:
                self._client.unregister_worker_plugin(_plugin_name(folder))
        self._client.close()


def connect(address: str) -> Client:
    """Return a client of the scheduler at address."""
    try:
        with warnings.catch_warnings():  # about versions of distributed; those of RankTune are checked below
            warnings.simplefilter("ignore")
            with dask.config.set({"distributed.comm.timeouts.connect": CONNECT_SECONDS}):
                return Client(address, timeout=CONNECT_SECONDS, set_as_default=False, name="ranktune")
    except Exception as error:
        raise StudyError(
            f"no Dask scheduler answers at {address!r} ({' '.join(str(error).split())[:200]}). "
            "Start one with `dask scheduler`, and give the address that it prints, as tcp://host:8786."
        ) from None


def _plugin_name(folder: str) -> str:
    return f"ranktune-{hashlib.sha256(folder.encode()).hexdigest()[:16]}"
