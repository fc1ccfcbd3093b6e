"""The configurations of the table: what a study tries first, and others drawn from the search spaces."""

from __future__ import annotations

import json
from collections.abc import Container, Mapping, Sequence

import optuna

from ranktune.solvers.core.space import Value
from ranktune.tuner.samplers.first import first_configurations
from ranktune.tuner.samplers.space import SOLVER, UnionSpace
from ranktune.tuner.storage.database import quiet
from ranktune.tuner.study.declaration import Study

Configuration = dict[str, Value]
"""Parameters by flat name."""


def configurations(solvers: Sequence[str], count: int) -> list[Configuration]:
    """Return what a study of these solvers tries first, then count drawn of each solver, in turns, without repetitions.

    The first of them do not depend on the count.
    """
    space = Study(solvers=list(solvers)).union_space()
    drawn = [_draws(space.restricted({SOLVER: name}), number, count) for number, name in enumerate(solvers)]
    every = [*first_configurations(space), *(params for rank in zip(*drawn, strict=True) for params in rank)]
    return list({name_of(params): params for params in every}.values())


def first_with_rows(solvers: Sequence[str], table: Mapping[str, Container[str]]) -> list[Configuration]:
    """Return what a study of these solvers tries first, as far as some task of a table has a row of it."""
    return [params for params in configurations(solvers, 0) if any(name_of(params) in rows for rows in table.values())]


def _draws(space: UnionSpace, seed: int, count: int) -> list[Configuration]:
    """Return configurations drawn uniformly from the space of a solver."""
    with quiet():
        study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=seed))
    return [space.suggest(study.ask()) for _ in range(count)]


def name_of(params: Configuration) -> str:
    """Return a configuration as text, equal for equal ones."""
    return json.dumps(params, sort_keys=True)
