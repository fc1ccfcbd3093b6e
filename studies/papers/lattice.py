"""A grid of parameters that a sampler searches: categories, and numbers of which the sampler knows the order.

A sampler sees a list of numbers as their positions, so that values on a logarithmic scale are evenly spaced for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product

import numpy as np
import optuna
from optuna.samplers import BaseSampler
from optuna.trial import FrozenTrial

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.space import Choice, Int, Parameter, Value
from ranktune.tuner.retuning.earlier import EarlierTrial
from ranktune.tuner.samplers.registry import make_sampler
from ranktune.tuner.samplers.space import UnionSpace
from ranktune.tuner.samplers.thompson import ThompsonSampler
from ranktune.tuner.statistics.comparisons import movement, sampling_variance
from ranktune.tuner.storage.database import quiet

GRID = "grid"
"""The method that visits a coarse part of the lattice in random order: all categories, two values of each number."""
SAMPLED = "lattice"
"""The one solver of the search space: its name says nothing."""

MEASURED = 5
"""Points of a search on other data that are evaluated again."""

Lattice = Mapping[str, tuple[Value, ...]]
Point = Mapping[str, Value]


def search(
    lattice: Lattice,
    value: Callable[[Point], float | Floats],
    *,
    sampler: str,
    seed: int,
    evaluations: int,
    startup: int = 10,
    before: Sequence[tuple[Point, Floats]] = (),
) -> list[tuple[Point, float]]:
    """Return the points that a sampler asks for, in order, with their values, which it maximises.

    value gives one number, or one by query, whose mean counts. before are points of a search on other data with their
    values by query: a few are evaluated first, and then all are evidence, with the noise by which these have moved.
    """
    if sampler == GRID:
        return [(point, float(np.nanmean(value(point)))) for point in coarse(lattice, seed)[:evaluations]]
    space = UnionSpace({SAMPLED: [_parameter(name, values) for name, values in lattice.items()]})
    with quiet():
        study = optuna.create_study(direction="maximize")
    measured, again = _measured(before), list[Floats]()
    for old in measured:
        study.enqueue_trial(_asked(before[old][0], lattice, space))
    evaluated: list[tuple[Point, float]] = []
    for number in range(evaluations):
        study.sampler = _sampler(sampler, seed, number, space, startup)
        trial = study.ask()
        _, asked = space.split(space.suggest(trial))
        point = {name: _value(lattice[name], asked[name]) for name in lattice}
        again.append(np.atleast_1d(value(point)))
        evaluated.append((point, float(np.nanmean(again[-1]))))
        study.tell(trial, evaluated[-1][1])
        if number + 1 == len(measured):
            params = [_asked(point, lattice, space) for point, _ in before]
            study.add_trials(_as_they_moved(before, measured, again, params, space))
    return evaluated


def _measured(before: Sequence[tuple[Point, Floats]]) -> list[int]:
    """Return the places of points that are evaluated again: the best, a middling and a poor one, and the next best."""
    ranked = np.argsort([-np.nanmean(values) for _, values in before], kind="stable").tolist()
    spread = [ranked[round(share * (len(ranked) - 1))] for share in (0.0, 0.5, 0.9)] if ranked else []
    return list(dict.fromkeys([*spread, *ranked]))[:MEASURED]


def _asked(point: Point, lattice: Lattice, space: UnionSpace) -> dict[str, Value]:
    """Return the parameters that a trial of a point has."""
    asked = {
        name: values.index(point[name]) if is_position(values) else point[name] for name, values in lattice.items()
    }
    params = space.configuration(SAMPLED, asked)
    assert params is not None, "a point of the lattice"
    return params


def _as_they_moved(
    before: Sequence[tuple[Point, Floats]],
    measured: Sequence[int],
    again: Sequence[Floats],
    params: Sequence[Mapping[str, Value]],
    space: UnionSpace,
) -> Iterator[FrozenTrial]:
    """Yield the trials of another search as evidence in this one; none where the ranking of points did not carry."""
    old = [before[place][1] for place in measured]
    means, new = (np.array([np.nanmean(values) for values in each]) for each in (old, again))
    by = movement(means, new, sampling_variance(old, again))
    for (_, values), asked in zip(before if by.carried else (), params, strict=False):
        trial = EarlierTrial(asked, float(np.nanmean(values))).moved(by)
        trial.distributions = {name: space.distributions[name] for name in asked}
        yield trial


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


def is_position(values: Sequence[Value]) -> bool:
    """Return whether a sampler sees values as their positions."""
    return is_numeric(values) and len(values) > 1


def _parameter(name: str, values: tuple[Value, ...]) -> Parameter:
    if is_position(values):
        return Int(name, 0, len(values) - 1, default=len(values) // 2)
    return Choice(name, values, default=values[0])


def _value(values: tuple[Value, ...], asked: Value) -> Value:
    return values[int(str(asked))] if is_position(values) else asked
