"""Samplers compared: the regret they reach on problems of many classes, in simulated time.

Regret is the distance of a run's pick, the best value observed so far, from the problem's minimum, without noise. With
two objectives it is the area that the front lacks. Concurrent trials take simulated times, lognormal with a spread of
0.5, and Optuna receives their values in the order in which they end. Runs are stored in a file, so that a comparison
can be made in parts.
"""

from __future__ import annotations

import heapq
import warnings
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from optuna.samplers import BaseSampler, CmaEsSampler, GPSampler, TPESampler
from optuna.trial import Trial

from ranktune.solvers.core.errors import ParameterError, nearest
from ranktune.solvers.core.files.private import private_folder
from ranktune.studies.benchmarks.cases import seeds_of
from ranktune.studies.benchmarks.results import add_missing, stored_results
from ranktune.studies.benchmarks.search import regret
from ranktune.studies.benchmarks.search.problems import KINDS, SearchProblem, known_problems
from ranktune.studies.benchmarks.search.programs import hypervolume
from ranktune.studies.benchmarks.search.regret import ProblemSetting, SearchRun, Selection, duel, rank_tables
from ranktune.studies.benchmarks.search.suite import SUITE
from ranktune.studies.benchmarks.search.tabulated import tabulated
from ranktune.studies.benchmarks.tables import BenchmarkTable, Row
from ranktune.tuner.samplers.registry import SAMPLERS, make_sampler
from ranktune.tuner.samplers.thompson import ThompsonSampler

EVERY = "suite"
"""The name of all problems."""
VARIANTS: Mapping[str, Callable[..., BaseSampler]] = {
    "thompson:ei": partial(ThompsonSampler, acquisition="ei"),
    "thompson:draw": partial(ThompsonSampler, acquisition="thompson"),
    "thompson:mixed": partial(ThompsonSampler, acquisition="mixed"),
}
"""ThompsonSampler with options to compare with its defaults."""
PEERS: Mapping[str, Callable[..., BaseSampler]] = {
    "cmaes": partial(CmaEsSampler, warn_independent_sampling=False),
    "optuna-tpe": partial(TPESampler, multivariate=True, group=True),
    "optuna-gp": partial(GPSampler, warn_independent_sampling=False),
}
"""Samplers of Optuna that studies do not offer, each with its defaults and a state for the whole run."""
NEEDS = {"cmaes": ["cmaes"], "optuna-gp": ["torch"], "gp": ["torch"], "skopt": ["skopt"]}
"""Modules that samplers need and that need not be installed."""
SINGLE, BLIND = ("skopt", "thompson:ei", "cmaes"), ("skopt", "cmaes")
"""Samplers for one objective, and those that see no limits: they get a loss with a penalty."""
NOISE, DURATIONS = 0x2015E, 0x71ED
"""Streams of random numbers. Noise depends on seed and trial only, so it is the same for every sampler."""
NAMES = [*SAMPLERS.names, *VARIANTS, *PEERS]


def chosen(text: str, allowed: Iterable[str], what: str) -> list[str]:
    """Return the names in text, split at commas. Raises ParameterError for an unknown name."""
    names = text.split(",")
    for name in names:
        if name not in allowed:
            raise ParameterError(f"unknown {what} '{name}'. {nearest(name, list(allowed))}")
    return names


def available(libraries: Mapping[str, Iterable[str]]) -> tuple[list[str], list[BenchmarkTable]]:
    """Return the names without a missing library, and a table of the others if there are any."""
    missed = {name: ", ".join(lacking) for name, lacking in libraries.items()}
    rows: list[Row] = [{"left out": name, "not installed": lacking} for name, lacking in missed.items() if lacking]
    return [name for name, lacking in missed.items() if not lacking], [BenchmarkTable("Left out", rows)] if rows else []


