"""ThompsonSampler: the optimiser as an Optuna sampler, for mixed and conditional search spaces.

Suggestions depend on the seed, the trial's number and the finished and running trials alone: not on the process, the
thread or earlier suggestions.
"""

from __future__ import annotations

import threading
from abc import abstractmethod
from typing import TYPE_CHECKING

import numpy as np
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler
from optuna.study import Study
from optuna.trial import FrozenTrial

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.errors import ParameterError, nearest
from ranktune.tuner.gp.encoding import covered
from ranktune.tuner.gp.proposal import (
    ACQUISITIONS,
    COST_EXPONENT,
    EI,
    MAX_TRIALS,
    MIXED,
    Proposal,
    posterior_means,
    propose,
)
from ranktune.tuner.gp.search import quasi_random
from ranktune.tuner.samplers.history import (
    DeclaredSpace,
    ParamValue,
    TrialHistory,
    past,
    read,
    seen_distributions,
    uniform_value,
)

if TYPE_CHECKING:
    from ranktune.tuner.samplers.registry import SamplerPurpose

START = 0x5EED
"""Stream of random numbers that all quasi-random trials share."""


class EncodedSampler(BaseSampler):
    """Base of samplers that work on encoded rows; a subclass proposes the next row."""

    multi_objective = True
    """Whether studies with several objectives are supported."""

    def __init__(
        self,
        *,
        seed: int | None = None,
        startup: int = 10,
        conditions: DeclaredSpace | None = None,
        number: int | None = None,
    ) -> None:
        if startup < 0:
            raise ParameterError(f"startup={startup}: it must be a whole number of at least 0.")
        if seed is not None and seed < 0:
            raise ParameterError(f"seed={seed}: it must be a whole number of at least 0, or None.")
        self._seed = int(np.random.SeedSequence().generate_state(1)[0]) if seed is None else int(seed)
        self._startup = startup
        self._conditions = conditions
        self._number = number
        self._suggested: dict[str, dict[int, dict[str, ParamValue]]] = {}
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, object]:
        """Return the state without what belongs to this process."""
        return self.__dict__ | {"_lock": None, "_suggested": {}}

    def __setstate__(self, state: dict[str, object]) -> None:
        """Make a new lock."""
        self.__dict__.update(state)
        self._lock = threading.Lock()

    @abstractmethod
    def _proposed(self, history: TrialHistory, generator: np.random.Generator) -> Floats:
        """Return the full row, (d,), to try, given at least one complete trial; NaN where it asks for nothing."""

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """Return all parameters that are declared, or that any trial had: the union, not the intersection."""
        self._check_objectives(study)
        return self._space(study, trial)

    def _check_objectives(self, study: Study) -> None:
        if len(study.directions) > 1 and not self.multi_objective:
            raise ParameterError(
                f"{type(self).__name__} improves one objective, and the study has {len(study.directions)}. "
                "Take one of Optuna's multi-objective samplers, or one objective."
            )

    def _space(self, study: Study, trial: FrozenTrial | None) -> dict[str, BaseDistribution]:
        if self._conditions is not None:
            return dict(self._conditions.distributions)
        return seen_distributions(past(study, trial))

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, ParamValue]:
        """Return values for the active parameters of search_space, or for all of them where activity is learnt.

        Values of parameters that the trial does not ask for are not used. Threads take turns and share their
        suggestions: the storage gets the parameters of a running trial one by one, and without them two threads could
        suggest the same configuration.
        """
        if not search_space:
            return {}
        with self._lock:
            suggested = self._suggested.get(study.study_name, {})
            history = read(study, trial, search_space, self._conditions, suggested)
            full = self._row(history, self._number_of(trial))
            is_active = history.encoding.activity(np.nan_to_num(full, nan=-1.0)[None])[0]
            active = history.params(np.where(is_active, full, np.nan))
            still_running = {number: values for number, values in suggested.items() if number in history.running}
            self._suggested[study.study_name] = still_running | {trial.number: active}
        return history.params(full) if self._conditions is None else active

    def _row(self, history: TrialHistory, number: int) -> Floats:
        """Return the full row, (d,), for the trial with that number."""
        generator = np.random.default_rng([self._seed, number])
        if history.informed < max(self._startup, 1):
            return self._spread(history, number, generator)
        return self._proposed(history, generator)

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> ParamValue:
        """Return a uniformly random value, for parameters that no trial had yet."""
        self._check_objectives(study)
        name = int.from_bytes(param_name.encode(), "little")
        generator = np.random.default_rng([self._seed, self._number_of(trial), name])
        return uniform_value(param_name, param_distribution, generator.random())

    def _number_of(self, trial: FrozenTrial) -> int:
        return trial.number if self._number is None else self._number

    def _spread(self, history: TrialHistory, number: int, generator: np.random.Generator) -> Floats:
        """Return the number-th quasi-random row, or a random one if that is taken."""
        encoding = history.encoding
        shared = np.random.default_rng([self._seed, START])
        rows = encoding.from_unit(quasi_random(1, len(encoding.axes), shared, skip=number))
        rows = np.concatenate([rows, encoding.from_unit(generator.random((64, len(encoding.axes))))])
        free = rows[~covered(rows, history.tried)]
        if not len(free) and encoding.is_small:
            every = generator.permutation(encoding.mesh())
            free = every[~covered(every, history.tried)]
        return np.asarray(free[0] if len(free) else rows[0])


