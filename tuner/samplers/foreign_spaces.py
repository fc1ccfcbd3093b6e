"""Search spaces that are given as distributions of Optuna or dimensions of scikit-optimize, as parameters of RankTune.

scikit-optimize takes most of a second to import. Who gives a dimension has imported it.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeGuard

import numpy as np
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution

from ranktune.solvers.core.arrays import Json, JsonView
from ranktune.solvers.core.errors import ParameterError
from ranktune.solvers.core.space import Choice, Float, Int, Parameter, Value

if TYPE_CHECKING:
    from skopt.space import Dimension


def parameters_of(space: Sequence[Parameter] | Sequence[Dimension] | JsonView) -> tuple[Parameter, ...]:
    """Return a search space, given as parameters, as names with distributions or dimensions, or as named dimensions."""
    if isinstance(space, Mapping):
        return tuple(_parameter(name, dimension) for name, dimension in space.items())
    return tuple(_parameter(_name(each), each) if _is_dimension(each) else each for each in space)


def overrides_of(space: JsonView) -> Json:
    """Return the overrides of a search space as JSON has them: distributions as their bounds or choices."""
    return {
        name: _override(name, value) if isinstance(value, BaseDistribution) or _is_dimension(value) else value
        for name, value in space.items()
    }


def distribution_of(name: str, dimension: Dimension) -> BaseDistribution:
    """Return the distribution of Optuna that a Real, Integer or Categorical is; "log-uniform" is a logarithmic scale.

    Raises ParameterError, which calls the parameter name, for what Optuna does not have.
    """
    from skopt.space import Categorical, Integer, Real

    if isinstance(dimension, Categorical):
        if dimension.prior is not None:
            choices = list(dimension.prior)
            raise ParameterError(f"space: '{name}' has prior={choices}: no sampler weighs categories. Leave prior out.")
        return CategoricalDistribution(tuple(map(_plain, dimension.categories)))
    if not isinstance(dimension, Real | Integer):
        raise ParameterError(f"space: '{name}' is {dimension!r}: give Real, Integer or Categorical of skopt.space.")
    low, high, log = dimension.low, dimension.high, dimension.prior == "log-uniform"
    if log and low <= 0:
        raise ParameterError(f"space: '{name}' is log-uniform from {low}: a logarithmic scale needs low > 0.")
    if isinstance(dimension, Integer):
        return IntDistribution(int(low), int(high), log=log)
    return FloatDistribution(float(low), float(high), log=log)


def _override(name: str, value: object) -> object:
    parameter = _parameter(name, value)
    if isinstance(parameter, Choice):
        return list(parameter.choices)
    return {"low": parameter.low, "high": parameter.high, "log": parameter.log}


def _parameter(name: str, value: object) -> Parameter:
    distribution = distribution_of(name, value) if _is_dimension(value) else value
    match distribution:
        case FloatDistribution(step=None):
            return Float(name, distribution.low, distribution.high, log=distribution.log)
        case IntDistribution(step=1):
            return Int(name, distribution.low, distribution.high, log=distribution.log)
        case CategoricalDistribution():
            return Choice(name, distribution.choices)
        case FloatDistribution() | IntDistribution():
            raise ParameterError(f"space: '{name}' has steps of {distribution.step}. Leave step out, or list choices.")
    raise ParameterError(
        f"space: '{name}' is {value!r}: give a FloatDistribution, IntDistribution or CategoricalDistribution of "
        "Optuna, a Real, Integer or Categorical of scikit-optimize, or a sequence of Float, Int and Choice of "
        "ranktune.solvers."
    )


def _is_dimension(value: object) -> TypeGuard[Dimension]:
    skopt = sys.modules.get("skopt.space")
    return skopt is not None and isinstance(value, skopt.Dimension)


def _name(dimension: Dimension) -> str:
    if not dimension.name:
        raise ParameterError(f"space: {dimension!r} has no name. Give it name=, or give a mapping of names.")
    return str(dimension.name)


def _plain(category: Value) -> Value:
    return category.item() if isinstance(category, np.generic) else category
