"""What a simulated study decides by: the sampler, which suggests rows of the table, and rules that can be varied.

The Gaussian process, its hyperparameters, the noise, the costs and the acquisition function are those of a study. A
study maximises this function over the whole space, with many evaluations. A simulation takes the row of the highest
value instead, of those that the study has not used. Rounds of boosting are not chosen by a suggestion, since validation
queries find them: all rows of a solver have those of its best trial. Rows are drawn from the space, so that a row at
random stands for a configuration at random.

The other rules are constants of the policy.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Self

import numpy as np
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler
from optuna.study import Study as OptunaStudy
from optuna.trial import FrozenTrial

from ranktune.solvers.core.arrays import Floats, Json
from ranktune.solvers.core.errors import ParameterError, nearest
from ranktune.solvers.core.space import Value
from ranktune.solvers.registry import solver_class
from ranktune.studies.laboratory.known import KnownTask
from ranktune.studies.laboratory.rows import Configuration
from ranktune.tuner.gp.proposal import COST_EXPONENT, MAX_TRIALS, ObservedTrials, decide
from ranktune.tuner.policy.policy import POLICY, Policy
from ranktune.tuner.samplers.first import grows
from ranktune.tuner.samplers.history import arranged, read
from ranktune.tuner.samplers.space import SOLVER, UnionSpace

THOMPSON, RANDOM = "thompson", "random"
SIMULATED = (THOMPSON, RANDOM)
"""The samplers that can be simulated."""

GROWTH = 2.0
"""How many times as many trials renew the fit of the hyperparameters, which a study renews at nearly every suggestion.
From this fit on they are sampled anew at every suggestion, as in a study."""
Answer = Callable[[OptunaStudy, FrozenTrial], Configuration]
SAMPLER = "sampler"


@dataclass(frozen=True, eq=False)
class Suggested:
    """A row that is suggested, by its place, and the last fit of the hyperparameters, to so many trials."""

    place: int
    thetas: Floats | None = None
    size: int = 0


class Answering(BaseSampler):
    """A sampler whose suggestions are rows of the table."""

    def __init__(self, space: UnionSpace, answer: Answer) -> None:
        self._space, self._answer = space, answer

    def infer_relative_search_space(self, study: OptunaStudy, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """Return all parameters, since a row has a value of each that is active."""
        return dict(self._space.distributions)

    def sample_relative(
        self, study: OptunaStudy, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Value]:
        """Return the parameters of the row that is suggested."""
        return self._answer(study, trial)

    def sample_independent(
        self, study: OptunaStudy, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Value:
        """Raise AssertionError: a row has all parameters."""
        raise AssertionError(f"the row has no {param_name}")


def suggested(
    task: KnownTask,
    places: Sequence[int],
    space: UnionSpace,
    study: OptunaStudy,
    trial: FrozenTrial,
    generator: np.random.Generator,
    last: Suggested | None,
) -> Suggested:
    """Return which of the rows at these places the Gaussian process suggests, given the trials of a search."""
    if len(places) == 1:
        return Suggested(places[0])
    history = read(study, trial, space.distributions, space)
    trials = history.trials.within(MAX_TRIALS)
    solvers = tuple(str(params[SOLVER]) for params in space.defaults())
    rows = encoded(task.space, solvers, tuple(row.configuration for row in task.rows))[list(places)]
    rows = _with_best_rounds(rows, trials, rounds_of(space, solvers))
    count = len(trials.gains)
    is_new = last is None or last.thetas is None or count >= GROWTH * last.size
    thetas, size = (None, count) if last is None or is_new else (last.thetas, last.size)
    decision = decide(history.encoding, trials, generator, power=COST_EXPONENT, thetas=thetas)
    values = decision.function.values(history.encoding.embed(rows))
    return Suggested(places[int(np.argmax(values))], decision.thetas, size)


@lru_cache
def encoded(space: UnionSpace, solvers: tuple[str, ...], configurations: tuple[str, ...]) -> Floats:
    """Return configurations by their names as rows of the space of some solvers, (n, d), NaN where inactive."""
    return arranged(space.restricted({SOLVER: solvers}), [json.loads(name) for name in configurations])[1]


def rounds_of(space: UnionSpace, solvers: Sequence[str]) -> list[int]:
    """Return the axes of a space that are rounds of boosting."""
    names = list(space.distributions)
    rounds = (f"{solver}.{solver_class(solver).path_parameter}" for solver in solvers if grows(solver))
    return [names.index(name) for name in rounds]


def _with_best_rounds(rows: Floats, trials: ObservedTrials, axes: Sequence[int]) -> Floats:
    """Return rows whose rounds of boosting are those of the best trial of the same solver, if there is one."""
    rows = rows.copy()
    for axis in axes:
        active = ~np.isnan(trials.rows[:, axis])
        if active.any():
            best = trials.rows[active, axis][np.argmax(trials.gains[active])]
            rows[~np.isnan(rows[:, axis]), axis] = best
    return rows


@dataclass(frozen=True)
class DecisionRules:
    """What a study decides by.

    Attributes
    ----------
    policy : Policy
    sampler : str
        One of those that are simulated.
    """

    policy: Policy = POLICY
    sampler: str = THOMPSON

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the rules of a text such as choice.ahead=0.5,sampler=random. Raises ParameterError for any other."""
        self = cls()
        for rule in text.split(","):
            name, _, value = rule.partition("=")
            if name == SAMPLER:
                self = replace(self, sampler=_checked(value, SIMULATED, "sampler"))
            else:
                self = replace(self, policy=_varied(self.policy, name, value))
        return self

    @property
    def of_trials(self) -> Self:
        """The same rules without what decides only after the last trial."""
        choice = replace(self.policy.choice, ahead=POLICY.choice.ahead)
        return replace(self, policy=replace(self.policy, choice=choice, blend=POLICY.blend))


def constants() -> dict[str, int | float]:
    """Return the numbers of the policy by their names, such as choice.ahead."""
    values: Json = {}
    for name, value in asdict(POLICY).items():
        values |= {f"{name}.{own}": value[own] for own in value} if isinstance(value, dict) else {name: value}
    return {name: value for name, value in values.items() if not isinstance(value, tuple)}


def _varied(policy: Policy, name: str, text: str) -> Policy:
    """Return the policy with another value of one of its constants."""
    group, _, number = _checked(name, [*constants(), SAMPLER], "rule").rpartition(".")
    kind = type(constants()[name])
    try:
        changed: Json = {number: kind(text)}
    except ValueError:
        needed = "a whole number" if kind is int else "a number, or inf"
        raise ParameterError(f"{name}={text}: it must be {needed}.") from None
    return replace(policy, **({group: replace(getattr(policy, group), **changed)} if group else changed))


def _checked(name: str, names: Sequence[str], kind: str) -> str:
    if name not in names:
        raise ParameterError(f"there is no {kind} '{name}'. {nearest(name, names)}")
    return name
