"""One search in memory: what a sampler reads of its trials, and the time that they took."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.samplers import BaseSampler
from optuna.storages import InMemoryStorage
from optuna.trial import FrozenTrial, Trial, TrialState, create_trial

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.space import Value
from ranktune.tuner.samplers.space import SOLVER, UnionSpace, clipped
from ranktune.tuner.storage.record import quiet


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
            own = {name: self._own.get(name, trial.distributions[name]) for name in names}
            trial.distributions = self._shared.setdefault(names, own)
            trial.user_attrs = trial.user_attrs or self._nothing
            trial.system_attrs = self._nothing
            trial.intermediate_values = trial.intermediate_values or self._no_reports
        return done

    def set_params(self, trial_id: int, params: Mapping[str, Value]) -> None:
        """Replace the values of the parameters of a running trial."""
        self.get_trial(trial_id).params = dict(params)


class Search:
    """The trials of one search, with the seconds they took.

    Attributes
    ----------
    trials, running : int
        Finished trials, and those that are running.
    seconds : float
        What the finished ones took.
    usual : dict of str to float
        How long the next trial of each solver may take.
    poor : int
        Suggestions in a row with too small an expected gain.
    best : array of shape (n_queries,) or None
        What the best trial scored by query.
    """

    def __init__(self, name: str, space: UnionSpace, *, learns: bool) -> None:
        self.name, self.space, self._learns = name, space, learns
        self._storage = _CompactStorage(space.distributions, keep_params=learns)
        with quiet():
            self._study = optuna.create_study(direction="maximize", storage=self._storage)
        self.trials = self.running = self.poor = 0
        self.seconds = 0.0
        self.usual: dict[str, float] = {}
        self.best: Floats | None = None

    @property
    def tried(self) -> int:
        """Trials that have begun."""
        return self.trials + self.running

    @property
    def used(self) -> float:
        """The seconds that the search has used, with those that its running trials are expected to take."""
        return self.seconds + self.running * (self.seconds / self.trials if self.trials else 0.0)

    def holds(self, solver: str) -> bool:
        """Return whether a solver is among those that are searched."""
        known = self.space.distributions[SOLVER]
        return isinstance(known, CategoricalDistribution) and solver in known.choices

    def ask(self, sampler: BaseSampler, params: Mapping[str, Value] | None) -> tuple[Trial, dict[str, Value]]:
        """Begin a trial with the given parameters, or those that sampler suggests, and return them too."""
        if params is not None:
            self._study.enqueue_trial(dict(params))
        self._study.sampler = sampler
        trial = self._study.ask()
        self.running += 1
        return trial, self.space.suggest(trial)

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

    def spend(self, solver: str, seconds: float) -> None:
        """Count the seconds of a finished trial."""
        self.trials += 1
        self.seconds += seconds
        self.usual[solver] = max(0.9 * self.usual.get(solver, 0.0), seconds)
