"""One run of a sampler on a problem, in simulated time, and the samplers by name."""

from __future__ import annotations

import heapq
import warnings
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
import optuna
from optuna.samplers import BaseSampler, CmaEsSampler, GPSampler, TPESampler
from optuna.trial import Trial

from ranktune.studies.benchmarks.search.fronts import hypervolume
from ranktune.studies.benchmarks.search.problems import TestProblem
from ranktune.studies.benchmarks.search.regret import ProblemSetting, SearchRun
from ranktune.tuner.samplers.registry import SAMPLERS, make_sampler
from ranktune.tuner.samplers.thompson import ThompsonSampler

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


def absent(libraries: Iterable[str]) -> list[str]:
    """Return the modules that are not installed; "" is none."""
    return [library for library in libraries if library and find_spec(library) is None]


def lacks(problem: TestProblem) -> list[str]:
    """Return the module and the file that a problem needs and that are not there."""
    files = [] if problem.file is None or problem.file.is_file() else [problem.file.name]
    return absent([problem.library]) + files


def sampler_of(name: str, problem: TestProblem, seed: int, number: int, last: BaseSampler | None = None) -> BaseSampler:
    """Return the sampler called name for a trial: one of SAMPLERS, VARIANTS or PEERS, which keep the last one."""
    if name in VARIANTS:
        return VARIANTS[name](seed=seed, conditions=problem.space, number=number)
    if name not in PEERS:
        return make_sampler(name, seed=seed, number=number, space=problem.space)
    with warnings.catch_warnings():  # of what Optuna calls experimental
        warnings.simplefilter("ignore")
        return last or PEERS[name](seed=int(np.random.SeedSequence([seed]).generate_state(1)[0] >> 1))


def run(problem: TestProblem, title: str, name: str, seed: int, setting: ProblemSetting) -> SearchRun:
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


def _limit(trial: Trial, problem: TestProblem, name: str) -> float:
    """Return by how much a trial breaks limits in all, and set them on it where the sampler sees them."""
    limits = [] if problem.limits is None else problem.limits(trial.params)
    if name not in BLIND:
        for number, value in enumerate(limits):
            trial.set_constraint(str(number), value)
    return sum(max(value, 0.0) for value in limits)
