"""The searches of a study: one over all solvers and one of compositions, or one for each solver, which share the time.

One search compares the solvers and soon stays with the one or two that lead. Compositions have a search of their own,
so that every study tries some: a fit takes a tenth of a boosted one. In a given time each solver is searched by
itself, and the next trial belongs to the search that has used the least time. A solver with long trials gets few of
them, one with short trials does not wait, and each is tuned as well as its time allows before selection and blending.
The time of a solver is a share that depends on how far it is behind the best (`ranktune.tuner.policy.next_trial`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from optuna.samplers import BaseSampler, RandomSampler
from optuna.trial import FrozenTrial, Trial, create_trial

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.space import Value
from ranktune.solvers.metrics.means import mean_or_zero
from ranktune.solvers.names import COMPOSED
from ranktune.tuner.policy.actions import FitTrial, Grow, SearchState, Suggest
from ranktune.tuner.policy.next_trial import behind_best
from ranktune.tuner.policy.policy import POLICY, Policy
from ranktune.tuner.samplers.registry import make_sampler
from ranktune.tuner.samplers.space import SOLVER, UnionSpace, widened
from ranktune.tuner.search.searches import FirstTrials, Search, SearchOptions
from ranktune.tuner.statistics.intervals import z_score
from ranktune.tuner.storage.attributes import (
    AGAIN,
    BULK,
    BYTES,
    CONTINUED,
    FIRST,
    GIVEN,
    ORIGIN,
    PARTIAL,
    PATH,
    SECONDS,
    VARIANCE,
)
from ranktune.tuner.storage.record import seconds_of
from ranktune.tuner.study.declaration import Study
from ranktune.tuner.study.settings import MIXED

if TYPE_CHECKING:
    from ranktune.tuner.retuning.earlier import EarlierTrial

RANDOM = "random"
"""The sampler that does not use earlier trials."""
ALL_SOLVERS = ""
"""Name of the search over all solvers."""


class SearchScheduler:
    """The searches of a study: what is known of them, and what they suggest.

    Parameters
    ----------
    study : Study
    space : UnionSpace
    options : SearchOptions, optional
    timed : bool
        Whether each solver is searched by itself, and samplers may use the seconds that trials took. A search is then
        not repeatable to the last bit.
    weights : array of shape (n_queries,), optional
        Weights of the validation queries.
    clock : callable
        Returns the seconds of a steady clock, by which suggestions are timed.
    policy : Policy
        What decides.
    sampler : callable
        Makes the sampler of a trial.

    Attributes
    ----------
    origins : dict of int to dict
        The attributes of each trial that say why it was tried.
    """

    def __init__(
        self,
        study: Study,
        space: UnionSpace,
        options: SearchOptions | None = None,
        *,
        timed: bool = False,
        weights: Floats | None = None,
        clock: Callable[[], float] = time.monotonic,
        policy: Policy = POLICY,
        sampler: Callable[..., BaseSampler] = make_sampler,
    ) -> None:
        options = replace(options or SearchOptions(), trials=study.n_trials, ends_by_gain=study.ends_by_gain)
        self._study, self._timed, self._weights, self._clock = study, timed, weights, clock
        self._policy, self._sampler, self._first = policy, sampler, FirstTrials(space, options, policy)
        space = self._first.space
        names = [str(params[SOLVER]) for params in space.defaults()]
        others = [name for name in names if name != COMPOSED]
        aside = not timed and 0 < len(others) < len(names)
        compositions = min(policy.search.compositions, study.n_trials // 10) if aside else 0
        groups = {name: [name] for name in names} if timed else {ALL_SOLVERS: names}
        if compositions:
            groups = {ALL_SOLVERS: others, COMPOSED: [COMPOSED]}
        self._searches = {
            name: Search(name, space.restricted({SOLVER: group}), learns=study.sampler != RANDOM)
            for name, group in groups.items()
        }
        share = -(-study.n_trials // len(names)) if timed else float("inf")
        self._first.state = replace(
            self._first.state,
            accounts=self._searches,
            share=share,
            composed=COMPOSED if compositions else "",
            compositions=compositions,
        )
        self._bests: dict[str, Floats] = {}
        self._asked: dict[int, tuple[Trial, float, bool]] = {}
        self.origins: dict[int, dict[str, object]] = {}
        self._awaited = None if options.earlier is None else options.earlier.awaited()

    def remember(self, trials: Iterable[tuple[FrozenTrial, Floats | None]]) -> None:
        """Add finished trials of an earlier run, each with its values by query, None where it failed or was stopped."""
        for trial, per_query in trials:
            if self._awaited is not None and self.measured(trial.params) is None:
                self._add_earlier(self._awaited.ready())  # as before it was suggested
            counts = self._first.begin(trial.params)
            search, solver = self._searches.get(self.search_of(trial.params)), str(trial.params[SOLVER])
            if search is not None and search.holds(solver):
                self._finish(trial, seconds_of(trial), per_query, counts)
                search.add(observations(trial, timed=self._timed))
                search.spend(solver, seconds_of(trial))
                self._heed(trial, per_query)

    def resume(self, number: int, params: Mapping[str, Value]) -> dict[str, Value]:
        """Begin a trial that an earlier run did not finish, with the parameters that it had, and return them."""
        search, self.origins[number] = self._searches[self.search_of(params)], {ORIGIN: AGAIN}
        return self._ask(number, search, RandomSampler(seed=0), self._clock(), params)  # all parameters are given

    @property
    def state(self) -> SearchState:
        """What is known, of which the policy decides what is next."""
        return self._first.state

    def begin(self, number: int, action: FitTrial | Grow | Suggest) -> dict[str, Value]:
        """Begin trial `number`, and return its parameters."""
        begun, params_given = self._clock(), None if isinstance(action, Suggest) else action.params
        if self._awaited is not None and params_given is None:
            self._add_earlier(self._awaited.ready())
        search = self._searches[action.search if isinstance(action, Suggest) else self.search_of(action.params)]
        sampler = self._sampler(
            self._study.sampler,
            seed=self._study.seed,
            number=number,
            space=search.space,
            startup=self._policy.search.startup_apart if search.name else self._policy.search.startup,
            costs=True,
            acquisition=self._study.acquisition or MIXED,
        )
        params = self._ask(number, search, sampler, begun, params_given)
        self.origins[number] = self._origin(action, sampler)
        if self._study.until is not None:
            search.suggested(getattr(sampler, "expected_gain", None), self._study.until)
        return params

    def _origin(self, action: FitTrial | Grow | Suggest, sampler: BaseSampler) -> dict[str, object]:
        match action:
            case Suggest():
                return getattr(sampler, "origin", {ORIGIN: self._study.sampler})
            case Grow():
                return {ORIGIN: CONTINUED}
        space, params = self._first.space, action.params
        solver = str(params[SOLVER])
        is_given = params in [space.configuration(solver, values) for values in space.first.get(solver, ())]
        return {ORIGIN: AGAIN if self.measured(params) else GIVEN if is_given else FIRST}

    def tell(self, number: int, written: FrozenTrial, seconds: float, per_query: Floats | None) -> None:
        """Add a finished trial as it is in the record, the seconds that it ran, and its values by query."""
        trial, suggesting, counts = self._asked.pop(number)
        search = self._searches[self.search_of(written.params)]
        self._finish(written, seconds, per_query, counts)
        search.tell(trial, written, observations(written, timed=self._timed))
        search.spend(str(written.params[SOLVER]), suggesting + seconds)
        self._heed(written, per_query)

    def search_of(self, params: Mapping[str, Value]) -> str:
        """Return the name of the search that a configuration belongs to."""
        solver = str(params[SOLVER])
        return solver if self._timed or solver in self._searches else ALL_SOLVERS

    def _ask(
        self, number: int, search: Search, sampler: BaseSampler, begun: float, fixed: Mapping[str, Value] | None
    ) -> dict[str, Value]:
        trial, params = search.ask(sampler, fixed)
        self._asked[number] = trial, self._clock() - begun, self._first.begin(params)
        return params

    def _finish(self, trial: FrozenTrial, seconds: float, per_query: Floats | None, counts: bool) -> None:
        """Note the best trial of each solver, which solvers are behind, and whether a further trial was in vain."""
        solver, bests, in_vain = str(trial.params[SOLVER]), self._bests, True
        if per_query is not None and (solver not in bests or self._mean(per_query) > self._mean(bests[solver])):
            in_vain &= solver in bests and z_score(per_query, bests[solver], self._weights) <= self._policy.choice.ahead
            bests[solver] = per_query
            behind, limit = behind_best(bests, self._weights), self._policy.significant
            worse = frozenset(name for name, errors in behind.items() if errors > limit)
            self._first.state = replace(self._first.state, behind=behind, worse=worse)
        state = self._first.state
        is_aside = solver == state.composed and state.behind.get(solver) != 0.0
        self._first.finish(trial, seconds, in_vain if counts and not is_aside else None)

    def measured(self, params: Mapping[str, Value]) -> EarlierTrial | None:
        """Return the earlier trial that is repeated to learn how far the data have moved, None of others."""
        return None if self._awaited is None else self._awaited.measured(params)

    def _heed(self, trial: FrozenTrial, per_query: Floats | None) -> None:
        """Add earlier trials once it is known how far the data have moved."""
        if self._awaited is not None:
            self._add_earlier(self._awaited.finish(trial, per_query))

    def _add_earlier(self, trials: Iterable[FrozenTrial]) -> None:
        for trial in trials:
            search = self._searches.get(self.search_of(trial.params))
            if search is not None and search.holds(str(trial.params[SOLVER])):
                search.add([trial])

    def _mean(self, per_query: Floats) -> float:
        return mean_or_zero(per_query, self._weights)


NOISE = frozenset({VARIANCE, PARTIAL})
"""Attributes of a trial that samplers read besides its cost: the variances of its value."""
BULK_POWER = 2.0 / 3.0
"""Power of a model's bytes that stands for the seconds of its fit: trees of twice the bytes take less than twice."""


