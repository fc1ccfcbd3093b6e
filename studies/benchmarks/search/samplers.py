"""Samplers compared: the regret they reach on the problems of problems.py, and the cost of a suggestion.

Regret is the distance of a run's pick from the problem's minimum, without noise. The pick is the best value observed
so far; for RankTune's also the trial of the highest posterior mean ("believed"), which suits noisy values. Concurrent
trials take simulated times, lognormal with a spread of 0.5, and Optuna receives their values in the order in which they
end. Runs are stored in a file, so that a comparison can be made in parts; times are processor seconds of one thread.
Where evaluations have a cost, regrets are compared at equal seconds of evaluations too. With two objectives the regret
is the area that the front lacks.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import Annotated

import numpy as np
import optuna
import typer
from optuna.trial import Trial

from ranktune.solvers.core.errors import ParameterError, nearest
from ranktune.solvers.core.files import private_folder
from ranktune.studies.benchmarks.cases import seeds_of
from ranktune.studies.benchmarks.results import add_missing, append_result, stored_results
from ranktune.studies.benchmarks.search.peers import lacks
from ranktune.studies.benchmarks.search.problems import KINDS, Problem, problems
from ranktune.studies.benchmarks.search.ranks import duel, rank_tables
from ranktune.studies.benchmarks.search.regret import Key, Run, Selection, Setting, figure, seconds_tables, tables
from ranktune.studies.benchmarks.search.runs import NAMES, SINGLE, missing, run, sampler_of
from ranktune.studies.benchmarks.search.suite import SUITE
from ranktune.studies.benchmarks.search.tabulated import tabulated
from ranktune.studies.benchmarks.tables import Row, Table
from ranktune.tuner.gp.hyperparameters import Observed
from ranktune.tuner.samplers.history import read

REPEATS = 5


def ten(trial: Trial) -> float:
    """Return a bowl in ten dimensions, two of them categories: only the cost of suggestions matters here."""
    total = sum((trial.suggest_float(f"x{j}", 0, 1) - 0.1 * j) ** 2 for j in range(8))
    return total + sum(0.1 * "abc".index(str(trial.suggest_categorical(f"c{j}", "abc"))) for j in range(2))


def seconds_a_suggestion(name: str, n: int, repeats: int = REPEATS) -> float:
    """Return the median processor seconds of one suggestion after n random trials in ten dimensions."""
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(ten, n_trials=n)
    problem, sampler = Problem(ten, None, 0.0), None
    taken = []
    for _ in range(repeats):
        study.sampler = sampler = sampler_of(name, problem, 0, len(study.trials), sampler)
        begun = time.process_time()
        trial = study.ask()
        value = ten(trial)  # suggestions are computed on first use
        taken.append(time.process_time() - begun)
        study.tell(trial, value)
    return float(np.median(taken))


def seconds_a_fit(n: int, repeats: int = 5) -> float:
    """Return the median processor seconds of fitting a Gaussian process to n random trials in ten dimensions."""
    taken = []
    for repeat in range(repeats):
        study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=repeat))
        study.optimize(ten, n_trials=n)
        history = read(study, None, study.trials[0].distributions)
        E = history.encoding.embed(history.trials.rows)
        begun = time.process_time()
        Observed(E, history.trials.gains, history.trials.noise, history.encoding.axis_of_column).fit()
        taken.append(time.process_time() - begun)
    return float(np.median(taken))


TUNING, EVERY = "tuning", "suite"
"""The names of the problems on which our constants were tuned, and of all others."""


def overhead_table(
    names: Iterable[str], counts: tuple[int, ...] = (30, 100, 300, 1000), repeats: int = REPEATS
) -> Table:
    """Return the processor milliseconds of one suggestion, and of a fit from scratch."""
    rows: list[Row] = []
    for name in names:
        rows.append({"sampler": name, **{f"n={n}": 1000 * seconds_a_suggestion(name, n, repeats) for n in counts}})
    rows.append({"sampler": "fit of hyperparameters", **{f"n={n}": 1000 * seconds_a_fit(n) for n in counts}})
    return Table("Processor milliseconds of a suggestion after n trials in ten dimensions", rows)


def chosen(text: str, known: Iterable[str], what: str) -> list[str]:
    """Return the names in text, split at commas; all where it is empty. Raises ParameterError for an unknown name."""
    known = list(known)
    names = text.split(",") if text else known
    for name in names:
        if name not in known:
            raise ParameterError(f"unknown {what} '{name}'. {nearest(name, known)}")
    return names


Samplers = Annotated[str, typer.Option(help=f"Of {', '.join(NAMES)}, separated by commas.")]


def suggestions(
    samplers: Samplers = "thompson,tpe,random,skopt",
    counts: str = "30,100,300,1000",
    repeats: Annotated[int, typer.Option(help="Suggestions after each number of trials.", min=1)] = REPEATS,
) -> list[Table]:
    """Measure the cost of a suggestion after each of counts trials, and of fitting the Gaussian process."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    wanted, left_out = available({name: missing(name) for name in chosen(samplers, NAMES, "sampler")})
    return [overhead_table(wanted, tuple(int(count) for count in counts.split(",")), repeats), *left_out]


