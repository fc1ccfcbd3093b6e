"""RankTune against other whole tools at equal time, compared on test queries.

Each tool has a new process on each fold, and a number of seconds for all its tuning. Run this on an idle machine, with
one run before that does not count: RankTune compiles its kernels at first use and caches them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Unpack

import numpy as np
import typer

from ranktune.solvers.core.errors import ParameterError, nearest
from ranktune.solvers.data.readers.parsing.options import ReadOptions
from ranktune.studies.benchmarks.tables import BenchmarkTable
from ranktune.studies.benchmarks.tasks import KINDS, task_of
from ranktune.studies.benchmarks.turnkey.cells import CellPlan, failed, of_budget, planned, run_all
from ranktune.studies.benchmarks.turnkey.data import Case, load_cases
from ranktune.studies.benchmarks.turnkey.peers import OURS, PEERS, SINGLE_CALLS, check_installed
from ranktune.studies.benchmarks.turnkey.results import tables

SINGLE = "single"
"""Stands for RankTune and every single call of a library."""


def main(
    data: list[Path] | None = None,
    task: list[str] | None = None,
    seconds: list[float] | None = None,
    threads: int = 1,
    rival: list[str] | None = None,
    seed: list[int] | None = None,
    qid: str | None = None,
    drop: list[str] | None = None,
    keep: Path | None = None,
) -> list[BenchmarkTable]:
    """Compare whole tools at equal time by their models' values on test queries.

    Parameters
    ----------
    data : list of Path, positional
        LETOR folders (Fold1 ... each with train, vali and test.txt); folders with train, vali and test files; single
        files, whose queries are dealt 3:1:1; or api-search, the example data.
    task : list of str
        A generated task: kind and seed, such as deep-0; all-0: one of each kind; all-0:12: of twelve kinds,
        which the seed draws. Repeatable. Kinds: {KINDS}.
    seconds : list of float
        Wall time of a tool on a fold. Repeatable: a report for each. (default: 60)
    threads : int
        Threads of a tool; of RankTune, workers of one thread.
    rival : list of str
        Of {PEERS}; single: ours and all single calls. Repeatable. (default: all)
    seed : list of int
        Given to every rival. Repeatable: means over seeds are compared.
    qid : str
        The column of query ids of a table.
    drop : list of str
        A column that is left out of a table. Repeatable.
    keep : Path
        Append results to this file (JSON lines), and do not repeat those in it. Use another file after a change
        of the code that leaves the version as it is.
    """
    named = [each for name in rival or PEERS for each in ([OURS, *SINGLE_CALLS] if name == SINGLE else [name])]
    rivals, seeds = list(dict.fromkeys(named)), list(dict.fromkeys(seed or [0]))
    budgets = list(dict.fromkeys(seconds or [60.0]))
    for name in rivals:
        if name not in PEERS:
            raise ParameterError(f"there is no rival '{name}'. {nearest(name, PEERS)}")
        check_installed(name)
    cases = cases_of(data, task, **read_options(qid, drop))
    cells = list(planned(cases, CellPlan(rivals, budgets, seeds, threads)))
    results, failures = run_all(cells, keep, lambda line: typer.echo(line, err=True))
    printed: list[BenchmarkTable] = []
    for budget in budgets:
        how = _how(budget, threads, seeds)
        printed += tables(of_budget(results, budget), cases, rivals, budget, how)
    return [*printed, *failed(failures, len(cells))]


def read_options(qid: str | None, drop: Sequence[str] | None) -> ReadOptions:
    """Return the options of reading tables that were given."""
    options: ReadOptions = {} if qid is None else {"qid": qid}
    return options | {"drop": drop} if drop else options


def cases_of(
    data: Sequence[Path] | None,
    tasks: Sequence[str] | None,
    **options: Unpack[ReadOptions],
) -> list[Case]:
    """Return the cases of paths and of names of generated tasks. Raises ParameterError where there are none."""
    names = [each for name in tasks or () for each in (_kinds(name[4:]) if name.startswith("all-") else [name])]
    cases = [*load_cases(data or [], **options), *(Case(name, (task_of(name),)) for name in names)]
    if not cases:
        raise ParameterError("there is nothing to compare on: give data, or --task, such as --task deep-0.")
    return cases


def _kinds(text: str) -> list[str]:
    """Return a task of each kind by their seed, or of so many kinds: SEED or SEED:COUNT."""
    seed, _, count = text.partition(":")
    if not (seed.isdecimal() and (count or "1").isdecimal()):
        raise ParameterError(f"'all-{text}' are no tasks: give a seed, and how many kinds, such as all-0:12.")
    drawn = np.random.default_rng(int(seed)).permutation(sorted(KINDS))[: int(count)] if count else KINDS
    return [f"{kind}-{seed}" for kind in sorted(drawn)]


def _how(seconds: float, threads: int, seeds: Sequence[int]) -> str:
    """Return the budget and the seeds in words."""
    several = f", {threads} threads" if threads > 1 else ""
    return f"{seconds:g} s{several}, seed {', '.join(map(str, seeds))}"
