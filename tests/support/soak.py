"""Many trials that do nothing, in one process: what each leaves behind. Run as: soak.py FOLDER TRIALS SAMPLER.

Prints JSON: bytes resident after the first thousand trials and at the end, seconds of each ask, bytes of the record.
"""

import gc
import json
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from ranktune.solvers.core.space import Value
from ranktune.tuner.evaluation.task import Task, TaskOutcome
from ranktune.tuner.policy.actions import FitTrial, Grow, Suggest
from ranktune.tuner.search.loop import TrialLoop
from ranktune.tuner.search.progress import Silent, TrialReport
from ranktune.tuner.storage.record import Record
from ranktune.tuner.study.declaration import Study
from ranktune.tuner.workers.executor import InProcess

PER_QUERY = np.random.default_rng(0).random(160)


def nothing(task: Task) -> TaskOutcome:
    return TaskOutcome({"ndcg@10": PER_QUERY}, 1.0, 0.0)


def resident() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Watching(Silent):
    def __init__(self, record: Path) -> None:
        self.record = record
        self.sizes: list[int] = []
        self.memory: list[int] = []

    def trial(self, report: TrialReport) -> None:
        if report.done % 250 == 0:
            self.memory.append(resident())
            self.sizes.append(sum(file.stat().st_size for file in self.record.glob("record.db*")))


def main(folder: Path, trials: int, sampler: str) -> None:
    gc.set_threshold(10_000)  # loading the libraries makes half a million lasting objects
    study = Study(sampler=sampler, trials=trials)
    record = Record(folder, "soak", study.metric)
    asks: list[float] = []

    def task_of(solver: str, parameters: Mapping[str, Value]) -> Task:
        return Task("", study.metrics, solver, parameters, 0)

    watching = Watching(folder)
    with InProcess() as executor:
        loop = TrialLoop(study, "", record, task_of, executor, watching, nothing)
        suggest = loop.scheduler.begin

        def timed(number: int, action: FitTrial | Grow | Suggest) -> dict[str, Value]:
            begun = time.thread_time()
            result = suggest(number, action)
            asks.append(time.thread_time() - begun)
            return result

        loop.scheduler.begin = timed  # type: ignore[method-assign]
        begun = time.perf_counter()
        loop.run()
        seconds = time.perf_counter() - begun
    record.close()
    print(json.dumps({"memory": watching.memory, "sizes": watching.sizes, "asks": asks, "seconds": seconds}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
