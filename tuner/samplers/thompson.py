"""ThompsonSampler: the optimiser as an Optuna sampler, for mixed and conditional spaces.

Works in any Optuna study, of one objective or several, with constraints or without. Suggestions depend on the seed, the
trial's number and the finished and running trials, and on nothing else: not on the process, the thread or what the
sampler did before.
"""

from __future__ import annotations

import threading
from abc import abstractmethod
from typing import Any

import numpy as np
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler
from optuna.study import Study
from optuna.trial import FrozenTrial

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.errors import ParameterError, nearest
from ranktune.tuner.gp.encoding import keys
from ranktune.tuner.gp.proposal import ACQUISITIONS, COST_EXPONENT, DRAWS, posterior_means, propose
from ranktune.tuner.gp.search import quasi_random
from ranktune.tuner.samplers.history import (
    Activation,
    Constraints,
    Declared,
    History,
    past,
    read,
    seen_distributions,
    uniform_value,
)

START = 0x5EED
"""Tells the stream of the first, quasi-random trials, which they share, from those of single trials."""


class EncodedSampler(BaseSampler):
    """A sampler that sees trials as rows of numbers; a subclass says how to propose the next row.

    seed is of everything random (None: a fresh one). The first startup trials, or rather those until so many have
    a value, are spread quasi-randomly. conditions tell which parameters are active: a UnionSpace, or a function
    from the values of all parameters to the names of the active ones; without, that is learnt from the trials.
    number stands for the trial's own number where a study in memory counts differently. constraints_func is Optuna's:
    from a finished trial to numbers that must not be above 0; without, what trial.set_constraint has set is used.
    """

    several = True
    """Whether it knows what to do with several objectives."""

    def __init__(
        self,
        *,
        seed: int | None = None,
        startup: int = 10,
        conditions: Declared | Activation | None = None,
        number: int | None = None,
        constraints_func: Constraints | None = None,
    ) -> None:
        if startup < 0:
            raise ParameterError(f"startup={startup}: it must be a whole number of at least 0.")
        if seed is not None and seed < 0:
            raise ParameterError(f"seed={seed}: it must be a whole number of at least 0, or None.")
        self._seed = int(np.random.SeedSequence().generate_state(1)[0]) if seed is None else int(seed)
        self._startup = startup
        self._conditions = conditions
        self._number = number
        self._constraints = constraints_func
        self._suggested: dict[str, dict[int, dict[str, Any]]] = {}
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what belongs to this process alone."""
        return self.__dict__ | {"_lock": None, "_suggested": {}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Make a new lock."""
        self.__dict__.update(state)
        self._lock = threading.Lock()

    @abstractmethod
    def _proposed(self, history: History, generator: np.random.Generator) -> Floats:
        """Return the masked row, (d,), to try after at least one complete trial."""

    def reseed_rng(self) -> None:
        """Do nothing: threads and processes never share random numbers, because trials never share a number."""

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """Return all parameters that are declared or that any trial had: the union, not the intersection."""
        self._check_single(study)
        return self._space(study, trial)

    def _space(self, study: Study, trial: FrozenTrial | None) -> dict[str, BaseDistribution]:
        if self._conditions is not None and not callable(self._conditions):
            return dict(self._conditions.distributions)
        return seen_distributions(past(study, trial))

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Return values for the active parameters of search_space.

        One thread at a time, which then tells the next what its trial will ask for: the storage learns that only
        bit by bit, and two threads that know nothing of each other may well suggest the same corner.
        """
        self._check_single(study)
        if not search_space:
            return {}
        with self._lock:
            suggested = self._suggested.get(study.study_name, {})
            history = read(study, trial, search_space, self._conditions, suggested, self._constraints)
            params = history.params(self._row(history, self._number_of(trial)))
            still_running = {number: values for number, values in suggested.items() if number in history.running}
            self._suggested[study.study_name] = still_running | {trial.number: params}
        return params

    def _row(self, history: History, number: int) -> Floats:
        """Return the masked row, (d,), for the trial with that number."""
        generator = np.random.default_rng([self._seed, number])
        if history.informed < max(self._startup, 1):
            return self._spread(history, number, generator)
        return self._proposed(history, generator)

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """Return a uniformly random value: for parameters that no trial had yet."""
        self._check_single(study)
        name = int.from_bytes(param_name.encode(), "little")
        generator = np.random.default_rng([self._seed, self._number_of(trial), name])
        return uniform_value(param_name, param_distribution, generator.random())

    def _check_single(self, study: Study) -> None:
        if len(study.directions) > 1 and not self.several:
            raise ParameterError(
                f"{type(self).__name__} improves one objective, and the study has {len(study.directions)}. "
                "Take one of Optuna's multi-objective samplers, or one objective."
            )

    def _number_of(self, trial: FrozenTrial) -> int:
        return trial.number if self._number is None else self._number

    def _spread(self, history: History, number: int, generator: np.random.Generator) -> Floats:
        """Return the number-th quasi-random row, or a random one where that is taken."""
        encoding = history.encoding
        shared = np.random.default_rng([self._seed, START])
        rows = encoding.from_unit(quasi_random(1, len(encoding.axes), shared, skip=number))
        rows = encoding.masked(np.concatenate([rows, encoding.from_unit(generator.random((64, len(encoding.axes))))]))
        free = [row for row, key in zip(rows, keys(rows), strict=True) if key not in history.taken]
        return free[0] if free else np.asarray(rows[0])


class ThompsonSampler(EncodedSampler):
    """Propose what improves most on functions drawn from the Gaussian-process posteriors of objectives and constraints.

    acquisition: "thompson" does that, and with one objective, no constraints and several draws averages over all
    functions instead, in closed form, in about every other decision; with one objective, no constraints and no
    costs it looks in a trust region alone, likewise. "ei" always averages and looks everywhere, for one objective
    without constraints.
    draws: how many functions; 1 is Thompson sampling as it was first thought of, more look less far and find sooner.
    costs: divide improvement by a power of what a trial is expected to cost, told from the seconds that trials took
    (user attribute "seconds"); without those, costs change nothing. replicates: where noise leaves open which trial is
    best, try one again, with one objective and no constraints.

    expected_gain: after a suggestion, how much better than the best tried it is expected to be, in units of the
    objective and without its noise; None while trials are spread, where there are several objectives, and after a
    suggestion that looked in the trust region alone.

    Trials that ended without a value, were pruned or are running are accounted for (ranktune.tuner.samplers.history),
    and no configuration is suggested twice while others exist, unless for replicates. Raises ParameterError (a
    ValueError) for options that cannot be, and for "ei" where there are several objectives or constraints.

    Source: Thompson 1933; Wilson et al. 2020, "Efficiently Sampling Functions from Gaussian Process Posteriors"; Letham
    et al. 2019, "Constrained Bayesian Optimization with Noisy Experiments"; Eriksson et al. 2019, "Scalable Global
    Optimization via Local Bayesian Optimization".
    """

    def __init__(
        self,
        *,
        seed: int | None = None,
        startup: int = 10,
        conditions: Declared | Activation | None = None,
        acquisition: str = "thompson",
        draws: int = DRAWS,
        number: int | None = None,
        constraints_func: Constraints | None = None,
        costs: bool = False,
        replicates: bool = False,
    ) -> None:
        super().__init__(
            seed=seed, startup=startup, conditions=conditions, number=number, constraints_func=constraints_func
        )
        if acquisition not in ACQUISITIONS:
            raise ParameterError(f"unknown acquisition '{acquisition}'. {nearest(acquisition, ACQUISITIONS)}")
        if draws < 1:
            raise ParameterError(f"draws={draws}: it must be a whole number of at least 1.")
        self._acquisition = acquisition
        self._draws = int(draws)
        self._power = COST_EXPONENT if costs else 0.0
        self._replicates = replicates
        self.expected_gain: float | None = None

    def _row(self, history: History, number: int) -> Floats:
        self.expected_gain = None
        return super()._row(history, number)

    def _proposed(self, history: History, generator: np.random.Generator) -> Floats:
        if self._acquisition == "ei" and not history.trials.is_single_objective:
            raise ParameterError(
                "acquisition 'ei' knows one objective and no constraints. Take 'thompson', which knows several."
            )
        proposal = propose(
            history.encoding, history.trials, history.taken, generator, self._acquisition, self._draws,
            power=self._power, replicates=self._replicates,
        )  # fmt: skip
        self.expected_gain = proposal.gain
        return proposal.row

    def believed_best(self, study: Study) -> FrozenTrial:
        """Return the complete trial whose configuration is expected to be best, noise and neighbours considered.

        Unlike the best observed value, it is not simply the luckiest of many. Of trials that do not satisfy the
        constraints, none is best while one does; if none does, the one that breaks them least. Raises ParameterError
        where no trial is complete, and in a study with several objectives: its best_trials are a front.
        """
        if len(study.directions) > 1:
            raise ParameterError(f"the study has {len(study.directions)} objectives: see its best_trials.")
        history = read(study, None, self._space(study, None), self._conditions, function=self._constraints)
        if not history.completed:
            raise ParameterError("no trial of the study is complete, so none is best.")
        trials = history.trials
        broken = np.sum([np.maximum(np.nan_to_num(c, nan=0.0), 0.0) for c in trials.constraints], axis=0)
        broken = np.where(history.complete, broken, np.inf)
        expected = np.where(broken == broken.min(), posterior_means(history.encoding, trials), -np.inf)
        number = int(history.numbers[np.argmax(expected)])
        return next(t for t in study.get_trials(deepcopy=False) if t.number == number)
