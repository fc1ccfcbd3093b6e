"""Reproducing a paper's tables: every system on every data set, the printed figure beside ours."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from scipy.stats import rankdata

from ranktune.solvers.core.arrays import Floats, Json
from ranktune.solvers.core.errors import DataError, ParameterError, StudyError, nearest
from ranktune.solvers.data.blocks import QuerySplit
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.readers.letor import read_letor
from ranktune.studies.papers import protocols, tuner_runs
from ranktune.studies.papers.claims import ByPart, ClaimVerdict, verdict_on
from ranktune.studies.papers.protocols import PartResult, all_queries, every_point, named, one_fold, one_order, run_part
from ranktune.studies.papers.published import (
    MEAN_RANK,
    Paper,
    PublishedMeasure,
    PublishedSystem,
    PublishedTable,
    datasets,
    recognised,
)
from ranktune.studies.papers.tuner_runs import lattice_values, sampler_runs
from ranktune.tuner.splits.plans import random_orders
from ranktune.tuner.workers.executor import Executor, make_executor

RUNS_A_TASK = 2
"""Runs of a sampler that one task makes: a second or two."""

OnPart: TypeAlias = Callable[[int, int, str], None]
"""Called after each finished part: how many are done, of how many, and a line about this one."""


@dataclass(frozen=True)
class Dataset:
    """The folds of a folder, under the name that papers use."""

    name: str
    splits: tuple[QuerySplit, ...]

    @cached_property
    def queries(self) -> Queries:
        """All queries of the data set."""
        return all_queries(self.splits[0])


@dataclass(frozen=True)
class FigureRow:
    """One figure: as published (None where it was not), and ours (None where the system could not run).

    metric is the name that the paper prints, convention the metric that is computed here under it; tolerance is the
    difference up to which the figure counts as reproduced, None where nothing was published.
    """

    table: str
    dataset: str
    algorithm: str
    metric: str
    published: float | None
    ours: float | None
    convention: str
    tolerance: float | None = None

    @property
    def difference(self) -> float | None:
        """Ours less what was published; None where either is missing."""
        return None if self.published is None or self.ours is None else self.ours - self.published

    @property
    def within(self) -> bool | None:
        """Whether the difference is within the tolerance; None where there is none of either."""
        if self.difference is None or self.tolerance is None:
            return None
        return bool(abs(self.difference) <= self.tolerance)

    def as_dict(self) -> Json:
        """Return the fields as JSON values."""
        return asdict(self)


@dataclass(frozen=True)
class Reproduced:
    """A table with its figures, remarks about single systems, and the verdicts on its claims.

    results holds the parts (folds, orders, runs) by the names of entry and data set.
    """

    table: PublishedTable
    rows: tuple[FigureRow, ...]
    remarks: tuple[str, ...]
    verdicts: tuple[ClaimVerdict, ...] = ()
    results: Mapping[tuple[str, str], tuple[PartResult, ...]] = field(default_factory=dict)


@dataclass(eq=False)
class _Part:
    """One part of one entry on one data set: a fold, an order, or some runs of a sampler; and its result."""

    table: PublishedTable
    entry: PublishedSystem
    dataset: Dataset
    name: str
    call: tuple[Any, ...]
    result: PartResult = field(default_factory=PartResult)

    def message(self) -> str:
        """Return a line about its result."""
        about, points = "", {named(point) for point in self.result.chosen.values()}
        if self.result.error:
            about = f": not run, {self.result.error}"
        elif len(points) == 1 and points != {""}:
            about = f": {points.pop()}"
        return f"{self.dataset.name} {self.entry.name}, {self.name}{about}"


def load_dataset(path: str | Path, name: str | None = None) -> Dataset:
    """Return the folds in a folder; without a name, the published data set of that shape, or the folder's own name.

    Raises DataError where the folder holds no folds, ParameterError for an unknown name.
    """
    if name is not None and name not in datasets():
        raise ParameterError(f"there is no published data set '{name}'. {nearest(name, datasets())}")
    splits = read_letor(path)
    return Dataset(name or recognised(splits) or Path(path).resolve().name, tuple(splits))


def load_datasets(paths: Sequence[str | Path], name: str | None = None) -> list[Dataset]:
    """Return the data set in each folder. Raises ParameterError for one name of several folders, or equal data sets."""
    if name is not None and len(paths) > 1:
        raise ParameterError(f"dataset={name!r} names one data set, but {len(paths)} folders were given. Give one.")
    datasets = [load_dataset(path, name) for path in paths]
    names = [dataset.name for dataset in datasets]
    for k, data in enumerate(names):
        if data in names[:k]:
            first = paths[names.index(data)]
            raise ParameterError(f"{first} and {paths[k]} both hold {data}: give each data set once.")
    return datasets


def reproduce(
    paper: Paper, datasets: Sequence[Dataset], *, jobs: int = 1, on_part: OnPart | None = None
) -> list[Reproduced]:
    """Return every table of paper with our figures on the given data sets, in the order of declaration.

    The figures do not depend on jobs, the number of processes. A system that cannot run has no figures, and a remark
    with the reason.
    """
    cells = [(table, dataset) for table in paper.tables for dataset in _of(table, datasets)]
    tuned = [(table, dataset) for table, dataset in cells if table.protocol == "tuner"]
    grids: dict[tuple[str, str], list[PartResult]] = {(table.title, dataset.name): [] for table, dataset in tuned}
    first = [part for table, dataset in tuned for part in _folds(table, table.entries[0], dataset, lattice_values)]
    others = [
        part
        for table, dataset in cells
        for entry in table.entries
        for part in _parts(table, entry, dataset, grids.get((table.title, dataset.name), []))
    ]
    done = 0

    def note(part: _Part) -> None:
        nonlocal done
        done += 1
        if on_part is not None:
            on_part(done, len(first) + len(others), part.message())

    with make_executor(jobs) as executor:
        _run_all(executor, first, note)
        for part in first:
            grids[part.table.title, part.dataset.name].append(part.result)
        _run_all(executor, others, note)
    return [
        _reproduced(
            table, [dataset.name for dataset in _of(table, datasets)], [part for part in others if part.table is table]
        )
        for table in paper.tables
    ]


def _of(table: PublishedTable, datasets: Sequence[Dataset]) -> Sequence[Dataset]:
    """Return the data sets of a table: those that are given, or simulated days."""
    return [Dataset(protocols.NAME, ())] if table.protocol == "daily" else datasets


def _parts(table: PublishedTable, entry: PublishedSystem, dataset: Dataset, grid: list[PartResult]) -> Iterator[_Part]:
    """Yield the parts of an entry on a data set; grid, filled before they run, has the values that samplers look up."""
    if table.protocol == "progressive":
        orders = random_orders(dataset.queries, table.permutations, table.seed).orders
        for k, order in enumerate(orders):
            call = (one_order, entry, dataset.queries, order, table.seed + k)
            yield _Part(table, entry, dataset, f"order {k + 1} of {len(orders)}", call)
    elif table.protocol == "daily":
        for seed in range(table.seed, table.seed + table.runs):
            yield _Part(table, entry, dataset, f"run {seed + 1}", (protocols.daily, entry, seed))
    elif table.protocol == "tuner":
        for start in range(0, table.runs, RUNS_A_TASK):
            seeds = range(start, min(start + RUNS_A_TASK, table.runs))
            name = f"runs {seeds[0] + 1} to {seeds[-1] + 1}"
            yield _Part(table, entry, dataset, name, (sampler_runs, entry, grid, seeds))
    else:
        yield from _folds(table, entry, dataset, every_point if table.protocol == "every-point" else one_fold)


def _folds(
    table: PublishedTable,
    entry: PublishedSystem,
    dataset: Dataset,
    protocol: Callable[[PublishedSystem, QuerySplit, int], PartResult],
) -> Iterator[_Part]:
    splits = [split for split in dataset.splits if not table.folds or split.name in table.folds]
    if not splits:
        raise DataError(
            f"{dataset.name} has no {' or '.join(table.folds)}, on which '{table.title}' was measured. "
            "Give the folder that holds all folds."
        )
    for split in splits:
        for k in range(entry.orders):
            name = split.name if entry.orders == 1 else f"{split.name}, order {k + 1} of {entry.orders}"
            yield _Part(table, entry, dataset, name, (protocol, entry, split, table.seed + k))


def _run_all(executor: Executor, parts: Sequence[_Part], note: Callable[[_Part], None]) -> None:
    """Run the parts, and call note as they end. Few of them wait at a time, which bounds the memory."""
    waiting, running = list(reversed(parts)), dict[Future[PartResult], _Part]()
    while waiting or running:
        while waiting and len(running) < 2 * executor.jobs - 1:
            part = waiting.pop()
            running[executor.submit(run_part, *part.call)] = part
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            part = running.pop(future)
            try:
                part.result = future.result()
            except BrokenExecutor:
                raise StudyError(
                    "a worker process died, most likely out of memory. Run again with fewer processes (--jobs 1)."
                ) from None
            note(part)


def _reproduced(table: PublishedTable, names: Sequence[str], parts: Sequence[_Part]) -> Reproduced:
    rows: list[FigureRow] = []
    remarks = [f"{entry.name}: {entry.note}" for entry in table.entries if entry.note]
    results: dict[tuple[str, str], tuple[PartResult, ...]] = {}
    for name in names:
        for entry in table.entries:
            these = [part for part in parts if part.entry is entry and part.dataset.name == name]
            results[entry.name, name] = tuple(part.result for part in these)
            rows += _rows(table, entry, name, results[entry.name, name])
            remarks += _remarks(entry, name, these)
    if table.is_ranked:
        rows += _rank_rows(table, rows, names)
    return Reproduced(table, tuple(rows), tuple(remarks), tuple(_verdicts(table, rows, results, names)), results)


def _verdicts(
    table: PublishedTable,
    rows: Sequence[FigureRow],
    results: Mapping[tuple[str, str], tuple[PartResult, ...]],
    names: Sequence[str],
) -> Iterator[ClaimVerdict]:
    source = table.title.split(":")[0]
    ours = {(row.dataset, row.algorithm, row.metric): row.ours for row in rows}
    by_part = {} if table.protocol == "every-point" else _by_part(table.entries, results)
    for claim in table.claims:
        yield verdict_on(claim.source or source, claim, ours, names, by_part)
    failed = any(part.error for parts in results.values() for part in parts)
    if table.protocol == "tuner" and not failed:
        yield from tuner_runs.verdicts(source, table.entries, results, names)


def _by_part(entries: Sequence[PublishedSystem], results: Mapping[tuple[str, str], tuple[PartResult, ...]]) -> ByPart:
    """Return the figures by part: by fold, the mean over the orders of its queries, or by order."""
    known = {entry.name: entry for entry in entries}
    return {
        (dataset, name, m.label): np.array([part.values[""][m.label] for part in parts])
        .reshape(-1, known[name].orders)
        .mean(axis=1)
        for (name, dataset), parts in results.items()
        if not any(part.error for part in parts)
        for m in known[name].measures
    }


def _rows(
    table: PublishedTable, entry: PublishedSystem, dataset: str, parts: Sequence[PartResult]
) -> Iterator[FigureRow]:
    """Yield the mean over parts of each measure at each point; no figure where a part failed."""
    failed = any(part.error for part in parts)
    if table.protocol == "tuner":
        for label, value in ({} if failed else tuner_runs.figures(parts, entry.choose)).items():
            yield FigureRow(table.title, dataset, entry.name, label, None, value, entry.choose)
        return
    printed = entry.published.get(dataset, {})
    points = [named(point) for point in entry.points] if table.protocol == "every-point" else [""]
    for point in points:
        for m in entry.measures:
            ours = None if failed else float(np.mean([part.values[point][m.label] for part in parts]))
            name = f"{entry.name}, {point}" if point else entry.name
            published = printed.get(m.label)
            tolerance = None if published is None or table.tolerance is None else table.tolerance * m.scale
            yield FigureRow(table.title, dataset, name, m.label, published, ours, _convention(m), tolerance)


def _convention(measure: PublishedMeasure) -> str:
    return measure.spelling if measure.over == "queries" else f"{measure.spelling}, mean over {measure.over}"


def _remarks(entry: PublishedSystem, dataset: str, parts: Sequence[_Part]) -> Iterator[str]:
    for part in parts:
        if part.result.error:
            yield f"{entry.name} could not run on {dataset} ({part.name}): {part.result.error}"
            return
    messages = [message for part in parts for message in part.result.warnings]
    if messages:
        yield f"{entry.name} on {dataset}: {len(messages)} warnings, the first: {messages[0]}"


def _rank_rows(table: PublishedTable, rows: Sequence[FigureRow], names: Sequence[str]) -> Iterator[FigureRow]:
    """Yield the mean rank of each entry over the data sets: 1 is the highest figure, equal ones share their ranks."""
    ours = {(row.dataset, row.algorithm, row.metric): row.ours for row in rows}
    means: dict[str, Floats] = {}
    for m in table.entries[0].measures:
        figures = [[ours.get((name, entry.name, m.label)) for entry in table.entries] for name in names]
        ranks = [rankdata(-np.array(line)) for line in figures if None not in line]
        means[m.label] = np.mean(ranks or [np.full(len(table.entries), np.nan)], axis=0)
    for e, entry in enumerate(table.entries):
        for m in entry.measures:
            label, mean = f"rank by {m.label}", float(means[m.label][e])
            rank = None if np.isnan(mean) else mean
            yield FigureRow(table.title, MEAN_RANK, entry.name, label, entry.ranks.get(m.label), rank, _convention(m))
