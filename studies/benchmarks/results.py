"""A stored result: what a benchmark measured, with its command, the machine, the versions, the date and the load.

The results of the parts of a long comparison are lines of JSON in a file, so that no part is repeated.
"""

from __future__ import annotations

import json
import os
import platform
import shlex
import time
from collections.abc import Callable, Iterable, Iterator, MutableMapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Self, TypeVar

import psutil

from ranktune.solvers.core.arrays import Json
from ranktune.solvers.core.errors import DataError
from ranktune.studies.benchmarks.tables import Table

K = TypeVar("K")
V = TypeVar("V")

LIBRARIES = (
    "ranktune", "numpy", "scipy", "scikit-learn", "numba", "lightgbm", "xgboost-cpu", "xgboost", "catboost", "optuna",
    "cmaes", "polars", "pandas", "pytrec-eval-terrier", "flaml", "scikit-optimize",
    "torch", "botorch", "optuna-integration", "ax-platform", "HEBO", "smac", "coco-experiment",
)  # fmt: skip
"""Distributions whose versions are stored where they are installed."""


@dataclass(frozen=True)
class Result:
    """A benchmark's tables and how they were measured.

    date      of the beginning, UTC
    seconds   of wall time that it took
    load      of the machine over a minute at the beginning: processes that run or wait for a core
    source    where the numbers come from if not from this command on this machine; empty otherwise
    """

    benchmark: str
    command: str
    date: str
    seconds: float
    processor: str
    cores: int
    memory_gb: float
    system: str
    python: str
    load: float
    versions: dict[str, str]
    tables: list[Table]
    source: str = ""

    def write(self, path: Path) -> None:
        """Write the result as JSON."""
        path.write_text(json.dumps(asdict(self), indent=1) + "\n", encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> Self:
        """Return the result in a file. Raises DataError where it is not one."""
        try:
            values: Json = json.loads(path.read_text(encoding="utf-8"))
            return cls(**values | {"tables": [Table(**table) for table in values["tables"]]})
        except (ValueError, TypeError, KeyError) as error:
            raise DataError(f"{path}: not a stored result of a benchmark. Run the benchmark again.") from error


class Measurement:
    """The conditions at the beginning of a benchmark."""

    def __init__(self) -> None:
        self._begun, self._date = time.monotonic(), datetime.now(UTC)
        self._load = psutil.getloadavg()[0]

    def result(
        self, benchmark: str, arguments: list[str], tables: list[Table], module: str = "ranktune.studies.benchmarks"
    ) -> Result:
        """Return the result of a benchmark that has ended; arguments are those of the command line of the module."""
        return Result(
            benchmark=benchmark,
            command=shlex.join(["python", "-m", module, *arguments]),
            date=self._date.strftime("%Y-%m-%d %H:%M"),
            seconds=round(time.monotonic() - self._begun, 1),
            processor=_processor(),
            cores=os.cpu_count() or 1,
            memory_gb=round(psutil.virtual_memory().total / 1e9, 1),
            system=f"{platform.system()} {platform.machine()}",
            python=platform.python_version(),
            load=round(self._load, 2),
            versions=dict(_versions()),
            tables=tables,
        )


def _processor() -> str:
    """Return the name of the processor's model."""
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _versions() -> list[tuple[str, str]]:
    versions = []
    for name in LIBRARIES:
        try:
            versions.append((name, version(name)))
        except PackageNotFoundError:
            continue
    return versions


def stored_results(path: Path | None, of_json: Callable[[Json], V]) -> Iterator[V]:
    """Yield the results in a file of JSON lines; truncated lines and those of another form are skipped."""
    for line in path.read_text(encoding="utf-8").splitlines() if path is not None and path.exists() else ():
        try:
            yield of_json(json.loads(line))
        except (ValueError, TypeError, KeyError):
            continue


def append_result(path: Path | None, result: Json) -> None:
    """Append a result to a file of JSON lines, if any, on a new line even where the last line was truncated."""
    if path is None:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b") as file:
        truncated = file.tell() > 0 and file.seek(-1, os.SEEK_END) >= 0 and file.read(1) != b"\n"
        file.write((b"\n" if truncated else b"") + json.dumps(result).encode() + b"\n")


def add_missing(
    planned: Iterable[K], known: MutableMapping[K, V], run: Callable[[K], V], seconds: float = float("inf")
) -> None:
    """Add the results of the planned runs that are not known, in order; none begins after so many seconds."""
    begun = time.monotonic()
    for key in planned:
        if key not in known and time.monotonic() - begun <= seconds:
            known[key] = run(key)
