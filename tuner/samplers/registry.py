"""The samplers by name, made anew for every trial from (seed, number): so a resumed study goes on as it would have."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from optuna.samplers import BaseSampler, GPSampler, RandomSampler, TPESampler

from ranktune.solvers.core.errors import ParameterError, nearest
from ranktune.tuner.samplers.space import UnionSpace
from ranktune.tuner.samplers.thompson import ThompsonSampler

STARTUP, STARTUP_APART = 10, 5
"""Trials that are spread over a space before the sampler learns from them: over that of all solvers, and of one."""


@dataclass(frozen=True)
class _Order:
    """What make_sampler was asked for."""

    seed: int
    number: int
    space: UnionSpace | None
    startup: int
    costs: bool

    def own_seed(self) -> int:
        """Return a seed for this trial alone, for samplers that keep a state."""
        return int(np.random.SeedSequence([self.seed, self.number]).generate_state(1)[0])


def _thompson(order: _Order) -> BaseSampler:
    return ThompsonSampler(
        seed=order.seed, startup=order.startup, conditions=order.space, number=order.number, costs=order.costs
    )


def _skopt(order: _Order) -> BaseSampler:
    from ranktune.tuner.samplers.skopt import SkoptSampler  # takes most of a second to import, for those who want it

    return SkoptSampler(seed=order.seed, startup=order.startup, conditions=order.space, number=order.number)


def _random(order: _Order) -> BaseSampler:
    return RandomSampler(seed=order.own_seed())


def _tpe(order: _Order) -> BaseSampler:
    return TPESampler(seed=order.own_seed(), n_startup_trials=order.startup)


def _gp(order: _Order) -> BaseSampler:
    if importlib.util.find_spec("torch") is None:
        raise ParameterError(
            "sampler 'gp' is Optuna's GPSampler, which needs PyTorch, and that is not installed. "
            "Install it (pip install torch), or take sampler 'thompson', which needs nothing more."
        )
    # What depends on another parameter it draws at random, and it would say so for each parameter of each trial.
    return GPSampler(seed=order.own_seed(), n_startup_trials=order.startup, warn_independent_sampling=False)


SAMPLERS: dict[str, Callable[[_Order], BaseSampler]] = {
    "thompson": _thompson,
    "random": _random,
    "tpe": _tpe,
    "gp": _gp,
    "skopt": _skopt,
}
"""thompson: ours; random, tpe, gp: Optuna's; skopt: scikit-optimize's Gaussian process."""


def make_sampler(
    name: str, *, seed: int, number: int, space: UnionSpace | None = None, startup: int = 10, costs: bool = False
) -> BaseSampler:
    """Return the sampler that suggests trial number; what is random in it derives from (seed, number) only.

    space tells thompson and skopt which parameters are active where; with costs, thompson prefers what is cheap among
    what is as good (others know nothing of costs). Raises ParameterError for an unknown name (with
    the nearest), and for gp where PyTorch is missing.
    """
    if name not in SAMPLERS:
        raise ParameterError(f"unknown sampler '{name}'. {nearest(name, SAMPLERS)}")
    return SAMPLERS[name](_Order(seed, number, space, startup, costs))
