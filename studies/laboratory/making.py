"""Making the table: rows are measured in turns over all tasks, so that it is balanced whenever it is stopped."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from joblib import Parallel, delayed

from ranktune.solvers.core.arrays import Json
from ranktune.solvers.data.split import QuerySplit
from ranktune.studies.benchmarks.results import append_result, stored_results
from ranktune.studies.benchmarks.task_table.packing import unpack
from ranktune.studies.benchmarks.task_table.rows import ConfigurationRow
from ranktune.studies.laboratory.configurations import Configuration, name_of
from ranktune.studies.laboratory.rows import row_of

AT_A_TIME = 12
"""Configurations of a task that a worker measures before the next task has its turn."""

Load = Callable[[], QuerySplit]
Wanted = tuple[Configuration, float]


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
    known, begun = {row.key for row in read_rows(path)}, time.monotonic()
    turns = list(_turns(tasks, wanted, known))
    left = sum(len(turn) for _, turn in turns)
    on_line(f"{len(known)} rows are known, {left} are to be measured")
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
    tasks: Mapping[str, Load], wanted: Sequence[Wanted], known: set[tuple[str, str, float]]
) -> Iterator[tuple[str, list[Wanted]]]:
    for first in range(0, len(wanted), AT_A_TIME):
        for name in tasks:
            turn = [
                each for each in wanted[first : first + AT_A_TIME] if (name, name_of(each[0]), each[1]) not in known
            ]
            if turn:
                yield name, turn


def _measure(load: Load, turn: Sequence[Wanted]) -> list[Json]:
    split = load()
    return [row_of(split, params, share).as_json() for params, share in turn]
