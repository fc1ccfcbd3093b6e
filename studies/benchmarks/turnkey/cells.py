"""Cells: one whole tool on one fold each, run in a new process or read from the file of an earlier run.

Tools get training and validation queries and the features of the test documents; all are scored here, by the same
metrics. Queries without a relevant document are left out of ndcg@10.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from hashlib import blake2b
from itertools import product
from pathlib import Path
from typing import Self, TypeAlias

import numpy as np

from ranktune.solvers.core.arrays import Floats, Json
from ranktune.solvers.core.errors import StudyError
from ranktune.solvers.data.blocks import QuerySplit
from ranktune.solvers.metrics.metrics import parse_metric
from ranktune.studies.benchmarks.results import append_result, stored_results
from ranktune.studies.benchmarks.tables import BenchmarkTable
from ranktune.studies.benchmarks.turnkey.data import Case
from ranktune.studies.benchmarks.turnkey.libraries import METRIC, PeerBudget, part_of
from ranktune.studies.benchmarks.turnkey.peers import compete, version_of
from ranktune.tuner.selection.estimate import for_few_queries
from ranktune.tuner.statistics.measured import Interval

METRICS = (METRIC, f"{METRIC}:letor")


@dataclass(frozen=True)
class Cell:
    """One tool on one fold: a stored result is used where all fields are equal.

    version      of the tool's package
    fingerprint  of the fold's queries
    """

    data: str
    fold: str
    rival: str
    seconds: float
    threads: int
    seed: int
    version: str
    fingerprint: str


@dataclass(frozen=True)
class Finished:
    """The result of a cell.

    values    metric -> value of each test query, NaN where the metric skips it
    used      seconds until its result; estimate, interval, tried, detail: see PeerResult
    """

    cell: Cell
    values: dict[str, Floats]
    used: float
    estimate: float
    interval: tuple[float, float] | None = None
    tried: int | None = None
    detail: Json = field(default_factory=dict)

    @classmethod
    def from_json(cls, fields: Json) -> Self:
        """Return the result that as_json wrote."""
        values = {name: np.array(fields["values"][name], dtype=np.float64) for name in METRICS}  # null is NaN
        interval = fields["interval"] and (fields["interval"][0], fields["interval"][1])
        return cls(**fields | {"cell": Cell(**fields["cell"]), "values": values, "interval": interval})

    def as_json(self) -> Json:
        """Return the fields as values of JSON."""
        values = {name: [None if math.isnan(v) else v for v in each.tolist()] for name, each in self.values.items()}
        return asdict(replace(self, values={})) | {"values": values}

    def mean(self, metric: str = METRIC) -> float:
        """Return the mean over the test queries that the metric does not skip."""
        return float(np.nanmean(self.values[metric]))

    @property
    def inside(self) -> bool | None:
        """Whether the mean is within the interval for so few test queries; None without an interval."""
        if self.interval is None:
            return None
        values = self.values[METRIC]
        expected = for_few_queries(
            Interval(self.estimate, *self.interval), values, int(np.count_nonzero(~np.isnan(values)))
        )
        return expected.low <= self.mean() <= expected.high


Results: TypeAlias = dict[tuple[str, str, str, int], Finished]
"""Of one budget: by data, fold, rival and seed."""


def run_cell(cell: Cell, split: QuerySplit) -> Finished:
    """Run a rival on a fold and measure what it delivered.

    Raises StudyError where it failed, and DataError for a fold that cannot be used, before it runs.
    """
    test = part_of(split, "test")
    parse_metric(METRIC).mean(np.zeros(test.n_documents), test)  # refuses queries that cannot be used before the run
    scores, report = compete(cell.rival, split, PeerBudget(cell.seconds, cell.threads, cell.seed))
    values = {metric: parse_metric(metric).per_query(scores, test) for metric in METRICS}
    interval = report["interval"] and (report["interval"][0], report["interval"][1])
    others = {name: report[name] for name in ("estimate", "tried", "detail")}
    return Finished(cell, values, report["seconds"], interval=interval, **others)


@dataclass(frozen=True)
class CellPlan:
    """Which cells are run on each fold of each case: every rival for all seconds and seeds."""

    rivals: Sequence[str]
    seconds: Sequence[float]
    seeds: Sequence[int] = (0,)
    threads: int = 1


def planned(cases: Iterable[Case], plan: CellPlan) -> Iterator[tuple[Cell, QuerySplit]]:
    """Yield each cell with its fold; tools take turns on a fold, so that noise of the machine affects them alike."""
    versions = {rival: version_of(rival) for rival in plan.rivals}
    for case in cases:
        for split in case.splits:
            mark = fingerprint_of(split)
            for seconds, seed, rival in product(plan.seconds, plan.seeds, plan.rivals):
                cell = Cell(case.name, split.name, rival, seconds, plan.threads, seed, versions[rival], mark)
                yield cell, split


def fingerprint_of(split: QuerySplit) -> str:
    """Return a digest of the queries of a split."""
    parts = [part.fingerprint for part in (split.train, split.vali, split.test) if part is not None]
    return blake2b(" ".join(parts).encode(), digest_size=16).hexdigest()


def run_all(
    plan: Sequence[tuple[Cell, QuerySplit]],
    path: Path | None,
    on_line: Callable[[str], None],
    run: Callable[[Cell, QuerySplit], Finished] = run_cell,
) -> tuple[list[Finished], list[str]]:
    """Return the result of each cell, read from path, or run now and appended there; and why cells failed."""
    earlier = {finished.cell: finished for finished in stored_results(path, Finished.from_json)}
    results, failures = [], []
    for number, (cell, split) in enumerate(plan, 1):
        where = f"{cell.data} {cell.fold} {cell.rival} {cell.seconds:g} s seed {cell.seed}"
        finished = earlier.get(cell)
        how = "kept" if finished else "ran"
        if finished is None:
            try:
                finished = run(cell, split)
            except StudyError as error:  # the other cells still run
                failures.append(f"{where}: {error}")
                on_line(f"{number}/{len(plan)} {failures[-1]}")
                continue
            append_result(path, finished.as_json())
        results.append(finished)
        figures = f"test {finished.mean():.4f}, estimate {finished.estimate:.4f}, {finished.used:.1f} s"
        on_line(f"{number}/{len(plan)} {where} ({how}): {figures}")
    return results, failures


def of_budget(results: Iterable[Finished], seconds: float) -> Results:
    """Return the results of the cells of so many seconds."""
    return {
        (finished.cell.data, finished.cell.fold, finished.cell.rival, finished.cell.seed): finished
        for finished in results
        if finished.cell.seconds == seconds
    }


def failed(failures: Sequence[str], total: int) -> list[BenchmarkTable]:
    """Return a table of why cells failed, if any did."""
    title = f"{len(failures)} of {total} cells failed"
    return [BenchmarkTable(title, [{"failure": text} for text in failures], failed=True)] if failures else []
