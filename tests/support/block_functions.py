"""Functions of blocks that tests run on the workers of clusters, and workers one of which dies."""

from __future__ import annotations

import os
import threading
import time
from typing import Any

import psutil

from ranktune.solvers.blocks.workers import OpenBlock


def pid(block: OpenBlock) -> int:
    return os.getpid()


def slowly(block: OpenBlock, function: Any, *arguments: Any) -> Any:
    time.sleep(0.5)
    return function(block, *arguments)


class Killing:
    """Workers one of which is killed while it computes a step."""

    def __init__(self, workers: Any, step: int) -> None:
        self.workers, self.left = workers, step
        self.killed: set[int] = set()

    def open(self, sources: Any) -> None:
        self.workers.open(sources)

    def map(self, function: Any, *arguments: Any, **named: Any) -> Any:
        self.left -= 1
        if self.left != 0:
            return self.workers.map(function, *arguments)
        victims = self.victims()
        self.killed = {process.pid for process in victims} & set(self.workers.map(pid))
        timer = threading.Timer(0.2, lambda: [process.kill() for process in victims])
        timer.start()
        try:
            return self.workers.map(slowly, function, *arguments)
        finally:
            timer.join()

    def victims(self) -> list[psutil.Process]:
        """Return the processes to kill."""
        return [psutil.Process(self.workers.map(pid)[0])]


class KillingNode(Killing):
    """Workers on two nodes, of which one is killed with all its processes."""

    def __init__(self, workers: Any, node: int, step: int) -> None:
        super().__init__(workers, step)
        self.node = node

    def victims(self) -> list[psutil.Process]:
        """Return the process of the node, and all that it started."""
        node = psutil.Process(self.node)
        return [node, *node.children(recursive=True)]
