"""The features that a configuration is fitted on, where a study limits their cost or number.

A parameter of every solver's search space, FEATURE_SET, says which share of the limits its models may use. The features
are chosen from the training queries alone, of each part of a plan separately, so that validation stays unbiased. The
sets of one part are nested: a blend of models uses the features of its largest member, and keeps the limits too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from ranktune.solvers.abilities import QUERY_WEIGHTS
from ranktune.solvers.core.errors import ParameterError
from ranktune.solvers.core.space import Choice, Int, Parameter, Value, When
from ranktune.solvers.registry import solver_class

HALF_LIFE = "half_life"
SHARES: Mapping[str, float] = {"inf": np.inf, "1": 1.0, "1/2": 0.5, "1/4": 0.25, "1/8": 0.125}
"""The parameter of solvers that weigh queries, where times are known: the half-life of weights, as a share of the time
from the first to the last query that is fitted. They are no part of any mean: what is scored counts as it did.
"""

FEATURE_SET = "feature_set"
LEVELS = 8
"""Sets of features: the k-th takes k / LEVELS of the limits."""


def solver_parameters(parameters: Mapping[str, Value]) -> dict[str, Value]:
    """Return the parameters of a configuration that its solver has."""
    return {name: value for name, value in parameters.items() if name not in (FEATURE_SET, HALF_LIFE)}


def with_feature_sets(solver: str, space: Sequence[Parameter]) -> tuple[Parameter, ...]:
    """Return the space of a solver whose models are fitted on sets of features."""
    if any(parameter.name == FEATURE_SET for parameter in space):
        raise ParameterError(
            f"{solver} has a parameter '{FEATURE_SET}', and limits of cost or features add one of that name. Rename it."
        )
    return (*space, Int(FEATURE_SET, 1, LEVELS, default=LEVELS))


def check_sets(name: str, values: Iterable[object]) -> None:
    """Raise ParameterError where values of FEATURE_SET, by its flat name, are no numbers of sets."""
    for value in values:
        if not isinstance(value, int) or not 1 <= value <= LEVELS:
            raise ParameterError(f"space: '{name}' cannot be {value!r}: it must be a whole number from 1 to {LEVELS}.")


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
