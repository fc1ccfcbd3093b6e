"""Reproducing a paper's tables: every system on every data set, the printed figure beside ours."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

import numpy as np
from scipy.stats import rankdata

from ranktune.solvers.core.arrays import Floats, Json
from ranktune.solvers.core.errors import DataError, ParameterError, StudyError, nearest
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.readers.letor import read_letor
from ranktune.solvers.data.split import Split
from ranktune.studies.papers import tuner_runs
from ranktune.studies.papers.claims import Verdict, judged
from ranktune.studies.papers.protocols import PartResult, all_queries, every_point, named, one_fold, one_order, run_part
from ranktune.studies.papers.published import MEAN_RANK, Entry, Measure, Paper, Table, datasets, recognised
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
    splits: tuple[Split, ...]

    @cached_property
    def queries(self) -> Queries:
        """All queries of the data set."""
        return all_queries(self.splits[0])


@dataclass(frozen=True)
class Row:
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
    """A table with its figures, remarks about single systems, and what its claims are worth.

    results holds the parts (folds, orders, runs) by the names of entry and data set.
    """

    table: Table
    rows: tuple[Row, ...]
    remarks: tuple[str, ...]
    verdicts: tuple[Verdict, ...] = ()
    results: Mapping[tuple[str, str], tuple[PartResult, ...]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class _Task:
    """One part of one entry on one data set: a fold, an order, or some runs of a sampler."""

    table: int
    entry: int
    dataset: int
    part: str
    call: tuple[object, ...]

    @property
    def is_lattice(self) -> bool:
        """Whether the result is no figure, but what the runs of samplers look values up in."""
        return self.call[0] is lattice_values


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
    found = [load_dataset(path, name) for path in paths]
    names = [dataset.name for dataset in found]
    for k, one in enumerate(names):
        if one in names[:k]:
            raise ParameterError(f"{paths[names.index(one)]} and {paths[k]} both hold {one}: give each data set once.")
    return found


def reproduce(
    paper: Paper, found: Sequence[Dataset], *, jobs: int = 1, on_part: OnPart | None = None
) -> list[Reproduced]:
    """Return every table of paper with our figures on the data sets found, in the order of declaration.

    The figures do not depend on jobs, the number of processes. A system that cannot run has no figures, and a remark
    with the reason.
    """
    tasks = [task for number in range(len(paper.tables)) for task in _tasks(paper, number, found)]
    later = sum(len(_blocks(t.runs)) * len(t.entries) * len(found) for t in paper.tables if t.protocol == "tuner")
    done = 0

    def note(task: _Task, result: PartResult) -> None:
        nonlocal done
        done += 1
        if on_part is not None:
            name = f"{found[task.dataset].name} {paper.tables[task.table].entries[task.entry].name}"
            on_part(done, len(tasks) + later, f"{name}, {task.part}{_message(result)}")

    with make_executor(jobs) as executor:
        results = _results(executor, tasks, note)
        tuned = [(table, k) for k, table in enumerate(paper.tables) if table.protocol == "tuner"]
        searches = [task for table, k in tuned for task in _searches(table, k, results, len(found))]
        results |= _results(executor, searches, note)
    by_entry: dict[tuple[int, int, int], dict[str, PartResult]] = {}
    for task, result in results.items():
        if not task.is_lattice:
            by_entry.setdefault((task.table, task.entry, task.dataset), {})[task.part] = result
    return [_reproduced(paper, number, found, by_entry) for number in range(len(paper.tables))]


def _tasks(paper: Paper, number: int, found: Sequence[Dataset]) -> Iterator[_Task]:
    table = paper.tables[number]
    for d, dataset in enumerate(found):
        for e, entry in enumerate(table.entries[:1] if table.protocol == "tuner" else table.entries):
            for part, call in _parts(table, entry, dataset):
                yield _Task(number, e, d, part, call)


def _searches(table: Table, number: int, results: Mapping[_Task, PartResult], n_datasets: int) -> Iterator[_Task]:
    """Yield the runs of every sampler, which look up the values of the grid."""
    for d in range(n_datasets):
        lattices = [
            result for task, result in results.items() if task.is_lattice and (task.table, task.dataset) == (number, d)
        ]
        for e, entry in enumerate(table.entries):
            for seeds in _blocks(table.runs):
                call = (sampler_runs, entry, lattices, seeds)
                yield _Task(number, e, d, f"runs {seeds[0] + 1} to {seeds[-1] + 1}", call)


def _blocks(runs: int) -> list[range]:
    """Return the seeds of all runs in blocks that take about a second."""
    return [range(start, min(start + RUNS_A_TASK, runs)) for start in range(0, runs, RUNS_A_TASK)]


def _parts(table: Table, entry: Entry, dataset: Dataset) -> Iterator[tuple[str, tuple[object, ...]]]:
    if table.protocol == "progressive":
        orders = random_orders(dataset.queries, table.permutations, table.seed).orders
        for k, order in enumerate(orders):
            yield f"order {k + 1} of {len(orders)}", (one_order, entry, dataset.queries, order, table.seed + k)
        return
    protocol = {"every-point": every_point, "tuner": lattice_values}.get(table.protocol, one_fold)
    splits = [split for split in dataset.splits if not table.folds or split.name in table.folds]
    if not splits:
        raise DataError(
            f"{dataset.name} has no {' or '.join(table.folds)}, on which '{table.title}' was measured. "
            "Give the folder that holds all folds."
        )
    for split in splits:
        for k in range(entry.orders):
            name = split.name if entry.orders == 1 else f"{split.name}, order {k + 1} of {entry.orders}"
            yield name, (protocol, entry, split, table.seed + k)


def _results(
    executor: Executor, tasks: Sequence[_Task], note: Callable[[_Task, PartResult], None]
) -> dict[_Task, PartResult]:
    """Return the result of each task, in the order of tasks, so that sums do not depend on timing.

    note is called as tasks end. Few tasks wait at a time, which bounds the memory.
    """
    found: dict[_Task, PartResult] = {}
    running: dict[Future[PartResult], _Task] = {}
    for task in tasks:
        running[executor.submit(run_part, *task.call)] = task
        while len(running) >= 2 * executor.jobs - 1:
            _collect(running, found, note)
    while running:
        _collect(running, found, note)
    return {task: found[task] for task in tasks}


def _collect(
    running: dict[Future[PartResult], _Task],
    found: dict[_Task, PartResult],
    note: Callable[[_Task, PartResult], None],
) -> None:
    """Wait for the next results and move them from running to found."""
    done, _ = wait(running, return_when=FIRST_COMPLETED)
    for future in done:
        task = running.pop(future)
        try:
            found[task] = future.result()
        except BrokenExecutor:
            raise StudyError(
                "a worker process died, most likely out of memory. Run again with fewer processes (--jobs 1)."
            ) from None
        note(task, found[task])


def _message(result: PartResult) -> str:
    if result.error:
        return f": not run, {result.error}"
    points = {named(point) for point in result.chosen.values()}
    return f": {points.pop()}" if len(points) == 1 and points != {""} else ""


def _reproduced(
    paper: Paper, number: int, found: Sequence[Dataset], results: Mapping[tuple[int, int, int], dict[str, PartResult]]
) -> Reproduced:
    table = paper.tables[number]
    rows: list[Row] = []
    remarks: list[str] = [f"{entry.name}: {entry.note}" for entry in table.entries if entry.note]
    names = [dataset.name for dataset in found]
    for d, name in enumerate(names):
        for e, entry in enumerate(table.entries):
            parts = results[number, e, d]
            rows += _rows(table, entry, name, list(parts.values()))
            remarks += _remarks(entry, name, parts)
    if table.is_ranked:
        rows += _rank_rows(table, rows, names)
    kept = {
        (entry.name, name): tuple(results[number, e, d].values())
        for d, name in enumerate(names)
        for e, entry in enumerate(table.entries)
    }
    return Reproduced(table, tuple(rows), tuple(remarks), tuple(_verdicts(table, rows, kept, names)), kept)


def _verdicts(
    table: Table, rows: Sequence[Row], results: Mapping[tuple[str, str], tuple[PartResult, ...]], names: Sequence[str]
) -> Iterator[Verdict]:
    source = table.title.split(":")[0]
    ours = {(row.dataset, row.algorithm, row.metric): row.ours for row in rows}
    for claim in table.claims:
        yield judged(claim.source or source, claim, ours, names)
    failed = any(part.error for parts in results.values() for part in parts)
    if table.protocol == "tuner" and not failed:
        yield from tuner_runs.verdicts(source, table.entries, results, names)


def _rows(table: Table, entry: Entry, dataset: str, parts: Sequence[PartResult]) -> Iterator[Row]:
    """Yield the mean over parts of each measure at each point; no figure where a part failed."""
    failed = any(part.error for part in parts)
    if table.protocol == "tuner":
        for label, value in ({} if failed else tuner_runs.figures(parts, entry.choose)).items():
            yield Row(table.title, dataset, entry.name, label, None, value, entry.choose)
        return
    printed = entry.published.get(dataset, {})
    points = [named(point) for point in entry.points] if table.protocol == "every-point" else [""]
    for point in points:
        for m in entry.measures:
            ours = None if failed else float(np.mean([part.values[point][m.label] for part in parts]))
            name = f"{entry.name}, {point}" if point else entry.name
            published = printed.get(m.label)
            tolerance = None if published is None or table.tolerance is None else table.tolerance * m.scale
            yield Row(table.title, dataset, name, m.label, published, ours, _convention(m), tolerance)


def _convention(measure: Measure) -> str:
    return measure.spelling if measure.over == "queries" else f"{measure.spelling}, mean over {measure.over}"


def _remarks(entry: Entry, dataset: str, parts: Mapping[str, PartResult]) -> Iterator[str]:
    for name, part in parts.items():
        if part.error:
            yield f"{entry.name} could not run on {dataset} ({name}): {part.error}"
            return
    messages = [message for part in parts.values() for message in part.warnings]
    if messages:
        yield f"{entry.name} on {dataset}: {len(messages)} warnings, the first: {messages[0]}"


def _rank_rows(table: Table, rows: Sequence[Row], names: Sequence[str]) -> Iterator[Row]:
    """Yield the mean rank of each entry over the data sets: 1 is the highest figure, equal ones share their ranks."""
    ours = {(row.dataset, row.algorithm, row.metric): row.ours for row in rows}
    means: dict[str, Floats | None] = {}
    for m in table.entries[0].measures:
        figures = [[ours.get((name, entry.name, m.label)) for entry in table.entries] for name in names]
        complete = [line for line in figures if None not in line]
        ranks = [rankdata(-np.array(line)) for line in complete]
        means[m.label] = np.mean(ranks, axis=0) if ranks else None
    for e, entry in enumerate(table.entries):
        for m in entry.measures:
            ranks_of_all = means[m.label]
            mean = None if ranks_of_all is None else float(ranks_of_all[e])
            label = f"rank by {m.label}"
            yield Row(table.title, MEAN_RANK, entry.name, label, entry.ranks.get(m.label), mean, _convention(m))
