"""The searches of a study in memory, and what is known before their samplers suggest."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.samplers import BaseSampler
from optuna.storages import InMemoryStorage
from optuna.trial import FrozenTrial, Trial, TrialState, create_trial

from ranktune.solvers.core.space import Value
from ranktune.tuner.policy.actions import Growing, SearchAccount, SearchState, Untried
from ranktune.tuner.policy.next_trial import most_in_vain
from ranktune.tuner.policy.policy import POLICY, Policy
from ranktune.tuner.samplers.first import alike, first_configurations, grows
from ranktune.tuner.samplers.space import SOLVER, UnionSpace, clipped
from ranktune.tuner.storage.attributes import UNFINISHED
from ranktune.tuner.storage.record import quiet

if TYPE_CHECKING:
    from ranktune.tuner.retuning.earlier import Earlier


@dataclass(frozen=True)
class SearchOptions:
    """What was decided of a search before it.

    Attributes
    ----------
    one_part : bool
        Whether trials are scored on one part, where boosting that is cut at a limit counts with the rounds that it has.
    fit_seconds : float
        The rough seconds of a boosted fit until it stops.
    earlier : Earlier, optional
        The study that this one retunes: its trials are evidence once it is known how far the data have moved.
    trials : float
        How many trials there are.
    ends_by_gain : bool
        Whether the search ends after trials in vain.
    """

    one_part: bool = False
    fit_seconds: float = 0.0
    earlier: Earlier | None = None
    trials: float = math.inf
    ends_by_gain: bool = False


class FirstTrials:
    """Keeps what is known of a study up to date, as trials begin and finish.

    Parameters
    ----------
    space : UnionSpace
    options : SearchOptions
    policy : Policy

    Attributes
    ----------
    space : UnionSpace
        What is searched.
    state : SearchState
        What is known now, but for the searches.
    """

    def __init__(self, space: UnionSpace, options: SearchOptions, policy: Policy = POLICY) -> None:
        first = first_configurations(space, options.trials)
        boosting = frozenset(solver for params in first if grows(solver := str(params[SOLVER])))
        self.space, self._first = space, first
        self._whole_fits, self._rough = list[float](), options.fit_seconds
        self.state = SearchState(
            first=[Untried(str(params[SOLVER]), params) for params in first],
            boosting=boosting,
            is_cut=options.one_part,
            fit_seconds=options.fit_seconds,
            trial_seconds=options.fit_seconds,
            most_in_vain=most_in_vain(options.fit_seconds if boosting else 0.0, policy)
            if options.ends_by_gain
            else math.inf,
        )

    def begin(self, params: Mapping[str, Value]) -> bool:
        """Note that a configuration was requested, and return whether its trial can be in vain.

        It is not tried first again, whatever its rounds of boosting. The first trial of a solver is not in vain, and
        other first configurations that do not boost take next to no time.
        """
        state, solver = self.state, str(params[SOLVER])
        self.state = replace(
            state,
            first=[one for one in state.first if not alike(one.params, params)],
            unfinished=[growing for growing in state.unfinished if not alike(growing.params, params)],
            begun={**state.begun, solver: state.begun.get(solver, 0) + 1},
        )
        is_quick_first = len(self.state.first) < len(state.first) and solver not in state.boosting
        return solver in state.begun and not is_quick_first

    def finish(self, trial: FrozenTrial, seconds: float, in_vain: bool | None = None) -> None:
        """Note that a trial has finished, and whether it was in vain, None of one that does not count."""
        state, unfinished = self.state, list(self.state.unfinished)
        if in_vain is not None:
            state = replace(state, in_vain=state.in_vain + 1 if in_vain else 0)
        complete, value = trial.state == TrialState.COMPLETE, -math.inf if trial.value is None else trial.value
        if complete and trial.user_attrs.get(UNFINISHED):
            first = any(alike(params, trial.params) for params in self._first)
            unfinished.append(Growing(trial.params, value, first))
        if complete:
            state = replace(state, best=max(state.best, value))
        solver = str(trial.params[SOLVER])
        if complete and solver in state.boosting and not trial.user_attrs.get(UNFINISHED):
            self._whole_fits.append(seconds)
            every, fits = sum(self._whole_fits), len(self._whole_fits)
            rough = (every + self._rough) / (fits + 1)
            state = replace(state, fit_seconds=every / fits, trial_seconds=rough)
        finished = state.finished | {solver}
        self.state = replace(state, unfinished=unfinished, finished=finished)


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
            distributions = {name: self._own.get(name, trial.distributions[name]) for name in names}
            trial.distributions = self._shared.setdefault(names, distributions)
            trial.user_attrs = trial.user_attrs or self._nothing
            trial.system_attrs = self._nothing
            trial.intermediate_values = trial.intermediate_values or self._no_reports
        return done

    def set_params(self, trial_id: int, params: Mapping[str, Value]) -> None:
        """Replace the values of the parameters of a running trial."""
        self.get_trial(trial_id).params = dict(params)


class Search(SearchAccount):
    """The trials of one search, and what it has used and reached."""

    def __init__(self, name: str, space: UnionSpace, *, learns: bool) -> None:
        super().__init__(space.size)
        self.name, self.space, self._learns = name, space, learns
        self._storage = _CompactStorage(space.distributions, keep_params=learns)
        with quiet():
            self._study = optuna.create_study(direction="maximize", storage=self._storage)

    def holds(self, solver: str) -> bool:
        """Return whether a solver is among those that are searched."""
        solvers = self.space.distributions[SOLVER]
        return isinstance(solvers, CategoricalDistribution) and solver in solvers.choices

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
        distributions = self.space.distributions
        self._study.add_trials(
            [
                create_trial(
                    state=trial.state,
                    value=trial.value,
                    params=clipped(distributions, trial.params),
                    distributions={name: distributions[name] for name in trial.params},
                    user_attrs=trial.user_attrs,
                    intermediate_values=trial.intermediate_values,
                )
                for trial in observations
            ]
        )
