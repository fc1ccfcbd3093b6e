"""Samplers compared: the regret they reach on the problems of problems.py, and the cost of a suggestion.

Regret is the distance of a run's pick from the problem's minimum, without noise. The pick is the best value observed
so far; for RankTune's also the trial of the highest posterior mean ("believed"), which suits noisy values. Concurrent
trials take simulated times, lognormal with a spread of 0.5, and Optuna receives their values in the order in which they
end. Runs are stored in a file, so that a comparison can be made in parts; times are processor seconds of one thread.
Where evaluations have a cost, regrets are compared at equal seconds of evaluations too. With two objectives the regret
is the area that the front lacks.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict
from functools import partial
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import optuna
import typer
from optuna.samplers import BaseSampler, CmaEsSampler, NSGAIISampler
from optuna.trial import Trial

from ranktune.solvers.core.errors import ParameterError, nearest
from ranktune.solvers.core.files import cache_folder
from ranktune.studies.benchmarks.results import add_missing, append_result, stored_results
from ranktune.studies.benchmarks.search.fronts import hypervolume
from ranktune.studies.benchmarks.search.problems import Problem, problems
from ranktune.studies.benchmarks.search.regret import (
    MARKS,
    Key,
    Run,
    Selection,
    Setting,
    figure,
    seconds_tables,
    tables,
)
from ranktune.studies.benchmarks.tables import Row, Table
from ranktune.tuner.gp.fitting import fit
from ranktune.tuner.samplers.history import PAIRED, read
from ranktune.tuner.samplers.registry import SAMPLERS, make_sampler
from ranktune.tuner.samplers.thompson import ThompsonSampler

VARIANTS: dict[str, Callable[..., BaseSampler]] = {
    "thompson:ei": partial(ThompsonSampler, acquisition="ei"),
    "thompson:draw": partial(ThompsonSampler, acquisition="thompson"),
    "thompson:mixed": partial(ThompsonSampler, acquisition="mixed"),
    "thompson:costs": partial(ThompsonSampler, costs=True),
    "thompson:ei:costs": partial(ThompsonSampler, acquisition="ei", costs=True),
    "thompson:mixed:costs": partial(ThompsonSampler, acquisition="mixed", costs=True),
    "thompson:again": partial(ThompsonSampler, replicates=True),
}
"""ThompsonSampler with options to compare with its defaults."""
PEERS: dict[str, Callable[..., BaseSampler]] = {
    "nsga2": partial(NSGAIISampler, population_size=20),
    "cmaes": partial(CmaEsSampler, warn_independent_sampling=False),
}
"""Samplers of Optuna that studies do not offer; cmaes needs the library of that name."""
SINGLE = ("skopt", "thompson:ei", "thompson:ei:costs", "cmaes")
"""Samplers for one objective."""
NOISE, DURATIONS = 0x2015E, 0x71ED
"""Streams of random numbers. Noise depends on seed and trial only, so it is the same for every sampler."""


def is_ours(name: str) -> bool:
    """Return whether a sampler is ThompsonSampler."""
    return name.split(":")[0] == "thompson"


def sampler_of(name: str, problem: Problem, seed: int, number: int) -> BaseSampler:
    """Return the sampler called name: one of SAMPLERS, VARIANTS or PEERS."""
    if name in VARIANTS:
        return VARIANTS[name](seed=seed, conditions=problem.space, number=number)
    if name in PEERS:
        return PEERS[name](seed=int(np.random.SeedSequence([seed, number]).generate_state(1)[0]))
    return make_sampler(name, seed=seed, number=number, space=problem.space)


def run(problem: Problem, title: str, name: str, seed: int, setting: Setting) -> Run:
    """Return one run of a sampler, in the order in which trials ended."""
    study = optuna.create_study(directions=["minimize"] * (1 if problem.corner is None else 2))
    durations = np.random.default_rng([seed, DURATIONS]).lognormal(0.0, 0.5, setting.trials)
    running: list[tuple[float, int, Trial, Any]] = []
    losses: dict[int, Any] = {}
    costs: dict[int, float | None] = {}
    picks: list[float] = []
    spent: list[float] = []
    believed: dict[int, float] = {}
    best, clock, asked, begun = float("inf"), 0.0, 0, time.process_time()
    while len(picks) < setting.trials:
        while asked < setting.trials and len(running) < setting.workers:
            study.sampler = sampler_of(name, problem, seed, asked)
            trial = study.ask()
            loss, costs[asked] = problem.evaluate(trial)
            heapq.heappush(running, (clock + durations[asked], asked, trial, loss))
            asked += 1
        clock, number, trial, losses[number] = heapq.heappop(running)
        observed = losses[number]
        if setting.noisy:
            observed += problem.noise * np.random.default_rng([seed, number, NOISE]).standard_normal()
            trial.set_user_attr(PAIRED, problem.noise**2)
        study.tell(trial, observed)
        seconds = costs[number]
        if seconds is not None:
            spent.append(seconds + (spent[-1] if spent else 0.0))
        if problem.corner is not None:
            picks.append(-hypervolume(list(losses.values()), problem.corner))
            continue
        picks.append(losses[number] if observed < best else picks[-1])
        best = min(best, observed)
        if is_ours(name) and len(picks) in (*MARKS, setting.trials):
            believed[len(picks)] = losses[ThompsonSampler(conditions=problem.space).posterior_best(study).number]
    taken = (time.process_time() - begun) / setting.trials
    duplicates = setting.trials - len({str(sorted(t.params.items(), key=str)) for t in study.trials})
    return Run(title, name, seed, setting.noisy, setting.workers, picks, believed, duplicates, taken, spent)


def ten(trial: Trial) -> float:
    """Return a bowl in ten dimensions, two of them categories: only the cost of suggestions matters here."""
    total = sum((trial.suggest_float(f"x{j}", 0, 1) - 0.1 * j) ** 2 for j in range(8))
    return total + sum(0.1 * "abc".index(str(trial.suggest_categorical(f"c{j}", "abc"))) for j in range(2))


def seconds_a_suggestion(name: str, n: int, repeats: int = 5) -> float:
    """Return the median processor seconds of one suggestion after n random trials in ten dimensions."""
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(ten, n_trials=n)
    problem = Problem(ten, None, 0.0)
    taken = []
    for _ in range(repeats):
        study.sampler = sampler_of(name, problem, 0, len(study.trials))
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
        fit(E, history.trials.gains, history.trials.noise, history.encoding.axis_of_column)
        taken.append(time.process_time() - begun)
    return float(np.median(taken))


TUNING = "tuning"


def overhead_table(names: Iterable[str], counts: tuple[int, ...] = (30, 100, 300, 1000)) -> Table:
    """Return the processor milliseconds of one suggestion, and of a fit from scratch."""
    rows: list[Row] = []
    for name in names:
        rows.append({"sampler": name, **{f"n={n}": 1000 * seconds_a_suggestion(name, n) for n in counts}})
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


_NAMES = [*SAMPLERS.names, *VARIANTS, *PEERS]
Samplers = Annotated[str, typer.Option(help=f"Of {', '.join(_NAMES)}, separated by commas.")]


def suggestions(samplers: Samplers = "thompson,tpe,random,skopt", counts: str = "30,100,300,1000") -> list[Table]:
    """Measure the cost of a suggestion after each of counts trials, and of fitting the Gaussian process."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    wanted = chosen(samplers, _NAMES, "sampler")
    return [overhead_table(wanted, tuple(int(count) for count in counts.split(",")))]


