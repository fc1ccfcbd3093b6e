"""The coordinator of a study: its cost per trial, how many workers it keeps busy, how much several jobs gain.

All run the real trial loop and the real record.

overhead  an objective that does nothing, beside Optuna's loop with its default SQLite storage
scale     workers in simulated time: the clock runs while the coordinator works and jumps to the next end of a trial
          while it waits. Workers take no time, so the coordinator alone limits the number of trials
jobs      real solvers on real data in worker processes: one job and several take turns
"""

from __future__ import annotations

import heapq
import statistics
import tempfile
import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, TypeVar, cast

import numpy as np
import optuna
import typer

from ranktune.solvers.core.space import Value
from ranktune.solvers.data.sources import catalogue
from ranktune.studies.benchmarks.tables import Row, Table
from ranktune.tuner.evaluation.evaluate import attempt
from ranktune.tuner.evaluation.task import Outcome, Task
from ranktune.tuner.runner.preparation import prepare
from ranktune.tuner.search.dispatcher import Clock
from ranktune.tuner.search.loop import TrialLoop
from ranktune.tuner.search.progress import Silent
from ranktune.tuner.storage.record import Record
from ranktune.tuner.study.declaration import Study
from ranktune.tuner.study.home import StudyFolder
from ranktune.tuner.workers.executor import Executor, InProcess, Processes
from ranktune.tuner.workers.limits import Limits

PER_QUERY = np.random.default_rng(0).random(160)
OUTCOME = Outcome({"ndcg@10": PER_QUERY}, 1.0, 0.0)

T = TypeVar("T")

Sampler = Annotated[str, typer.Option(help="Sampler: random, thompson, tpe, ...")]


def run(study: Study, problem: str, folder: Path, executor: Executor, clock: Clock, *, real: bool = False) -> float:
    """Run a whole study and return the seconds of clock that it took; without real, trials return OUTCOME."""
    record = Record(folder, "benchmark", study.metric)

    def task_of(solver: str, parameters: Mapping[str, Value]) -> Task:
        return Task(problem, study.metrics, solver, parameters, study.seed)

    objective = attempt if real else _nothing
    loop = TrialLoop(study, "", record, task_of, executor, Silent(), objective, clock=clock)
    begun = clock.now()
    loop.run()
    elapsed = clock.now() - begun
    record.close()
    return elapsed


def _nothing(task: Task) -> Outcome:
    return OUTCOME


def optuna_milliseconds(study: Study, trials: int, folder: Path) -> float:
    """Return milliseconds a trial of Optuna's loop on the same space, with its default SQLite storage."""
    space = study.union_space()

    def objective(trial: optuna.Trial) -> float:
        space.suggest(trial)
        return 0.5

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    by_optuna = optuna.create_study(
        storage=f"sqlite:///{folder / 'optuna.db'}",
        direction="maximize",
        sampler=optuna.samplers.RandomSampler(seed=study.seed),
    )
    begun = time.perf_counter()
    by_optuna.optimize(objective, n_trials=trials)
    return 1e3 * (time.perf_counter() - begun) / trials


def overhead(
    sampler: Sampler = "random", trials: Annotated[int, typer.Option(help="Trials to time.", min=1)] = 100
) -> list[Table]:
    """Print the cost of the coordinator per trial, beside Optuna's loop with its SQLite storage."""
    study = Study(sampler=sampler, trials=trials)
    with tempfile.TemporaryDirectory() as name, InProcess() as executor:
        folder = Path(name)
        of_ranktune = 1e3 * run(study, "", folder, executor, Clock()) / trials
        of_optuna = optuna_milliseconds(study, trials, folder)
    rows: list[Row] = [
        {"loop": "RankTune", "sampler": sampler, "ms a trial": of_ranktune},
        {"loop": "Optuna, SQLite", "sampler": "random", "ms a trial": of_optuna},
    ]
    return [Table(f"{trials} trials of an objective that does nothing, wall time", rows)]


