"""What the table says: an order of first configurations, and how to choose among the trials of a solver.

Both are made of the tasks to learn from, and are shown on those that confirm.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from ranktune.solvers.core.arrays import Floats
from ranktune.studies.benchmarks.task_table.rows import Row, mean_value
from ranktune.studies.laboratory.configurations import Configuration, name_of
from ranktune.tuner.samplers.space import SOLVER
from ranktune.tuner.statistics.intervals import paired

HARM = 0.005
"""A choice that tests worse than the first configuration by more than this does harm."""

ByTask = Mapping[str, Mapping[str, Row]]
"""Rows by task and by configuration."""


def by_task(rows: Sequence[Row], share: float = 1.0) -> ByTask:
    """Return the rows of a share of the queries that did not fail."""
    result: dict[str, dict[str, Row]] = {}
    for row in rows:
        if row.share == share and not row.error:
            result.setdefault(row.task, {})[row.configuration] = row
    return result


def means(table: ByTask, tasks: Sequence[str], names: Sequence[str]) -> tuple[Floats, Floats]:
    """Return the means of the metric on validation and on test queries, (n_tasks, n_configurations) each."""
    rows = [[table[task][name] for name in names] for task in tasks]
    vali, test = (
        np.array([[mean_value(getattr(row, part)) for row in of_task] for of_task in rows]) for part in ("vali", "test")
    )
    return vali, test


def picked(vali: Floats, test: Floats, places: Sequence[int]) -> Floats:
    """Return what the best by validation of some configurations has on test, (n_tasks,)."""
    best = np.asarray(places)[np.argmax(vali[:, places], axis=1)]
    return np.asarray(test[np.arange(len(test)), best])


def ordered(vali: Floats, test: Floats, count: int) -> list[int]:
    """Return the places of configurations in the order in which they raise the mean of the pick most."""
    chosen: list[int] = []
    for _ in range(min(count, test.shape[1])):
        others = [place for place in range(test.shape[1]) if place not in chosen]
        chosen.append(max(others, key=lambda place: float(picked(vali, test, [*chosen, place]).mean())))
    return chosen


@dataclass(frozen=True)
class Difference:
    """How much better a configuration is than the first of its solver, on one task.

    first  whether a study tries it first; seen, error: by validation, with its standard error; real: on test queries
    """

    first: bool
    seen: float
    error: float
    real: float


def differences(
    table: ByTask, task: str, solver: str, first: Sequence[Configuration], every: Sequence[Configuration]
) -> list[Difference]:
    """Return the differences of the configurations of a solver that a task has; none without the first one."""
    begun = [name_of(params) for params in first if params[SOLVER] == solver]
    rows = table.get(task, {})
    reference = rows.get(begun[0])
    if reference is None or reference.vali is None:
        return []
    result = []
    for name in (name_of(params) for params in every if params[SOLVER] == solver):
        row = rows.get(name)
        if row is not None and row.vali is not None and row is not reference:
            seen, error = paired(row.vali, reference.vali)
            result.append(Difference(name in begun, seen, error, mean_value(row.test) - mean_value(reference.test)))
    return result


Rule = Callable[[Difference, int], float]
"""What a difference counts, where so many are compared; the first configuration counts 0."""


def beyond(errors: float) -> Rule:
    """Return the rule that takes the highest of the differences larger than so many standard errors."""
    return lambda each, count: each.seen if each.seen > errors * each.error else -np.inf


def significant(each: Difference, count: int) -> float:
    """Return a difference of 1.5 standard errors, more for many (Bonferroni), or of a configuration tried first."""
    needed = -float(ndtri(ndtr(-1.5) / max(count, 1)))
    return each.seen if each.first or each.seen > needed * each.error else -np.inf


def gains(rule: Rule, of_tasks: Sequence[Sequence[Difference]]) -> Floats:
    """Return what the choice gains on test queries over the first configuration, (n_tasks,)."""
    result = np.zeros(len(of_tasks))
    for place, known in enumerate(of_tasks):
        counts = [rule(each, len(known)) for each in known]
        best = int(np.argmax([0.0, *counts]))
        result[place] = 0.0 if best == 0 else known[best - 1].real
    return result
