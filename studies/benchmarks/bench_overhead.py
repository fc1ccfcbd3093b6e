"""What the coordinator costs a trial: the trial loop with an objective that does nothing.

Optuna's own loop, with its default SQLite storage, runs beside it.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import numpy as np
import optuna
import typer

from ranktune.solvers.core.space import Value
from ranktune.tuner.evaluation.task import Outcome, Task
from ranktune.tuner.runner.loop import TrialLoop
from ranktune.tuner.runner.progress import Silent
from ranktune.tuner.storage.record import Record
from ranktune.tuner.study.declaration import Study
from ranktune.tuner.workers.executor import InProcess

PER_QUERY = np.random.default_rng(0).random(160)


def nothing(task: Task) -> Outcome:
    """Return at once."""
    return Outcome({"ndcg@10": PER_QUERY}, 1.0, 0.0)


def ours(study: Study, folder: Path) -> float:
    """Return milliseconds a trial of our loop: ask, suggest, write durably, tell."""
    record = Record(folder, "bench", study.metric)

    def task_of(solver: str, parameters: Mapping[str, Value]) -> Task:
        return Task("", study.metrics, solver, parameters, 0)

    with InProcess() as executor:
        loop = TrialLoop(study, "", record, task_of, executor, Silent(), nothing)
        begun = time.perf_counter()
        loop.run()
        elapsed = time.perf_counter() - begun
    record.close()
    return 1e3 * elapsed / study.n_trials


def optunas(study: Study, folder: Path) -> float:
    """Return milliseconds a trial of Optuna's loop on the same space, with its default SQLite storage."""
    space = study.union_space()

    def objective(trial: optuna.Trial) -> float:
        space.suggest(trial)
        return 0.5

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    theirs = optuna.create_study(
        storage=f"sqlite:///{folder / 'optuna.db'}",
        direction="maximize",
        sampler=optuna.samplers.RandomSampler(seed=study.seed),
    )
    begun = time.perf_counter()
    theirs.optimize(objective, n_trials=study.n_trials)
    return 1e3 * (time.perf_counter() - begun) / study.n_trials


def main(
    sampler: Annotated[str, typer.Option(help="What suggests: random, thompson, tpe, ...")] = "random",
    trials: Annotated[int, typer.Option(help="Trials to time.", min=1)] = 100,
) -> None:
    """Print what the coordinator costs a trial, beside Optuna's own loop with its SQLite storage."""
    study = Study(sampler=sampler, trials=trials)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        typer.echo(f"{study.n_trials} trials, sampler {sampler}: {ours(study, folder):.1f} ms a trial")
        typer.echo(f"optuna, its SQLite, random: {optunas(study, folder):.1f} ms a trial")
