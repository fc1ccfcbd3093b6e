"""A study for tests to kill: the real trial loop, record, leases and lanes, with trials that only sleep.

Run as a program: survivor.py own|join FOLDER TRIALS JOBS SECONDS [STORAGE]. The owner appends a line to FOLDER/acks
for each trial that the loop has reported to be in the record, and prints how long it took until the first trial was
requested; a worker that joins prints how many trials it ran.
"""

import os
import sys
import time
import zlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from ranktune.solvers.core.space import Value
from ranktune.tuner.evaluation.task import Task, TaskOutcome
from ranktune.tuner.runner.joining import JoinedSplit
from ranktune.tuner.runner.worker import JoinedWorker
from ranktune.tuner.search.loop import TrialLoop
from ranktune.tuner.search.progress import Silent, TrialReport
from ranktune.tuner.storage.leases import Leases
from ranktune.tuner.storage.record import Record
from ranktune.tuner.study.declaration import Study
from ranktune.tuner.study.events import Events
from ranktune.tuner.workers.executor import Processes

NAME = "survivor"


def study(trials: int) -> Study:
    return Study(solvers=("RankSVM", "RidgeRanker"), trials=trials, sampler="random", seed=4)


def task_of(solver: str, parameters: Mapping[str, Value]) -> Task:
    return Task("", ("ndcg@10",), solver, parameters, 0)


def value_of(solver: str, parameters: Mapping[str, Value]) -> float:
    """What a configuration scores: it depends on nothing else."""
    return zlib.crc32(repr((solver, sorted(parameters.items(), key=str))).encode()) / 2**32


class Sleeper:
    """An objective that takes around so many seconds."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __call__(self, task: Task) -> TaskOutcome:
        value, begun = value_of(task.solver, task.parameters), time.time()
        time.sleep(self.seconds * (0.5 + value))
        return TaskOutcome({"ndcg@10": np.array([value, 0.5])}, 1.0, 0.01, begun=begun, ended=time.time())


class Acknowledged(Silent):
    """Writes the number of each trial down, at once, as it is reported."""

    def __init__(self, folder: Path) -> None:
        self._file = os.open(folder / "acks", os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def trial(self, report: TrialReport) -> None:
        os.write(self._file, f"{report.number}\n".encode())


def opened(folder: Path, storage: str | None) -> Record:
    """Return the record, whose workers are missed sooner than those of other studies."""
    record = Record(folder, NAME, "ndcg@10", storage)
    record._leases = Leases(record.storage, NAME, period=6.0)
    return record


class Known:
    """The study as one that a worker joins, until the file FOLDER/over is there."""

    def __init__(self, folder: Path, trials: int, storage: str | None) -> None:
        self._over = folder / "over"
        record = opened(folder, storage)
        space = study(trials).union_space()
        self._split = JoinedSplit(NAME, "", record.leases, lambda params, path: task_of(*space.split(params)))

    def splits(self) -> list[JoinedSplit]:
        return [self._split]

    def is_concluded(self) -> bool:
        return self._over.exists()


def join(folder: Path, trials: int, jobs: int, seconds: float, storage: str | None = None) -> None:
    with Processes(jobs) as executor:
        worker = JoinedWorker(Known(folder, trials, storage), executor, lambda text: None, objective=Sleeper(seconds))
        print(worker.run(), flush=True)


def main(folder: Path, trials: int, jobs: int, seconds: float, storage: str | None = None) -> None:
    begun = time.monotonic()
    record = opened(folder, storage)
    heard = Acknowledged(folder)
    with Events(folder) as events, Processes(jobs) as executor:
        loop = TrialLoop(study(trials), "", record, task_of, executor, heard, Sleeper(seconds), events=events)
        print(f"{time.monotonic() - begun:.3f}", flush=True)
        loop.run()
    record.close()
    print("finished", flush=True)


if __name__ == "__main__":
    run = join if sys.argv[1] == "join" else main
    run(Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5]), *sys.argv[6:7])