def titles_of(text: str, problems: Mapping[str, SearchProblem]) -> list[str]:
    """Return the problems that are named, or in a class that is named, or all for 'suite'."""
    groups = {kind: [title for title in problems if problems[title].kind == kind] for kind in KINDS} | {
        EVERY: list(problems)
    }
    named = chosen(text, [*problems, *groups], "problem")
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
    by_title = known_problems(data) | SUITE | tabulated()
    wanted, left_out = available({name: absent(NEEDS.get(name, ())) for name in chosen(samplers, NAMES, "sampler")})
    titles, without = available({title: lacks(by_title[title]) for title in titles_of(problems, by_title)})
    setting, every = ProblemSetting(trials, workers), seeds_of(seeds)
    paths = keep or [private_folder() / "sampler-runs.jsonl"]
    runs = {each.key: each for path in paths for each in stored_results(path, lambda fields: SearchRun(**fields))}
    planned = (
        (title, name, seed, workers, trials)
        for seed, title, name in product(every, titles, wanted)
        if by_title[title].corner is None or name not in SINGLE
    )

    add_missing(planned, runs, lambda key: run(by_title[key[0]], *key[:3], setting), paths[0], seconds)
    # the best known value of a ranking problem may come from any run, whatever its setting
    selection = Selection(runs, by_title, titles, wanted, every, setting)
    if not wanted or not ranks:
        return [*([regret.table(selection)] if wanted else []), *left_out, *without]
    duels = [duel(selection, *wanted[:2])] if len(wanted) > 1 else []
    return [*rank_tables(selection), *duels, *left_out, *without]


def absent(libraries: Iterable[str]) -> list[str]:
    """Return the modules that are not installed; "" is none."""
    return [library for library in libraries if library and find_spec(library) is None]


def lacks(problem: SearchProblem) -> list[str]:
    """Return the module and the file that a problem needs and that are not there."""
    files = [] if problem.file is None or problem.file.is_file() else [problem.file.name]
    return absent([problem.library]) + files


def sampler_of(
    name: str, problem: SearchProblem, seed: int, number: int, last: BaseSampler | None = None
) -> BaseSampler:
    """Return the sampler called name for a trial: one of SAMPLERS, VARIANTS or PEERS, which keep the last one."""
    if name in VARIANTS:
        return VARIANTS[name](seed=seed, conditions=problem.space, number=number)
    if name not in PEERS:
        return make_sampler(name, seed=seed, number=number, space=problem.space)
    with warnings.catch_warnings():  # of what Optuna calls experimental
        warnings.simplefilter("ignore")
        return last or PEERS[name](seed=int(np.random.SeedSequence([seed]).generate_state(1)[0] >> 1))


def run(problem: SearchProblem, title: str, name: str, seed: int, setting: ProblemSetting) -> SearchRun:
    """Return one run of a sampler, in the order in which trials ended."""
    study = optuna.create_study(directions=["minimize"] * (1 if problem.corner is None else 2))
    durations = np.random.default_rng([seed, DURATIONS]).lognormal(0.0, 0.5, setting.trials)
    running: list[tuple[float, int, Trial, Any]] = []
    sampler: BaseSampler | None = None
    losses: list[Any] = []
    picks: list[float] = []
    best, clock, asked = float("inf"), 0.0, 0
    while len(picks) < setting.trials:
        while asked < setting.trials and len(running) < setting.workers:
            study.sampler = sampler = sampler_of(name, problem, seed, asked, sampler)
            trial = study.ask()
            heapq.heappush(running, (clock + durations[asked], asked, trial, problem.loss(trial)))
            asked += 1
        clock, number, trial, loss = heapq.heappop(running)
        losses.append(loss)
        observed = loss
        if problem.noise:
            observed += problem.noise * np.random.default_rng([seed, number, NOISE]).standard_normal()
        broken = _limit(trial, problem, name)
        study.tell(trial, observed + problem.worst * broken if name in BLIND and broken else observed)
        if problem.corner is not None:
            picks.append(-hypervolume(losses, problem.corner))
        elif broken:
            picks.append(picks[-1] if picks else problem.worst)
        else:
            picks.append(loss if observed < best else picks[-1])
            best = min(best, observed)
    return SearchRun(title, name, seed, setting.workers, picks)


def _limit(trial: Trial, problem: SearchProblem, name: str) -> float:
    """Return by how much a trial breaks limits in all, and set them on it where the sampler sees them."""
    limits = [] if problem.limits is None else problem.limits(trial.params)
    if name not in BLIND:
        for number, value in enumerate(limits):
            trial.set_constraint(str(number), value)
    return sum(max(value, 0.0) for value in limits)
