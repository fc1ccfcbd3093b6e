"""Ray as a backend of joblib."""

from __future__ import annotations

import logging
import re
import socket
import warnings
from contextlib import suppress
from typing import Any

import ray
from ray.util.joblib.ray_backend import RayBackend
from ray.util.multiprocessing import Pool

from ranktune.solvers.core.errors import StudyError

CONNECT_SECONDS = 5.0
"""Seconds to wait for a cluster to answer at all: Ray itself waits for minutes."""


class Backend(RayBackend):
    """As Ray's, with a pool of one actor, which reserves a processor and is kept for the next function.

    Ray's own pools give functions to their actors in turn, to busy ones too, and are started anew for each `Parallel`.
    """

    def __init__(self, idle: list[Pool]) -> None:
        super().__init__()
        self._idle = idle

    def effective_n_jobs(self, n_jobs: int) -> int:
        """Return a number with which joblib does not run a function by itself."""
        return 2

    def configure(self, n_jobs: int = 1, parallel: object = None, **given: Any) -> int:
        """Take an actor, or start one."""
        self._pool = self._idle.pop() if self._idle else Pool(1, ray_remote_args={"num_cpus": 1})
        self.parallel = parallel
        return 2

    def terminate(self) -> None:
        """Keep the actor."""
        if self._pool is not None:
            self._idle.append(self._pool)
            self._pool = None

    def abort_everything(self, ensure_ready: bool = True) -> None:
        """End the actor, and with it what it runs."""
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.terminate()


class Cluster:
    """The nodes of the cluster at an address: "HOST:6379", "ray://HOST:10001", or "auto" for that of this machine."""

    start = "ray start --address={}"
    """The command that starts a node."""

    def __init__(self, address: str) -> None:
        self._address, self._has_connected = address, False
        self._idle: list[Pool] = []

    def size(self) -> int:
        """Return the processors of the nodes, by another connection where the last one failed."""
        try:
            self._has_connected |= connect(self._address)
            return int(ray.cluster_resources().get("CPU", 0))
        except BaseException:
            self.close()
            raise

    def backend(self) -> Backend:
        """Return a backend for one function at a time."""
        return Backend(self._idle)

    def close(self) -> None:
        """End the actors, and the connection unless it was there before."""
        while self._idle:
            with suppress(Exception):  # the cluster may be gone
                self._idle.pop().terminate()
        if self._has_connected:
            self._has_connected = False
            ray.shutdown()


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
