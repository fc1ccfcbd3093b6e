"""A study from beginning to end: prepare the data, run what is missing, choose, learn again, test, save."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from ranktune.solvers.checks import check_count
from ranktune.solvers.errors import StudyError
from ranktune.solvers.space import Value
from ranktune.tuner.executor import Executor, make_executor
from ranktune.tuner.home import StudyFolder
from ranktune.tuner.objective import FRESH, Task, check_metrics, evaluate
from ranktune.tuner.problem import Problem, folder_name, write_split
from ranktune.tuner.progress import Progress, Silent
from ranktune.tuner.record import Record
from ranktune.tuner.refit import microseconds_a_document, refit, score_on
from ranktune.tuner.results import Failure, Result, SplitResult
from ranktune.tuner.runner import Objective, TrialLoop
from ranktune.tuner.selection import (
    Candidate,
    Entry,
    candidates,
    contenders,
    failures,
    leaderboard,
    mean_metrics,
    settled,
)
from ranktune.tuner.split import Split
from ranktune.tuner.study import Study


def prepare(study: Study, splits: Sequence[Split], folder: StudyFolder) -> list[Problem]:
    """Write the data where workers map it, and declare the study. Raises StudyError where another one stands there."""
    folder.check_settings(study)
    for split in splits:
        for part in filter(None, (split.train, split.vali, split.test)):
            check_metrics(study.metrics, part)
    with folder.replace_data() as fresh:
        folder.declare(study, {split.name: write_split(split, study, fresh) for split in splits})
    return reopen(folder)


def reopen(folder: StudyFolder) -> list[Problem]:
    """Return the problems that prepare wrote; those of a finished study are gone."""
    return [Problem.open(folder.data / folder_name(name, digest), name) for name, digest in folder.digests().items()]


def run_study(
    study: Study,
    problems: Sequence[Problem],
    folder: StudyFolder,
    *,
    jobs: int = 1,
    progress: Progress | None = None,
    objective: Objective = evaluate,
) -> Result:
    """Run the trials that are missing on every problem and return the conclusion, which is also saved in folder."""
    check_count("jobs", jobs)
    progress = progress or Silent()
    begun = time.monotonic()
    # One thread for the sampler's small matrices too: more of them wait for each other while workers fill the cores.
    with threadpool_limits(limits=1), make_executor(jobs) as executor:
        parts = [_run_split(study, problem, folder, executor, progress, objective) for problem in problems]
    result = replace(_concluded(study, parts, folder), seconds=round(time.monotonic() - begun, 3))
    result.save(folder.result)
    folder.remove_data()
    return result


@dataclass(frozen=True, eq=False)
class _Part:
    """What was found on one problem, before it is put into rows."""

    name: str
    entries: list[Entry]
    trials: int
    failures: list[Failure]
    model: Path


def _run_split(
    study: Study, problem: Problem, folder: StudyFolder, executor: Executor, progress: Progress, objective: Objective
) -> _Part:
    own = folder.split(problem.name)
    own.mkdir(exist_ok=True)
    record = Record(own, "/".join(filter(None, (folder.path.name, problem.name))), study.metric)
    try:
        TrialLoop(study, problem.name, record, partial(_task, study, problem), executor, progress, objective).run()
        space = study.union_space()
        chosen = _chosen(study, problem, candidates(record, space), executor, progress)
        progress.stage(_label(problem) + "learning the best of each solver for use")
        entries, unfit = _learnt_again(study, problem, chosen, executor)
        entries[0].model.save(own / "model.json")
        failed = failures(record, space, problem.name) + unfit
        return _Part(problem.name, entries, len(record.trials()), failed, (own / "model.json").resolve())
    finally:
        record.close()


def _task(study: Study, problem: Problem, solver: str, parameters: Mapping[str, Value]) -> Task:
    return Task(str(problem.folder), study.metrics, solver, parameters, study.seed)


def _chosen(
    study: Study, problem: Problem, found: list[Candidate], executor: Executor, progress: Progress
) -> list[Candidate]:
    """Return one candidate a solver, the chosen first, after scoring those in doubt on fresh folds.

    Without refit the given validation queries alone choose: the protocol of published tables.
    """
    generator = np.random.default_rng([study.seed, 4])
    doubtful = contenders(found, generator) if study.refit and problem.fresh else [0]
    if len(doubtful) > 1:
        progress.stage(_label(problem) + f"scoring {len(doubtful)} candidates that are as good again, on fresh folds")
        tasks = [replace(_task(study, problem, found[k].solver, found[k].params), plan=FRESH) for k in doubtful]
        jobs = [executor.submit(evaluate, task) for task in tasks]
        for k, job in zip(doubtful, jobs, strict=True):
            if job.exception() is None and job.result().error is None:
                found[k] = replace(found[k], again=job.result().per_query[study.metric])
    return settled(found)


def _label(problem: Problem) -> str:
    return f"{problem.name}: " if problem.name else ""


def _learnt_again(
    study: Study, problem: Problem, chosen: Sequence[Candidate], executor: Executor
) -> tuple[list[Entry], list[Failure]]:
    """Return the candidates learnt for use, and why some could not be."""
    on_everything = study.refit or not problem.given_split
    jobs = [
        executor.submit(partial(refit, on_everything=on_everything), _task(study, problem, c.solver, c.params))
        for c in chosen
    ]
    entries, unfit = [], []
    for candidate, job in zip(chosen, jobs, strict=True):
        error = job.exception()
        if error is not None:
            unfit.append(Failure(problem.name, None, candidate.solver, f"{type(error).__name__}: {error}"))
            continue
        model, seconds = job.result().model, job.result().seconds
        test = {} if problem.test is None else score_on(model, problem.test, study.metrics)
        timed = microseconds_a_document(model, problem.test or problem.development)
        entries.append(Entry(candidate, model, test, timed, seconds))
    if not entries:
        raise StudyError(f"no solver could be learnt again: {'; '.join(failure.error for failure in unfit)}")
    return entries, unfit


def _concluded(study: Study, parts: Sequence[_Part], folder: StudyFolder) -> Result:
    """Return the conclusion over all parts, without the time it took."""
    generator = np.random.default_rng([study.seed, 2])  # of intervals and tests: the same however the run was cut
    rows = leaderboard([part.entries for part in parts], study.metric, generator)
    splits = tuple(_split_result(study, part, generator) for part in parts)
    return Result(
        study=folder.path.name,
        data=study.data,
        metric=study.metric,
        best=rows[0],
        leaderboard=tuple(rows),
        test_metrics=mean_metrics([part.entries[0] for part in parts], study.metrics),
        trials=sum(part.trials for part in parts),
        failures=tuple(failure for part in parts for failure in part.failures),
        seconds=0.0,
        model=max(splits, key=lambda split: split.best.vali.mean).model,
        folder=str(folder.path.resolve()),
        folds=splits,
    )


def _split_result(study: Study, part: _Part, generator: np.random.Generator) -> SplitResult:
    rows = leaderboard([part.entries], study.metric, generator)
    metrics = mean_metrics(part.entries[:1], study.metrics)
    return SplitResult(part.name, rows[0], tuple(rows), metrics, part.trials, tuple(part.failures), str(part.model))
