"""What the sampler of a simulated study suggests: a row of the table that the study has not used.

The Gaussian process, its hyperparameters, the noise, the costs and the acquisition function are those of a study. A
study maximises this function over the whole space, with many evaluations. A simulation takes the row of the highest
value instead. Rounds of boosting are not chosen by a suggestion, since validation queries find them: all rows of a
solver have those of its best trial. Rows are drawn from the space, so that a row at random stands for a configuration
at random.

The rules by which simulated studies decide, as far as they are varied: constants of the policy, and the sampler.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
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


@dataclass(frozen=True, eq=False)
class Suggested:
    """A row that is suggested, by its place, and the last fit of the hyperparameters, to so many trials."""

    place: int
    thetas: Floats | None = None
    size: int = 0


Answer = Callable[[OptunaStudy, FrozenTrial], Configuration]


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
    known = (f"{solver}.{solver_class(solver).path_parameter}" for solver in solvers if grows(solver))
    return [names.index(name) for name in known]


def _with_best_rounds(rows: Floats, trials: ObservedTrials, axes: Sequence[int]) -> Floats:
    """Return rows whose rounds of boosting are those of the best trial of the same solver, if there is one."""
    rows = rows.copy()
    for axis in axes:
        known = ~np.isnan(trials.rows[:, axis])
        if known.any():
            best = trials.rows[known, axis][np.argmax(trials.gains[known])]
            rows[~np.isnan(rows[:, axis]), axis] = best
    return rows


SAMPLER = "sampler"


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
        for part in text.split(","):
            name, _, value = part.partition("=")
            if name == SAMPLER:
                self = replace(self, sampler=_known(value, SIMULATED, "sampler"))
            else:
                self = replace(self, policy=_varied(self.policy, name, value))
        return self

    @property
    def of_trials(self) -> Self:
        """The same rules without what decides only after the last trial."""
        choice = replace(self.policy.choice, ahead=POLICY.choice.ahead, alpha=POLICY.choice.alpha)
        return replace(self, policy=replace(self.policy, choice=choice, blend=POLICY.blend))


def constants() -> list[str]:
    """Return the names of the numbers of a policy, such as choice.ahead."""
    names = []
    for field in fields(Policy):
        part = getattr(POLICY, field.name)
        own = [each.name for each in fields(part)] if is_dataclass(part) else []
        names += [f"{field.name}.{each}" for each in own if isinstance(getattr(part, each), int | float)]
        names += [] if own else [field.name]
    return names


def _varied(policy: Policy, name: str, text: str) -> Policy:
    """Return the policy with another value of one of its constants."""
    group, _, own = _known(name, [*constants(), SAMPLER], "rule").rpartition(".")
    part = getattr(policy, group) if group else policy
    is_whole = isinstance(getattr(part, own), int)
    try:
        changed: Json = {own: int(text) if is_whole else float(text)}
    except ValueError:
        kind = "a whole number" if is_whole else "a number, or inf"
        raise ParameterError(f"{name}={text}: it must be {kind}.") from None
    return replace(policy, **({group: replace(part, **changed)} if group else changed))


def _known(name: str, known: Sequence[str], kind: str) -> str:
    if name not in known:
        raise ParameterError(f"there is no {kind} '{name}'. {nearest(name, known)}")
    return name
