"""Blocks on the workers of a Dask cluster.

Each block has a worker, which keeps it open; where that worker dies, Dask computes the step elsewhere, where the block
is read again from its folder. Every call carries all that it depends on, so that nothing else is lost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Self, TypeVar

from distributed import get_worker, wait

from ranktune.solvers.blocks.workers import Source
from ranktune.solvers.core.errors import WorkerLost
from ranktune.tuner.workers.clusters.block_host import MAX_FAILURES, PATIENCE_SECONDS, BlockHost, folders_of
from ranktune.tuner.workers.clusters.dask_executor import connect
from ranktune.tuner.workers.limits import pickled

T = TypeVar("T")

POLL_SECONDS = 1.0
"""Seconds between two checks whether any worker is left."""

_hosts: dict[str, BlockHost] = {}


class DaskBlocks:
    """The workers of the Dask cluster whose scheduler is at address, for `ranktune.solvers.fit_blocks`.

    Use it as a context manager. Blocks are folders that all workers see, or s3://BUCKET/PREFIX.

    Parameters
    ----------
    address : str
        Address of the scheduler: "tcp://HOST:8786".

    Raises
    ------
    StudyError
        If no scheduler answers there.
    """

    def __init__(self, address: str) -> None:
        self._client = connect(address)
        self._folders: list[str] = []
        self._places: list[str] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(Exception):  # workers or the scheduler may be gone
            self._client.run(_forget, self._client.id, on_error="ignore")
        self._client.close()

    def open(self, sources: Sequence[Source]) -> None:
        """Make these folders the blocks, in this order."""
        self._folders = folders_of(sources)
        self._places = [""] * len(self._folders)

    def map(self, function: Any, *arguments: Any, **named: Any) -> list[Any]:
        """Return ``function(block, *arguments)`` of each block, in their order."""
        self._assign()
        payload = pickled((function, arguments), None)
        futures = [
            self._client.submit(
                _run, self._client.id, folder, payload,
                workers=[place] if place else None, allow_other_workers=True, pure=False, retries=MAX_FAILURES,
            )
            for folder, place in zip(self._folders, self._places, strict=True)
        ]  # fmt: skip
        self._wait(futures)
        answers = self._client.gather(futures)
        self._places = [place for place, _ in answers]
        return [value for _, value in answers]

    def _assign(self) -> None:
        """Give blocks whose worker is gone to the workers that have the fewest."""
        there = self._client.nthreads()
        counts = Counter({address: 0 for address in there})
        counts.update(place for place in self._places if place in there)
        for number, place in enumerate(self._places):
            if place not in there and there:
                self._places[number] = min(there, key=lambda address: counts[address])
                counts[self._places[number]] += 1

    def _wait(self, futures: list[Any]) -> None:
        """Wait until all are done. Raises WorkerLost where no worker is left to compute them."""
        alone = 0.0
        while True:
            with suppress(TimeoutError), self._client.as_current():
                wait(futures, timeout=POLL_SECONDS)
                return
            alone = 0.0 if self._client.nthreads() else alone + POLL_SECONDS
            if alone > PATIENCE_SECONDS:
                raise WorkerLost("no worker of the Dask cluster is left, and none was started in two minutes")


def _run(session: str, folder: str, payload: bytes) -> tuple[str, Any]:
    """Return the address of this worker, and what the call in payload returns of the block in folder."""
    host = _hosts.setdefault(session, BlockHost())
    return get_worker().address, host.run(folder, payload)


def _forget(session: str) -> None:
    _hosts.pop(session, None)
