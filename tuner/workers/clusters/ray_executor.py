"""The nodes of a Ray cluster as an executor: an actor on each, which has all of its processors.

An actor that dies is replaced at the next update of the list of nodes. Ray ends those of a driver that is gone.
"""

from __future__ import annotations

import logging
import re
import socket
import warnings
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, ClassVar

import ray
from ray.exceptions import RayError, RayTaskError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from ranktune.solvers.core.errors import StudyError
from ranktune.tuner.workers.clusters.base import ClusterJob, ClusterWorkers
from ranktune.tuner.workers.clusters.host import open_host, run

CONNECT_SECONDS = 5.0
"""Seconds to wait for a cluster to answer at all: Ray itself waits for minutes."""
START_SECONDS = 60.0
"""Seconds that an actor may take to start: others may use the processors of its node."""
MORE_CALLS = 16
"""Calls that an actor answers at a time besides functions: orders to stop one."""


class RayWorkers(ClusterWorkers):
    """The nodes of the cluster at address, all of whose processors are reserved. Raises StudyError where none answers.

    address is "HOST:6379", "ray://HOST:10001" or "auto", for the cluster of this machine.
    """

    engine: ClassVar[str] = "Ray"
    start: ClassVar[str] = "ray start --address={address}"

    _has_connected = False

    def _connect(self) -> None:
        self._actors: dict[str, Any] = {}
        if self._has_connected:
            ray.shutdown()
        self._has_connected = connect(self._address)

    def _members(self) -> Mapping[str, int]:
        threads = {node["NodeID"]: int(node["Resources"].get("CPU", 0)) for node in ray.nodes() if node["Alive"]}
        return {node: count for node, count in threads.items() if count > 0}

    def _tell(self, addresses: Collection[str], function: Callable[..., object], *arguments: Any) -> dict[str, object]:
        if function is open_host:
            threads = self._members()
            self._actors |= {node: _started(node, threads.get(node, 1)) for node in addresses}
        stored = [ray.put(value) if isinstance(value, bytes) else value for value in arguments]  # once for all nodes
        answers = {node: self._actors[node].call.remote(function, *stored) for node in addresses}
        ray.wait(list(answers.values()), num_returns=max(len(answers), 1), timeout=START_SECONDS)
        return {node: _outcome(answer) for node, answer in answers.items()}

    def _begin(self, job: ClusterJob) -> Future[bytes | None]:
        actor = self._actors[job.address]
        answer: Future[bytes | None] = actor.call.remote(run, self._token, job.key, job.payload, job.limits).future()
        return answer

    def _disconnect(self) -> None:
        for actor in self._actors.values():
            with suppress(Exception):  # the cluster may be gone
                ray.kill(actor)
        if self._has_connected:
            ray.shutdown()


class _Actor:
    """Calls functions on a node."""

    def call(self, function: Callable[..., object], *arguments: Any) -> object:
        """Return function(*arguments)."""
        return function(*arguments)


def _started(node: str, threads: int) -> Any:
    where = NodeAffinitySchedulingStrategy(node, soft=False)
    options = {"num_cpus": threads, "max_restarts": 0, "max_concurrency": threads + MORE_CALLS}
    return ray.remote(_Actor).options(scheduling_strategy=where, **options).remote()


def _outcome(answer: Any) -> object:
    """Return what a call returned or raised, by now."""
    try:
        return ray.get(answer, timeout=0.0)
    except RayTaskError as error:
        return error.cause
    except RayError as error:
        return error


def connect(address: str) -> bool:
    """Connect this process to the cluster at address; return whether it was not connected before.

    Raises StudyError where no cluster answers.
    """
    if ray.is_initialized():
        return False
    try:
        place = re.fullmatch(r"(?:ray://)?\[?([^/\]]+)\]?:(\d+)", address)
        if place is not None:
            socket.create_connection((place[1], int(place[2])), timeout=CONNECT_SECONDS).close()
        elif address != "auto":
            raise ValueError("it is neither HOST:PORT, nor ray://HOST:PORT, nor auto")
        with warnings.catch_warnings():  # about Ray's settings
            warnings.simplefilter("ignore")
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    except Exception as error:
        raise StudyError(
            f"no Ray cluster answers at {address!r} ({' '.join(str(error).split())[:200]}). "
            "Start one with `ray start --head`, and give the address that it prints, as host:6379."
        ) from None
    return True
