"""The worker's side of blocks: a worker of a cluster opens the folders it is asked for, and keeps them open."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ranktune.solvers.blocks.workers import OpenBlock, Source, opened
from ranktune.solvers.core.errors import ParameterError

MAX_FAILURES = 20
"""How many deaths of workers a fit survives."""
PATIENCE_SECONDS = 120.0
"""Seconds to wait for a worker where all have died: engines start new ones."""


class BlockHost:
    """The blocks that a worker has opened, by folder; each computes one function at a time."""

    def __init__(self) -> None:
        self._blocks: dict[str, OpenBlock] = {}
        self._locks: dict[str, threading.Lock] = {}

    def run(self, folder: str, payload: bytes) -> Any:
        """Return function(block, *arguments), pickled in payload, of the block in folder."""
        function, arguments = pickle.loads(payload)
        with self._locks.setdefault(folder, threading.Lock()):
            if folder not in self._blocks:
                self._blocks[folder] = OpenBlock(opened(folder))
            return function(self._blocks[folder], *arguments)


def folders_of(sources: Sequence[Source]) -> list[str]:
    """Return the folders that blocks lie in. Raises ParameterError for queries in memory."""
    for number, source in enumerate(sources):
        if not isinstance(source, str | Path):
            raise ParameterError(
                f"block {number} is {type(source).__name__}: workers of a cluster read their blocks themselves. Store "
                "it in a folder that they see (`ranktune convert`), or in a bucket, and give its path or s3://BUCKET/PREFIX."
            )
    return [str(source) for source in sources]
