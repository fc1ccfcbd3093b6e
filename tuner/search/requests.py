"""From an action to a trial: its time, and what it has to beat."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial, TrialState

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.space import Value
from ranktune.solvers.registry import solver_class
from ranktune.tuner.evaluation.task import Task, TaskOutcome, chosen_parameters
from ranktune.tuner.policy.actions import FitTrial, Grow, Suggest
from ranktune.tuner.policy.next_trial import with_reserve
from ranktune.tuner.policy.policy import POLICY, Policy
from ranktune.tuner.policy.racing import (
    FullValueEstimate,
    can_be_cut,
    estimate_in_full,
    time_limit,
)
from ranktune.tuner.policy.reserve import Took
from ranktune.tuner.samplers.first import is_alike
from ranktune.tuner.samplers.space import SOLVER, UnionSpace, widened
from ranktune.tuner.search.dispatcher import Dispatcher, Running
from ranktune.tuner.search.search_scheduler import SearchScheduler
from ranktune.tuner.statistics.pareto import within_limits
from ranktune.tuner.storage.attributes import PARTS, UNFINISHED
from ranktune.tuner.storage.record import repeated, seconds_of
from ranktune.tuner.study.deadline import Deadline
from ranktune.tuner.study.declaration import Study
from ranktune.tuner.study.tasks import without_path


class Incumbent(NamedTuple):
    """The best complete trial of a search that keeps the limits; scores are by query, or by order of all queries."""

    value: float
    scores: Floats


class FinishedTrials:
    """The finished trials of a split, in the loop's memory.

    Attributes
    ----------
    best : dict of str to FrozenTrial
        The best complete trial of each solver, of those within the limits of the study where there are any.
    counted : array of shape (n_queries,) or None
        Which queries the metric counts; None before the first complete trial.
    """

    def __init__(self, study: Study, space: UnionSpace, weights: Floats | None = None) -> None:
        self._study, self._space, self.weights = study, space, weights
        self.best: dict[str, FrozenTrial] = {}
        self.counted: NDArray[np.bool_] | None = None
        self._completed = Counter[str]()
        self._unfinished: list[FrozenTrial] = []
        self._seconds: dict[str, tuple[float, float]] = {}
        self._incumbents: dict[str, Incumbent] = {}

    def add(self, search: str, trial: FrozenTrial, per_query: Floats | None) -> None:
        """Add a trial with its values by query, None where it was not complete."""
        solver = str(trial.params[SOLVER])
        if trial.state != TrialState.COMPLETE or trial.value is None:
            return
        self._completed[solver] += 1
        if solver not in self.best or self._merit(trial) > self._merit(self.best[solver]):
            before = [earlier for earlier in self._unfinished if is_alike(earlier.params, trial.params)]
            seconds = sum(seconds_of(each) for each in (*before, trial))
            self.best[solver], self._seconds[solver] = trial, (seconds, repeated(trial, solver_class(solver)) * seconds)
        if trial.user_attrs.get(UNFINISHED):
            self._unfinished.append(trial)
        if per_query is None:
            return
        if self.counted is None:
            self.counted = ~np.isnan(per_query)
        scores = per_query
        if self._study.plan == "progressive":
            scores = np.array(trial.user_attrs.get(PARTS, ()), dtype=np.float64)
        better = search not in self._incumbents or trial.value > self._incumbents[search].value
        if better and len(scores) and within_limits(trial.user_attrs, self._study.limits):
            self._incumbents[search] = Incumbent(trial.value, scores)

    def _merit(self, trial: FrozenTrial) -> tuple[bool, float]:
        return within_limits(trial.user_attrs, self._study.limits), trial.value or 0.0

    def leader(self) -> FrozenTrial | None:
        """Return the best complete trial within the limits of the study, None where there is none."""
        leader = max(self.best.values(), key=self._merit, default=None)
        return leader if leader is not None and self._merit(leader)[0] else None

    def took(self) -> dict[str, Took]:
        """Return what each solver's best trial took, with those whose model it continued; the best solver first."""
        ranked = sorted(self.best, key=lambda solver: self._merit(self.best[solver]), reverse=True)
        return {solver: Took(*self._seconds[solver], self._completed[solver]) for solver in ranked}

    def incumbent(self, search: str, solver: str = "") -> Incumbent | None:
        """Return what a trial of a search has to beat; None until one of its solver is complete."""
        return self._incumbents.get(search) if not solver or self._completed[solver] else None

    def best_incumbent(self) -> Incumbent | None:
        """Return the best of the incumbents of all searches, None before the first complete trial."""
        return max(self._incumbents.values(), key=lambda each: each.value, default=None)

    def estimate(self, outcome: TaskOutcome, task: Task) -> FullValueEstimate | None:
        """Return what a stopped trial would have scored in full, None for a trial that was not stopped."""
        if not outcome.stopped or task.incumbent is None:
            return None
        values = outcome.per_query[self._study.metric]
        if self._study.plan == "progressive":
            parts = [value for _, _, value in outcome.steps]
            unknown = np.full(len(task.incumbent) - len(parts), np.nan)
            return estimate_in_full(np.concatenate([parts, unknown]), task.incumbent)
        return estimate_in_full(values, task.incumbent, self.weights)


