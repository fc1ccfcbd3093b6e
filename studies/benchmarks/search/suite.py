"""More problems, of every class, for comparing many samplers. None of them was used to choose constants of our sampler.

bbob-F-D        function F of COCO's bbob in D dimensions, less its minimum; numbers in [-5, 5]. Hansen et al. 2021
mixint-F-D      the same of bbob-mixint: four fifths of the parameters are integers, and the best of all runs replaces
                the minimum. Tusar, Brockhoff & Hansen 2019
shop20          a category of 20, each with a price and a place of the best of its own in three numbers
labels20        20 categories of three, of which neighbours depend on each other
stages          two choices, each with parameters of its own
vessel, beam    a pressure vessel with sheets of whole sixteenths, and a welded beam: four constraints each. Coello 2002
...-noisy       problems that always have noise

COCO's are the functions 1, 8, 15, 20 and 24, in their first instance: a sphere, Rosenbrock's valley, Rastrigin's waves,
Schwefel's valleys far from each other, and two bowls with waves, the wider of which is not the lower. They need cocoex.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from typing import Protocol

import numpy as np
from optuna.trial import Trial

from ranktune.solvers.core.arrays import Floats
from ranktune.studies.benchmarks.search.learners import LEARNERS_OF
from ranktune.studies.benchmarks.search.problems import (
    CATEGORIES,
    CONDITIONAL,
    CONSTRAINED,
    INTEGERS,
    LEARNERS,
    MANY_NUMBERS,
    MIXED,
    NOISY,
    NUMBERS,
    PROBLEMS,
    Params,
    SearchProblem,
)

FUNCTIONS, DIMENSIONS, OF_INTEGERS = (1, 8, 15, 20, 24), (2, 5, 10, 20), (5, 10)
NOISES = {"func3c": 0.1, "hart6m": 0.15, "layers": 0.1}
"""Standard deviations of the noise of some problems."""
FEW = 5
"""Numbers up to which they are few."""


class CocoFunction(Protocol):
    """A function of COCO, as far as it is used."""

    number_of_integer_variables: int
    lower_bounds: Floats
    upper_bounds: Floats

    def __call__(self, x: Floats) -> float:
        """Return the value at x, (dimension,)."""
        ...


@dataclass(frozen=True)
class Coco:
    """A function of a suite of COCO, its first instance; that of bbob less its minimum."""

    suite: str
    function: int
    dimension: int

    def __call__(self, trial: Trial) -> float:
        """Return the value."""
        function, lowest = _coco(self)
        integers = function.number_of_integer_variables
        lower, upper = function.lower_bounds, function.upper_bounds
        x = [
            trial.suggest_int(f"k{j}", round(lower[j]), round(upper[j]))
            if j < integers
            else trial.suggest_float(f"x{j}", float(lower[j]), float(upper[j]))
            for j in range(self.dimension)
        ]
        return float(function(np.array(x, dtype=np.float64))) - lowest


@lru_cache
def _coco(coco: Coco) -> tuple[CocoFunction, float]:
    """Return a function, and what is taken off its values."""
    from cocoex import BareProblem, Suite

    where = f"dimensions:{coco.dimension} function_indices:{coco.function}"
    function = Suite(coco.suite, "instances:1", where).get_problem(0)
    if coco.suite != "bbob":
        return function, 0.0
    return function, float(BareProblem(coco.suite, coco.function, coco.dimension, 1).best_value())


def shop20(trial: Trial) -> float:
    """Return the price of a shop and the distance from what is best there; 0 at best."""
    shop = int(trial.suggest_categorical("shop", [str(k) for k in range(20)]))
    prices = np.random.default_rng(20).permutation(20) / 10.0
    best = np.random.default_rng(21).random((20, 3))[shop]
    x = np.array([trial.suggest_float(f"x{j}", 0.0, 1.0) for j in range(3)])
    return float(prices[shop] + 3.0 * ((x - best) ** 2).sum())


def labels20(trial: Trial) -> float:
    """Return the share of wrong labels, and half of that of neighbours that are not both right; 0 at best."""
    best = np.random.default_rng(22).integers(3, size=20)
    wrong = np.array([int(trial.suggest_categorical(f"c{j}", ["0", "1", "2"])) for j in range(20)]) != best
    return float(wrong.mean() + 0.5 * (wrong[1:] | wrong[:-1]).mean())


def stages(trial: Trial) -> float:
    """Return the loss of an optimiser and a schedule, each with its own parameters; 0 at best."""
    rate = np.log10(trial.suggest_float("rate", 1e-5, 1.0, log=True))
    if trial.suggest_categorical("optimiser", ["sgd", "adam"]) == "sgd":
        loss = 0.1 + (rate + 1.0) ** 2 / 4.0 + (trial.suggest_float("momentum", 0.0, 1.0) - 0.9) ** 2
    else:
        decay = np.log10(trial.suggest_float("decay", 1e-4, 1.0, log=True))
        loss = (rate + 3.0) ** 2 / 4.0 + (decay + 1.5) ** 2 / 4.0
    schedule = trial.suggest_categorical("schedule", ["constant", "step", "cosine"])
    if schedule == "step":
        loss += 0.1 + (trial.suggest_int("period", 1, 40) / 40.0 - 0.6) ** 2
        loss += (trial.suggest_float("factor", 0.0, 1.0) - 0.3) ** 2
    elif schedule == "cosine":
        loss += (trial.suggest_float("end", 0.0, 0.5) - 0.1) ** 2
    else:
        loss += 0.3
    return float(loss)


def vessel(trial: Trial) -> float:
    """Return the price of a pressure vessel, in thousands; 6.0597 at best."""
    shell, head = (0.0625 * trial.suggest_int(name, 1, 99) for name in ("shell", "head"))
    r, length = (trial.suggest_float(name, 10.0, 200.0) for name in ("radius", "length"))
    price = 0.6224 * shell * r * length + 1.7781 * head * r * r + 3.1661 * shell * shell * length
    return (price + 19.84 * shell * shell * r) / 1000.0


def vessel_limits(params: Params) -> list[float]:
    """Return how far the sheets are too thin, the volume too small and the vessel too long, as shares."""
    shell, head, r, length = (params[name] for name in ("shell", "head", "radius", "length"))
    volume = np.pi * r * r * length + 4.0 / 3.0 * np.pi * r**3
    return [
        0.0193 * r / (0.0625 * shell) - 1.0, 0.00954 * r / (0.0625 * head) - 1.0, 1_296_000.0 / volume - 1.0,
        length / 240.0 - 1.0,
    ]  # fmt: skip


def beam(trial: Trial) -> float:
    """Return the price of a welded beam; 1.7249 at best."""
    h, t = (trial.suggest_float(name, 0.1, 2.0) for name in ("weld", "thickness"))
    length, height = (trial.suggest_float(name, 0.1, 10.0) for name in ("length", "height"))
    return 1.10471 * h * h * length + 0.04811 * height * t * (14.0 + length)


def beam_limits(params: Params) -> list[float]:
    """Return how far the stresses, the deflection and the buckling load are beyond their limits, as shares."""
    h, t, length, height = (params[name] for name in ("weld", "thickness", "length", "height"))
    load, span = 6000.0, 14.0
    moment = load * (span + length / 2.0)
    arm = np.sqrt(length**2 / 4.0 + ((h + height) / 2.0) ** 2)
    polar = 2.0 * np.sqrt(2.0) * h * length * (length**2 / 12.0 + ((h + height) / 2.0) ** 2)
    direct, twisting = load / (np.sqrt(2.0) * h * length), moment * arm / polar
    shear = np.sqrt(direct**2 + direct * twisting * length / arm + twisting**2)
    buckling = 4.013 * 30e6 * height * t**3 / 6.0 / span**2 * (1.0 - height / (2.0 * span) * np.sqrt(30e6 / 48e6))
    return [
        float(shear) / 13_600.0 - 1.0, 6.0 * load * span / (t * height**2) / 30_000.0 - 1.0, h / t - 1.0,
        4.0 * load * span**3 / (30e6 * height**3 * t) / 0.25 - 1.0, float(load / max(buckling, 1e-9)) - 1.0,
    ]  # fmt: skip


SUITE: dict[str, SearchProblem] = {
    **{
        f"bbob-{f}-{d}": SearchProblem(
            Coco("bbob", f, d), 0.0, kind=NUMBERS if d <= FEW else MANY_NUMBERS, library="cocoex"
        )
        for d, f in product(DIMENSIONS, FUNCTIONS)
    },
    **{
        f"mixint-{f}-{d}": SearchProblem(Coco("bbob-mixint", f, d), None, kind=INTEGERS, library="cocoex")
        for d, f in product(OF_INTEGERS, FUNCTIONS)
    },
    "shop20": SearchProblem(shop20, 0.0, kind=MIXED),
    "labels20": SearchProblem(labels20, 0.0, kind=CATEGORIES),
    "stages": SearchProblem(stages, 0.0, kind=CONDITIONAL),
    "vessel": SearchProblem(vessel, 6.0597, kind=CONSTRAINED, limits=vessel_limits, worst=1000.0),
    "beam": SearchProblem(beam, 1.7249, kind=CONSTRAINED, limits=beam_limits, worst=100.0),
    **{f"{name}-noisy": replace(PROBLEMS[name], kind=NOISY, noise=sd) for name, sd in NOISES.items()},
    **{name: SearchProblem(loss, None, kind=LEARNERS) for name, loss in LEARNERS_OF.items()},
}  # fmt: skip
