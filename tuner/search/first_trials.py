"""What has begun and finished of a study, in memory: of it the policy decides what is tried next."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from optuna.distributions import FloatDistribution
from optuna.trial import FrozenTrial, TrialState

from ranktune.solvers.core.space import Value
from ranktune.tuner.policy.actions import Growing, Known, Untried
from ranktune.tuner.policy.policy import POLICY, Policy
from ranktune.tuner.samplers.first import alike, first_configurations, grows
from ranktune.tuner.samplers.space import SOLVER, UnionSpace, clipped
from ranktune.tuner.search.searches import SearchOptions
from ranktune.tuner.storage.record import UNFINISHED


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
        What is searched: without the solvers that the look has shown to be hopeless.
    known : Known
        What is known now, but for the searches.
    """

    def __init__(self, space: UnionSpace, options: SearchOptions, policy: Policy = POLICY) -> None:
        first, further, looked = first_configurations(space), list[dict[str, Value]](), options.looked
        boosting = frozenset(solver for params in first if grows(solver := str(params[SOLVER])))
        if looked is not None:
            promising = [params for params in first if params[SOLVER] not in looked.hopeless]
            space = space.restricted({SOLVER: [str(params[SOLVER]) for params in promising]})
            seen = {standing.solver for standing in looked.standings}
            first = [*looked.first(policy), *(params for params in promising if params[SOLVER] not in seen)]
            further = looked.then(policy)
        self.space, self._policy, self._looked, self._first = space, policy, looked, first
        self._leader: tuple[dict[str, Value], float] | None = None
        self._refined: set[Value] = set()
        self.known = Known(
            first=[self._untried(params) for params in first],
            further=[self._untried(params) for params in further],
            leader=self._untried(looked.standings[0].params) if looked is not None and looked.standings else None,
            boosting=boosting,
            is_cut=options.one_part,
            fit_seconds=options.fit_seconds,
            has_looked=looked is not None,
        )

    def begin(self, params: Mapping[str, Value]) -> None:
        """Note that a configuration was requested: it is not tried first again, whatever its rounds of boosting."""
        known, solver = self.known, str(params[SOLVER])
        self.known = replace(
            known,
            first=[one for one in known.first if not alike(one.params, params)],
            further=[one for one in known.further if not alike(one.params, params)],
            unfinished=[growing for growing in known.unfinished if not alike(growing.params, params)],
            begun={**known.begun, solver: known.begun.get(solver, 0) + 1},
        )

    def refine(self, params: Mapping[str, Value]) -> None:
        """Note that a finer version of the best configuration was requested."""
        self._refined.add(params[_rate_of(params)])
        self.known = replace(self.known, finer=self._finer())

    def finish(self, trial: FrozenTrial, seconds: float) -> None:
        """Note that a trial has finished."""
        known, unfinished = self.known, list(self.known.unfinished)
        complete, value = trial.state == TrialState.COMPLETE, -math.inf if trial.value is None else trial.value
        if complete and trial.user_attrs.get(UNFINISHED):
            first = any(alike(params, trial.params) for params in self._first)
            unfinished.append(Growing(trial.params, value, first))
        if complete and (self._leader is None or value > known.best):
            self._leader, known = (dict(trial.params), seconds), replace(known, best=value)
        finished = known.finished | {str(trial.params[SOLVER])}
        self.known = replace(known, unfinished=unfinished, finished=finished, finer=self._finer())

    def _untried(self, params: Mapping[str, Value]) -> Untried:
        solver = str(params[SOLVER])
        return Untried(solver, params, 0.0 if self._looked is None else self._looked.cost(solver))

    def _finer(self) -> Untried | None:
        """Return the best configuration with a smaller learning rate, None where it has been tried.

        Boosting with smaller steps takes more rounds, and generalises better as a rule. It is tried on large data only,
        where a search has few trials, and once of each configuration.
        """
        if self._looked is None or self._leader is None:
            return None
        params, seconds = self._leader
        solver, name = str(params[SOLVER]), _rate_of(params)
        rate, bounds = params.get(name), self.space.distributions.get(name)
        if not grows(solver) or not isinstance(rate, float) or not isinstance(bounds, FloatDistribution):
            return None
        rate *= self._policy.search.finer
        if rate < bounds.low or rate in self._refined:
            return None
        return Untried(solver, clipped(self.space.distributions, {**params, name: rate}), seconds)


def _rate_of(params: Mapping[str, Value]) -> str:
    """Return the flat name of the learning rate of a configuration's solver."""
    return f"{params[SOLVER]}.learning_rate"
