"""How many more trials two jobs run than one: the real loop, record and lanes on real data, taking turns in one run."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from ranktune.solvers.core.space import Value
from ranktune.studies import catalogue
from ranktune.tuner.evaluation.task import Task
from ranktune.tuner.runner.loop import TrialLoop
from ranktune.tuner.runner.preparation import prepare
from ranktune.tuner.runner.progress import Silent
from ranktune.tuner.storage.record import Record
from ranktune.tuner.study.declaration import Study
from ranktune.tuner.study.home import StudyFolder
from ranktune.tuner.workers.executor import Processes


def rate(study: Study, problem: str, folder: Path, lanes: Processes) -> float:
    """Return the trials a second of a whole study whose workers have begun already."""
    record = Record(folder, "jobs", study.metric)

    def task_of(solver: str, parameters: Mapping[str, Value]) -> Task:
        return Task(problem, study.metrics, solver, parameters, study.seed)

    loop = TrialLoop(study, "", record, task_of, lanes, Silent())
    begun = time.perf_counter()
    loop.run()
    taken = time.perf_counter() - begun
    record.close()
    return study.n_trials / taken


def main(
    data: Annotated[str, typer.Argument(help="Data to tune on.")] = "api-search",
    solver: Annotated[str, typer.Option(help="What competes.")] = "RankSVM",
    trials: Annotated[int, typer.Option(help="Trials of a study.", min=2)] = 60,
    jobs: Annotated[int, typer.Option(help="Jobs to compare with one.", min=2)] = 2,
    rounds: Annotated[int, typer.Option(help="Rounds, in which one and many take turns.", min=1)] = 5,
) -> None:
    """Print the trials a second of one job and of several, and their ratio."""
    study = Study(data=data, solvers=(solver,), trials=trials, sampler="random")
    with tempfile.TemporaryDirectory() as name, Processes(1) as one, Processes(jobs) as many:
        home = Path(name) / "study"
        home.mkdir()
        (problem,) = prepare(study, catalogue.load(data)[:1], StudyFolder(home))
        own = partial(rate, study, str(problem.folder))
        for place, lanes in enumerate((one, many)):  # kernels, pages of the data
            own(Path(name) / f"warm{place}", lanes)
        ratios = []
        for k in range(rounds):
            single, several = own(Path(name) / f"one{k}", one), own(Path(name) / f"many{k}", many)
            ratios.append(several / single)
            typer.echo(f"1 job: {single:.1f} trials/s   {jobs} jobs: {several:.1f}   {ratios[-1]:.2f} times")
        typer.echo(f"median: {statistics.median(ratios):.2f} times the trials of one job")
