"""Compare samplers on two synthetic mixed problems, and what a suggestion costs.

Regret is the distance of the best value so far from the known minimum: median and quartiles over seeds. Times are of
the processor, for one suggestion with its reading of the history, in ten dimensions.

func3c   Func-3C of CoCaBO (Ru et al. 2020): two real numbers, categories of 3, 5 and 4; minimum -0.7221
hart6m   Hartmann-6 with four real numbers, one on a log scale, and two categories of 5 shuffled levels; minimum -3.0391
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import optuna
import typer
from optuna.samplers import BaseSampler
from optuna.trial import Trial

from ranktune.solvers.arrays import Floats
from ranktune.tuner.sampler import ThompsonSampler
from ranktune.tuner.samplers import SAMPLERS, make_sampler

VARIANTS = {f"thompson:{a}": a for a in ("ei", "thompson")}
"""The acquisitions of ThompsonSampler by themselves, besides its default."""


@dataclass(frozen=True)
class Problem:
    """An objective to minimise, and its minimum."""

    objective: Callable[[Trial], float]
    minimum: float


def _rosenbrock(x: float, y: float) -> float:
    return (100 * (y - x * x) ** 2 + (x - 1) ** 2) / 300


def _camel(x: float, y: float) -> float:
    return ((4 - 2.1 * x**2 + x**4 / 3) * x**2 + x * y + (4 * y**2 - 4) * y**2) / 10


def _beale(x: float, y: float) -> float:
    return ((1.5 - x + x * y) ** 2 + (2.25 - x + x * y**2) ** 2 + (2.625 - x + x * y**3) ** 2) / 50


def func3c(trial: Trial) -> float:
    """Return the sum of three functions, each chosen by a category."""
    x, y = trial.suggest_float("x1", -2, 2), trial.suggest_float("x2", -2, 2)
    rosenbrock, camel, beale = _rosenbrock(x, y), _camel(x, y), _beale(x, y)
    first = {"a": rosenbrock, "b": camel, "c": beale}
    second = first | {"d": beale, "e": (camel + beale) / 2}
    third = {"a": 5 * camel, "b": 2 * rosenbrock, "c": 3 * beale, "d": 2 * beale}
    chosen = [str(trial.suggest_categorical(f"h{k}", "abcde"[:n])) for k, n in ((1, 3), (2, 5), (3, 4))]
    return first[chosen[0]] + second[chosen[1]] + third[chosen[2]]


_HARTMANN_A = np.array(
    [[10, 3, 17, 3.5, 1.7, 8], [0.05, 10, 17, 0.1, 8, 14], [3, 3.5, 1.7, 10, 17, 8], [17, 8, 0.05, 10, 0.1, 14]]
)
_HARTMANN_C = np.array([1, 1.2, 3, 3.2])
_HARTMANN_P = np.array(
    [
        [0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886],
        [0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991],
        [0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650],
        [0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381],
    ]
)


def hartmann6(x: Floats) -> float:
    """Return the Hartmann-6 function of x, (6,) in [0, 1]."""
    return -float(_HARTMANN_C @ np.exp(-(_HARTMANN_A * (x - _HARTMANN_P) ** 2).sum(axis=1)))


def hart6m(trial: Trial) -> float:
    """Return Hartmann-6 with its second coordinate on a log scale and its last two as categories."""
    x = [trial.suggest_float("x0", 0, 1), 1 + np.log10(trial.suggest_float("x1", 1e-4, 1, log=True)) / 4]
    x += [trial.suggest_float("x2", 0, 1), trial.suggest_float("x3", 0, 1)]
    x.append({"p": 0.15, "q": 0.9, "r": 0.4, "s": 0.65, "t": 0.0}[str(trial.suggest_categorical("c1", "pqrst"))])
    x.append({"p": 0.66, "q": 0.1, "r": 0.35, "s": 1.0, "t": 0.8}[str(trial.suggest_categorical("c2", "pqrst"))])
    return hartmann6(np.array(x))


def ten(trial: Trial) -> float:
    """Return a bowl in ten dimensions, two of them categories: only the cost of suggestions matters here."""
    total = sum((trial.suggest_float(f"x{j}", 0, 1) - 0.1 * j) ** 2 for j in range(8))
    return total + sum(0.1 * "abc".index(str(trial.suggest_categorical(f"c{j}", "abc"))) for j in range(2))


PROBLEMS = {"func3c": Problem(func3c, -0.7221), "hart6m": Problem(hart6m, -3.0391)}


def sampler_of(name: str, seed: int, number: int) -> BaseSampler:
    """Return the sampler called name: one of SAMPLERS or VARIANTS."""
    if name in VARIANTS:
        return ThompsonSampler(seed=seed, acquisition=VARIANTS[name])
    return make_sampler(name, seed=seed, number=number)


def best_so_far(problem: Problem, name: str, trials: int, seed: int, workers: int = 1) -> Floats:
    """Return the regret after each trial, (trials,), when workers trials are always running but at the end."""
    study = optuna.create_study()
    running: list[tuple[Trial, float]] = []
    values = []
    for number in range(trials):
        study.sampler = sampler_of(name, seed, number)
        trial = study.ask()
        running.append((trial, problem.objective(trial)))
        if len(running) >= workers:
            done, value = running.pop(0)
            study.tell(done, value)
            values.append(value)
    values += [value for _, value in running]
    return np.minimum.accumulate(values) - problem.minimum


def regret_table(names: list[str], trials: int, seeds: int, workers: int) -> str:
    """Return the regrets of samplers, median [quartiles], as a Markdown table."""
    marks = [mark for mark in (30, 60, 100) if mark <= trials] or [trials]
    titles = [f"{problem} @{mark}" for problem in PROBLEMS for mark in marks]
    lines = [f"| sampler | {' | '.join(titles)} | s a trial |", "|---" * (len(titles) + 2) + "|"]
    for name in names:
        begun, cells = time.process_time(), []
        for problem in PROBLEMS.values():
            runs = np.array([best_so_far(problem, name, trials, seed, workers) for seed in range(seeds)])
            for mark in marks:
                low, middle, high = np.quantile(runs[:, mark - 1], (0.25, 0.5, 0.75))
                cells.append(f"{middle:.3g} [{low:.2g}, {high:.2g}]")
        each = (time.process_time() - begun) / (trials * seeds * len(PROBLEMS))
        lines.append(f"| {name} | {' | '.join(cells)} | {each:.3f} |")
    return "\n".join(lines)


def seconds_a_suggestion(name: str, n: int, repeats: int = 3) -> float:
    """Return the median processor seconds of one suggestion after n random trials in ten dimensions."""
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(ten, n_trials=n)
    taken = []
    for _ in range(repeats):
        study.sampler = sampler_of(name, 0, len(study.trials))
        begun = time.process_time()
        trial = study.ask()
        value = ten(trial)
        taken.append(time.process_time() - begun)
        study.tell(trial, value)
    return float(np.median(taken))


def overhead_table(names: list[str], counts: tuple[int, ...] = (30, 100, 300)) -> str:
    """Return the processor seconds of one suggestion, as a Markdown table."""
    lines = [f"| sampler | {' | '.join(f'n={n}' for n in counts)} |", "|---" * (len(counts) + 1) + "|"]
    for name in names:
        lines.append(f"| {name} | {' | '.join(f'{seconds_a_suggestion(name, n):.3f}' for n in counts)} |")
    return "\n".join(lines)


def main(
    samplers: Annotated[str, typer.Option(help=f"Of {', '.join([*SAMPLERS, *VARIANTS])}.")] = "thompson,tpe,random",
    trials: Annotated[int, typer.Option(help="Evaluations a run.", min=1)] = 60,
    seeds: Annotated[int, typer.Option(help="Runs of each sampler.", min=1)] = 10,
    workers: Annotated[int, typer.Option(help="Trials that run at the same time.", min=1)] = 1,
    overhead: Annotated[bool, typer.Option("--overhead", help="Measure the cost of a suggestion instead.")] = False,
) -> None:
    """Compare samplers: the regret they reach on problems of known optimum, or what a suggestion costs."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    names = samplers.split(",")
    typer.echo(overhead_table(names) if overhead else regret_table(names, trials, seeds, workers))
