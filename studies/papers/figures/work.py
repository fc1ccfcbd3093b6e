"""What figures are drawn from: the data sets, the paper's tables with our results, and processes for more work."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import numpy as np

from ranktune.solvers.core.arrays import Floats
from ranktune.studies.papers.figures.charts import PrintedFigure
from ranktune.studies.papers.protocols import PartResult
from ranktune.studies.papers.published import Paper
from ranktune.studies.papers.reproduce import Dataset, Reproduced
from ranktune.tuner.workers.executor import Executor

T = TypeVar("T")

Points: TypeAlias = Sequence[Mapping[str, float]]
"""The measures of a system at several points of its grid, from few weights to many."""


@dataclass(frozen=True)
class Material:
    """The paper, the data sets, the reproduced tables, and where functions run."""

    paper: Paper
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

    def figure(self, source: str) -> PrintedFigure:
        """Return the declared figure without charts."""
        return PrintedFigure(next(figure for figure in self.paper.figures if figure.source == source))

    def table(self, start: str) -> Reproduced:
        """Return the table whose title begins with start."""
        return next(table for table in self.tables if table.table.title.startswith(start))

    def points(self, start: str, dataset: str, split: Callable[[str], str]) -> dict[str, Points]:
        """Return the points of that table on a data set by system, which split makes of "system, point"."""
        systems: dict[str, dict[str, dict[str, float]]] = {}
        for row in self.table(start).rows:
            if row.dataset == dataset and row.ours is not None:
                points = systems.setdefault(split(row.algorithm), {})
                points.setdefault(row.algorithm, {})[row.metric] = row.ours
        return {name: sorted(points.values(), key=lambda p: p["weights"]) for name, points in systems.items()}


def best(points: Points, measure: str, most: float = np.inf) -> float:
    """Return the best value of measure among points of at most so many weights, minus infinity where there are none."""
    return max((p[measure] for p in points if p["weights"] <= most), default=-np.inf)


def over_weights(points: Mapping[str, Points], measure: str) -> dict[str, tuple[list[float], list[float]]]:
    """Return by system the numbers of weights that are not zero, and the measure."""
    return {name: ([p["weights"] for p in many], [p[measure] for p in many]) for name, many in points.items()}


def parts_of(table: Reproduced, entry: str, dataset: str) -> tuple[PartResult, ...]:
    """Return the results of an entry on a data set that did not fail."""
    return tuple(part for part in table.results.get((entry, dataset), ()) if not part.error)


def shown(values: Mapping[str, float], form: str = ".4f") -> str:
    """Return values with their names: "A 0.5000, B 0.4000"."""
    return ", ".join(f"{name} {value:{form}}" for name, value in values.items())


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
