"""Optimisers of other libraries as Optuna samplers that are made once a run. Their libraries need not be installed.

Those of Optuna and of optuna-integration are samplers. HEBO, SMAC and Ax are asked for the values of all parameters
that a problem can have. They get a finished trial with a default of what it did not have: the middle or the first
category; HEBO gets what it suggested. SMAC and HEBO begin with ten points, as ours does.
"""

from __future__ import annotations

import logging
import math
import random
import shutil
import tempfile
import warnings
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from io import StringIO
from typing import Protocol, TypeAlias

import numpy as np
import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.samplers import BaseSampler, CmaEsSampler, GPSampler, NSGAIISampler, RandomSampler, TPESampler
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from ranktune.solvers.core.space import Value
from ranktune.studies.benchmarks.search.problems import Params, Problem

STARTUP = 10
ENOUGH = 30
"""Random trials without a new parameter after which all parameters of a problem are taken as known."""
Space: TypeAlias = Mapping[str, BaseDistribution]


class Optimiser(Protocol):
    """What HEBO, SMAC and Ax have in common."""

    def ask(self) -> Params:
        """Return values of all parameters."""

    def tell(self, asked: Params | None, params: Params, loss: float) -> None:
        """Take the loss of values of all parameters, and what was asked for it, if it was."""


class AskTellSampler(BaseSampler):
    """An optimiser with the methods ask and tell, as a sampler of one study with one objective."""

    def __init__(self, optimiser: Optimiser, space: Space, seed: int) -> None:
        self._optimiser, self._space = optimiser, dict(space)
        self._defaults = {name: default(distribution) for name, distribution in space.items()}
        self._told: set[int] = set()
        self._asked: dict[int, Params] = {}
        self._random = RandomSampler(seed=seed)

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """Return all parameters."""
        return self._space

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Value]:
        """Tell the optimiser what has ended, and ask it."""
        with warnings.catch_warnings(), redirect_stdout(StringIO()):  # HEBO prints
            warnings.simplefilter("ignore")
            for ended in study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,)):
                if ended.number not in self._told:
                    self._told.add(ended.number)
                    asked, had = self._asked.pop(ended.number, None), self._defaults | ended.params
                    self._optimiser.tell(asked, had, ended.values[0])
            self._asked[trial.number] = self._optimiser.ask()
            return dict(self._asked[trial.number])

    def sample_independent(self, study: Study, trial: FrozenTrial, name: str, distribution: BaseDistribution) -> Value:
        """Return a random value of a parameter that was not known."""
        value: Value = self._random.sample_independent(study, trial, name, distribution)
        return value


def default(distribution: BaseDistribution) -> Value:
    """Return the middle of a distribution on its scale, or its first category."""
    if isinstance(distribution, CategoricalDistribution):
        return distribution.choices[0]
    assert isinstance(distribution, FloatDistribution | IntDistribution)
    low, high = distribution.low, distribution.high
    middle = math.sqrt(low * high) if distribution.log else (low + high) / 2.0
    return round(middle) if isinstance(distribution, IntDistribution) else middle


@lru_cache
def space_of(problem: Problem) -> Space:
    """Return all parameters that a problem can have: those it declares, or those of random trials."""
    if problem.space is not None:
        return problem.space.distributions
    study, space, since = optuna.create_study(sampler=RandomSampler(seed=0)), dict[str, BaseDistribution](), 0
    while since < ENOUGH:
        trial = study.ask()
        problem.loss(trial)
        since = since + 1 if trial.distributions.keys() <= space.keys() else 0
        space |= trial.distributions
    return space


class _Hebo:
    """HEBO. It also draws from a generator of pymoo that has no seed, so that its runs do not repeat."""

    def __init__(self, space: Space, seed: int) -> None:
        from hebo.design_space.design_space import DesignSpace
        from hebo.optimizers.hebo import HEBO

        self._seed, self._asked = seed, 0
        self._optimiser = HEBO(
            DesignSpace().parse([_of_hebo(name, of) for name, of in space.items()]),
            rand_sample=STARTUP,
            scramble_seed=seed,
        )

    def ask(self) -> Params:
        import torch

        seed = int(np.random.SeedSequence([self._seed, self._asked]).generate_state(1)[0])
        self._asked += 1
        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002
        torch.manual_seed(seed)
        suggested = self._optimiser.suggest(1).iloc[0]
        return {str(name): _plain(value) for name, value in suggested.items()}

    def tell(self, asked: Params | None, params: Params, loss: float) -> None:
        import pandas as pd

        known = asked or params  # defaults can be constant, of which its scaling makes NaN
        self._optimiser.observe(pd.DataFrame([dict(known)]), np.array([[loss]]))


def _of_hebo(name: str, of: BaseDistribution) -> dict[str, object]:
    if isinstance(of, CategoricalDistribution):
        return {"name": name, "type": "cat", "categories": list(of.choices)}
    assert isinstance(of, FloatDistribution | IntDistribution)
    whole = isinstance(of, IntDistribution)
    kind = ("pow_int" if of.log else "int") if whole else "pow" if of.log else "num"
    return {"name": name, "type": kind, "lb": of.low, "ub": of.high}


