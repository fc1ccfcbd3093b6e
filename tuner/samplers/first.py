"""What a study tries first: the configurations that it is given, then the portfolios of its solvers.

Portfolios were good on many other data sets, so that a study accepts them without the significance that later trials
need. The file `portfolio.json` has those of all solvers with more than their defaults. It is written by
`python -m ranktune.studies.laboratory portfolio`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from itertools import zip_longest

from ranktune.solvers.core.space import Value
from ranktune.solvers.names import ONE_COLUMN
from ranktune.solvers.registry import solver_class
from ranktune.tuner.samplers.space import SOLVER, UnionSpace


@cache
def _portfolios() -> Mapping[str, Sequence[Mapping[str, Value]]]:
    portfolios: Mapping[str, Sequence[Mapping[str, Value]]]
    portfolios = json.loads(files(__package__).joinpath("portfolio.json").read_text(encoding="utf-8"))["portfolios"]
    return portfolios


def portfolio(solver: str) -> Sequence[Mapping[str, Value]]:
    """Return the parameters that are not its defaults of each configuration that a study tries first of a solver."""
    return _portfolios().get(solver, ({},))


LEADING = ("LogisticRanker", "SymmetricGBDT", "LambdaMART")
"""What few trials begin with: the best of the linear solvers, and of boosting (docs/explanation/tasks.md)."""


def first_configurations(space: UnionSpace, trials: float = math.inf) -> list[dict[str, Value]]:
    """Return the first of each solver, then the second of each, and so on, as far as they lie in the space.

    Those that the space was given come before the portfolio, or are alone. A solver of which none lies in the space is
    tried with its defaults, unless what was given is alone. If there are fewer trials, one quick solver comes first,
    then boosting, the best first, and then the others, so that any number of trials has the best portfolio of its size.
    """
    first = _first(space)
    return [dict(params) for params in (first if len(first) <= trials else _first(space, few=True))]


@lru_cache
def _first(space: UnionSpace, *, few: bool = False) -> tuple[Mapping[str, Value], ...]:
    by_solver = []
    for defaults in _in_order(space) if few else space.defaults():
        solver = str(defaults[SOLVER])
        listed = (*space.first.get(solver, ()), *(() if space.alone else portfolio(solver)))
        every = (space.configuration(solver, values) for values in listed)
        configurations: list[dict[str, Value]] = []
        for params in every:
            if params is not None and not any(is_alike(params, other) for other in configurations):
                configurations.append(params)
        by_solver.append(configurations or ([] if space.alone else [defaults]))
    ranks = zip_longest(*by_solver)
    return tuple(params for rank in ranks for params in rank if params is not None)


def _in_order(space: UnionSpace) -> list[dict[str, Value]]:
    """Return the defaults of the solvers in the order of few trials."""

    def place(defaults: Mapping[str, Value]) -> tuple[bool, bool, int]:
        solver = str(defaults[SOLVER])
        return grows(solver), solver == ONE_COLUMN, [*LEADING, solver].index(solver)

    quick, *others = sorted(space.defaults(), key=place)
    return [quick, *sorted(others, key=lambda defaults: not place(defaults)[0])]


@cache
def grows(solver: str) -> bool:
    """Return whether a solver boosts round by round, so that validation queries find its number of rounds."""
    return solver_class(solver).grows


def is_alike(a: Mapping[str, Value], b: Mapping[str, Value]) -> bool:
    """Return whether two configurations are the same, but for rounds of boosting."""
    return alike(a, b) if grows(str(a[SOLVER])) else a == b


def alike(a: Mapping[str, Value], b: Mapping[str, Value]) -> bool:
    """Return whether two configurations are the same but for the parameter of their path, which a trial chooses."""
    if a.keys() != b.keys() or a[SOLVER] != b[SOLVER]:
        return False
    path = f"{a[SOLVER]}.{solver_class(str(a[SOLVER])).path_parameter}"
    return all(value == b[name] for name, value in a.items() if name != path)
