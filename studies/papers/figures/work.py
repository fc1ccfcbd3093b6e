"""What figures are drawn from: the data sets, the paper's tables with our results, and processes for more work."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from ranktune.solvers.core.arrays import Floats
from ranktune.studies.papers.protocols import PartResult
from ranktune.studies.papers.reproduce import Dataset, Reproduced
from ranktune.tuner.workers.executor import Executor

T = TypeVar("T")


@dataclass(frozen=True)
class Material:
    """The data sets, the reproduced tables of the paper, and where functions run."""

    datasets: Sequence[Dataset]
    tables: Sequence[Reproduced]
    executor: Executor

    @property
    def names(self) -> list[str]:
        """The names of the data sets."""
        return [dataset.name for dataset in self.datasets]

    def all_of(self, function: Callable[..., T], calls: Iterable[Sequence[Any]]) -> list[T]:
        """Return function(*call) for each of calls, in their order."""
        futures = [self.executor.submit(function, *call) for call in calls]
        return [future.result() for future in futures]

    def table(self, start: str) -> Reproduced:
        """Return the table whose title begins with start."""
        return next(one for one in self.tables if one.table.title.startswith(start))

    def ours(self, start: str) -> dict[tuple[str, str, str], float | None]:
        """Return our figures of that table by data set, system and measure."""
        return {(row.dataset, row.algorithm, row.metric): row.ours for row in self.table(start).rows}


def parts_of(table: Reproduced, entry: str, dataset: str) -> tuple[PartResult, ...]:
    """Return the results of an entry on a data set that did not fail."""
    return tuple(part for part in table.results.get((entry, dataset), ()) if not part.error)


def cpu_seconds(work: Callable[[], object], repeats: int = 3) -> float:
    """Return the least CPU time of work; other processes then matter least."""
    taken = []
    for _ in range(repeats):
        begun = time.process_time()
        work()
        taken.append(time.process_time() - begun)
    return min(taken)


def thinned(count: int, most: int = 150) -> Sequence[int]:
    """Return at most about most of the numbers below count, evenly, the last among them."""
    kept: list[int] = np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(int)).tolist()
    return kept


def mean_and_band(curves: Sequence[Floats]) -> tuple[Floats, Floats, Floats]:
    """Return the mean of curves, and that less and plus their standard deviation."""
    stack = np.array(curves)
    mean, spread = stack.mean(axis=0), stack.std(axis=0)
    return mean, mean - spread, mean + spread
