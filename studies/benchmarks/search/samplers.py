"""Samplers compared: the regret they reach on problems of many classes.

Regret is the distance of a run's pick, the best value observed so far, from the problem's minimum, without noise. With
two objectives it is the area that the front lacks. Concurrent trials take simulated times, lognormal with a spread of
0.5, and Optuna receives their values in the order in which they end. Runs are stored in a file, so that a comparison
can be made in parts.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from itertools import product
from pathlib import Path

import optuna

from ranktune.solvers.core.errors import ParameterError, nearest
from ranktune.solvers.core.files.private import private_folder
from ranktune.studies.benchmarks.cases import seeds_of
from ranktune.studies.benchmarks.results import add_missing, stored_results
from ranktune.studies.benchmarks.search import regret
from ranktune.studies.benchmarks.search.problems import KINDS, TestProblem, known_problems
from ranktune.studies.benchmarks.search.ranks import duel, rank_tables
from ranktune.studies.benchmarks.search.regret import ProblemSetting, SearchRun, Selection
from ranktune.studies.benchmarks.search.runs import NAMES, NEEDS, SINGLE, absent, lacks, run
from ranktune.studies.benchmarks.search.suite import SUITE
from ranktune.studies.benchmarks.search.tabulated import tabulated
from ranktune.studies.benchmarks.tables import BenchmarkTable, Row

EVERY = "suite"
"""The name of all problems."""


def chosen(text: str, known: Iterable[str], what: str) -> list[str]:
    """Return the names in text, split at commas. Raises ParameterError for an unknown name."""
    names = text.split(",")
    for name in names:
        if name not in known:
            raise ParameterError(f"unknown {what} '{name}'. {nearest(name, list(known))}")
    return names


def available(libraries: Mapping[str, Iterable[str]]) -> tuple[list[str], list[BenchmarkTable]]:
    """Return the names without a missing library, and a table of the others if there are any."""
    missed = {name: ", ".join(lacking) for name, lacking in libraries.items()}
    rows: list[Row] = [{"left out": name, "not installed": lacking} for name, lacking in missed.items() if lacking]
    return [name for name, lacking in missed.items() if not lacking], [BenchmarkTable("Left out", rows)] if rows else []


def titles_of(text: str, known: Mapping[str, TestProblem]) -> list[str]:
    """Return the problems that are named, or in a class that is named, or all for 'suite'."""
    groups = {kind: [title for title in known if known[title].kind == kind] for kind in KINDS} | {EVERY: list(known)}
    named = chosen(text, [*known, *groups], "problem")
    return list(dict.fromkeys(title for name in named for title in groups.get(name, [name])))


def main(
    samplers: str = "thompson:mixed,thompson:draw,optuna-tpe,random",
    problems: str = EVERY,
    data: Path | None = None,
    trials: int = 60,
    seeds: str = "20",
    workers: int = 1,
    seconds: float = 1e9,
    keep: list[Path] | None = None,
    ranks: bool = False,
) -> list[BenchmarkTable]:
    """Compare the regret that samplers reach.

    Parameters
    ----------
    samplers : str
        Of {NAMES}, separated by commas.
    problems : str
        Problems and classes of them, separated by commas. Classes: {KINDS}; 'suite' is all.
    data : Path
        Folder of MQ2008 and OHSUMED, each with Fold1 ..., for their problems.
    trials : int
        Evaluations a run.
    seeds : str
        Runs of each sampler: so many, or seeds first:last, the last without.
    workers : int
        Trials that run at the same time, in simulated time.
    seconds : float
        Start no run after so many seconds.
    keep : list of Path
        File of finished runs, which are not repeated. Of several, the first gets the new runs. (default: in the
        cache folder)
    ranks : bool
        Show mean ranks by class, and compare the first two samplers run by run.
    """
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    warnings.filterwarnings("ignore", category=optuna.exceptions.ExperimentalWarning)
    known = known_problems(data) | SUITE | tabulated()
    wanted, left_out = available({name: absent(NEEDS.get(name, ())) for name in chosen(samplers, NAMES, "sampler")})
    titles, without = available({title: lacks(known[title]) for title in titles_of(problems, known)})
    setting, every = ProblemSetting(trials, workers), seeds_of(seeds)
    paths = keep or [private_folder() / "sampler-runs.jsonl"]
    runs = {each.key: each for path in paths for each in stored_results(path, lambda fields: SearchRun(**fields))}
    planned = (
        (title, name, seed, workers, trials)
        for seed, title, name in product(every, titles, wanted)
        if known[title].corner is None or name not in SINGLE
    )

    add_missing(planned, runs, lambda key: run(known[key[0]], *key[:3], setting), paths[0], seconds)
    # the best known value of a ranking problem may come from any run, whatever its setting
    selection = Selection(runs, known, titles, wanted, every, setting)
    if not wanted or not ranks:
        return [*([regret.table(selection)] if wanted else []), *left_out, *without]
    duels = [duel(selection, *wanted[:2])] if len(wanted) > 1 else []
    return [*rank_tables(selection), *duels, *left_out, *without]
