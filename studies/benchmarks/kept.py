"""Results in files of JSON lines, so that a long comparison can be made in parts and is not repeated."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, MutableMapping
from pathlib import Path
from typing import TypeVar

from ranktune.solvers.core.arrays import Json

K = TypeVar("K")
V = TypeVar("V")


def kept(path: Path | None, of_json: Callable[[Json], V]) -> Iterator[V]:
    """Yield the results in a file; truncated lines and those of another form are skipped."""
    for line in path.read_text(encoding="utf-8").splitlines() if path is not None and path.exists() else ():
        try:
            yield of_json(json.loads(line))
        except (ValueError, TypeError, KeyError):
            continue


def keep(path: Path | None, result: Json) -> None:
    """Append a result to the file, if there is one, on a new line even where the last one was truncated."""
    if path is None:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b") as file:
        truncated = file.tell() > 0 and not path.read_bytes().endswith(b"\n")
        file.write((b"\n" if truncated else b"") + json.dumps(result).encode() + b"\n")


def add_missing(
    planned: Iterable[K], known: MutableMapping[K, V], run: Callable[[K], V], seconds: float = float("inf")
) -> None:
    """Add the results of the planned runs that are not known, in order; none begins after so many seconds."""
    begun = time.monotonic()
    for key in planned:
        if key not in known and time.monotonic() - begun <= seconds:
            known[key] = run(key)
