"""The searches of a study in memory, and what is tried before their samplers suggest."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution
from optuna.samplers import BaseSampler
from optuna.storages import InMemoryStorage
from optuna.trial import FrozenTrial, Trial, TrialState, create_trial

from ranktune.solvers.core.space import Value
from ranktune.tuner.policy.growth import Growing, continued
from ranktune.tuner.policy.policy import POLICY, Policy
from ranktune.tuner.policy.turns import Account
from ranktune.tuner.samplers.first import alike, first_configurations, grows
from ranktune.tuner.samplers.space import SOLVER, UnionSpace, clipped
from ranktune.tuner.search.look import Look
from ranktune.tuner.storage.record import UNFINISHED, quiet


@dataclass(frozen=True)
class SearchOptions:
    """What was decided of a search before it.

    Attributes
    ----------
    looked : Look, optional
        The first look: the solvers that may win, what to try first of each, and what a trial will cost.
    one_part : bool
        Whether trials are scored on one part, where boosting that is cut at a limit counts with the rounds that it has.
    fit_seconds : float
        The rough seconds of a boosted fit until it stops.
    per_solver : bool
        Whether each solver is searched by itself, or all of them together.
    """

    looked: Look | None = None
    one_part: bool = False
    fit_seconds: float = 0.0
    per_solver: bool = True


class FirstTrials:
    """The first configurations of each solver that are still to come, as the level that the search has to beat.

    Attributes
    ----------
    space : UnionSpace
        What is searched: without the solvers that the look has shown to be hopeless.
    finer : int
        The number of the last trial that has half of the learning rate of the best.
    """

    def __init__(self, space: UnionSpace, options: SearchOptions, policy: Policy = POLICY) -> None:
        self._options, self.space, self._policy, looked = options, space, policy, options.looked
        self._untried = first_configurations(space)
        self._then: list[dict[str, Value]] = []
        if looked is not None:
            promising = [params for params in self._untried if params[SOLVER] not in looked.hopeless]
            self.space = space.restricted({SOLVER: [str(params[SOLVER]) for params in promising]})
            seen = {standing.solver for standing in looked.standings}
            self._untried = [*looked.first(policy), *(params for params in promising if params[SOLVER] not in seen)]
            self._then = looked.then(policy)
        self._first, self._unfinished = list(self._untried), list[Growing]()
        self._begun, self._finished = set[str](), set[str]()
        self._leader: tuple[dict[str, Value], float, float] | None = None
        self._finer_rates: set[float] = set()
        self.finer = -1

    def next(self, number: int, left: float) -> dict[str, Value] | None:
        """Return what to try as trial `number` before the search goes on, of what fits into the seconds left.

        The first configuration of each solver comes first. Then unfinished models continue, the best first, before
        other configurations begin.
        """
        new = [params for params in self._untried if params[SOLVER] not in self._begun]
        growing = continued(self._unfinished, -math.inf if self._leader is None else self._leader[2])
        return (
            self._next_of(new, left)
            or (None if growing is None else dict(growing.params))
            or self._next_of(self._untried, left)
            or self._finer(number, left)
            or self._next_of(self._then, left)
        )

    def begin(self, params: Mapping[str, Value]) -> None:
        """Note that a configuration was requested: it is not tried first again, whatever its rounds of boosting."""
        self._then = [configuration for configuration in self._then if not alike(configuration, params)]
        self._untried = [configuration for configuration in self._untried if not alike(configuration, params)]
        self._unfinished = [growing for growing in self._unfinished if not alike(growing.params, params)]
        self._begun.add(str(params[SOLVER]))

    def finish(self, trial: FrozenTrial, seconds: float) -> None:
        """Note that a trial has finished."""
        self._finished.add(str(trial.params[SOLVER]))
        if trial.user_attrs.get(UNFINISHED) and trial.state == TrialState.COMPLETE and trial.value is not None:
            first = any(alike(params, trial.params) for params in self._first)
            self._unfinished.append(Growing(trial.params, trial.value, first))
        better = self._leader is None or (trial.value is not None and trial.value > self._leader[2])
        if trial.state == TrialState.COMPLETE and trial.value is not None and better:
            self._leader = dict(trial.params), seconds, trial.value

    def untried_leader(self) -> tuple[str, float] | None:
        """Return the leader of the look and the expected seconds of its trial, None once it has finished one."""
        looked = self._options.looked
        if looked is None or not looked.standings or looked.standings[0].solver in self._finished:
            return None
        leader = looked.standings[0].solver
        return leader, looked.cost(leader)

    def least(self, solver: str, seconds: float) -> float:
        """Return the seconds that a trial of a solver needs to begin: boosting counts where it is cut."""
        return self._policy.search.cut * seconds if self._options.one_part and grows(solver) else seconds

    @property
    def to_grow(self) -> int:
        """How many first configurations of boosting have not finished, where boosting counts when it is cut."""
        untried = sum(grows(str(params[SOLVER])) for params in self._untried)
        return untried + sum(growing.first for growing in self._unfinished) if self._options.one_part else 0

    def limit(self, params: Mapping[str, Value], left: float, jobs: int) -> float:
        """Return the seconds that a trial may take of those left for trials.

        The first configurations of boosting that have not finished get their shares, as far as there is time for a
        whole fit of each: another kind of trees gains more than the last rounds of one.
        """
        seconds = self._options.fit_seconds
        if self._options.looked is not None or left == math.inf or not grows(str(params[SOLVER])):
            return left
        fits = int(min(left * jobs / seconds, 1 + self.to_grow)) if seconds > 0.0 else 1
        return min(left, left * jobs / max(fits, 1))

    def _next_of(self, configurations: Sequence[dict[str, Value]], left: float) -> dict[str, Value] | None:
        """Return the first of configurations that fits into the seconds left."""
        for params in configurations:
            solver = str(params[SOLVER])
            if self.least(solver, self._expected(solver)) <= left:
                return params
        return None

    def _expected(self, solver: str) -> float:
        """Return the expected seconds of a solver's first trial, 0 where it is tried in any case.

        Once a model has grown, another begins only where a good part of its fit has room.
        """
        options = self._options
        if options.looked is not None:
            return options.looked.cost(solver)
        return options.fit_seconds if options.one_part and grows(solver) and any(map(grows, self._finished)) else 0.0

    def _finer(self, number: int, left: float) -> dict[str, Value] | None:
        """Return the best configuration with half of its learning rate, where there is time for twice its trial.

        Boosting with smaller steps takes more rounds, and generalises better as a rule. It is tried on large data only,
        where a search has few trials, and once of each configuration.
        """
        if self._options.looked is None or self._leader is None:
            return None
        params, seconds, _ = self._leader
        name = f"{params[SOLVER]}.learning_rate"
        rate, known = params.get(name), self.space.distributions.get(name)
        if not grows(str(params[SOLVER])) or not isinstance(rate, float) or not isinstance(known, FloatDistribution):
            return None
        if rate / 2.0 < known.low or 2.0 * seconds > left or rate / 2.0 in self._finer_rates:
            return None
        self._finer_rates.add(rate / 2.0)
        self.finer = number
        return clipped(self.space.distributions, {**params, name: rate / 2.0})


class _CompactStorage(InMemoryStorage):
    """Keeps of a finished trial only what a sampler reads, and shares equal parts: a study may have very many trials.

    `keep_params` is whether the sampler reads the parameters of earlier trials.
    """

    def __init__(self, distributions: Mapping[str, BaseDistribution], *, keep_params: bool) -> None:
        super().__init__()
        self._own, self._keep_params = distributions, keep_params
        self._shared: dict[tuple[str, ...], dict[str, BaseDistribution]] = {}
        self._nothing: dict[str, Any] = {}
        self._no_reports: dict[int, float] = {}

    def set_trial_state_values(self, trial_id: int, state: TrialState, values: Sequence[float] | None = None) -> bool:
        """Set the state of a trial, and drop what no sampler reads once it has finished."""
        done = super().set_trial_state_values(trial_id, state, values)
        if state.is_finished():
            trial = self.get_trial(trial_id)
            trial.params = trial.params if self._keep_params else self._nothing
            names = tuple(trial.params)
            known = {name: self._own.get(name, trial.distributions[name]) for name in names}
            trial.distributions = self._shared.setdefault(names, known)
            trial.user_attrs = trial.user_attrs or self._nothing
            trial.system_attrs = self._nothing
            trial.intermediate_values = trial.intermediate_values or self._no_reports
        return done

    def set_params(self, trial_id: int, params: Mapping[str, Value]) -> None:
        """Replace the values of the parameters of a running trial."""
        self.get_trial(trial_id).params = dict(params)


class Search(Account):
    """The trials of one search, and what it has used and reached."""

    def __init__(self, name: str, space: UnionSpace, *, learns: bool) -> None:
        super().__init__(space.size)
        self.name, self.space, self._learns = name, space, learns
        self._storage = _CompactStorage(space.distributions, keep_params=learns)
        with quiet():
            self._study = optuna.create_study(direction="maximize", storage=self._storage)

    def holds(self, solver: str) -> bool:
        """Return whether a solver is among those that are searched."""
        known = self.space.distributions[SOLVER]
        return isinstance(known, CategoricalDistribution) and solver in known.choices

    def ask(self, sampler: BaseSampler, params: Mapping[str, Value] | None) -> tuple[Trial, dict[str, Value]]:
        """Begin a trial with the given parameters, or those that sampler suggests, and return them too.

        A given number may lie outside of the space, as rounds of boosting that are continued.
        """
        if params is not None:
            self._study.enqueue_trial(clipped(self.space.distributions, params))
        self._study.sampler = sampler
        trial = self._study.ask()
        self.running += 1
        suggested = self.space.suggest(trial)
        return trial, suggested if params is None else {**suggested, **params}

    def tell(self, trial: Trial, written: FrozenTrial, observations: Sequence[FrozenTrial]) -> None:
        """End a trial as it is in the record; observations are what it says of single configurations."""
        seen, *others = observations if self._learns else [written]
        if self._learns:
            for key, value in seen.user_attrs.items():
                trial.set_user_attr(key, value)
            self._storage.set_params(trial._trial_id, clipped(self.space.distributions, written.params))
        pruned = written.state == TrialState.PRUNED
        if pruned and written.value is not None:
            trial.report(written.value, max(written.intermediate_values))
        self._study.tell(trial, None if pruned else written.value, state=written.state)
        self.add(others)
        self.running -= 1

    def add(self, observations: Iterable[FrozenTrial]) -> None:
        """Add finished trials, with the distributions of this search."""
        known = self.space.distributions
        self._study.add_trials(
            [
                create_trial(
                    state=trial.state,
                    value=trial.value,
                    params=clipped(known, trial.params),
                    distributions={name: known[name] for name in trial.params},
                    user_attrs=trial.user_attrs,
                    intermediate_values=trial.intermediate_values,
                )
                for trial in observations
            ]
        )