def observations(trial: FrozenTrial, *, timed: bool = True) -> list[FrozenTrial]:
    """Return the trial as a sampler reads it, then the other observations of its path.

    The best value of a path is the trial itself. The most expensive one, which was requested, and the neighbours of the
    best are observations too: they locate the maximum. The others lie between them and would add little.

    Only the most expensive value has a cost, since one fit gave them all. The path of a stopped trial has values on a
    part of the queries; their differences count, from the trial's own value. Seconds never repeat: unless the study is
    timed, a power of the size of the most expensive model stands for them, so that a search repeats to the last bit.
    That size says little of linear models, which are all cheap, and enough of trees.
    """
    attributes = {name: value for name, value in trial.user_attrs.items() if name in NOISE}
    size = trial.user_attrs.get(BULK, trial.user_attrs.get(BYTES))
    bulk = None if size is None else float(size) ** BULK_POWER
    cost = trial.user_attrs.get(SECONDS) if timed else bulk
    attributes |= {} if cost is None else {SECONDS: cost}
    path = dict(trial.user_attrs.get(PATH, {}))
    if not path or trial.value is None:
        return [_observed(trial, {}, trial.value, attributes)]
    ((parameter, points),) = path.items()
    name = f"{trial.params[SOLVER]}.{parameter}"
    values = [type(trial.params[name])(value) for value, _ in points]
    best, asked = values.index(trial.params[name]), len(values) - 1
    result = []
    for place in informative_places(len(values), best):
        attrs = {key: value for key, value in attributes.items() if key != SECONDS or place == asked}
        value = trial.value + (points[place][1] - points[best][1])
        result.append(_observed(trial, {name: values[place]}, value, attrs))
    return result


def informative_places(count: int, best: int) -> tuple[int, ...]:
    """Return the places of a path that are observed: the best, then its neighbours and the most expensive."""
    return (best, *sorted({best - 1, best + 1, count - 1} & set(range(count)) - {best}))


def _observed(
    trial: FrozenTrial, changed: dict[str, Value], value: float | None, attrs: dict[str, object]
) -> FrozenTrial:
    reported = {} if value is None else dict.fromkeys(trial.intermediate_values, value)
    params = {**trial.params, **changed}
    return create_trial(
        state=trial.state,
        value=value,
        params=params,
        distributions=dict(widened(trial.distributions, params)),  # a path may go on beyond its best value
        user_attrs=attrs,
        intermediate_values=reported,
    )
