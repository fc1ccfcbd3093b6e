"""What many configurations of rankers reach on many tasks: python -m ranktune.studies.laboratory --help."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import typer

from ranktune.solvers.core.errors import ParameterError
from ranktune.solvers.data.blocks import QuerySplit
from ranktune.solvers.names import COMPOSED, STANDARD
from ranktune.studies.benchmarks.cases import seeds_of
from ranktune.studies.benchmarks.results import Benchmark, add_commands
from ranktune.studies.benchmarks.tables import BenchmarkTable, Row
from ranktune.studies.benchmarks.task_table import pack
from ranktune.studies.benchmarks.tasks import DRAWN, task_of
from ranktune.studies.benchmarks.turnkey.command import cases_of, read_options
from ranktune.studies.benchmarks.turnkey.peers import with_validation
from ranktune.studies.laboratory.portfolios import error_of, portfolio_of, scored_on, shown
from ranktune.studies.laboratory.rows import SHARES, Wanted, configurations, make_table, read_rows
from ranktune.studies.laboratory.simulating import (
    CONFIRM,
    LEARN,
    SimulationPlan,
    compared,
    figures,
    is_confirming,
    known_tasks,
    of_tasks,
    simulated,
)
from ranktune.studies.laboratory.suggestions import DecisionRules
from ranktune.studies.laboratory.thresholds import varied

app = typer.Typer(add_completion=False, no_args_is_help=True, help=__doc__)
DEFAULT_SECONDS = (10.0, 60.0)
PROGRESS = partial(typer.echo, err=True)


def table(
    keep: Path,
    data: list[Path] | None = None,
    qid: str | None = None,
    drop: list[str] | None = None,
    seeds: str = "0:72",
    draws: int = 8,
    shares: int = 14,
    seconds: float = 10_800.0,
    jobs: int = 1,
) -> list[BenchmarkTable]:
    """Measure what configurations reach on tasks, by checkpoints, at shares of the training queries.

    Parameters
    ----------
    keep : Path
        The file of the rows. What is in it is not repeated.
    data : list of Path, positional
        LETOR folders (Fold1 ... each with train, vali and test.txt); folders with train, vali and test files; single
        files, whose queries are dealt 3:1:1; or api-search, the example data.
    qid : str
        The column of query ids of a table.
    drop : list of str
        A column that is left out of a table. Repeatable.
    seeds : str
        Seeds of drawn tasks, first:last, the last without.
    draws : int, at least 0
        Configurations drawn from the space of each solver.
    shares : int, at least 0
        So many of the first configurations are also fitted to parts of the queries.
    seconds : float
        No row begins after so many seconds.
    jobs : int
        Processes.
    """
    tasks = {f"{DRAWN}-{seed}": partial(_drawn, seed) for seed in seeds_of(seeds)}
    for case in cases_of(data, None, **read_options(qid, drop)) if data else ():
        for split in case.splits:
            tasks[f"{case.name} {split.name}"] = partial(_usable, split, f"{case.name} {split.name}")
    every = configurations(STANDARD, draws)
    wanted: list[Wanted] = [(params, SHARES[0]) for params in every]
    wanted += [(params, share) for params in every[:shares] for share in SHARES[1:]]
    make_table(tasks, wanted, keep, seconds, jobs, typer.echo)
    return []


def packed(
    keep: Path,
    output: Path,
) -> list[BenchmarkTable]:
    """Write the rows as one small file, which the other commands read too, without the values of test queries.

    Parameters
    ----------
    keep : Path
        The file of the rows. What is in it is not repeated.
    output : Path, positional
        The file, .npz.
    """
    pack(read_rows(keep), output)
    return []


def portfolio(
    keep: Path,
    seeds: str = "0:72",
) -> list[BenchmarkTable]:
    """Choose the configurations of boosting that a study tries first, by what they add to its blend for their time.

    Parameters
    ----------
    keep : Path
        The folder of the scores. What is in it is not repeated.
    seeds : str
        Seeds of drawn tasks, first:last, the last without.
    """
    numbers = {f"{DRAWN}-{seed}": seed for seed in seeds_of(seeds)}
    tasks = {name: scored_on(_drawn(seed), STANDARD, keep / f"{name}.npz") for name, seed in numbers.items()}
    learn, confirm = ([tasks[task] for task in half] for half in _halves(list(tasks), keep))
    rows: list[Row] = [
        {
            "configuration": shown(json.loads(member.name)),
            "learn": f"{member.learn.mean():+.4f}",
            "error": f"{error_of(member.learn):.4f}",
            "confirm": f"{member.confirm.mean():+.4f}",
            "its error": f"{error_of(member.confirm):.4f}",
            "time": f"{member.seconds:.2f}",
        }
        for member in portfolio_of(learn, confirm)
    ]
    note = "What the blend loses on test queries without it. The time of a trial and a refit; the mean is 1."
    return [BenchmarkTable("what is tried first of boosting", rows, note)]


def simulate(
    keep: Path,
    seconds: list[float] | None = None,
    seeds: str = "0:1",
    half: str = CONFIRM,
    rules: str = "sampler=thompson",
    composition: bool = True,
) -> list[BenchmarkTable]:
    """Simulate studies on the table, and show what they deliver, and the regret of those of all solvers by task.

    Parameters
    ----------
    keep : Path
        The file of the rows. What is in it is not repeated.
    seconds : list of float, at least 1
        Seconds of a study. Repeatable. (default: 10, 60)
    seeds : str
        Seeds of the studies, first:last, the last without.
    half : str
        The tasks: learn, or confirm.
    rules : str
        Such as choice.ahead=0.5,sampler=random.
    composition : bool
        Also simulate studies of the solver Ranker alone.
    """
    plan = SimulationPlan(seconds or DEFAULT_SECONDS, seeds_of(seeds))
    kinds = {"all": STANDARD} | ({COMPOSED: (COMPOSED,)} if composition else {})
    runs = {
        name: simulated(known_tasks(keep, half, solvers), plan, [DecisionRules.parse(rules)], PROGRESS)[0]
        for name, solvers in kinds.items()
    }
    by_kind = {(name, of): [one for one in runs[name] if one.budget == of] for name in runs for of in plan.seconds}
    return [*figures(by_kind, half), of_tasks(runs["all"])]


def compare(
    rules: list[str],
    keep: Path,
    seconds: list[float] | None = None,
    seeds: str = "0:1",
    half: str = CONFIRM,
) -> list[BenchmarkTable]:
    """Simulate the same studies by several rules, and compare what they deliver with the first of them, in pairs.

    Parameters
    ----------
    rules : list of str, positional
        Constants of the policy, such as choice.ahead=1 choice.ahead=0,search.startup_apart=3: with the first.
    keep : Path
        The file of the rows. What is in it is not repeated.
    seconds : list of float, at least 1
        Seconds of a study. Repeatable. (default: 10, 60)
    seeds : str
        Seeds of the studies, first:last, the last without.
    half : str
        The tasks: learn, or confirm.
    """
    tasks, parsed = known_tasks(keep, half, STANDARD), [DecisionRules.parse(each) for each in rules]
    runs = simulated(tasks, SimulationPlan(seconds or DEFAULT_SECONDS, seeds_of(seeds)), parsed, PROGRESS)
    return [compared(rules, runs, half)]


def thresholds(
    keep: Path,
    seconds: list[float] | None = None,
    seeds: str = "0:1",
) -> list[BenchmarkTable]:
    """Simulate studies of all tasks with half and with twice each threshold, and show which of them matter.

    Parameters
    ----------
    keep : Path
        The file of the rows. What is in it is not repeated.
    seconds : list of float, at least 1
        Seconds of a study. Repeatable. (default: 10, 60)
    seeds : str
        Seeds of the studies, first:last, the last without.
    """
    tasks = [task for half in (LEARN, CONFIRM) for task in known_tasks(keep, half, STANDARD)]
    return [varied(tasks, SimulationPlan(seconds or DEFAULT_SECONDS, seeds_of(seeds)), PROGRESS)]


def _halves(tasks: Sequence[str], keep: Path) -> tuple[list[str], list[str]]:
    """Return the drawn tasks to learn from, and those that confirm, with all others.

    Raises ParameterError where there are none of one kind in the file of rows.
    """
    learn, others = ([task for task in tasks if is_confirming(task) == half] for half in (False, True))
    if not (learn and others):
        raise ParameterError(
            f"{keep} has {len(learn)} tasks to learn from and {len(others)} that confirm, of which both are needed. "
            "Make them with the command table, such as --seeds 0:72."
        )
    return learn, others


def _drawn(seed: int) -> QuerySplit:
    return _usable(task_of(f"{DRAWN}-{seed}"), f"{DRAWN}-{seed}")


def _usable(split: QuerySplit, name: str) -> QuerySplit:
    return replace(with_validation(split.allowing_missing()), name=name)


COMMANDS: Mapping[str, Benchmark] = {
    "table": table, "pack": packed, "portfolio": portfolio, "simulate": simulate, "compare": compare,
    "thresholds": thresholds,
}  # fmt: skip
add_commands(app, "ranktune.studies.laboratory", COMMANDS)

if __name__ == "__main__":
    app(sys.argv[1:], obj=sys.argv[1:])
