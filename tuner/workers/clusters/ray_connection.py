"""How this process becomes a driver of a Ray cluster, and ends to be one."""

from __future__ import annotations

import logging
import re
import socket
import warnings

import ray

from ranktune.solvers.core.errors import StudyError

CONNECT_SECONDS = 5.0
"""Seconds to wait for a cluster to answer at all: Ray itself waits for minutes."""


def connect(address: str) -> bool:
    """Connect this process to the cluster at address; return whether it was not connected before.

    Raises StudyError where no cluster answers.
    """
    if ray.is_initialized():
        return False
    try:
        _reach(address)
        with warnings.catch_warnings():  # about settings of Ray's own
            warnings.simplefilter("ignore")
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    except Exception as error:
        raise StudyError(
            f"no Ray cluster answers at {address!r} ({' '.join(str(error).split())[:200]}). "
            "Start one with `ray start --head`, and give the address that it prints, as host:6379."
        ) from None
    return True


def disconnect(mine: bool) -> None:
    """Leave the cluster, if this process was connected by this module."""
    if mine:
        ray.shutdown()


def _reach(address: str) -> None:
    """Raise OSError where nothing listens at an address that names a port."""
    found = re.fullmatch(r"(?:ray://)?\[?([^/\]]+)\]?:(\d+)", address)
    if found is not None:
        socket.create_connection((found[1], int(found[2])), timeout=CONNECT_SECONDS).close()
    elif address != "auto":
        raise ValueError("it is neither HOST:PORT, nor ray://HOST:PORT, nor auto")