def available(libraries: Mapping[str, Iterable[str]]) -> tuple[list[str], list[Table]]:
    """Return the names without a missing library, and a table of the others if there are any."""
    missed = {name: ", ".join(lacks) for name, lacks in libraries.items()}
    rows: list[Row] = [{"left out": name, "not installed": lacks} for name, lacks in missed.items() if lacks]
    return [name for name, lacks in missed.items() if not lacks], [Table("Left out", rows)] if rows else []


def titles_of(text: str, known: Mapping[str, Problem], tuning: Iterable[str]) -> list[str]:
    """Return the problems that are named, in a class that is named, in 'tuning', or in 'suite', which is all others."""
    every = [title for title in known if title not in set(tuning)]
    groups = {kind: [title for title in every if known[title].kind == kind] for kind in KINDS}
    groups |= {TUNING: list(tuning), EVERY: every}
    named = chosen(text, [*known, *groups], "problem")
    return list(dict.fromkeys(title for name in named for title in groups.get(name, [name])))


def main(
    samplers: Samplers = "thompson,thompson:ei,thompson:draw,tpe,random,skopt",
    names: Annotated[
        str,
        typer.Option(
            "--problems",
            help="Problems and classes of them, separated by commas; those of the page if empty. "
            f"Classes: {', '.join(KINDS)}. 'suite' stands for all, without 'tuning': those on which our constants "
            "were tuned.",
        ),
    ] = "",
    data: Annotated[
        Path | None,
        typer.Option(help="Folder of MQ2008, OHSUMED (each with Fold1 ...) and lightgbm_example, for their problems."),
    ] = None,
    trials: Annotated[int, typer.Option(help="Evaluations a run.", min=1)] = 60,
    seeds: Annotated[
        str, typer.Option(help="Runs of each sampler: so many, or seeds first:last, the last without.")
    ] = "20",
    workers: Annotated[int, typer.Option(help="Trials that run at the same time, in simulated time.", min=1)] = 1,
    noisy: Annotated[bool, typer.Option("--noisy", help="Add noise of a known standard deviation.")] = False,
    seconds: Annotated[float, typer.Option(help="Start no run after so many seconds.", min=0)] = 1e9,
    keep_in: Annotated[
        list[Path] | None,
        typer.Option(
            "--keep",
            help="File of finished runs, which are not repeated. Of several, the first gets the new runs. (default: in "
            "the cache folder)",
        ),
    ] = None,
    by_class: Annotated[
        bool,
        typer.Option("--ranks", help="Show mean ranks by class, and compare the first two samplers run by run."),
    ] = False,
    plot: Annotated[Path | None, typer.Option(help="Write a page with a figure to this file.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Few trials and seeds of two problems, not stored.")] = False,
) -> list[Table]:
    """Compare the regret that samplers reach."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    warnings.filterwarnings("ignore", category=optuna.exceptions.ExperimentalWarning)
    reported, tuning = problems(data)
    known = reported | tuning | SUITE | tabulated()
    wanted, left_out = available({name: missing(name) for name in chosen(samplers, NAMES, "sampler")})
    planned_titles = titles_of(names or ("func3c,hart6m" if quick else ",".join(reported)), known, tuning)
    titles, without = available({title: lacks(known[title]) for title in planned_titles})
    setting = Setting(noisy, 12 if quick else trials, workers)
    every = seeds_of("2" if quick else seeds)
    paths = [] if quick else keep_in or [private_folder() / "sampler-runs.jsonl"]
    runs = {run.key: run for path in paths for run in stored_results(path, Run.from_json)}
    planned = (
        (title, name, seed, noisy, workers, setting.trials)
        for seed, title, name in product(every, titles, wanted)
        if known[title].corner is None or not (name in SINGLE or noisy)
    )

    def run_and_keep(key: Key) -> Run:
        title, name, seed, *_ = key
        finished = run(known[title], title, name, seed, setting)
        append_result(paths[0] if paths else None, asdict(finished))
        return finished

    add_missing(planned, runs, run_and_keep, seconds)
    # the best known value of a ranking problem may come from any run, whatever its setting
    selection = Selection(list(runs.values()), known, titles, wanted, every, setting)
    if plot is not None:
        plot.write_text(figure(selection), encoding="utf-8")
    if not by_class:
        return [*tables(selection), *seconds_tables(selection), *left_out, *without]
    duels = [duel(selection, *wanted[:2])] if len(wanted) > 1 else []
    return [*rank_tables(selection), *duels, *left_out, *without]