class _Smac:
    """SMAC with its facade for hyperparameters."""

    def __init__(self, space: Space, seed: int) -> None:
        from ConfigSpace import Categorical, ConfigurationSpace, Float, Integer
        from smac import HyperparameterOptimizationFacade, Scenario

        def parameter(name: str, of: BaseDistribution) -> object:
            if isinstance(of, CategoricalDistribution):
                return Categorical(name, list(of.choices))
            assert isinstance(of, FloatDistribution | IntDistribution)
            return (Integer if isinstance(of, IntDistribution) else Float)(name, (of.low, of.high), log=of.log)

        self._space = ConfigurationSpace(seed=seed)
        self._space.add([parameter(name, of) for name, of in space.items()])
        folder = tempfile.mkdtemp()
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        facade = HyperparameterOptimizationFacade
        scenario = Scenario(self._space, output_directory=folder, deterministic=True, n_trials=100_000, seed=seed)
        design = facade.get_initial_design(scenario, n_configs=STARTUP)
        self._facade = facade(scenario, _unused, initial_design=design, logging_level=False, overwrite=True)
        self._seed = 0

    def ask(self) -> Params:
        asked = self._facade.ask()
        self._seed = asked.seed
        return {name: _plain(value) for name, value in dict(asked.config).items()}

    def tell(self, asked: Params | None, params: Params, loss: float) -> None:
        from ConfigSpace import Configuration
        from smac.runhistory import TrialInfo, TrialValue

        known = TrialInfo(Configuration(self._space, values=dict(params)), seed=self._seed)
        self._facade.tell(known, TrialValue(cost=loss), save=False)


def _unused(config: object, seed: int = 0) -> float:
    raise NotImplementedError


class _Ax:
    """Ax with its default strategy."""

    def __init__(self, space: Space, seed: int) -> None:
        from ax.api.client import Client
        from ax.api.configs import ChoiceParameterConfig, RangeParameterConfig

        def parameter(name: str, of: BaseDistribution) -> object:
            if isinstance(of, CategoricalDistribution):
                return ChoiceParameterConfig(name=name, values=list(of.choices), parameter_type="str", is_ordered=False)
            assert isinstance(of, FloatDistribution | IntDistribution)
            whole = isinstance(of, IntDistribution)
            return RangeParameterConfig(
                name=name, bounds=(of.low, of.high), parameter_type="int" if whole else "float",
                scaling="log" if of.log else "linear",
            )  # fmt: skip

        logging.getLogger("ax").setLevel(logging.ERROR)
        self._client = Client(random_seed=seed)
        self._client.configure_experiment(parameters=[parameter(name, of) for name, of in space.items()])
        self._client.configure_optimization(objective="-loss")
        self._numbers: list[tuple[Params, int]] = []

    def ask(self) -> Params:
        ((number, params),) = self._client.get_next_trials(max_trials=1).items()
        self._numbers.append((params, number))
        return dict(params)

    def tell(self, asked: Params | None, params: Params, loss: float) -> None:
        number = next((number for known, number in self._numbers if known == asked), None)
        if number is None or asked != params:
            if number is not None:
                self._client.mark_trial_abandoned(trial_index=number)
            number = self._client.attach_trial(parameters=dict(params))
        self._numbers = [(known, place) for known, place in self._numbers if known != asked]
        self._client.complete_trial(trial_index=number, raw_data={"loss": loss})


def _plain(value: object) -> object:
    """Return a number or text of numpy as that of Python."""
    return value.item() if isinstance(value, np.generic) else value


@dataclass(frozen=True)
class Peer:
    """How a sampler is made: from a problem and a seed.

    libraries are the modules that it needs. several: whether it takes several objectives, and limits: whether it sees
    limits that are set on trials.
    """

    make: Callable[[Problem, int], BaseSampler]
    libraries: Sequence[str] = ()
    several: bool = False
    limits: bool = False

    def sampler(self, problem: Problem, seed: int) -> BaseSampler:
        """Return the sampler, without warnings of what its library calls experimental."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return self.make(problem, seed)

    @property
    def missing(self) -> list[str]:
        """The libraries that are not installed."""
        return absent(self.libraries)


def absent(libraries: Iterable[str]) -> list[str]:
    """Return the modules that are not installed; "" is none."""
    return [library for library in libraries if library and find_spec(library) is None]


def lacks(problem: Problem) -> list[str]:
    """Return the module and the file that a problem needs and that are not there."""
    files = [] if problem.file is None or problem.file.is_file() else [problem.file.name]
    return absent([problem.library]) + files


def _told(optimiser: Callable[[Space, int], Optimiser]) -> Callable[[Problem, int], BaseSampler]:
    return lambda problem, seed: AskTellSampler(optimiser(space_of(problem), seed), space_of(problem), seed)


def _botorch(problem: Problem, seed: int) -> BaseSampler:
    from optuna_integration import BoTorchSampler

    independent = RandomSampler(seed=seed)
    sampler: BaseSampler = BoTorchSampler(n_startup_trials=STARTUP, seed=seed, independent_sampler=independent)
    return sampler


PEERS: Mapping[str, Peer] = {
    "nsga2": Peer(lambda _, seed: NSGAIISampler(population_size=20, seed=seed), several=True, limits=True),
    "cmaes": Peer(lambda _, seed: CmaEsSampler(warn_independent_sampling=False, seed=seed), ["cmaes"]),
    "optuna-tpe": Peer(lambda _, seed: TPESampler(multivariate=True, group=True, seed=seed), (), True, True),
    "optuna-gp": Peer(lambda _, seed: GPSampler(seed=seed, warn_independent_sampling=False), ["torch"], True, True),
    "botorch": Peer(_botorch, ["torch", "botorch", "optuna_integration"]),
    "hebo": Peer(_told(_Hebo), ["hebo"]),
    "smac": Peer(_told(_Smac), ["smac"]),
    "ax": Peer(_told(_Ax), ["ax"]),
}
"""Samplers that studies do not offer, each with its defaults and a state for the whole run."""
