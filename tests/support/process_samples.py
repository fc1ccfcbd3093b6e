"""Processes that functions of tests run in: their numbers, and whether they are still there."""

import multiprocessing
import time
import warnings
from collections.abc import Callable
from concurrent.futures import wait
from contextlib import suppress
from multiprocessing.process import BaseProcess
from pathlib import Path

import psutil

from ranktune.tuner.workers.processes import Processes

FORK = multiprocessing.get_context("fork")
SOON = 30.0
"""Seconds after which a machine is not busy but a test has failed."""


class Lasting(Processes):
    """Workers that serve one study after the other: the end of a block waits for what runs, and ends none."""

    def __exit__(self, *_: object) -> None:
        wait(list(self._jobs), SOON)
        for future in list(self._jobs):  # of a test that failed
            self.stop(future)

    def end(self) -> None:
        super().__exit__(KeyboardInterrupt, None, None)


def alive(pid: int) -> bool:
    """Whether the process runs; one that is dead but not yet asked after does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def children(pid: int) -> dict[int, str]:
    """The processes that a process started, with their argument lists."""
    found = {}
    with suppress(psutil.Error):
        for child in psutil.Process(pid).children():
            with suppress(psutil.Error):
                found[child.pid] = " ".join(child.cmdline())
    return found


def forked(function: Callable[..., object], *arguments: object) -> BaseProcess:
    """Start a function in a fork of this process."""
    process = FORK.Process(target=function, args=arguments)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forking where a library has threads
        process.start()
    return process


def soon(holds: Callable[[], bool]) -> bool:
    until = time.monotonic() + SOON
    while not holds() and time.monotonic() < until:
        time.sleep(0.01)
    return holds()


def pid_in(path: Path) -> int:
    """The number that a function writes to path when it begins."""
    assert soon(lambda: path.exists() and path.read_text().endswith("\n"))
    return int(path.read_text())


def note(path: Path, number: int) -> None:
    path.write_text(f"{number}\n")
