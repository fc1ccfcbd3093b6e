"""What simulated studies deliver, and how good that is: by the rule of the choice, against what the table knows."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.errors import RankTuneWarning
from ranktune.studies.laboratory.analysis import HARM
from ranktune.studies.laboratory.known import KnownTask
from ranktune.studies.laboratory.simulation import Simulated
from ranktune.tuner.policy.policy import POLICY, Policy
from ranktune.tuner.samplers.first import alike, first_configurations
from ranktune.tuner.samplers.space import SOLVER
from ranktune.tuner.selection.candidates import best_by_solver
from ranktune.tuner.selection.estimate import estimate, for_few_queries
from ranktune.tuner.selection.finished_trials import best_candidates, best_default
from ranktune.tuner.statistics.comparisons import signed_rank
from ranktune.tuner.statistics.intervals import Interval
from ranktune.tuner.storage.record import number_of

PORTFOLIO = ("SymmetricGBDT", "Ranker")
"""The solvers whose first configuration leads the portfolio of all solvers, and of the composition alone."""


@dataclass(frozen=True)
class Delivered:
    """What a simulated study delivers.

    Attributes
    ----------
    task, budget, seed
        The study.
    solver, validation, test : str, float, float
        The chosen configuration: its solver, and its means on validation and on test queries.
    regret : float
        By how much the best row of the table tests better; 0 for a cut trial that tests better than all rows.
    default, leading : float
        What the best by validation of the first configurations has on test queries, and what the first configuration
        of the leading solver has.
    is_first : bool
        Whether the choice is a first configuration.
    trials, used, ended, exhausted
        See `ranktune.studies.laboratory.simulation.Simulated`.
    estimate : Interval
        The estimate, with limits for the mean over so many test queries.
    """

    task: str
    budget: float
    seed: int
    solver: str
    validation: float
    test: float
    regret: float
    default: float
    leading: float
    is_first: bool
    trials: int
    used: float
    ended: float
    exhausted: bool
    estimate: Interval

    @property
    def gain(self) -> float:
        """What it tests better than the default."""
        return self.test - self.default

    @property
    def over_leading(self) -> float:
        """What it tests better than the first configuration of the leading solver."""
        return self.test - self.leading

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
        candidates = best_candidates(result, space, believed=True, policy=policy)
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
        validation=chosen.value,
        test=test,
        regret=max(float(result.task.tests.max()) - test, 0.0),
        default=test if default is None else result.tests[default.number],
        leading=_leading(result.task),
        is_first=any(alike(first, trials[chosen.number].params) for first in first_configurations(space)),
        trials=len(trials),
        used=result.used,
        ended=result.ended,
        exhausted=result.exhausted,
        estimate=for_few_queries(promised, chosen.values, result.task.test_queries),
    )


def _leading(task: KnownTask) -> float:
    """Return what the first configuration of the solver that leads the portfolio has on test queries."""
    solver = next((name for name in PORTFOLIO if name in task.solvers), task.solvers[0])
    return float(task.tests[task.solvers.index(solver)])


@dataclass(frozen=True)
class Summary:
    """Figures of many studies: means over tasks, each the mean of its studies.

    Attributes
    ----------
    studies, tasks : int
    regret, decile : float
        The mean, and the mean of the tenth of the tasks with the highest.
    harmed, gain, p_value : float
        Against the default: the share harmed, the mean gain, and the two-sided p-value of Wilcoxon's test over tasks.
    over_leading : float
        The mean gain over the first configuration of the leading solver.
    changed : float
        The share whose choice is no first configuration.
    error, inside : float
        The mean of the estimate less the mean on test queries, and the share whose limits cover that.
    trials, used : float
    exhausted : float
        The share that ended because the table had no more rows.
    """

    studies: int
    tasks: int
    regret: float
    decile: float
    harmed: float
    gain: float
    p_value: float
    over_leading: float
    changed: float
    error: float
    inside: float
    trials: float
    used: float
    exhausted: float


def summary(studies: Sequence[Delivered]) -> Summary:
    """Return the figures of some studies."""
    regret, gain = task_means(studies, "regret"), task_means(studies, "gain")

    def mean(name: str) -> float:
        return float(np.mean(list(task_means(studies, name).values())))

    return Summary(
        studies=len(studies),
        tasks=len(regret),
        regret=mean("regret"),
        decile=worst_decile(np.array(list(regret.values()))),
        harmed=mean("is_harmed"),
        gain=mean("gain"),
        p_value=signed_rank(np.array(list(gain.values()))),
        over_leading=mean("over_leading"),
        changed=1.0 - mean("is_first"),
        error=mean("error"),
        inside=mean("is_inside"),
        trials=mean("trials"),
        used=mean("used"),
        exhausted=mean("exhausted"),
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