class SimulatedClock(Clock):
    """A clock that runs with the coordinator and jumps where it would wait.

    ends holds the time at which each future ends; waited the seconds that were jumped over.
    """

    def __init__(self) -> None:
        self._real, self._ahead = time.perf_counter(), 0.0
        self.waited = 0.0
        self.ends: list[tuple[float, int, Future[Outcome]]] = []

    def now(self) -> float:
        """Return the seconds since the beginning."""
        return time.perf_counter() - self._real + self._ahead

    def sleep(self, seconds: float) -> None:
        """Jump ahead by seconds."""
        self._ahead += seconds
        self.waited += seconds

    def wait(self, futures: Collection[Future[Outcome]], seconds: float) -> set[Future[Outcome]]:
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

    def submit(self, function: Callable[..., T], *arguments: object, limits: Limits | None = None) -> Future[T]:
        """Schedule the end of a trial without running it."""
        future: Future[T] = Future()
        self._count += 1
        heapq.heappush(
            self._clock.ends, (self._clock.now() + self._seconds, self._count, cast(Future[Outcome], future))
        )
        return future


@dataclass(frozen=True)
class Load:
    """The load of a coordinator by a number of workers with trials of so many seconds.

    asks  trials a second; busy: share of the time in which the coordinator worked; used: share of the workers' time
    """

    workers: int
    seconds: float
    trials: int
    asks: float
    busy: float
    used: float


def load(workers: int, seconds: float, trials: int, sampler: str = "random") -> Load:
    """Return the load of a study of trials of so many seconds each on simulated workers."""
    clock = SimulatedClock()
    with tempfile.TemporaryDirectory() as name:
        study = Study(sampler=sampler, trials=trials)
        taken = run(study, "", Path(name), SimulatedWorkers(workers, seconds, clock), clock)
    used = trials * seconds / workers / taken
    return Load(workers, seconds, trials, trials / taken, 1.0 - clock.waited / taken, used)


def scale(
    workers: Annotated[list[int] | None, typer.Option(help="Workers at once. Repeatable.")] = None,
    sampler: Sampler = "random",
    rounds: Annotated[int, typer.Option(help="Trials of each worker.", min=1)] = 3,
) -> list[Table]:
    """Print how busy a coordinator is with so many workers, for trials of 1 and of 60 seconds."""
    rows: list[Row] = []
    for seconds in (1.0, 60.0):
        for count in workers or [10, 100, 1000]:
            run = load(count, seconds, max(rounds * count, 100), sampler)
            rows.append(
                {
                    "workers": run.workers, "s a trial": run.seconds, "trials": run.trials, "asks a s": run.asks,
                    "coordinator busy": f"{run.busy:.0%}", "workers used": f"{run.used:.0%}",
                }
            )  # fmt: skip
    return [Table(f"The load of a coordinator, sampler {sampler}, simulated workers", rows)]


def jobs(
    data: Annotated[str, typer.Argument(help="Data to tune on.")] = "api-search",
    solver: Annotated[str, typer.Option(help="The solver.")] = "RankSVM",
    trials: Annotated[int, typer.Option(help="Trials of a study.", min=2)] = 60,
    jobs: Annotated[int, typer.Option(help="Jobs to compare with one.", min=2)] = 2,
    rounds: Annotated[int, typer.Option(help="Rounds, in which one and several jobs take turns.", min=1)] = 5,
) -> list[Table]:
    """Print the trials a second of one job and of several, and their ratio."""
    study = Study(data=data, solvers=(solver,), trials=trials, sampler="random")
    with tempfile.TemporaryDirectory() as name, Processes(1) as single_job, Processes(jobs) as many:
        home = Path(name) / "study"
        home.mkdir()
        (problem,) = prepare(study, catalogue.load(data)[:1], StudyFolder(home))
        seconds = partial(run, study, str(problem.folder), clock=Clock(), real=True)
        for place, executor in enumerate((single_job, many)):  # loads kernels and the data's pages
            seconds(Path(name) / f"warm{place}", executor)
        rows: list[Row] = []
        for k in range(rounds):
            single = trials / seconds(Path(name) / f"one{k}", single_job)
            several = trials / seconds(Path(name) / f"many{k}", many)
            rows.append({"round": k + 1, "1 job": single, f"{jobs} jobs": several, "ratio": several / single})
    middle = statistics.median(float(row["ratio"] or 0.0) for row in rows)
    note = f"Median: {middle:.2f} times the trials of one job."
    return [Table(f"Trials a second of {solver} on {data}, wall time", rows, note)]
