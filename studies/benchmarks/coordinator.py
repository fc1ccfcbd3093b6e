"""The coordinator of a study: how many workers it keeps busy, by the real trial loop and the real record.

Workers are in simulated time: the clock runs while the coordinator works and jumps to the next end of a trial while it
waits. Workers take no time, so the coordinator alone limits the number of trials.
"""

from __future__ import annotations

import heapq
import tempfile
import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import TypeVar, cast

import numpy as np

from ranktune.solvers.core.space import Value
from ranktune.studies.benchmarks.tables import BenchmarkTable, Row
from ranktune.tuner.evaluation.task import Task, TaskOutcome
from ranktune.tuner.search.dispatcher import Clock
from ranktune.tuner.search.loop import TrialLoop
from ranktune.tuner.search.progress import Silent
from ranktune.tuner.storage.record import Record
from ranktune.tuner.study.declaration import Study
from ranktune.tuner.workers.executor import InProcess
from ranktune.tuner.workers.limits import CallLimits

PER_QUERY = np.random.default_rng(0).random(160)
OUTCOME = TaskOutcome({"ndcg@10": PER_QUERY}, 1.0, 0.0)

T = TypeVar("T")


def _nothing(task: Task) -> TaskOutcome:
    return OUTCOME


class SimulatedClock(Clock):
    """A clock that runs with the coordinator and jumps where it would wait.

    ends holds the time at which each future ends; waited the seconds that were jumped over.
    """

    def __init__(self) -> None:
        self._real, self._ahead = time.perf_counter(), 0.0
        self.waited = 0.0
        self.ends: list[tuple[float, int, Future[TaskOutcome]]] = []

    def now(self) -> float:
        """Return the seconds since the beginning."""
        return time.perf_counter() - self._real + self._ahead

    def sleep(self, seconds: float) -> None:
        """Jump ahead by seconds."""
        self._ahead += seconds
        self.waited += seconds

    def wait(self, futures: Collection[Future[TaskOutcome]], seconds: float) -> set[Future[TaskOutcome]]:
        """Jump to the next end, by seconds at most, and return the futures that have ended."""
        if self.ends and self.ends[0][0] > self.now():
            self.sleep(min(self.ends[0][0] - self.now(), seconds))
        done = set()
        while self.ends and self.ends[0][0] <= self.now():
            future = heapq.heappop(self.ends)[2]
            future.set_result(OUTCOME)
            done.add(future)
        return done


class SimulatedWorkers(InProcess):
    """Workers on which each trial takes the same time of a simulated clock."""

    def __init__(self, jobs: int, seconds: float, clock: SimulatedClock) -> None:
        self.jobs, self._seconds, self._clock, self._count = jobs, seconds, clock, 0

    def submit(self, function: Callable[..., T], *arguments: object, limits: CallLimits | None = None) -> Future[T]:
        """Schedule the end of a trial without running it."""
        future: Future[T] = Future()
        self._count += 1
        heapq.heappush(
            self._clock.ends, (self._clock.now() + self._seconds, self._count, cast(Future[TaskOutcome], future))
        )
        return future


def load(workers: int, seconds: float, trials: int, sampler: str = "random") -> Row:
    """Return the load of a coordinator by a study of trials of so many seconds each on simulated workers."""
    clock, study = SimulatedClock(), Study(sampler=sampler, trials=trials)

    def task_of(solver: str, parameters: Mapping[str, Value]) -> Task:
        return Task("", study.metrics, solver, parameters, study.seed)

    with tempfile.TemporaryDirectory() as name:
        record, executor = Record(Path(name), "benchmark", study.metric), SimulatedWorkers(workers, seconds, clock)
        loop = TrialLoop(study, "", record, task_of, executor, Silent(), _nothing, clock=clock)
        begun = clock.now()
        loop.run()
        spent = clock.now() - begun
        record.close()
    return {
        "workers": workers, "s a trial": seconds, "trials": trials, "asks a s": trials / spent,
        "coordinator busy": f"{1.0 - clock.waited / spent:.0%}",
        "workers used": f"{trials * seconds / workers / spent:.0%}",
    }  # fmt: skip


def scale(
    workers: list[int] | None = None,
    sampler: str = "random",
    rounds: int = 3,
) -> list[BenchmarkTable]:
    """Print how busy a coordinator is with so many workers, for trials of 1 and of 60 seconds.

    Parameters
    ----------
    workers : list of int
        Workers at once. Repeatable. (default: 10, 100, 1000)
    sampler : str
        Sampler: random, thompson, tpe, ...
    rounds : int
        Trials of each worker.
    """
    counts = workers or [10, 100, 1000]
    rows = [load(n, seconds, max(rounds * n, 100), sampler) for seconds in (1.0, 60.0) for n in counts]
    return [BenchmarkTable(f"The load of a coordinator, sampler {sampler}, simulated workers", rows)]
