"""What simulated studies deliver, and how good that is: by the rule of the choice, against what the table knows."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.errors import RankTuneWarning
from ranktune.studies.laboratory.known import HARM
from ranktune.studies.laboratory.simulation import Simulated
from ranktune.tuner.policy.policy import POLICY, Policy
from ranktune.tuner.samplers.first import alike, first_configurations
from ranktune.tuner.samplers.space import SOLVER
from ranktune.tuner.selection.estimate import estimate, for_few_queries
from ranktune.tuner.selection.finals import best_by_solver
from ranktune.tuner.selection.finished_trials import best_candidates, best_default
from ranktune.tuner.statistics.measured import Interval
from ranktune.tuner.storage.record import number_of


@dataclass(frozen=True)
class Delivered:
    """What a simulated study delivers.

    Attributes
    ----------
    task, budget, seed
        The study.
    solver, test : str, float
        The chosen configuration: its solver, and its mean on test queries.
    regret : float
        By how much the best row of the table tests better; 0 for a cut trial that tests better than all rows.
    default : float
        What the best by validation of the first configurations has on test queries.
    is_first : bool
        Whether the choice is a first configuration.
    trials, used, exhausted
        See `ranktune.studies.laboratory.simulation.Simulated`.
    estimate : Interval
        The estimate, with limits for the mean over so many test queries.
    """

    task: str
    budget: float
    seed: int
    solver: str
    test: float
    regret: float
    default: float
    is_first: bool
    trials: int
    used: float
    exhausted: bool
    estimate: Interval

    @property
    def gain(self) -> float:
        """What it tests better than the default."""
        return self.test - self.default

    @property
    def error(self) -> float:
        """By how much the estimate is too high."""
        return self.estimate.mean - self.test

    @property
    def is_harmed(self) -> bool:
        """Whether it tests worse than the default by more than HARM."""
        return self.gain < -HARM

    @property
    def is_inside(self) -> bool:
        """Whether the limits of the estimate cover the mean on test queries."""
        return self.estimate.low <= self.test <= self.estimate.high


def delivered(result: Simulated, policy: Policy = POLICY) -> Delivered:
    """Return what a simulated study delivers by a policy."""
    space, study, trials = result.task.space, result.study, {number_of(trial): trial for trial in result.trials()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RankTuneWarning)  # where all trials score the same, any is chosen
        candidates = best_candidates(result, space, policy=policy)
    chosen, default = best_by_solver(candidates)[0], best_default(result, space, study.limits)
    solvers = {number: str(trial.params[SOLVER]) for number, trial in trials.items()}
    generator = np.random.default_rng([study.seed, 6])
    promised = estimate(chosen, candidates, result.values, solvers, generator)
    test = result.tests[chosen.number]
    assert study.timeout is not None
    return Delivered(
        task=result.task.name,
        budget=study.timeout,
        seed=study.seed,
        solver=chosen.solver,
        test=test,
        regret=max(float(result.task.tests.max()) - test, 0.0),
        default=test if default is None else result.tests[default.number],
        is_first=any(alike(first, trials[chosen.number].params) for first in first_configurations(space)),
        trials=len(trials),
        used=result.used,
        exhausted=result.exhausted,
        estimate=for_few_queries(promised, chosen.values, result.task.test_queries),
    )


def task_means(studies: Sequence[Delivered], name: str) -> Mapping[str, float]:
    """Return the mean of an attribute over the studies of each task."""
    values: dict[str, list[float]] = {}
    for study in studies:
        values.setdefault(study.task, []).append(float(getattr(study, name)))
    return {task: float(np.mean(each)) for task, each in values.items()}


def worst_decile(regret: Floats) -> float:
    """Return the mean of the tenth of the values, one at least, that is highest."""
    return float(np.sort(regret)[-max(round(len(regret) / 10), 1) :].mean())
