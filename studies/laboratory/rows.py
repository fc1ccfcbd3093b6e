"""The rows of the table: which configurations it has, how one is measured on a task, and how the table is made.

Configurations are those that a study tries first, and others drawn from the search spaces. Each is fitted to shares of
the training queries. Rows are measured in turns over all tasks, so that the table is balanced whenever it is stopped.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TypeVar

import numpy as np
import optuna
from joblib import Parallel, delayed

from ranktune.solvers.base.ranker import BaseRanker
from ranktune.solvers.core.arrays import Floats, Json
from ranktune.solvers.core.errors import RankTuneError
from ranktune.solvers.core.space import Value
from ranktune.solvers.data.blocks import QuerySplit
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.metrics.metrics import parse_metric
from ranktune.studies.benchmarks.results import append_result, stored_results
from ranktune.studies.benchmarks.task_table import ConfigurationRow, ModelCheckpoint, Sizes, unpack
from ranktune.studies.benchmarks.tasks import DRAWN
from ranktune.tuner.evaluation.fitting import n_rounds, sample, unfitted
from ranktune.tuner.evaluation.task import Task
from ranktune.tuner.samplers.first import first_configurations
from ranktune.tuner.samplers.space import SOLVER, UnionSpace
from ranktune.tuner.storage.database import quiet
from ranktune.tuner.study.declaration import Study
from ranktune.tuner.study.tasks import Tasks

Configuration = dict[str, Value]
"""Parameters by flat name."""
T = TypeVar("T")
LIMIT = 30.0
"""Processor seconds of a fit."""
METRIC = "ndcg@10"
SHARES = (1.0, 0.25, 0.5)
"""Shares of the training queries."""
GROWTH = 1.5
"""Factor from the rounds of a checkpoint of boosting to those of the next one."""
AT_A_TIME = 12
"""Configurations of a task that a worker measures before the next task has its turn."""
Load = Callable[[], QuerySplit]
Wanted = tuple[Configuration, float]


def configurations(solvers: Sequence[str], count: int) -> list[Configuration]:
    """Return what a study of these solvers tries first, then count drawn of each solver, in turns, without repetitions.

    The first of them do not depend on the count.
    """
    space = Study(solvers=list(solvers)).union_space()
    drawn = [_draws(space.restricted({SOLVER: name}), number, count) for number, name in enumerate(solvers)]
    every = [*first_configurations(space), *(params for rank in zip(*drawn, strict=True) for params in rank)]
    return list({name_of(params): params for params in every}.values())


def first_with_rows(solvers: Sequence[str], table: Mapping[str, Container[str]]) -> list[Configuration]:
    """Return what a study of these solvers tries first, as far as some task of a table has a row of it."""
    return [params for params in configurations(solvers, 0) if any(name_of(params) in rows for rows in table.values())]


def _draws(space: UnionSpace, seed: int, count: int) -> list[Configuration]:
    """Return configurations drawn uniformly from the space of a solver."""
    with quiet():
        study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=seed))
    return [space.suggest(study.ask()) for _ in range(count)]


def name_of(params: Configuration) -> str:
    """Return a configuration as text, equal for equal ones."""
    return json.dumps(params, sort_keys=True)


def row_of(split: QuerySplit, params: Configuration, share: float) -> ConfigurationRow:
    """Fit a configuration to a share of the training queries, for LIMIT processor seconds at most, and score it."""
    assert split.vali is not None
    assert split.test is not None
    sizes = None if split.name.startswith(f"{DRAWN}-") else Sizes.of(split)
    row = ConfigurationRow(split.name, name_of(params), share, sizes=sizes)
    numbers = np.arange(split.train.n_queries)
    train = split.train.select(sample(numbers, max(round(share * len(numbers)), 2), 0))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return replace(row, **_measured(task_of(row.configuration), train, split.vali, split.test))
    except (RankTuneError, ValueError, ArithmeticError) as error:
        return replace(row, error=f"{type(error).__name__}: {error}")


@cache
def task_of(configuration: str) -> Task:
    """Return what a trial of the configuration of that name fits."""
    params: Configuration = json.loads(configuration)
    return Tasks(Study(solvers=[str(params[SOLVER])], metric=METRIC), Path()).of(params)


def _measured(task: Task, train: Queries, vali: Queries, test: Queries) -> Json:
    checkpoints, scores = best_of(task, train, vali, test, LIMIT)
    of_vali, of_test = map(parse_metric(METRIC).per_query, scores, (vali, test))
    return {"checkpoints": checkpoints, "vali": of_vali, "test": of_test}


def best_of(
    task: Task, train: Queries, vali: Queries, test: Queries, limit: float
) -> tuple[tuple[ModelCheckpoint, ...], list[Floats]]:
    """Return the models on the way, and the scores of the best by validation on validation and on test queries."""
    points = list[ModelCheckpoint]()
    for value, ranker, seconds in _models(task, train, vali, limit):
        scores = [ranker.predict(part) for part in (vali, test)]
        points.append(ModelCheckpoint(value, seconds, *map(parse_metric(METRIC).mean, scores, (vali, test))))
        if max(points, key=lambda point: point.vali) is points[-1]:
            best = scores
    return tuple(points), best


def _models(task: Task, train: Queries, vali: Queries, limit: float) -> Iterator[tuple[float, BaseRanker, float]]:
    """Yield the models on the way, each with its value and the processor seconds so far; valid until the next."""
    ranker, due = unfitted(task), 1.0
    if task.path and not task.bound:
        for (value, fitted), spent in _timed(ranker.fit_path(train, task.path), limit):
            yield float(value), fitted, spent
        return
    if task.bound:
        ranker.set_params(**{task.path_parameter: task.bound})
    spent = 0.0
    for step, spent in _timed(ranker.fit_steps(train, vali=vali), limit):
        if task.bound and step.iteration >= due:
            due = max(due * GROWTH, due + 1.0)
            yield float(step.iteration), ranker, spent
    yield float(n_rounds(ranker)) if task.bound else 1.0, ranker, spent


def _timed(steps: Iterator[T], limit: float) -> Iterator[tuple[T, float]]:
    """Yield each step with the processor seconds that all took so far, until the limit; between steps none count."""
    spent = 0.0
    while spent < limit:
        begun = time.process_time()
        step = next(steps, None)
        spent += time.process_time() - begun
        if step is None:
            break
        yield step, spent


def make_table(
    tasks: Mapping[str, Load],
    wanted: Sequence[Wanted],
    path: Path,
    seconds: float,
    jobs: int,
    on_line: Callable[[str], None],
) -> None:
    """Append the rows of all tasks that are not yet in the file at path; none begins after so many seconds.

    wanted are the configurations with the shares of the queries that they are fitted to.
    """
    done, begun = {row.key for row in read_rows(path)}, time.monotonic()
    turns = list(_turns(tasks, wanted, done))
    left = sum(len(turn) for _, turn in turns)
    on_line(f"{len(done)} rows are known, {left} are to be measured")
    for place in range(0, len(turns), jobs):
        if time.monotonic() - begun > seconds:
            on_line(f"{left} rows are left: the time is over. The same command continues")
            return
        batch = turns[place : place + jobs]
        measured = Parallel(n_jobs=jobs)(delayed(_measure)(tasks[name], turn) for name, turn in batch)
        for (name, turn), rows in zip(batch, measured, strict=True):
            for row in rows:
                append_result(path, row)
            left -= len(turn)
            on_line(f"{name}: {len(turn)} rows; {left} are left")


def read_rows(path: Path) -> list[ConfigurationRow]:
    """Return the rows in a file, packed or not."""
    return unpack(path) if path.suffix == ".npz" else list(stored_results(path, ConfigurationRow.from_json))


def _turns(
    tasks: Mapping[str, Load], wanted: Sequence[Wanted], done: set[tuple[str, str, float]]
) -> Iterator[tuple[str, list[Wanted]]]:
    for first in range(0, len(wanted), AT_A_TIME):
        for name in tasks:
            turn = [each for each in wanted[first : first + AT_A_TIME] if (name, name_of(each[0]), each[1]) not in done]
            if turn:
                yield name, turn


def _measure(load: Load, turn: Sequence[Wanted]) -> list[Json]:
    split = load()
    return [row_of(split, params, share).as_json() for params, share in turn]
