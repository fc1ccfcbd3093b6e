"""A grid of parameters that a sampler searches: categories, and numbers of which the sampler knows the order.

A sampler sees a list of numbers as their positions, so that values on a logarithmic scale are evenly spaced for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product

import numpy as np
import optuna
from optuna.samplers import BaseSampler

from ranktune.solvers.core.space import Choice, Int, Parameter, Value
from ranktune.tuner.samplers.registry import make_sampler
from ranktune.tuner.samplers.space import UnionSpace
from ranktune.tuner.samplers.thompson import ThompsonSampler
from ranktune.tuner.storage.database import quiet

GRID = "grid"
"""The method that visits a coarse part of the lattice in random order: all categories, two values of each number."""
SAMPLED = "lattice"
"""The one solver of the search space: its name says nothing."""

Lattice = Mapping[str, tuple[Value, ...]]
Point = Mapping[str, Value]


def search(
    lattice: Lattice, value: Callable[[Point], float], *, sampler: str, seed: int, evaluations: int, startup: int = 10
) -> list[tuple[Point, float]]:
    """Return the points that a sampler asks for, in order, with their values, which it maximises."""
    if sampler == GRID:
        return [(point, value(point)) for point in coarse(lattice, seed)[:evaluations]]
    space = UnionSpace({SAMPLED: [_parameter(name, values) for name, values in lattice.items()]})
    with quiet():
        study = optuna.create_study(direction="maximize")
    evaluated: list[tuple[Point, float]] = []
    for number in range(evaluations):
        study.sampler = _sampler(sampler, seed, number, space, startup)
        trial = study.ask()
        _, asked = space.split(space.suggest(trial))
        point = {name: _value(lattice[name], asked[name]) for name in lattice}
        evaluated.append((point, value(point)))
        study.tell(trial, evaluated[-1][1])
    return evaluated


def _sampler(name: str, seed: int, number: int, space: UnionSpace, startup: int) -> BaseSampler:
    """Return the sampler called name; "thompson:ei" is ours with that acquisition."""
    method, _, acquisition = name.partition(":")
    if not acquisition:
        return make_sampler(method, seed=seed, number=number, space=space, startup=startup)
    return ThompsonSampler(seed=seed, startup=startup, conditions=space, number=number, acquisition=acquisition)


def coarse(lattice: Lattice, seed: int) -> list[Point]:
    """Return the points of the coarse grid in random order."""
    values = [_quarters(column) if is_numeric(column) else column for column in lattice.values()]
    points = [dict(zip(lattice, point, strict=True)) for point in product(*values)]
    return [points[k] for k in np.random.default_rng(seed).permutation(len(points))]


def is_numeric(values: Sequence[Value]) -> bool:
    """Return whether values are numbers, not categories."""
    return all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)


def _quarters(values: tuple[Value, ...]) -> tuple[Value, ...]:
    """Return the values at a quarter and three quarters of a list."""
    last = len(values) - 1
    return tuple(dict.fromkeys(values[round(share * last)] for share in (0.25, 0.75)))


def _parameter(name: str, values: tuple[Value, ...]) -> Parameter:
    if is_numeric(values) and len(values) > 1:
        return Int(name, 0, len(values) - 1, default=len(values) // 2)
    return Choice(name, values, default=values[0])


def _value(values: tuple[Value, ...], asked: Value) -> Value:
    return values[int(str(asked))] if is_numeric(values) and len(values) > 1 else asked
