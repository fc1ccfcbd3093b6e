"""The trials of a study as a result of scikit-optimize, for its plots."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import FrozenTrial, TrialState
from skopt.space import Categorical, Dimension, Integer, Real
from skopt.utils import cook_estimator, create_result, normalize_dimensions

from ranktune.solvers.core.arrays import JsonView
from ranktune.solvers.core.space import Choice, Int, Parameter, Value, middle
from ranktune.tuner.samplers.space import SOLVER, UnionSpace, clipped

if TYPE_CHECKING:
    from scipy.optimize import OptimizeResult


def skopt_result(space: UnionSpace, trials: Iterable[FrozenTrial], settings: JsonView) -> OptimizeResult:
    """Return what gp_minimize would return of these trials, whose values are maximised: func_vals are negative values.

    An inactive parameter is at the centre of its range, or at its first choice, as in SkoptSampler. A failed trial is
    left out. A trial that was stopped early has its estimate, at most the best value of a trial in full.
    """
    finished = [trial for trial in trials if trial.value is not None and math.isfinite(trial.value)]
    best = max(trial.value or 0.0 for trial in finished if trial.state == TrialState.COMPLETE)
    usual = {name: _centre(space.parameter(name)) for name in space.distributions if name != SOLVER}
    points = [_point(space, usual, trial.params) for trial in finished]
    values = np.array([-min(trial.value or 0.0, best) for trial in finished])
    dimensions = normalize_dimensions([_dimension(*each) for each in space.distributions.items()])
    model = cook_estimator("GP", space=dimensions, random_state=0, n_restarts_optimizer=0)
    with warnings.catch_warnings():  # of bounds that the fit touches
        warnings.simplefilter("ignore")
        model.fit(dimensions.transform(points), values)
    specs = {"function": "ranktune.tune", "args": settings}
    return create_result(points, values, dimensions, models=[model], specs=specs)


def _dimension(name: str, distribution: BaseDistribution) -> Dimension:
    """Return the dimension that a distribution is; a single value is a category."""
    if isinstance(distribution, CategoricalDistribution):
        return Categorical(distribution.choices, name=name)
    assert isinstance(distribution, FloatDistribution | IntDistribution)
    if distribution.single():
        return Categorical((distribution.low,), name=name)
    kind = Integer if isinstance(distribution, IntDistribution) else Real
    return kind(distribution.low, distribution.high, "log-uniform" if distribution.log else "uniform", name=name)


def _point(space: UnionSpace, usual: Mapping[str, Value], params: Mapping[str, Value]) -> list[Value]:
    values = {**usual, **clipped(space.distributions, params)}
    return [values[name] for name in space.distributions]


def _centre(parameter: Parameter) -> Value:
    if isinstance(parameter, Choice):
        return parameter.choices[0]
    return round(middle(parameter)) if isinstance(parameter, Int) else middle(parameter)
