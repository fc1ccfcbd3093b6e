"""What to try next: from one search of all solvers, or from one search a solver, which take turns in time.

One search weighs solvers against each other and soon stays with the one or two that lead. Where queries are few and a
time is given, that follows their noise: every solver is searched on its own instead, and the next trial is of the one
that has used the least time. Then a solver whose trials take long gets few of them, those that take no time are not
kept waiting, and each is as well tuned as its time allows when they are chosen from and blended. A solver that by now
is for sure worse than the best, paired by query, keeps a tenth of its turns: it could still come back, but it is
unlikely to be chosen or to help a blend.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import optuna
from optuna.trial import FrozenTrial, Trial, create_trial

from ranktune.solvers.arrays import Floats
from ranktune.solvers.space import Value
from ranktune.tuner.record import VARIANCE, quiet, seconds_of
from ranktune.tuner.samplers import make_sampler
from ranktune.tuner.space import SOLVER, UnionSpace
from ranktune.tuner.statistics import SURE, lead, mean
from ranktune.tuner.study import Study

STARTUP, STARTUP_APART = 10, 5
"""Trials that are spread over a space before the sampler learns from them: over that of all solvers, and of one."""
BEHIND = 10.0
"""How many times its seconds count for a solver that is for sure behind."""
TOGETHER = ""
"""Name of the search of all solvers."""


class Suggested:
    """A trial that is to be run: whose search suggested it, and its parameters by flat name."""

    def __init__(self, search: str, trial: Trial, params: dict[str, Value]) -> None:
        self.search, self.trial, self.params = search, trial, params


class Turns:
    """The searches of a study, in memory: what was tried in each, how long it took, and whose turn it is."""

    def __init__(self, study: Study, space: UnionSpace, *, apart: bool) -> None:
        """Search each solver apart, or all of them together."""
        self._study = study
        self._defaults = space.defaults()
        self._apart = apart
        names = study.solvers if apart else (TOGETHER,)
        self._spaces = {name: space.restricted({SOLVER: name}) if apart else space for name in names}
        self._most = -(-study.trials // len(names))
        self._seconds: dict[str, list[float]] = {name: [] for name in names}
        self._running = dict.fromkeys(names, 0)
        self._best: dict[str, Floats] = {}
        with quiet():
            self._memories = {name: optuna.create_study(direction="maximize") for name in names}

    def remember(self, trials: Iterable[tuple[FrozenTrial, Floats | None]]) -> None:
        """Add trials that finished in an earlier run, each with its values by query, None where it failed."""
        for trial, per_query in trials:
            self._note(self._search_of(trial.params), per_query)
            name = self._search_of(trial.params)
            self._memories[name].add_trial(_moved(trial, self._spaces[name]) if self._apart else trial)
            self._seconds[name].append(seconds_of(trial))

    def next(self, number: int, left: float) -> Suggested | None:
        """Return what to try as trial number, None where nothing is left that takes no more than left seconds.

        Every solver's defaults come first: a floor that search has to beat.
        """
        if number < len(self._defaults):
            name = self._search_of(self._defaults[number])
            self._memories[name].enqueue_trial(self._defaults[number])
        else:
            open_ones = [name for name in self._spaces if self._is_open(name) and self._usual(name) <= left]
            if not open_ones:
                return None
            name = min(open_ones, key=self._used)
        memory, space = self._memories[name], self._spaces[name]
        startup = STARTUP_APART if self._apart else STARTUP
        memory.sampler = make_sampler(
            self._study.sampler, seed=self._study.seed, number=number, space=space, startup=startup
        )
        trial = memory.ask()
        self._running[name] += 1
        return Suggested(name, trial, space.suggest(trial))

    def told(self, suggested: Suggested, written: FrozenTrial, seconds: float, per_query: Floats | None) -> None:
        """Take note of what became of a trial: of the seconds that it and its suggestion took, its values by query."""
        self._note(suggested.search, per_query)
        if VARIANCE in written.user_attrs:  # how sure the value is: the Gaussian process wants to know
            suggested.trial.set_user_attr(VARIANCE, written.user_attrs[VARIANCE])
        self._memories[suggested.search].tell(suggested.trial, written.value, state=written.state)
        self._running[suggested.search] -= 1
        self._seconds[suggested.search].append(seconds)

    def is_behind(self, solver: str) -> bool:
        """Return whether the best of a solver is for sure worse than that of all; not known where searched together."""
        if solver not in self._best:
            return False
        return lead(max(self._best.values(), key=mean), self._best[solver]) > SURE

    def _search_of(self, params: Mapping[str, Value]) -> str:
        return str(params[SOLVER]) if self._apart else TOGETHER

    def _is_open(self, name: str) -> bool:
        """Return whether a search has configurations left, and has not had its part of the trials."""
        tried = len(self._seconds[name]) + self._running[name]
        return not self._apart or tried < min(self._most, self._spaces[name].size)

    def _usual(self, name: str) -> float:
        """Return the seconds that the next trial may take: the longest so far, of old ones less and less."""
        usual = 0.0
        for seconds in self._seconds[name]:
            usual = max(0.9 * usual, seconds)
        return usual

    def _used(self, name: str) -> float:
        """Return the seconds that a search has used, with those that its running trials are expected to take."""
        used = sum(self._seconds[name]) + self._running[name] * self._usual(name)
        return used * BEHIND if self.is_behind(name) else used

    def _note(self, name: str, per_query: Floats | None) -> None:
        if per_query is not None and (name not in self._best or mean(per_query) > mean(self._best[name])):
            self._best[name] = per_query


def _moved(trial: FrozenTrial, space: UnionSpace) -> FrozenTrial:
    """Return a trial of the union of spaces as one of its solver's own."""
    return create_trial(
        state=trial.state,
        value=trial.value,
        params=trial.params,
        distributions={name: space.distributions[name] for name in trial.params},
        user_attrs=trial.user_attrs,
    )
