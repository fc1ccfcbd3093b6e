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

CONNECT_SECONDS = 5.0
"""Seconds to wait for a cluster to answer at all: Ray itself waits for minutes."""


class LightRayBackend(RayBackend):  # type: ignore[misc]
    """As Ray's, with a pool of one actor, which reserves a processor and is kept for the next function.

    Ray's own pools give functions to their actors in turn, to busy ones too, and are started anew for each `Parallel`.
    """

    def __init__(self, idle: list[Pool]) -> None:
        super().__init__()
        self._idle = idle

    def effective_n_jobs(self, n_jobs: int) -> int:
        """Return a number with which joblib does not run a function by itself."""
        return 2

    def configure(self, n_jobs: int = 1, parallel: object = None, **options: Any) -> int:
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


class RayNodes:
    """The nodes of the cluster at an address: "HOST:6379", "ray://HOST:10001", or "auto" for that of this machine."""

    name = "Ray"
    start = (
        "Start one with `ray start --head`, and further nodes with `ray start --address=ADDRESS`, and give the address "
        "that it prints, as host:6379."
    )

    def __init__(self, address: str) -> None:
        self._address, self._has_connected = address, False
        self._idle: list[Pool] = []

    def size(self) -> int:
        """Return the processors of the nodes."""
        if not ray.is_initialized():
            place = re.fullmatch(r"(?:ray://)?\[?([^/\]]+)\]?:(\d+)", self._address)
            if place is not None:
                socket.create_connection((place[1], int(place[2])), timeout=CONNECT_SECONDS).close()
            elif self._address != "auto":
                raise ValueError("it is neither HOST:PORT, nor ray://HOST:PORT, nor auto")
            with warnings.catch_warnings():  # about Ray's settings
                warnings.simplefilter("ignore")
                ray.init(address=self._address, log_to_driver=False, logging_level=logging.ERROR)
            self._has_connected = True
        return int(ray.cluster_resources().get("CPU", 0))

    def backend(self) -> LightRayBackend:
        """Return a backend for one function at a time."""
        return LightRayBackend(self._idle)

    def close(self) -> None:
        """End the actors, and the connection unless it was there before."""
        while self._idle:
            with suppress(Exception):  # the cluster may be gone
                self._idle.pop().terminate()
        if self._has_connected:
            self._has_connected = False
            ray.shutdown()
