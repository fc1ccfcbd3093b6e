"""The weights that later queries get in fitting, where times are known: they halve with every half-life of age.

A parameter of the search space of solvers that weigh queries, HALF_LIFE, is the half-life as a share of the time from
the first to the last query that is fitted: inf, where all count alike, or less. The weights multiply those that are
given. They are no part of any mean: what is scored counts as it did.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ranktune.solvers.base.training_data import QUERY_WEIGHTS
from ranktune.solvers.core.errors import ParameterError
from ranktune.solvers.core.space import Choice, Parameter, Value, When
from ranktune.solvers.data.origins import note_selection
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.registry import solver_class

HALF_LIFE = "half_life"
SHARES: Mapping[str, float] = {"inf": np.inf, "1": 1.0, "1/2": 0.5, "1/4": 0.25, "1/8": 0.125}


def with_half_life(solver: str, space: Sequence[Parameter]) -> tuple[Parameter, ...]:
    """Return the space of a solver with the half-life, for the configurations that weigh queries."""
    kind, when = solver_class(solver), []
    if any(parameter.name == HALF_LIFE for parameter in space):
        raise ParameterError(f"{solver} has a parameter '{HALF_LIFE}', and time adds one of that name. Rename it.")
    if QUERY_WEIGHTS not in kind.supports({}):
        return tuple(space)
    for parameter in space:
        if isinstance(parameter, Choice):
            able = tuple(c for c in parameter.choices if QUERY_WEIGHTS in kind.supports({parameter.name: c}))
            when += [When(parameter.name, able)] if len(able) < len(parameter.choices) else []
    return (*space, Choice(HALF_LIFE, tuple(SHARES), default="inf", when=tuple(when)))


def weighed(queries: Queries, parameters: Mapping[str, Value]) -> Queries:
    """Return queries to fit a configuration to, with weights that halve with each of its half-lives of age."""
    share = SHARES[str(parameters.get(HALF_LIFE, "inf"))]
    if share == np.inf or queries.times is None:
        return queries
    age = queries.time_of_query.max() - queries.time_of_query
    if not age.any():
        return queries
    weights = 0.5 ** (age / age.max() / share)
    result = replace(queries, query_weights=queries.weight_of_query * weights, features_checked=True)
    note_selection(result, queries, np.arange(queries.n_queries))
    return result
