"""The nodes of a Ray cluster as an executor: an actor on each, which has worker processes and the data of the study.

The data lie once in Ray's store of objects, from which every node fetches them. An actor that dies is replaced at the
next update of the list of nodes.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, ClassVar

import ray
from ray.exceptions import RayActorError, RayError, RayTaskError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from ranktune.solvers.core.errors import WorkerLost
from ranktune.tuner.workers.clusters.base import ClusterJob, ClusterWorkers
from ranktune.tuner.workers.clusters.host import ClusterHost, WorkerInfo, described, unpacked
from ranktune.tuner.workers.clusters.ray_connection import connect, disconnect
from ranktune.tuner.workers.limits import Limits

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

    def __init__(self, address: str, limits: Limits | None = None) -> None:
        self._mine = connect(address)
        self._actors: dict[str, Any] = {}
        self._problems: dict[str, Any] = {}
        super().__init__(address, uuid.uuid4().hex, limits)

    def _present(self) -> Collection[str]:
        return [node for node, threads in _nodes().items() if threads > 0]

    def _described(self, new: Sequence[str]) -> Mapping[str, object]:
        threads = _nodes()
        actors = {node: _started(node, threads[node]) for node in new}
        answers = {node: actor.describe.remote(threads[node]) for node, actor in actors.items()}
        ray.wait(list(answers.values()), num_returns=len(answers), timeout=START_SECONDS)
        found: dict[str, object] = {}
        for node, answer in answers.items():
            try:
                found[node] = ray.get(answer, timeout=0.0)
                ray.get([actors[node].receive.remote(*problem) for problem in self._problems.items()])
            except RayTaskError as error:
                found[node] = error.cause
            except RayError as error:
                found[node] = error
            with self._lock:
                self._actors[node] = actors[node]
        return found

    def _publish(self, folder: str, packed: bytes) -> None:
        self._problems[folder] = ray.put(packed)
        with suppress(RayActorError):  # its jobs fail, and a new one gets all problems
            ray.get([actor.receive.remote(folder, self._problems[folder]) for actor in self._actors.values()])

    def _begin(self, job: ClusterJob) -> None:
        job.answer = self._actors[job.address].run.remote(job.key, job.payload, job.limits)
        answer: Future[Any] = job.answer.future()
        answer.add_done_callback(lambda done: self._answered(job, done))

    def _answered(self, job: ClusterJob, answer: Future[Any]) -> None:
        def found() -> object:
            try:
                return answer.result()
            except RayTaskError as error:
                raise error.cause from None
            except RayError as error:
                with self._lock:
                    self._workers.pop(job.address, None)
                raise WorkerLost(f"the Ray worker {job.address} left or died ({type(error).__name__})") from None

        self._completed(job, found)

    def _cancel(self, job: ClusterJob) -> None:
        self._actors[job.address].stop.remote(job.key)

    def _is_gone(self) -> bool:
        return not ray.is_initialized()

    def _disconnect(self, folders: Collection[str]) -> None:
        for actor in self._actors.values():
            with suppress(Exception):  # the cluster may be gone
                ray.kill(actor)
        self._actors, self._problems = {}, {}
        disconnect(self._mine)


class _Host:
    """The functions of this executor on a node."""

    def __init__(self, node: str) -> None:
        self._node = node
        self._host: ClusterHost | None = None

    def describe(self, threads: int) -> WorkerInfo:
        """Return the description of this node."""
        self._host = self._host or ClusterHost(threads, {})
        return described(self._node, threads)

    def receive(self, folder: str, packed: bytes) -> None:
        """Unpack the problem of a folder, unless the node has the folder itself."""
        path = unpacked(folder, packed)
        if path is not None and self._host is not None:
            self._host.folders[folder] = path

    def run(self, key: str, payload: bytes, limits: Limits) -> Any:
        """Run payload on a worker process. Ray ends this process where the coordinator is gone."""
        assert self._host is not None  # it was described first
        return self._host.run(key, payload, limits, lambda: True)

    def stop(self, key: str) -> None:
        """End the function of that key, or prevent its start."""
        if self._host is not None:
            self._host.stop(key)


def _nodes() -> dict[str, int]:
    """Return the processors of each node that is alive."""
    return {node["NodeID"]: int(node["Resources"].get("CPU", 0)) for node in ray.nodes() if node["Alive"]}


def _started(node: str, threads: int) -> Any:
    where = NodeAffinitySchedulingStrategy(node, soft=False)
    options = {"num_cpus": threads, "max_restarts": 0, "max_concurrency": threads + MORE_CALLS}
    return ray.remote(_Host).options(scheduling_strategy=where, **options).remote(node)
