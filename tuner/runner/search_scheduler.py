"""What to try next: from one search over all solvers, or from one search for each solver, which share the time.

One search compares the solvers and soon stays with the one or two that lead. On few queries, with a given time, that
follows the noise. Then each solver is searched by itself, and the next trial belongs to the search that has used the
least time. A solver with long trials gets few of them, one with short trials does not wait, and each is tuned as well
as its time allows before selection and blending. A solver that is significantly worse than the best, paired by query,
gets a tenth of its share: it may recover, but it will hardly be selected or help a blend.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import optuna
from optuna.distributions import BaseDistribution, FloatDistribution
from optuna.samplers import BaseSampler, RandomSampler
from optuna.storages import InMemoryStorage
from optuna.trial import FrozenTrial, Trial, TrialState, create_trial

from ranktune.solvers.boosting.base import BoostedRanker
from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.space import Value
from ranktune.solvers.registry import solver_class
from ranktune.tuner.runner.look import Look
from ranktune.tuner.samplers.first import alike, first_configurations, grows
from ranktune.tuner.samplers.registry import STARTUP, STARTUP_APART, make_sampler
from ranktune.tuner.samplers.space import SOLVER, UnionSpace, clipped
from ranktune.tuner.statistics.intervals import SIGNIFICANT_Z, mean_or_zero, z_score
from ranktune.tuner.storage.observations import observations
from ranktune.tuner.storage.record import quiet, seconds_of
from ranktune.tuner.study.declaration import Study

WORSE_SOLVER_COST = 10.0
"""Factor on the seconds used by a solver that is significantly worse."""
CUT = 0.3
"""Share of its expected time from which a trial of boosting is begun; at the deadline it counts with its rounds."""
MAX_POOR_SUGGESTIONS = 3
"""Suggestions in a row with too small an expected gain that end a search; a single one may be bad luck."""
MIN_TRIALS_BEFORE_STOPPING = 20
"""Trials before a search may end for a small expected gain, which is underestimated after few trials."""
RANDOM = "random"
"""The sampler that does not use earlier trials."""
ALL_SOLVERS = ""
"""Name of the search over all solvers."""


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


@dataclass
class _Spent:
    """The number of trials of a search, and their seconds."""

    trials: int = 0
    seconds: float = 0.0

    def add(self, seconds: float) -> None:
        self.trials += 1
        self.seconds += seconds

    @property
    def mean(self) -> float:
        return self.seconds / self.trials if self.trials else 0.0


class SearchScheduler:
    """The searches of a study, in memory: their trials, the time they took, and which search is next.

    Parameters
    ----------
    study : Study
    space : UnionSpace
    per_solver : bool
        Whether to search each solver by itself, or all of them together.
    timed : bool
        Whether samplers may use the seconds that trials took. A search is then not repeatable to the last bit.
    looked : Look, optional
        The first look: the solvers that may win, what to try first of each, and what a trial will cost.
    one_part : bool
        Whether boosting that is cut at a limit counts with the rounds that it has.
    fit_seconds : float
        The rough seconds of a boosted fit until it stops.
    weights : array of shape (n_queries,), optional
        Weights of the validation queries.
    clock : callable
        Returns the seconds of a steady clock, by which suggestions are timed.
    """

    def __init__(
        self,
        study: Study,
        space: UnionSpace,
        *,
        per_solver: bool,
        timed: bool = False,
        looked: Look | None = None,
        one_part: bool = False,
        fit_seconds: float = 0.0,
        weights: Floats | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._study, self._timed, self._clock, self._looked = study, timed, clock, looked
        self._weights, self._one_part, self._fit_seconds = weights, one_part, fit_seconds
        self._untried = first_configurations(space)
        self._then: list[dict[str, Value]] = []
        self._per_solver = per_solver
        if looked is not None:
            promising = [params for params in self._untried if params[SOLVER] not in looked.hopeless]
            space = space.restricted({SOLVER: [str(params[SOLVER]) for params in promising]})
            seen = {own.solver for own in looked.standings}
            self._untried = [*looked.first(), *(params for params in promising if params[SOLVER] not in seen)]
            self._then = looked.then()
        names = [str(params[SOLVER]) for params in space.defaults()] if per_solver else [ALL_SOLVERS]
        self._spaces = {name: space.restricted({SOLVER: name}) if per_solver else space for name in names}
        self._max_trials = -(-study.n_trials // len(names))
        self._spent = {name: _Spent() for name in names}
        self._usual: dict[str, dict[str, float]] = {name: {} for name in names}
        self._running = dict.fromkeys(names, 0)
        self._poor = dict.fromkeys(names, 0)
        self._best: dict[str, Floats] = {}
        self._leader: tuple[dict[str, Value], float] | None = None
        self._leading = float("-inf")
        self._finer_rates: set[float] = set()
        self.finer = -1
        self._asked: dict[int, tuple[Trial, float]] = {}
        self._learns = study.sampler != RANDOM
        self._storages = {
            name: _CompactStorage(own.distributions, keep_params=self._learns) for name, own in self._spaces.items()
        }
        with quiet():
            self._studies = {
                name: optuna.create_study(direction="maximize", storage=storage)
                for name, storage in self._storages.items()
            }

    def remember(self, trials: Iterable[tuple[FrozenTrial, Floats | None]]) -> None:
        """Add finished trials of an earlier run, each with its values by query, None where it failed or was stopped."""
        for trial, per_query in trials:
            self._drop(trial.params)
            name = self.search_of(trial.params)
            if trial.params[SOLVER] not in self._spaces[name].distributions[SOLVER].choices:  # type: ignore[attr-defined]
                continue
            self._update_best(name, per_query)
            self._update_leader(trial, seconds_of(trial))
            self._studies[name].add_trials([_remembered(own, self._spaces[name]) for own in self._observations(trial)])
            self._spend(name, str(trial.params[SOLVER]), seconds_of(trial))

    def resume(self, number: int, params: Mapping[str, Value]) -> dict[str, Value]:
        """Begin a trial that an earlier run did not finish, with the parameters that it had, and return them."""
        name = self.search_of(params)
        self._studies[name].enqueue_trial(dict(params))
        return self._ask(number, name, RandomSampler(seed=0), self._clock())  # all parameters are given

    def next(self, number: int, left: float) -> dict[str, Value] | None:
        """Return the parameters to try as trial `number`, None if no search fits into the seconds left.

        The first configuration of each solver, its defaults unless a look has found a better one, comes first, as the
        level that the search has to beat.
        """
        begun = self._clock()
        first = self._next_of(self._untried, left) or self._finer(number, left) or self._next_of(self._then, left)
        if first is not None:
            name = self.search_of(first)
            self._studies[name].enqueue_trial(first)
        else:
            open_searches = [name for name in self._spaces if self._is_open(name) and self._fits(name, left)]
            if not open_searches:
                return None
            name = min(open_searches, key=self._used)
        sampler = make_sampler(
            self._study.sampler,
            seed=self._study.seed,
            number=number,
            space=self._spaces[name],
            startup=STARTUP_APART if self._per_solver else STARTUP,
            costs=True,
            acquisition=self._study.acquisition,
        )
        params = self._ask(number, name, sampler, begun)
        if self._study.until is not None:
            gain = getattr(sampler, "expected_gain", None)
            early = self._spent[name].trials < MIN_TRIALS_BEFORE_STOPPING
            poor = gain is not None and gain < self._study.until and not early
            self._poor[name] = self._poor[name] + 1 if poor else 0
        return params

    def untried_leader(self) -> tuple[str, float] | None:
        """Return the leader of the look and the expected seconds of its trial, None once it has finished one."""
        if self._looked is None or not self._looked.standings:
            return None
        leader = self._looked.standings[0].solver
        done = any(leader in usual for usual in self._usual.values())
        return None if done else (leader, self._looked.cost(leader))

    def _next_of(self, configurations: Sequence[dict[str, Value]], left: float) -> dict[str, Value] | None:
        """Return the first of configurations that fits into the seconds left."""
        for params in configurations:
            solver = str(params[SOLVER])
            if self._least(solver, self._expected(solver)) <= left:
                return params
        return None

    def _expected(self, solver: str) -> float:
        """Return the expected seconds of a solver's first trial, 0 where it is tried in any case.

        Once a model has grown, another begins only where a good part of its fit has room.
        """
        if self._looked is not None:
            return self._looked.cost(solver)
        has_grown = any(grows(other) for usual in self._usual.values() for other in usual)
        return self._fit_seconds if has_grown and self._one_part and grows(solver) else 0.0

    def _drop(self, params: Mapping[str, Value]) -> None:
        """Note that a configuration was requested: it is not tried first again, whatever its rounds of boosting."""
        self._then = [own for own in self._then if not alike(own, params)]
        self._untried = [own for own in self._untried if not alike(own, params)]

    def _finer(self, number: int, left: float) -> dict[str, Value] | None:
        """Return the best configuration with half of its learning rate, where there is time for twice its trial.

        Boosting with smaller steps takes more rounds, and generalises better as a rule. It is tried on large data only,
        where a search has few trials, and once of each configuration.
        """
        if self._looked is None or self._leader is None:
            return None
        params, seconds = self._leader
        name = f"{params[SOLVER]}.learning_rate"
        rate, solver = params.get(name), solver_class(str(params[SOLVER]))
        own = self._spaces[self.search_of(params)].distributions.get(name)
        if (
            not issubclass(solver, BoostedRanker)
            or not isinstance(rate, float)
            or not isinstance(own, FloatDistribution)
        ):
            return None
        if rate / 2.0 < own.low or 2.0 * seconds > left or rate / 2.0 in self._finer_rates:
            return None
        self._finer_rates.add(rate / 2.0)
        self.finer = number
        return clipped(self._spaces[self.search_of(params)].distributions, {**params, name: rate / 2.0})

    def _fits(self, name: str, left: float) -> bool:
        """Return whether a trial of some solver of a search fits into the seconds left, by what its trials took."""
        usual = self._usual.get(name, {})
        return min((self._least(solver, seconds) for solver, seconds in usual.items()), default=0.0) <= left

    def _least(self, solver: str, seconds: float) -> float:
        """Return the seconds from which a trial of a solver is worth its start: boosting counts where it is cut."""
        return CUT * seconds if self._one_part and grows(solver) else seconds

    @property
    def first_to_grow(self) -> int:
        """How many first configurations of boosting have not begun, where boosting counts when it is cut."""
        return sum(grows(str(own[SOLVER])) for own in self._untried) if self._one_part else 0

    def limit(self, params: Mapping[str, Value], left: float, jobs: int) -> float:
        """Return the seconds that a trial may take of those left for trials.

        The first configurations of boosting that are still to come get their shares, as far as there is time for a
        whole fit of each: another kind of trees is worth more than the last rounds of one.
        """
        if self._looked is not None or not grows(str(params[SOLVER])):
            return left
        fits = int(min(left * jobs / self._fit_seconds, 1 + self.first_to_grow)) if self._fit_seconds > 0.0 else 1
        return min(left, left * jobs / max(fits, 1))

    def _ask(self, number: int, name: str, sampler: BaseSampler, begun: float) -> dict[str, Value]:
        """Return the parameters of the next trial of a search: the enqueued ones, or those that sampler suggests."""
        study = self._studies[name]
        study.sampler = sampler
        trial = study.ask()
        self._running[name] += 1
        params = self._spaces[name].suggest(trial)
        self._drop(params)
        self._asked[number] = trial, self._clock() - begun
        return params

    def tell(self, number: int, written: FrozenTrial, seconds: float, per_query: Floats | None) -> None:
        """Add a finished trial as it is in the record, the seconds that it ran, and its values by query."""
        trial, suggesting = self._asked.pop(number)
        name = self.search_of(written.params)
        self._update_best(name, per_query)
        self._update_leader(written, seconds)
        seen, *others = self._observations(written) if self._learns else [written]
        if self._learns:
            for key, value in seen.user_attrs.items():
                trial.set_user_attr(key, value)
            self._storages[name].set_params(trial._trial_id, clipped(self._spaces[name].distributions, written.params))
        pruned = written.state == TrialState.PRUNED
        if pruned and written.value is not None:
            trial.report(written.value, max(written.intermediate_values))
        self._studies[name].tell(trial, None if pruned else written.value, state=written.state)
        self._studies[name].add_trials([_remembered(own, self._spaces[name]) for own in others])
        self._running[name] -= 1
        self._spend(name, str(written.params[SOLVER]), suggesting + seconds)

    def is_significantly_worse(self, solver: str) -> bool:
        """Return whether the best of a solver is significantly worse than that of all; False in a search over all."""
        if solver not in self._best:
            return False
        best = max(self._best.values(), key=self._mean)
        return z_score(best, self._best[solver], self._weights) > SIGNIFICANT_Z

    def _spend(self, name: str, solver: str, seconds: float) -> None:
        """Count the seconds of a trial of a search, and keep how long the next one of its solver may take."""
        self._spent[name].add(seconds)
        usual = self._usual[name]
        usual[solver] = max(0.9 * usual.get(solver, 0.0), seconds)

    def _observations(self, trial: FrozenTrial) -> list[FrozenTrial]:
        return observations(trial, timed=self._timed)

    def search_of(self, params: Mapping[str, Value]) -> str:
        """Return the name of the search that a configuration belongs to."""
        return str(params[SOLVER]) if self._per_solver else ALL_SOLVERS

    def _is_open(self, name: str) -> bool:
        """Return whether a search has configurations left, promises a gain, and has not had its share of the trials."""
        if self._poor[name] >= MAX_POOR_SUGGESTIONS:
            return False
        tried = self._spent[name].trials + self._running[name]
        return tried < self._spaces[name].size and not (self._per_solver and tried >= self._max_trials)

    def _used(self, name: str) -> float:
        """Return the seconds that a search has used, including those that its running trials are expected to take."""
        used = self._spent[name].seconds + self._running[name] * self._spent[name].mean
        return used * WORSE_SOLVER_COST if self.is_significantly_worse(name) else used

    def _update_leader(self, trial: FrozenTrial, seconds: float) -> None:
        if trial.state == TrialState.COMPLETE and trial.value is not None and trial.value > self._leading:
            self._leader, self._leading = (dict(trial.params), seconds), trial.value

    def _update_best(self, name: str, per_query: Floats | None) -> None:
        if per_query is not None and (name not in self._best or self._mean(per_query) > self._mean(self._best[name])):
            self._best[name] = per_query

    def _mean(self, per_query: Floats) -> float:
        return mean_or_zero(per_query, self._weights)


def _remembered(trial: FrozenTrial, space: UnionSpace) -> FrozenTrial:
    """Return a finished trial as a search keeps it, with the distributions of its own space."""
    return create_trial(
        state=trial.state,
        value=trial.value,
        params=clipped(space.distributions, trial.params),
        distributions={name: space.distributions[name] for name in trial.params},
        user_attrs=trial.user_attrs,
        intermediate_values=trial.intermediate_values,
    )
