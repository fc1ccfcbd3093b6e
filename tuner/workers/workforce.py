"""Who runs the trials, and the limits of one: not part of the study, so it may differ from run to run."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ranktune.solvers.core.checks import check_count, check_positive
from ranktune.solvers.core.errors import ParameterError
from ranktune.tuner.workers.executor import Executor, Limits, check_executor, make_executor

_UNITS = {"": 1, "b": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30}


@dataclass(frozen=True)
class Workforce:
    """Who runs trials.

    jobs      trials at once; None for one a core (with Dask, one a thread of its workers)
    timeout   seconds, memory: bytes, or text such as "4GB", of one trial; None for no limit
    executor  "processes" of this machine, "dask" for the cluster whose scheduler listens at address, or an object with
              the methods of ranktune.tuner.workers.executor.Executor

    Raises ParameterError for invalid values.
    """

    jobs: int | None = None
    timeout: float | None = None
    memory: int | str | None = None
    executor: str | Executor = "processes"
    address: str | None = None

    def __post_init__(self) -> None:
        """Check every field."""
        if self.jobs is not None:
            check_count("jobs", self.jobs)
        if self.timeout is not None:
            check_positive("trial_timeout", self.timeout)
        parse_memory(self.memory)
        if isinstance(self.executor, str):
            check_executor(self.executor, self.address)

    def assembled(self, *, apart: bool = False) -> Executor:
        """Return the executor, to be used as a context manager; with apart, even a single job gets a process."""
        if not isinstance(self.executor, str):
            return self.executor
        limits = Limits(self.timeout, parse_memory(self.memory))
        return make_executor(self._jobs(), limits, self.executor, self.address, in_process=not apart)

    def _jobs(self) -> int:
        if self.jobs is None and self.executor == "processes":
            from joblib import cpu_count

            return int(cpu_count())
        return self.jobs or 0


def parse_memory(given: int | str | None) -> int | None:
    """Return a size in bytes: a number, or text such as 4GB, 512M, 2GiB. Raises ParameterError where it is no size."""
    if given is None:
        return None
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?i?)b?\s*", str(given).lower())
    size = int(float(found[1]) * _UNITS[found[2]]) if found and found[2] in _UNITS else 0
    if size <= 0 or isinstance(given, bool):
        raise ParameterError(f"trial_memory={given!r}: it must be a number of bytes, such as 4GB or 512M.")
    return size