class ThompsonSampler(EncodedSampler):
    """Bayesian optimisation with a Gaussian process and Thompson sampling, for any Optuna study.

    After `startup` quasi-random trials every suggestion maximises an acquisition function of a Gaussian process, whose
    hyperparameters are sampled from their posterior up to 150 trials, and the most probable ones beyond. With
    acquisition "thompson" that function is one draw from the process: Thompson sampling, also with costs, which are
    then not used, and with parallel trials. With "ei" it is the expected improvement. With "mixed", the default, it is
    at random the expected improvement or the mean of 16 draws, and a share of the suggestions, which follows where
    improvements were found, is restricted to a trust region around the best trial. Where categories decide which
    parameters are active, one more draw chooses these for the mean. With several objectives or constraints it is the
    mean improvement over 64 draws.

    It handles numbers on linear and logarithmic scales, integers, categories, conditional parameters, constraints and
    several objectives. Pruned, failed and running trials are used (see ranktune.tuner.samplers.history). No
    configuration, which is what a trial asked for, is suggested twice while others exist.

    Parameters
    ----------
    seed : int or None, default=None
        Seed of all random numbers; None draws one.
    startup : int, default=10
        Trials with a value before the model is used; until then suggestions are quasi-random.
    conditions : UnionSpace or None, default=None
        The declared space, which says which parameters are active. None learns it from what the trials asked for: rules
        on categories, integers, thresholds and several of them.
    acquisition : {"mixed", "thompson", "ei"}, default="mixed"
        What a suggestion maximises, see above. With several objectives "thompson" weighs a draw of each in one random
        direction, "mixed" averages over 64 directions, and there is no "ei"; with constraints, draws of the constraints
        must hold, and there is no "ei" either.
    number : int or None, default=None
        Number of the trial to suggest for, where the study does not count it itself.
    costs : bool, default=False
        Divide the improvement by a power of the expected cost of a trial, estimated from the user attribute "seconds".
        "thompson" does not use it.

    Attributes
    ----------
    expected_gain : float or None
        Expected improvement of the last suggestion over the best trial so far, noise-free and in units of the
        objective; of "thompson", and of "mixed" where it draws, at the hyperparameters of the draws. None after
        quasi-random suggestions, with several objectives or constraints, and where only a part of the space was
        searched.
    origin : dict
        What the last suggestion maximises, and what it is expected to gain, wherever it was searched.

    Raises
    ------
    ParameterError
        For invalid parameters, and for "ei" in a study with several objectives or constraints.

    References
    ----------
    .. [1] Thompson, "On the Likelihood that One Unknown Probability Exceeds Another in View of the Evidence of Two
       Samples", Biometrika 25, 1933.
    .. [2] Wilson et al., "Efficiently Sampling Functions from Gaussian Process Posteriors", ICML 2020.
    .. [3] Letham et al., "Constrained Bayesian Optimization with Noisy Experiments", Bayesian Analysis 14, 2019.
    .. [4] Eriksson et al., "Scalable Global Optimization via Local Bayesian Optimization", NeurIPS 2019.

    Examples
    --------
    >>> import optuna
    >>> from ranktune.tuner import ThompsonSampler
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> study = optuna.create_study(sampler=ThompsonSampler(seed=0, startup=4))
    >>> study.optimize(lambda trial: (trial.suggest_float("x", 0.0, 1.0) - 0.3) ** 2, n_trials=12)
    >>> round(study.best_params["x"], 2)
    0.3
    """

    def __init__(
        self,
        *,
        seed: int | None = None,
        startup: int = 10,
        conditions: DeclaredSpace | None = None,
        acquisition: str = MIXED,
        number: int | None = None,
        costs: bool = False,
    ) -> None:
        super().__init__(seed=seed, startup=startup, conditions=conditions, number=number)
        if acquisition not in ACQUISITIONS:
            raise ParameterError(f"unknown acquisition '{acquisition}'. {nearest(acquisition, ACQUISITIONS)}")
        self._acquisition = acquisition
        self._power = COST_EXPONENT if costs else 0.0
        self._proposal: Proposal | None = None

    @property
    def origin(self) -> dict[str, object]:
        """What the last suggestion maximises, and what it alone is expected to gain."""
        last = self._proposal
        return {"origin": "quasi-random"} if last is None else {"origin": last.origin, "expected_gain": last.gain}

    @property
    def expected_gain(self) -> float | None:
        """The expected improvement of the last suggestion, which bounds what can be gained."""
        last = self._proposal
        return last.gain if last and last.widely else None

    def _row(self, history: TrialHistory, number: int) -> Floats:
        self._proposal = None
        return super()._row(history, number)

    def _proposed(self, history: TrialHistory, generator: np.random.Generator) -> Floats:
        if self._acquisition == EI and not history.trials.is_single_objective:
            raise ParameterError(
                "acquisition 'ei' supports one objective and no constraints. Take 'mixed' or 'thompson', which support "
                "several."
            )
        proposal = propose(
            history.encoding, history.trials, history.tried, generator, self._acquisition,
            power=self._power,
        )  # fmt: skip
        self._proposal = proposal
        return proposal.full

    def posterior_best(self, study: Study) -> FrozenTrial:
        """Return the complete trial with the best posterior mean.

        Where values are noisy, the best observed value is biased. Feasible trials come before others; if
        there are none, the trial of smallest total violation is returned.

        Parameters
        ----------
        study : optuna.Study
            A study with one objective and at least one complete trial.

        Raises
        ------
        ParameterError
            Without a complete trial, and for several objectives, which have a Pareto front (`study.best_trials`).
        """
        if len(study.directions) > 1:
            raise ParameterError(f"the study has {len(study.directions)} objectives: see its best_trials.")
        history = read(study, None, self._space(study, None), self._conditions)
        if not history.completed:
            raise ParameterError("no trial of the study is complete, so none is best.")
        trials = history.trials
        broken = np.sum([np.maximum(np.nan_to_num(c, nan=0.0), 0.0) for c in trials.constraints], axis=0)
        broken = np.where(history.complete, broken, np.inf)
        places = trials.window(MAX_TRIALS, broken == broken.min())
        expected = posterior_means(history.encoding, trials.chosen(places))
        expected = np.where(broken[places] == broken.min(), expected, -np.inf)
        number = int(history.numbers[places[np.argmax(expected)]])
        return next(t for t in study.get_trials(deepcopy=False) if t.number == number)


def made(wanted: SamplerPurpose) -> BaseSampler:
    """Return RankTune's sampler."""
    return ThompsonSampler(
        seed=wanted.seed,
        startup=wanted.startup,
        conditions=wanted.space,
        acquisition=wanted.acquisition,
        number=wanted.number,
        costs=wanted.costs,
    )