Reserve = Callable[[float, Mapping[str, Took], bool, int], float]
"""Seconds of a study with all its workers, those of each solver's best trial, whether first configurations of boosting
are still to come, and jobs -> the seconds of one worker that selection and refit take."""


@dataclass
class SplitBudget:
    """The time of a split. No trial begins after the deadline less the reserve."""

    deadline: Deadline
    reserve: Reserve
    jobs: int
    finished: FinishedTrials
    scheduler: SearchScheduler
    policy: Policy = POLICY
    total: float = field(init=False)

    def __post_init__(self) -> None:
        """Note the seconds that there are."""
        self.total = self.deadline.left

    def left(self) -> float:
        """Return the seconds that are left for trials, less those reserved for the end."""
        return float("inf") if self.deadline.left == float("inf") else self.deadline.left - self.ending()

    def to_come(self, trials: int) -> float:
        """Return the seconds that so many trials to come, and those that run, take with what follows them."""
        return self.scheduler.state.seconds_of(trials) / self.jobs + self.ending()

    def ending(self) -> float:
        """Return the seconds that selection and refit take."""
        state = self.scheduler.state
        took = with_reserve(state, self.finished.took())
        return self.reserve(self.total * self.jobs, took, state.to_grow > 0, self.jobs) / self.jobs


class Requests:
    """Makes the trials of a split of actions."""

    def __init__(
        self,
        study: Study,
        space: UnionSpace,
        task_of: Callable[[str, Mapping[str, Value]], Task],
        dispatcher: Dispatcher,
        budget: SplitBudget,
    ) -> None:
        self._study, self._space, self._task_of = study, space, task_of
        self._scheduler, self._dispatcher, self.budget = budget.scheduler, dispatcher, budget

    def resumed(self, number: int, params: Mapping[str, Value], left: float) -> Running:
        """Return a trial that an earlier run did not finish."""
        return self._trial(number, self._scheduler.resume(number, params), left)

    def begin(self, number: int, action: FitTrial | Grow | Suggest, left: float) -> Running:
        """Return the trial of that number by an action."""
        return self._trial(number, self._scheduler.begin(number, action), left)

    def renewed(self, trial: Running, left: float) -> Running:
        """Return a trial that waited, with the time that it has now, and what it has to beat now."""
        return self._trial(trial.number, trial.params, left)

    def chosen(self, trial: Running, outcome: TaskOutcome) -> tuple[dict[str, Value], Mapping[str, BaseDistribution]]:
        """Return the parameters of a trial by flat name, with the best value of its path, and distributions of them."""
        params = with_chosen(trial.params, trial.task, outcome)
        return params, widened(self._space.distributions, params)

    def _trial(self, number: int, params: Mapping[str, Value], left: float) -> Running:
        solver, parameters = self._space.split(params)
        search, finished = self._scheduler.search_of(params), self.budget.finished
        repeated = self._scheduler.measured(params)
        rival = finished.incumbent(search, solver)
        if left < math.inf and can_be_cut(self._scheduler.state, solver):
            rival = finished.best_incumbent()  # a boosted fit that cannot enter the blend any more ends
        if self._study.full or repeated is not None:
            rival = None
        if left == math.inf and can_be_cut(self._scheduler.state, solver):
            left = max(self.budget.left(), 0.0) or left  # the first trial runs in any case, and counts where it is cut
        limit = time_limit(self._scheduler.state, solver, left, self.budget.jobs)
        task = self._task_of(solver, parameters)
        incumbent = None if rival is None else rival.scores
        task = replace(task, limit=limit, incumbent=incumbent, race=self.budget.policy.race)
        earlier = self._scheduler.state.begun[solver] - 1
        if solver_class(solver).path_expensive and not (earlier == 1 if repeated is None else repeated.path):
            # The defaults are evaluated as they are, the level to beat; after one path, single values are tried.
            task = without_path(task)
        return Running(number, params, task)


def with_chosen(params: Mapping[str, Value], task: Task, outcome: TaskOutcome) -> dict[str, Value]:
    """Return the parameters of a task by flat name, with the best value of its path."""
    flat_names = {flat.partition("[")[0]: flat for flat in params}
    result = dict(params)
    for name, value in chosen_parameters(task, outcome).items():
        flat = f"{task.solver}.{name}"
        result[flat_names.get(flat, flat)] = value
    return result
