"""The samplers by name, made for every trial from (seed, number), so that a resumed study continues identically."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ranktune.solvers.core.table import NamedTable, TableEntry
from ranktune.tuner.policy.policy import POLICY

if TYPE_CHECKING:
    from optuna.samplers import BaseSampler

    from ranktune.tuner.samplers.space import UnionSpace


@dataclass(frozen=True)
class SamplerPurpose:
    """What a sampler is made for: the arguments of `make_sampler`.

    space declares the conditions of parameters for thompson and skopt. acquisition is that of thompson. With costs,
    thompson prefers cheap trials among equally good ones, unless its acquisition is "thompson"; others ignore it.
    """

    seed: int
    number: int
    space: UnionSpace | None = None
    startup: int = POLICY.search.startup
    costs: bool = False
    acquisition: str = "mixed"

    @property
    def seed_of_trial(self) -> int:
        """A seed for samplers that keep a state."""
        return int(np.random.SeedSequence([self.seed, self.number]).generate_state(1)[0])


def gp(wanted: SamplerPurpose) -> BaseSampler:
    """Return Optuna's Gaussian process; it draws conditional parameters at random, and would warn of each."""
    from optuna.samplers import GPSampler

    return GPSampler(seed=wanted.seed_of_trial, n_startup_trials=wanted.startup, warn_independent_sampling=False)


def random(wanted: SamplerPurpose) -> BaseSampler:
    """Return Optuna's random sampler."""
    from optuna.samplers import RandomSampler

    return RandomSampler(seed=wanted.seed_of_trial)


def tpe(wanted: SamplerPurpose) -> BaseSampler:
    """Return Optuna's tree-structured Parzen estimator."""
    from optuna.samplers import TPESampler

    return TPESampler(seed=wanted.seed_of_trial, n_startup_trials=wanted.startup)


SAMPLERS: NamedTable[Callable[[SamplerPurpose], BaseSampler]] = NamedTable(
    "sampler",
    {
        "thompson": TableEntry("thompson:made"),
        "random": random,
        "tpe": tpe,
        "gp": TableEntry("registry", library="torch"),
        "skopt": TableEntry("skopt:made", library="skopt"),
    },
    package="ranktune.tuner.samplers",
    remedy="'thompson' needs nothing more.",
)
"""thompson: of RankTune; random, tpe, gp: Optuna's; skopt: scikit-optimize's Gaussian process."""


def make_sampler(name: str, **wanted: Any) -> BaseSampler:
    """Return the sampler for what is `SamplerPurpose`; its random numbers derive from (seed, number) only.

    Raises ParameterError for an unknown name, for gp without PyTorch and for skopt without
    scikit-optimize.
    """
    return SAMPLERS.find(name)(SamplerPurpose(**wanted))
