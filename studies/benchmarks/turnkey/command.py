"""RankTune against other whole tools at equal time, compared on test queries.

Each tool has a new process on each fold, and a number of seconds for all its tuning. Run this on an idle machine, with
one run before that does not count: RankTune compiles its kernels at first use and caches them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, TypeAlias, Unpack

import typer

from ranktune.solvers.core.errors import ParameterError, nearest
from ranktune.solvers.data.readers.parsing.options import ReadOptions
from ranktune.studies.benchmarks.tables import Table
from ranktune.studies.benchmarks.tasks import KINDS, task_of
from ranktune.studies.benchmarks.turnkey.cells import Plan, failed, of_budget, planned, run_all
from ranktune.studies.benchmarks.turnkey.data import Case, load_cases
from ranktune.studies.benchmarks.turnkey.peers import PEERS, check_installed
from ranktune.studies.benchmarks.turnkey.tables import tables

Data: TypeAlias = Annotated[
    list[Path] | None,
    typer.Argument(
        help="LETOR folders (Fold1 ... each with train, vali and test.txt); folders with train, vali and test "
        "files; prefixes DIR/n of n.train.txt, n.vali.txt and n.test.txt; single files, whose queries are dealt "
        "3:1:1; or api-search, the example data."
    ),
]
Tasks: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        help=f"A generated task: kind and seed, such as deep-0; all-0: one of each kind. Repeatable. "
        f"Kinds: {', '.join(KINDS)}."
    ),
]
Folds: TypeAlias = Annotated[list[str] | None, typer.Option(help="A fold, such as Fold1. Repeatable. (default: all)")]
KeptIn: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--keep",
        help="Append results to this file (JSON lines), and do not repeat those in it. Use another file after a "
        "change of the code that leaves the version as it is.",
    ),
]

Qid: TypeAlias = Annotated[str | None, typer.Option(help="The column of query ids of a table.")]
Drop: TypeAlias = Annotated[list[str] | None, typer.Option(help="A column that is left out of a table. Repeatable.")]


def main(
    data: Data = None,
    task: Tasks = None,
    seconds: Annotated[
        list[float] | None,
        typer.Option(help="Wall time of a tool on a fold. Repeatable: a report for each. (default: 60)", min=0.1),
    ] = None,
    threads: Annotated[int, typer.Option(help="Threads of a tool; of RankTune, workers of one thread.", min=1)] = 1,
    rival: Annotated[list[str] | None, typer.Option(help=f"Of {', '.join(PEERS)}. Repeatable. (default: all)")] = None,
    fold: Folds = None,
    seed: Annotated[
        list[int] | None, typer.Option(help="Given to every rival. Repeatable: means over seeds are compared.", min=0)
    ] = None,
    split_seed: Annotated[
        int | None,
        typer.Option(
            help="Deal all queries at random by this seed into five new folds 3:1:1, to check decisions that were made "
            "on the published folds; of a single file, into one. (default: parts as given, 0 for a single file)",
            min=0,
        ),
    ] = None,
    qid: Qid = None,
    drop: Drop = None,
    keep_in: KeptIn = None,
) -> list[Table]:
    """Compare whole tools at equal time by their models' values on test queries."""
    rivals, seeds = list(dict.fromkeys(rival or PEERS)), list(dict.fromkeys(seed or [0]))
    budgets = list(dict.fromkeys(seconds or [60.0]))
    for name in rivals:
        if name not in PEERS:
            raise ParameterError(f"there is no rival '{name}'. {nearest(name, PEERS)}")
        check_installed(name)
    cases = cases_of(data, task, split_seed, **read_options(qid, drop))
    cells = list(planned(cases, Plan(rivals, budgets, seeds, threads, fold or ())))
    results, failures = run_all(cells, keep_in, lambda line: typer.echo(line, err=True))
    printed: list[Table] = []
    for budget in budgets:
        how = _how(budget, threads, seeds, cases)
        printed += tables(of_budget(results, budget), cases, rivals, budget, how)
    return [*printed, *failed(failures, len(cells))]


def read_options(qid: str | None, drop: Sequence[str] | None) -> ReadOptions:
    """Return the options of reading tables that were given."""
    options: ReadOptions = {} if qid is None else {"qid": qid}
    return options | {"drop": drop} if drop else options


def cases_of(
    data: Sequence[Path] | None,
    tasks: Sequence[str] | None,
    split_seed: int | None = None,
    **options: Unpack[ReadOptions],
) -> list[Case]:
    """Return the cases of paths and of names of generated tasks. Raises ParameterError where there are none."""
    names = [
        each
        for name in tasks or ()
        for each in ([f"{kind}-{name[4:]}" for kind in KINDS] if name.startswith("all-") else [name])
    ]
    cases = [*load_cases(data or [], split_seed, **options), *(Case(name, (task_of(name),)) for name in names)]
    if not cases:
        raise ParameterError("there is nothing to compare on: give data, or --task, such as --task deep-0.")
    return cases


def _how(seconds: float, threads: int, seeds: Sequence[int], cases: Sequence[Case]) -> str:
    """Return the budget, the seeds and the partition in words."""
    several = f", {threads} threads" if threads > 1 else ""
    dealt = {case.split_seed for case in cases}
    partition = ", ".join("parts as given" if seed is None else f"dealt by seed {seed}" for seed in dealt)
    return f"{seconds:g} s{several}, seed {', '.join(map(str, seeds))}, {partition}"
