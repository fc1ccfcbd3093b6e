"""A task of the table as a simulated study sees it: its rows, and its sizes, by which a study plans its time."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from ranktune.solvers.core.arrays import Floats, Ints
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.registry import solver_class
from ranktune.studies.benchmarks.task_table import ConfigurationRow
from ranktune.studies.benchmarks.tasks import sizes
from ranktune.studies.laboratory.rows import Configuration, name_of
from ranktune.tuner.policy.policy import POLICY, Policy
from ranktune.tuner.samplers.first import grows
from ranktune.tuner.samplers.space import SOLVER, UnionSpace
from ranktune.tuner.splits.plans import fresh_plan
from ranktune.tuner.splits.split import Development, as_given, validation_plan
from ranktune.tuner.study.problem import SplitProblem

HARM = 0.005
"""A choice that tests worse than the first configuration by more than this does harm."""

ByTask = Mapping[str, Mapping[str, ConfigurationRow]]
"""Rows by task and by configuration."""


def by_task(rows: Sequence[ConfigurationRow], share: float = 1.0) -> ByTask:
    """Return the rows of a share of the queries that did not fail."""
    result: dict[str, dict[str, ConfigurationRow]] = {}
    for row in rows:
        if row.share == share and not row.error:
            result.setdefault(row.task, {})[row.configuration] = row
    return result


@dataclass(frozen=True, eq=False)
class KnownTask:
    """The rows of a task for some solvers.

    Attributes
    ----------
    rows, params : tuple
        What configurations reach, and the configurations.
    space : UnionSpace
        The joined space of the solvers.
    problem : Problem
        The sizes of the data and the folds; its features and grades are no data.
    test_queries : int
    """

    name: str
    rows: tuple[ConfigurationRow, ...]
    params: tuple[Configuration, ...]
    space: UnionSpace
    problem: SplitProblem
    vali_queries: int
    test_queries: int

    @cached_property
    def _places(self) -> Mapping[str, int]:
        return {_without_rounds(params): place for place, params in enumerate(self.params)}

    def place(self, params: Configuration) -> int:
        """Return the place of the row of a configuration, whatever its rounds of boosting."""
        return self._places[_without_rounds(params)]

    @cached_property
    def solvers(self) -> tuple[str, ...]:
        """The solver of each row."""
        return tuple(str(params[SOLVER]) for params in self.params)

    @cached_property
    def tests(self) -> Floats:
        """The mean of the metric on test queries of each row, (n_rows,)."""
        return np.array([float(np.nanmean(row.test)) for row in self.rows if row.test is not None])

    def scored(self, seconds: float, policy: Policy = POLICY) -> SplitProblem:
        """Return the problem as a study of so many seconds scores its trials: by folds, or once."""
        problem = replace(self.problem, policy=policy)
        if not problem.durations.is_scored_once(seconds, is_given=True):
            return problem
        return replace(problem, plan=as_given(Development(problem.development, self.vali_queries)), fresh=())


def _without_rounds(params: Configuration) -> str:
    """Return the name of a configuration, of boosting without its rounds."""
    solver = str(params[SOLVER])
    rounds = f"{solver}.{solver_class(solver).path_parameter}" if grows(solver) else ""
    return name_of({name: value for name, value in params.items() if name != rounds})


def known_task(table: ByTask, name: str, space: UnionSpace) -> KnownTask:
    """Return the rows of a task for the solvers of a space, with its sizes; all rows have values."""
    names = [str(params[SOLVER]) for params in space.defaults()]
    rows, params = [], []
    for row in table[name].values():
        configuration = json.loads(row.configuration)
        if configuration[SOLVER] in names:
            rows.append(row)
            params.append(configuration)
    lengths, features = _sizes(name, rows[0])
    problem = _problem(name, lengths, features)
    return KnownTask(name, tuple(rows), tuple(params), space, problem, len(lengths[1]), len(lengths[2]))


def _sizes(name: str, row: ConfigurationRow) -> tuple[Sequence[Ints], int]:
    """Return the documents of each query of the three parts of a task, and its features."""
    if row.sizes is None:
        kind, _, seed = name.partition("-")
        return sizes(kind, int(seed))
    pairs = zip(row.sizes.documents, row.sizes.queries, strict=True)
    ends = [np.linspace(0, documents, queries + 1).astype(np.int64) for documents, queries in pairs]
    return [np.diff(each) for each in ends], row.sizes.features


def _problem(name: str, lengths: Sequence[Ints], features: int) -> SplitProblem:
    """Return the problem of a task of that many documents by query, without data: features are 0, grades at random."""
    each = np.concatenate(lengths[:2])
    starts = np.concatenate([[0], np.cumsum(each)]).astype(np.int64)
    grades = np.random.default_rng(0).random(int(starts[-1]))  # no two queries are equal
    empty = np.zeros((int(starts[-1]), features), dtype=np.float32)
    queries = Queries(empty, grades, starts, np.arange(len(each)), features_checked=True)
    plan = validation_plan(Development(queries, len(lengths[1])), None, seed=0)
    return SplitProblem(name, Path(), queries, plan, fresh_plan(plan, queries, seed=0), None)
