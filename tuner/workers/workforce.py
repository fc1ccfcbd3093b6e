"""Who runs the trials, and the limits of one: not part of the study, so it may differ from run to run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ranktune.solvers.core.checks import check_count, check_positive
from ranktune.solvers.core.compiled import warn_of_cache
from ranktune.solvers.core.errors import ParameterError
from ranktune.solvers.core.memory import format_size, parse_memory
from ranktune.tuner.workers.executor import CallLimits, Executor, check_executor, make_executor
from ranktune.tuner.workers.limits import load_libraries

COORDINATOR, WORKER = 300 << 20, 150 << 20
"""Bytes that the coordinator with what helps it, and the libraries of a worker, take."""
MIN_TRIAL = 100 << 20
"""Bytes without which no trial begins: with less, fewer trials run at once."""


@dataclass(frozen=True)
class Workforce:
    """Who runs trials.

    jobs      trials at once; None for one a core (on a cluster, one a thread of its workers)
    timeout   seconds, trial_memory: bytes, or text such as "4GB", of one trial; None for no limit
    executor  "processes" of this machine, "joblib" (loky), "joblib:BACKEND", that of a cluster with its address, or an
              object with the methods of ranktune.tuner.workers.executor.Executor
    memory    of all processes together, besides mapped data: it bounds the trials, and how many run at once

    Raises ParameterError for invalid values.
    """

    jobs: int | None = None
    timeout: float | None = None
    trial_memory: int | str | None = None
    executor: str | Executor = "processes"
    address: str | None = None
    memory: int | str | None = None

    def __post_init__(self) -> None:
        """Check every field."""
        if self.jobs is not None:
            check_count("jobs", self.jobs)
        if self.timeout is not None:
            check_positive("trial_timeout", self.timeout)
        parse_memory(self.trial_memory, "trial_memory")
        if isinstance(self.executor, str):
            check_executor(self.executor, self.address)
        self._shared()

    @property
    def total_memory(self) -> int | None:
        """The bytes of all processes together, None without a limit."""
        return parse_memory(self.memory, "memory")

    @property
    def reading_memory(self) -> int | None:
        """The bytes that reading may take, None without a limit."""
        return None if self.total_memory is None else self.total_memory - COORDINATOR

    @property
    def note(self) -> str:
        """What the limit of the memory changes, in a line; empty without one."""
        jobs, trial = self._shared()
        if self.memory is None or trial is None:
            return ""
        return f"memory={self.memory}: {jobs} trial{'' if jobs == 1 else 's'} at once, of {format_size(trial)} each"

    def assembled(self, *, apart: bool = False, load: Callable[[], None] = load_libraries) -> Executor:
        """Return the executor, to be used as a context manager; with apart, even a single job gets a process.

        load loads what its processes need.
        """
        if not isinstance(self.executor, str):
            return self.executor
        jobs, trial = self._shared()
        warn_of_cache()  # its workers do not
        limits = CallLimits(self.timeout, trial)
        return make_executor(jobs, limits, self.executor, self.address, in_process=not apart, load=load)

    def _shared(self) -> tuple[int, int | None]:
        """Return how many trials run at once, and the bytes of one: as many as the memory allows."""
        jobs, trial, total = self._jobs(), parse_memory(self.trial_memory, "trial_memory"), self.total_memory
        if total is None:
            return jobs, trial
        if self.executor != "processes":
            raise ParameterError(
                "memory= limits the processes of this machine, and the trials run elsewhere. Leave it out, or limit "
                "each trial (trial_memory=)."
            )
        left = total - COORDINATOR
        jobs = min(jobs, left // (WORKER + (trial or MIN_TRIAL)))
        if jobs < 1:
            least = COORDINATOR + WORKER + (trial or MIN_TRIAL)
            raise ParameterError(f"memory={self.memory!r}: a study needs at least {format_size(least)}. Allow more.")
        return jobs, trial or left // jobs - WORKER

    def _jobs(self) -> int:
        if self.jobs is None and self.executor == "processes":
            from joblib import cpu_count

            return int(cpu_count())
        return self.jobs or 0
