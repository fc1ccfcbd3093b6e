"""Workers that join a study: how many short trials a second they run, by the real trial loop and the real record.

Workers really take trials, which only wait. They are threads of a few processes, each with a connection of its own, and
share the processors with the coordinator and the server.
"""

from __future__ import annotations

import os
import tempfile
import time
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from sqlalchemy import text

from ranktune.solvers.core.libraries import this_version
from ranktune.studies.benchmarks.tables import BenchmarkTable, Row, judged
from ranktune.tuner.evaluation.task import Task, TaskOutcome
from ranktune.tuner.runner.joining import DatabaseStudy, Declaration, FolderStudy
from ranktune.tuner.runner.worker import JoinedWorker
from ranktune.tuner.search.loop import TrialLoop
from ranktune.tuner.search.progress import Silent
from ranktune.tuner.storage.membership import this_host
from ranktune.tuner.storage.record import Record, number_of
from ranktune.tuner.study.declaration import Study
from ranktune.tuner.study.home import StudyFolder
from ranktune.tuner.study.tasks import Tasks
from ranktune.tuner.workers.executor import InProcess

PER_QUERY = np.random.default_rng(0).random(160)
OUTCOME = TaskOutcome({"ndcg@10": PER_QUERY}, 1.0, 0.0)

PROCESSES = 4
GOALS = {16: (0.2, 40.0), 60: (1.0, 25.0)}
"""By the number of workers, the seconds of a trial, and how many trials a second they run at least."""
CONNECTIONS = text("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()")


class Sleeping(InProcess):
    """Runs one trial at a time in a thread, or none."""

    def __init__(self, jobs: int) -> None:
        self.jobs, self._pool = jobs, ThreadPoolExecutor(1)

    def submit(self, function: Any, *arguments: Any, limits: object = None) -> Future[Any]:
        """Start a function in the thread."""
        return self._pool.submit(function, *arguments)


def _work(folder: Path, name: str, storage: str | None, seconds: float, count: int) -> None:
    """Run workers in threads of this process until the study ends."""

    def trial(task: Task) -> TaskOutcome:
        begun = time.time()
        time.sleep(seconds)
        return replace(OUTCOME, begun=begun, ended=time.time())

    def run(number: int) -> None:
        with closing(FolderStudy(StudyFolder(folder)) if storage is None else DatabaseStudy(storage, name)) as study:
            worker = JoinedWorker(study, Sleeping(1), lambda _: None, objective=trial)
            worker.name += f"/{number}"
            worker.run()

    with ThreadPoolExecutor(count) as threads:
        list(threads.map(run, range(count)))


def load_joined(workers: int, seconds: float, trials: int, storage: str | None, sampler: str) -> Row:
    """Return how many trials of so many seconds a second workers that joined ran."""
    study, connections = Study(sampler=sampler, trials=trials, full=True, solvers=("RankSVM", "RidgeRanker")), 1
    with tempfile.TemporaryDirectory() as place, ProcessPoolExecutor(PROCESSES, get_context("spawn")) as pool:
        folder, name = Path(place), f"joined-{workers}-{time.time():.0f}"
        with StudyFolder(folder).owned(), closing(Record(folder, name, study.metric, storage)) as record:
            StudyFolder(folder).declare(study, {"": "none"})
            Declaration(study.as_dict(), this_version(), this_host(), place, None).write(record.study)
            token = record.leases.acquire(this_host(), os.getpid(), "now")
            for first in range(min(PROCESSES, workers)):
                pool.submit(_work, folder, name, storage, seconds, len(range(first, workers, PROCESSES)))
            while len(record.leases.workers()) < workers:
                time.sleep(0.1)
            loop = TrialLoop(study, "", record, Tasks(study, folder), Sleeping(0), Silent())
            begun, processor = time.monotonic(), time.process_time()
            loop.run()
            spent, busy = time.monotonic() - begun, time.process_time() - processor
            if storage is not None:
                with record.storage.engine.connect() as connection:
                    connections = int(connection.execute(CONNECTIONS).scalar_one())
            numbers = [number_of(trial) for trial in record.trials()]
            record.leases.release(token, concluded=True)
    return {
        "workers": workers, "s a trial": seconds, "trials": trials, "duplicates": len(numbers) - len(set(numbers)),
        "connections": connections - 1, "coordinator's cores": busy / spent, "trials a s": len(numbers) / spent,
    }  # fmt: skip


def main(
    workers: list[int] | None = None,
    storage: str | None = None,
    sampler: str = "random",
    rounds: int = 30,
) -> list[BenchmarkTable]:
    """Print how many short trials a second workers that joined run.

    Parameters
    ----------
    workers : list of int
        Workers at once. Repeatable. (default: 16, 60)
    storage : str
        URL of an empty PostgreSQL database; an SQLite file by default.
    sampler : str
        Sampler: random, thompson, tpe, ...
    rounds : int
        Trials of each worker.
    """
    rows = []
    for count in workers or [*GOALS]:
        seconds, least = GOALS.get(count, (1.0, 0.0))
        wanted = f"trials a s >= {least:g}, coordinator's cores < 1, duplicates <= 0"
        rows.append(judged(load_joined(count, seconds, rounds * count, storage, sampler), wanted))
    return [BenchmarkTable(f"Workers that joined, on {'PostgreSQL' if storage else 'SQLite'}, sampler {sampler}", rows)]
