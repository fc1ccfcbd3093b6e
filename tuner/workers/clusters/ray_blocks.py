"""Blocks on actors of a Ray cluster.

Each actor keeps some of the blocks open. Where it dies, Ray starts it anew and repeats the call: the block is read
again from its folder. Where a node dies and too few processors are left, fewer actors begin the step anew. Every call
carries all that it depends on, so that nothing else is lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

import ray

from ranktune.solvers.blocks.workers import Source
from ranktune.solvers.core.errors import WorkerLost
from ranktune.tuner.workers.clusters.block_host import MAX_FAILURES, BlockHost, folders_of
from ranktune.tuner.workers.clusters.ray_connection import connect, disconnect
from ranktune.tuner.workers.limits import pickled

POLL_SECONDS = 2.0
"""Seconds between two checks whether the processors that actors need are there."""


class RayBlocks:
    """Actors of the Ray cluster at address, one a processor, for `ranktune.solvers.fit_blocks`.

    Use it as a context manager. Blocks are folders that all nodes see, or s3://BUCKET/PREFIX.

    Parameters
    ----------
    address : str
        Address of the cluster: "HOST:6379", "ray://HOST:10001", or "auto" for that of this machine.
    actors : int or None, default=None
        Number of actors, at most one a processor of the cluster; None for one a block.

    Raises
    ------
    StudyError
        If no cluster answers there.
    """

    def __init__(self, address: str, actors: int | None = None) -> None:
        self._mine = connect(address)
        self._wanted = actors
        self._actors: list[Any] = []
        self._folders: list[str] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()
        disconnect(self._mine)

    def open(self, sources: Sequence[Source]) -> None:
        """Make these folders the blocks, in this order."""
        self._folders = folders_of(sources)
        self._start(len(self._folders) if self._wanted is None else self._wanted)

    def map(self, function: Any, *arguments: Any, **named: Any) -> list[Any]:
        """Return ``function(block, *arguments)`` of each block, in their order."""
        payload = pickled((function, arguments), None)
        answers = self._sent(payload)
        try:
            while ray.wait(answers, num_returns=len(answers), timeout=POLL_SECONDS)[1]:
                if 0 < _processors() < len(self._actors):  # a node is gone: what it had would wait for another
                    self._start(len(self._actors))
                    answers = self._sent(payload)
            results: list[Any] = ray.get(answers)
        except ray.exceptions.RayTaskError as error:
            raise error.cause from None
        except ray.exceptions.RayActorError as error:
            raise WorkerLost(f"a Ray actor died {MAX_FAILURES} times: {error}") from None
        return results

    def _start(self, count: int) -> None:
        """Start so many actors in place of those there are, one a processor at most."""
        self._end()
        actor = ray.remote(num_cpus=1, max_restarts=MAX_FAILURES, max_task_retries=MAX_FAILURES)(BlockHost)
        self._actors = [actor.remote() for _ in range(max(min(count, _processors()), 1))]

    def _sent(self, payload: bytes) -> list[Any]:
        """Send a call for each block to the actor that has it, and return the answers to wait for."""
        return [
            self._actors[number % len(self._actors)].run.remote(folder, payload)
            for number, folder in enumerate(self._folders)
        ]

    def _end(self) -> None:
        for actor in self._actors:
            with suppress(Exception):  # the cluster may be gone
                ray.kill(actor)
        self._actors = []


def _processors() -> int:
    """Return the processors of the cluster."""
    return int(ray.cluster_resources().get("CPU", 0))
