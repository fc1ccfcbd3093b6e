"""How many workers one coordinator can keep busy: the real trial loop and record, workers in simulated time.

Time passes as the coordinator computes and writes; when it has nothing to do, it jumps to the next trial that ends.
Workers cost nothing here, so what is left is what the coordinator takes for each trial.
"""

from __future__ import annotations

import heapq
import tempfile
import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from ranktune.solvers.core.space import Value
from ranktune.tuner.evaluation.task import Outcome, Task
from ranktune.tuner.runner.dispatcher import Clock
from ranktune.tuner.runner.loop import TrialLoop
from ranktune.tuner.runner.progress import Silent
from ranktune.tuner.storage.record import Record
from ranktune.tuner.study.declaration import Study
from ranktune.tuner.workers.executor import InProcess

PER_QUERY = np.random.default_rng(0).random(160)
OUTCOME = Outcome({"ndcg@10": PER_QUERY}, 1.0, 0.0)


class Simulated(Clock):
    """A clock that runs with the coordinator and jumps where it would wait; ends says which futures end when."""

    def __init__(self) -> None:
        self._real, self._ahead = time.perf_counter(), 0.0
        self.waited = 0.0
        self.ends: list[tuple[float, int, Future[Any]]] = []

    def now(self) -> float:
        """Return the seconds since the beginning."""
        return time.perf_counter() - self._real + self._ahead

    def sleep(self, seconds: float) -> None:
        """Jump so far ahead."""
        self._ahead += seconds
        self.waited += seconds

    def uncounted(self, work: Callable[[], Any]) -> Any:
        """Return what work returns, in no time."""
        begun = time.perf_counter()
        found = work()
        self._ahead -= time.perf_counter() - begun
        return found

    def wait(self, futures: Collection[Future[Any]], seconds: float) -> set[Future[Any]]:
        """Jump to the next end, so far at most, and return what has ended."""
        if self.ends and self.ends[0][0] > self.now():
            self.sleep(min(self.ends[0][0] - self.now(), seconds))
        done = set()
        while self.ends and self.ends[0][0] <= self.now():
            future = heapq.heappop(self.ends)[2]
            future.set_result(OUTCOME)
            done.add(future)
        return done


class Lanes(InProcess):
    """So many lanes on which each trial takes the same time of a simulated clock."""

    def __init__(self, jobs: int, seconds: float, clock: Simulated) -> None:
        self.jobs, self._seconds, self._clock, self._count = jobs, seconds, clock, 0

    def submit(self, function: Any, *arguments: Any, **_: Any) -> Future[Any]:
        """Note when the function would end."""
        future: Future[Any] = Future()
        self._count += 1
        heapq.heappush(self._clock.ends, (self._clock.now() + self._seconds, self._count, future))
        return future


@dataclass(frozen=True)
class Load:
    """What a number of workers with trials of so many seconds made of a coordinator.

    asks a second; busy: part of the time in which the coordinator had work; used: part of the workers' time that was
    used.
    """

    workers: int
    seconds: float
    trials: int
    asks: float
    busy: float
    used: float


def load(workers: int, seconds: float, trials: int, sampler: str = "random") -> Load:
    """Run a study of trials of so many seconds each on so many simulated lanes."""
    study = Study(sampler=sampler, trials=trials)

    def task_of(solver: str, parameters: Mapping[str, Value]) -> Task:
        return Task("", study.metrics, solver, parameters, 0)

    with tempfile.TemporaryDirectory() as name:
        record = Record(Path(name), "scale", study.metric)
        clock = Simulated()
        executor = Lanes(workers, seconds, clock)
        TrialLoop(study, "", record, task_of, executor, Silent(), lambda task: OUTCOME, clock=clock).run()
        taken = clock.now()
        record.close()
    used = trials * seconds / workers / taken
    return Load(workers, seconds, trials, trials / taken, 1.0 - clock.waited / taken, used)


def main(
    workers: Annotated[list[int] | None, typer.Option(help="Workers at once. Repeatable.")] = None,
    sampler: Annotated[str, typer.Option(help="What suggests: random, thompson, tpe, ...")] = "random",
    rounds: Annotated[int, typer.Option(help="Trials of each worker.", min=1)] = 3,
) -> None:
    """Print how busy a coordinator is with so many workers, for trials of 1 and of 60 seconds."""
    typer.echo("workers  trial s  trials  asks/s  coordinator busy  workers used")
    for seconds in (1.0, 60.0):
        for count in workers or [10, 100, 1000]:
            own = load(count, seconds, max(rounds * count, 100), sampler)
            typer.echo(
                f"{own.workers:7d}  {own.seconds:7.0f}  {own.trials:6d}  {own.asks:6.1f}  "
                f"{own.busy:16.0%}  {own.used:12.0%}"
            )
