"""SkoptSampler: scikit-optimize's Optimizer as an Optuna sampler, a well-known baseline.

Each suggestion fits a new Optimizer to the whole history, so that it depends on seed, number and history alone.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import FrozenTrial, TrialState
from skopt import Optimizer
from skopt.space import Categorical, Dimension, Integer, Real
from skopt.utils import cook_estimator, create_result, normalize_dimensions

from ranktune.solvers.core.arrays import Floats, JsonView
from ranktune.solvers.core.space import Choice, Int, Parameter, Value, middle
from ranktune.tuner.gp.encoding import SpaceEncoding
from ranktune.tuner.gp.posterior import standardise
from ranktune.tuner.samplers.history import TrialHistory
from ranktune.tuner.samplers.space import SOLVER, UnionSpace, clipped
from ranktune.tuner.samplers.thompson import EncodedSampler

if TYPE_CHECKING:
    from scipy.optimize import OptimizeResult

if TYPE_CHECKING:
    from optuna.samplers import BaseSampler

    from ranktune.tuner.samplers.registry import SamplerPurpose


class SkoptSampler(EncodedSampler):
    """Propose with scikit-optimize's Gaussian process and its default mix of acquisition functions.

    It has no conditional parameters: inactive ones are at the centre, or the first category. Running trials count with
    the mean of the finished ones.
    """

    multi_objective = False

    def _proposed(self, history: TrialHistory, generator: np.random.Generator) -> Floats:
        encoding, trials = history.encoding, history.trials
        if not encoding.varying:
            return encoding.only()
        rows = np.concatenate([trials.rows, trials.pending])
        losses = np.concatenate([-standardise(trials.gains), np.zeros(len(trials.pending))])
        with warnings.catch_warnings():  # of bounds that a fit touches, and of points evaluated before
            warnings.simplefilter("ignore")
            axes = [encoding.axes[j] for j in encoding.varying]
            optimizer = Optimizer(
                [Categorical(range(axis.choices)) if axis.choices else Real(0.0, 1.0) for axis in axes],
                n_initial_points=0,
                random_state=int(generator.integers(2**31)),
            )
            optimizer.tell(_points(encoding, rows), losses.tolist())
            suggested = optimizer.ask()
        full = np.zeros((1, len(encoding.axes)))
        full[0, list(encoding.varying)] = suggested
        row: Floats = encoding.snap(full)[0]
        return row


def _points(encoding: SpaceEncoding, rows: Floats) -> list[list[float | int]]:
    """Return rows in scikit-optimize's format, without constant axes."""
    centres = np.array([0.0 if axis.choices else 0.5 for axis in encoding.axes])
    full = np.clip(np.where(np.isnan(rows), centres, rows), 0.0, [axis.choices or 1.0 for axis in encoding.axes])
    return [[int(row[j]) if encoding.axes[j].choices else float(row[j]) for j in encoding.varying] for row in full]


def made(wanted: SamplerPurpose) -> BaseSampler:
    """Return scikit-optimize's Gaussian process."""
    return SkoptSampler(seed=wanted.seed, startup=wanted.startup, conditions=wanted.space, number=wanted.number)


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
