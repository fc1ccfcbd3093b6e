"""What figures are drawn from, and what they are made of.

`Material` has the data sets, the paper's tables with our results, and processes for more work. A `PrintedFigure` has
what the paper says, charts of curves over two axes, and the verdicts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

import numpy as np

from ranktune.solvers.core.arrays import Floats, Ints
from ranktune.studies.papers.claims import ClaimVerdict, Contrary, Finding, verdict_from
from ranktune.studies.papers.protocols import PartResult
from ranktune.studies.papers.published import Figure, Paper
from ranktune.studies.papers.reproduce import Dataset, Reproduced
from ranktune.tuner.workers.executor import Executor

Values: TypeAlias = Sequence[float] | Floats | Ints
T = TypeVar("T")
Points: TypeAlias = Sequence[Mapping[str, float]]
"""The measures of a system at several points of its grid, from few weights to many.

They are those of test queries, by which points are compared: no test says that a claim about them is refuted.
"""


@dataclass(frozen=True)
class Series:
    """One system in a chart.

    x, y       the points; for bars x is the number of the category
    low, high  the band around y, () where there is none
    style      "line", "steps", "points", "line+points" or "bars"
    like       the series whose colour it has; "" for one of its own
    """

    name: str
    x: Values
    y: Values
    low: Values = ()
    high: Values = ()
    style: str = "line"
    like: str = ""


@dataclass(frozen=True)
class Chart:
    """Series over two axes; with categories the x axis has their names at 0, 1, 2, ...

    y_range  the ends of the y axis, such as the printed ones; None for those of the values
    """

    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    log_x: bool = False
    log_y: bool = False
    categories: tuple[str, ...] = ()
    y_range: tuple[float, float] | None = None


@dataclass
class PrintedFigure:
    """A figure of a paper as it is declared, our charts of the same, and the verdicts on its claims."""

    declared: Figure
    charts: list[Chart] = field(default_factory=list)
    claims: list[ClaimVerdict] = field(default_factory=list)

    @property
    def source(self) -> str:
        """Where it is printed."""
        return self.declared.source

    def draw(
        self,
        title: str,
        x_label: str,
        y_label: str,
        curves: Mapping[str, Sequence[Values]],
        *,
        style: str = "line+points",
        **axes: Any,
    ) -> None:
        """Add a chart of curves by name: x, y and, where there is a band, its ends; axes are fields of Chart."""
        series = []
        for name, (x, y, *band) in curves.items():
            low, high = band or ((), ())
            series.append(Series(name, x, y, low, high, style))
        self.charts.append(Chart(title, x_label, y_label, tuple(series), **axes))

    def say(
        self, claim: str, holds: bool | None, measured: str = "", *, contrary: Contrary = False, **fields: object
    ) -> None:
        """Add a verdict on a declared claim, whose text has these fields, by what was measured.

        contrary: True where nothing that was measured is a matter of chance, else differences that are tested.
        """
        declared = self.declared.claims[claim]
        text = declared.text.format(**fields)
        self.claims.append(verdict_from(self.source, text, holds, measured, declared.reason, contrary))

    @property
    def verdict(self) -> ClaimVerdict:
        """Whether ours shows what the printed figure does: drawn, and all its claims hold."""
        claim, printed = f"the figure: {self.declared.caption}", f"Printed: {self.declared.printed}"
        if self.declared.missing:
            return ClaimVerdict(self.source, claim, Finding.UNCHECKED, self.declared.missing)
        for finding in (Finding.REFUTED, Finding.NOT_SHOWN):
            if failed := [claim.claim for claim in self.claims if claim.finding is finding]:
                reason = f"drawn on our data, but {finding}: {'; '.join(failed)}. {printed}"
                return ClaimVerdict(self.source, claim, finding, reason)
        if self.claims and all(claim.finding is Finding.UNCHECKED for claim in self.claims):
            return ClaimVerdict(self.source, claim, Finding.UNCHECKED, "the data it speaks of were not given.")
        reason = f"drawn on our data; all that is said of it holds. {printed}"
        return ClaimVerdict(self.source, claim, Finding.CONFIRMED, reason)

    @property
    def verdicts(self) -> tuple[ClaimVerdict, ...]:
        """The figure's own verdict and those of its claims."""
        return (self.verdict, *self.claims)


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


def shown(values: Mapping[str, float | Floats], form: str = ".4f") -> str:
    """Return values, or means of them, with their names: "A 0.5000, B 0.4000"."""
    return ", ".join(f"{name} {np.mean(value):{form}}" for name, value in values.items())


def cpu_seconds(work: Callable[[], object], repeats: int = 3) -> float:
    """Return the least CPU time of work; other processes then matter least."""
    times = []
    for _ in range(repeats):
        begun = time.process_time()
        work()
        times.append(time.process_time() - begun)
    return min(times)


def thinned(count: int, most: int = 150) -> Sequence[int]:
    """Return at most about most of the numbers below count, evenly, the last among them."""
    places: list[int] = np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(int)).tolist()
    return places


def mean_and_band(curves: Sequence[Floats]) -> tuple[Floats, Floats, Floats]:
    """Return the mean of curves, and that less and plus their standard deviation."""
    stack = np.array(curves)
    mean, spread = stack.mean(axis=0), stack.std(axis=0)
    return mean, mean - spread, mean + spread
