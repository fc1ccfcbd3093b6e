"""What to try next: from one search of all solvers, or from one search a solver, which take turns in time.

One search weighs solvers against each other and soon stays with the one or two that lead. Where queries are few and a
time is given, that follows their noise: every solver is searched on its own instead, and the next trial is of the one
that has used the least time. Then a solver whose trials take long gets few of them, those that take no time are not
kept waiting, and each is as well tuned as its time allows when they are chosen from and blended. A solver that by now
is for sure worse than the best, paired by query, keeps a tenth of its turns: it could still come back, but it is
unlikely to be chosen or to help a blend.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import optuna
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler, RandomSampler
from optuna.storages import InMemoryStorage
from optuna.trial import FrozenTrial, Trial, TrialState, create_trial

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.space import Value
from ranktune.tuner.samplers.registry import STARTUP, STARTUP_APART, make_sampler
from ranktune.tuner.samplers.space import SOLVER, UnionSpace
from ranktune.tuner.statistics.intervals import SURE, lead, mean
from ranktune.tuner.storage.observations import observations
from ranktune.tuner.storage.record import quiet, seconds_of
from ranktune.tuner.study.declaration import Study

BEHIND = 10.0
"""How many times its seconds count for a solver that is for sure behind."""
HOPELESS = 3
"""Suggestions in a row that promise too little before a search ends: one alone may be unlucky in its draws."""
LEAST = 20
"""Trials before which no search ends for that: what is expected after few is less than what is found."""
BLIND = "random"
"""The sampler that never looks at what was tried before."""
TOGETHER = ""
"""Name of the search of all solvers."""


class Suggested:
    """A trial that is to be run: whose search suggested it, and its parameters by flat name."""

    def __init__(self, search: str, trial: Trial, params: dict[str, Value]) -> None:
        self.search, self.trial, self.params = search, trial, params


class _Memory(InMemoryStorage):
    """Trials in memory that keep of themselves, once they have ended, what a sampler looks at, and share the rest.

    A study may have very many. looks is whether the sampler looks at what was tried before at all.
    """

    def __init__(self, distributions: Mapping[str, BaseDistribution], *, looks: bool) -> None:
        super().__init__()
        self._own, self._looks = distributions, looks
        self._shared: dict[tuple[str, ...], dict[str, BaseDistribution]] = {}
        self._nothing: dict[str, Any] = {}
        self._no_reports: dict[int, float] = {}

    def set_trial_state_values(self, trial_id: int, state: TrialState, values: Sequence[float] | None = None) -> bool:
        """Note what became of a trial."""
        done = super().set_trial_state_values(trial_id, state, values)
        if state.is_finished():
            trial = self.get_trial(trial_id)
            trial.params = trial.params if self._looks else self._nothing
            names = tuple(trial.params)
            own = {name: self._own.get(name, trial.distributions[name]) for name in names}
            trial.distributions = self._shared.setdefault(names, own)
            trial.user_attrs = trial.user_attrs or self._nothing
            trial.system_attrs = self._nothing
            trial.intermediate_values = trial.intermediate_values or self._no_reports
        return done

    def amend(self, trial_id: int, params: Mapping[str, Value]) -> None:
        """Have a running trial be of other parameters than it was asked for, under the same names."""
        self.get_trial(trial_id).params = dict(params)


class _Spent:
    """The seconds of a search's trials: how many there were, their sum, and what the next may take.

    That is the longest so far, of old ones less and less.
    """

    def __init__(self) -> None:
        self.trials, self.seconds, self.usual = 0, 0.0, 0.0

    def add(self, seconds: float) -> None:
        """Take note of another trial."""
        self.trials += 1
        self.seconds += seconds
        self.usual = max(0.9 * self.usual, seconds)


class SearchScheduler:
    """The searches of a study, in memory: what was tried in each, how long it took, and whose turn it is."""

    def __init__(self, study: Study, space: UnionSpace, *, apart: bool, timed: bool = False) -> None:
        """Search each solver apart, or all of them together; timed says whether the seconds of trials may lead it."""
        self._study, self._timed = study, timed
        self._defaults = space.defaults()
        self._untried = {str(defaults[SOLVER]): defaults for defaults in self._defaults}
        self._apart = apart
        names = study.solvers if apart else (TOGETHER,)
        self._spaces = {name: space.restricted({SOLVER: name}) if apart else space for name in names}
        self._most = -(-study.n_trials // len(names))
        self._spent = {name: _Spent() for name in names}
        self._running = dict.fromkeys(names, 0)
        self._poor = dict.fromkeys(names, 0)
        self._best: dict[str, Floats] = {}
        self._looks = study.sampler != BLIND
        self._storages = {name: _Memory(own.distributions, looks=self._looks) for name, own in self._spaces.items()}
        with quiet():
            self._memories = {
                name: optuna.create_study(direction="maximize", storage=storage)
                for name, storage in self._storages.items()
            }

    def remember(self, trials: Iterable[tuple[FrozenTrial, Floats | None]]) -> None:
        """Add trials that finished in an earlier run, each with its values by query, None where it failed."""
        for trial, per_query in trials:
            self._untried.pop(str(trial.params[SOLVER]), None)
            self._note(self.search_of(trial.params), per_query)
            name = self.search_of(trial.params)
            self._memories[name].add_trials([_remembered(own, self._spaces[name]) for own in self._seen(trial)])
            self._spent[name].add(seconds_of(trial))

    def again(self, params: Mapping[str, Value]) -> Suggested:
        """Return a trial that an earlier run asked for and did not finish, with the parameters that it had."""
        name = self.search_of(params)
        self._memories[name].enqueue_trial(dict(params))
        return self._begun(name, RandomSampler(seed=0))  # which has nothing to say: all is given

    def next(self, number: int, left: float) -> Suggested | None:
        """Return what to try as trial number, None where nothing is left that takes no more than left seconds.

        Every solver's defaults come first: a floor that search has to beat. They also come first of solvers that were
        added later, when the first numbers were taken.
        """
        first = self._defaults[number] if number < len(self._defaults) else next(iter(self._untried.values()), None)
        if first is not None:
            name = self.search_of(first)
            self._memories[name].enqueue_trial(first)
        else:
            open_ones = [name for name in self._spaces if self._is_open(name) and self._spent[name].usual <= left]
            if not open_ones:
                return None
            name = min(open_ones, key=self._used)
        sampler = make_sampler(
            self._study.sampler,
            seed=self._study.seed,
            number=number,
            space=self._spaces[name],
            startup=STARTUP_APART if self._apart else STARTUP,
            costs=True,
        )
        suggested = self._begun(name, sampler)
        if self._study.until is not None:
            gain = getattr(sampler, "expected_gain", None)
            early = self._spent[name].trials < LEAST
            poor = gain is not None and gain < self._study.until and not early
            self._poor[name] = self._poor[name] + 1 if poor else 0
        return suggested

    def _begun(self, name: str, sampler: BaseSampler) -> Suggested:
        """Return the next trial of a search: what is enqueued, else what sampler suggests."""
        memory, space = self._memories[name], self._spaces[name]
        memory.sampler = sampler
        trial = memory.ask()
        self._running[name] += 1
        suggested = Suggested(name, trial, space.suggest(trial))
        self._untried.pop(str(suggested.params[SOLVER]), None)
        return suggested

    def told(self, suggested: Suggested, written: FrozenTrial, seconds: float, per_query: Floats | None) -> None:
        """Take note of what became of a trial: of the seconds that it and its suggestion took, its values by query."""
        self._note(suggested.search, per_query)
        memory, storage = self._memories[suggested.search], self._storages[suggested.search]
        seen, *others = self._seen(written) if self._looks else [written]
        if self._looks:
            for name, value in seen.user_attrs.items():
                suggested.trial.set_user_attr(name, value)
            storage.amend(suggested.trial._trial_id, written.params)
        if written.state == TrialState.PRUNED and written.value is not None:
            suggested.trial.report(written.value, max(written.intermediate_values))
        pruned = written.state == TrialState.PRUNED
        memory.tell(suggested.trial, None if pruned else written.value, state=written.state)
        memory.add_trials([_remembered(own, self._spaces[suggested.search]) for own in others])
        self._running[suggested.search] -= 1
        self._spent[suggested.search].add(seconds)

    def is_behind(self, solver: str) -> bool:
        """Return whether the best of a solver is for sure worse than that of all; not known where searched together."""
        if solver not in self._best:
            return False
        return lead(max(self._best.values(), key=mean), self._best[solver]) > SURE

    def _seen(self, trial: FrozenTrial) -> list[FrozenTrial]:
        return observations(trial, timed=self._timed)

    def search_of(self, params: Mapping[str, Value]) -> str:
        """Return which search a configuration belongs to."""
        return str(params[SOLVER]) if self._apart else TOGETHER

    def _is_open(self, name: str) -> bool:
        """Return whether a search has configurations left, hope for better ones, and not had its part of the trials."""
        if self._poor[name] >= HOPELESS:
            return False
        tried = self._spent[name].trials + self._running[name]
        return not self._apart or tried < min(self._most, self._spaces[name].size)

    def _used(self, name: str) -> float:
        """Return the seconds that a search has used, with those that its running trials are expected to take."""
        used = self._spent[name].seconds + self._running[name] * self._spent[name].usual
        return used * BEHIND if self.is_behind(name) else used

    def _note(self, name: str, per_query: Floats | None) -> None:
        if per_query is not None and (name not in self._best or mean(per_query) > mean(self._best[name])):
            self._best[name] = per_query


def _remembered(trial: FrozenTrial, space: UnionSpace) -> FrozenTrial:
    """Return what a search has to know of a trial in the record; the distributions are those of its own space."""
    return create_trial(
        state=trial.state,
        value=trial.value,
        params=trial.params,
        distributions={name: space.distributions[name] for name in trial.params},
        user_attrs=trial.user_attrs,
        intermediate_values=trial.intermediate_values,
    )