def main(
    samplers: Samplers = "thompson,thompson:ei,thompson:draw,tpe,random,skopt",
    names: Annotated[
        str,
        typer.Option(
            "--problems",
            help="Separated by commas; all if empty. 'tuning' stands for the problems on which our "
            "constants were tuned.",
        ),
    ] = "",
    data: Annotated[
        Path | None,
        typer.Option(help="Folder of MQ2008, OHSUMED (each with Fold1 ...) and lightgbm_example, for their problems."),
    ] = None,
    trials: Annotated[int, typer.Option(help="Evaluations a run.", min=1)] = 60,
    seeds: Annotated[int, typer.Option(help="Runs of each sampler.", min=1)] = 20,
    first_seed: Annotated[int, typer.Option(help="The first of the seeds.", min=0)] = 0,
    workers: Annotated[int, typer.Option(help="Trials that run at the same time, in simulated time.", min=1)] = 1,
    noisy: Annotated[bool, typer.Option("--noisy", help="Add noise of a known standard deviation.")] = False,
    seconds: Annotated[float, typer.Option(help="Start no run after so many seconds.", min=0)] = 1e9,
    keep_in: Annotated[
        Path | None,
        typer.Option("--keep", help="File of finished runs, which are not repeated. (default: in the cache folder)"),
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Write a page with a figure to this file.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Few trials and seeds of two problems, not stored.")] = False,
) -> list[Table]:
    """Compare the regret that samplers reach."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    wanted = chosen(samplers, _NAMES, "sampler")
    reported, tuning = problems(data)
    known = reported | tuning
    if names == TUNING:
        titles = list(tuning)
    else:
        titles = chosen(names or ("func3c,hart6m" if quick else ",".join(reported)), known, "problem")
    setting = Setting(noisy, 12 if quick else trials, workers)
    every = range(first_seed, first_seed + (2 if quick else seeds))
    path = None if quick else keep_in or cache_folder() / "sampler-runs.jsonl"
    runs = {run.key: run for run in stored_results(path, Run.from_json)}
    planned = (
        (title, name, seed, noisy, workers, setting.trials)
        for title, name, seed in product(titles, wanted, every)
        if known[title].corner is None or not (name in SINGLE or noisy)
    )

    def run_and_keep(key: Key) -> Run:
        title, name, seed, *_ = key
        finished = run(known[title], title, name, seed, setting)
        append_result(path, asdict(finished))
        return finished

    add_missing(planned, runs, run_and_keep, seconds)
    # the best known value of a ranking problem may come from any run, whatever its setting
    selection = Selection(list(runs.values()), known, titles, wanted, every, setting)
    if plot is not None:
        plot.write_text(figure(selection), encoding="utf-8")
    return [*tables(selection), *seconds_tables(selection)]
