"""What the table says: an order of first configurations, made of the tasks to learn from and shown on the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ranktune.solvers.core.arrays import Floats
from ranktune.studies.benchmarks.task_table.rows import Row, mean_value

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
