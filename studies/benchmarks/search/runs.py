"""One run of a sampler on a problem, in simulated time, and the samplers by name."""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import optuna
from optuna.samplers import BaseSampler
from optuna.trial import Trial

from ranktune.studies.benchmarks.search.fronts import hypervolume
from ranktune.studies.benchmarks.search.peers import PEERS, absent
from ranktune.studies.benchmarks.search.problems import Problem
from ranktune.studies.benchmarks.search.regret import MARKS, Run, Setting
from ranktune.tuner.samplers.history import PAIRED
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
SINGLE = ("skopt", "thompson:ei", "thompson:ei:costs", *(name for name, peer in PEERS.items() if not peer.several))
"""Samplers for one objective."""
BLIND = ("skopt", *(name for name, peer in PEERS.items() if not peer.limits))
"""Samplers that see no limits: they get a loss with a penalty."""
NOISE, DURATIONS = 0x2015E, 0x71ED
"""Streams of random numbers. Noise depends on seed and trial only, so it is the same for every sampler."""


NAMES = [*SAMPLERS.names, *VARIANTS, *PEERS]


def missing(name: str) -> list[str]:
    """Return the libraries that a sampler needs and that are not installed."""
    if name in PEERS:
        return PEERS[name].missing
    return absent({"gp": ["torch"], "skopt": ["skopt"]}.get(name, []))


def is_ours(name: str) -> bool:
    """Return whether a sampler is ThompsonSampler."""
    return name.split(":")[0] == "thompson"


def sampler_of(name: str, problem: Problem, seed: int, number: int, last: BaseSampler | None = None) -> BaseSampler:
    """Return the sampler called name for a trial: one of SAMPLERS, VARIANTS or PEERS, which keep the last one."""
    if name in VARIANTS:
        return VARIANTS[name](seed=seed, conditions=problem.space, number=number)
    if name in PEERS:
        return last or PEERS[name].sampler(problem, int(np.random.SeedSequence([seed]).generate_state(1)[0] >> 1))
    return make_sampler(name, seed=seed, number=number, space=problem.space)


def run(problem: Problem, title: str, name: str, seed: int, setting: Setting) -> Run:
    """Return one run of a sampler, in the order in which trials ended."""
    study = optuna.create_study(directions=["minimize"] * (1 if problem.corner is None else 2))
    durations = np.random.default_rng([seed, DURATIONS]).lognormal(0.0, 0.5, setting.trials)
    running: list[tuple[float, int, Trial, Any]] = []
    sampler: BaseSampler | None = None
    losses: dict[int, Any] = {}
    costs: dict[int, float | None] = {}
    picks: list[float] = []
    spent: list[float] = []
    believed: dict[int, float] = {}
    best, clock, asked, begun = float("inf"), 0.0, 0, time.process_time()
    while len(picks) < setting.trials:
        while asked < setting.trials and len(running) < setting.workers:
            study.sampler = sampler = sampler_of(name, problem, seed, asked, sampler)
            trial = study.ask()
            loss, costs[asked] = problem.evaluate(trial)
            heapq.heappush(running, (clock + durations[asked], asked, trial, loss))
            asked += 1
        clock, number, trial, losses[number] = heapq.heappop(running)
        observed = losses[number]
        if setting.noisy or problem.is_noisy:
            observed += problem.noise * np.random.default_rng([seed, number, NOISE]).standard_normal()
        if setting.noisy:
            trial.set_user_attr(PAIRED, problem.noise**2)
        broken = _limit(trial, problem, name)
        study.tell(trial, observed + problem.worst * broken if name in BLIND and broken else observed)
        seconds = costs[number]
        if seconds is not None:
            spent.append(seconds + (spent[-1] if spent else 0.0))
        if problem.corner is not None:
            picks.append(-hypervolume(list(losses.values()), problem.corner))
            continue
        if broken:
            picks.append(picks[-1] if picks else problem.worst)
            continue
        picks.append(losses[number] if observed < best else picks[-1])
        best = min(best, observed)
        if is_ours(name) and problem.limits is None and len(picks) in (*MARKS, setting.trials):
            believed[len(picks)] = losses[ThompsonSampler(conditions=problem.space).posterior_best(study).number]
    taken = (time.process_time() - begun) / setting.trials
    duplicates = setting.trials - len({str(sorted(t.params.items(), key=str)) for t in study.trials})
    return Run(title, name, seed, setting.noisy, setting.workers, picks, believed, duplicates, taken, spent)


def _limit(trial: Trial, problem: Problem, name: str) -> float:
    """Return by how much a trial breaks limits in all, and set them on it where the sampler sees them."""
    limits = [] if problem.limits is None else problem.limits(trial.params)
    if name not in BLIND:
        for number, value in enumerate(limits):
            trial.set_constraint(str(number), value)
    return sum(max(value, 0.0) for value in limits)
