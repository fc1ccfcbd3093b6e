"""The samplers by name, made for every trial from (seed, number), so that a resumed study continues identically."""

from __future__ import annotations

import importlib.util

import numpy as np
from optuna.samplers import BaseSampler, GPSampler, RandomSampler, TPESampler

from ranktune.solvers.core.errors import ParameterError, nearest
from ranktune.tuner.gp.proposal import ACQUISITIONS as ACQUISITIONS
from ranktune.tuner.gp.proposal import MIXED
from ranktune.tuner.samplers.space import UnionSpace
from ranktune.tuner.samplers.thompson import ThompsonSampler

SAMPLERS = ("thompson", "random", "tpe", "gp", "skopt")
"""thompson: ours; random, tpe, gp: Optuna's; skopt: scikit-optimize's Gaussian process."""
STARTUP, STARTUP_APART = 10, 5
"""Quasi-random trials before the sampler uses its model: in the space of all solvers, and in that of one."""


def make_sampler(
    name: str,
    *,
    seed: int,
    number: int,
    space: UnionSpace | None = None,
    startup: int = 10,
    costs: bool = False,
    acquisition: str = MIXED,
) -> BaseSampler:
    """Return the sampler for trial number; its random numbers derive from (seed, number) only.

    space declares the conditions of parameters for thompson and skopt. acquisition is that of thompson. With costs,
    thompson prefers cheap trials among equally good ones, unless its acquisition is "thompson"; others ignore it.
    Raises ParameterError for an unknown name, for gp without PyTorch and for skopt without
    scikit-optimize.
    """
    own_seed = int(np.random.SeedSequence([seed, number]).generate_state(1)[0])  # for samplers that keep a state
    match name:
        case "thompson":
            return ThompsonSampler(
                seed=seed, startup=startup, conditions=space, acquisition=acquisition, number=number, costs=costs
            )
        case "random":
            return RandomSampler(seed=own_seed)
        case "tpe":
            return TPESampler(seed=own_seed, n_startup_trials=startup)
        case "gp":
            if importlib.util.find_spec("torch") is None:
                raise ParameterError(
                    "sampler 'gp' is Optuna's GPSampler, which needs PyTorch, and that is not installed. "
                    "Install it (pip install torch), or take sampler 'thompson', which needs nothing more."
                )
            # It draws conditional parameters at random, and would warn for each parameter of each trial.
            return GPSampler(seed=own_seed, n_startup_trials=startup, warn_independent_sampling=False)
        case "skopt":
            if importlib.util.find_spec("skopt") is None:
                raise ParameterError(
                    "sampler 'skopt' is scikit-optimize's, which cannot be loaded here: pip install scikit-optimize. "
                    "Or take sampler 'thompson', which needs nothing more."
                )
            from ranktune.tuner.samplers.skopt import SkoptSampler  # imports for most of a second

            return SkoptSampler(seed=seed, startup=startup, conditions=space, number=number)
    raise ParameterError(f"unknown sampler '{name}'. {nearest(name, SAMPLERS)}")
