"""A first look at every solver: fits on samples of the queries, of growing size, within a small part of the time.

A study with a time limit on very large data cannot afford a trial of every solver, nor one boosted fit to its end. So
the default configuration of each is fitted on a sample, then those that may still win on samples of twice the size,
with further configurations of the leaders. The result is which solver leads, what a trial on all queries will cost, and
how much each solver gains from twice the queries. A solver that is significantly behind the leader, its gain up to all
queries included, gets no trial.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ranktune.solvers.metrics.means import mean_or_zero
from ranktune.tuner.evaluation.evaluate import attempt
from ranktune.tuner.evaluation.plans import Sample
from ranktune.tuner.evaluation.task import Outcome, Task
from ranktune.tuner.policy import looks
from ranktune.tuner.policy.looks import Arm
from ranktune.tuner.policy.standings import Look, Standing
from ranktune.tuner.samplers.first import portfolio
from ranktune.tuner.samplers.space import SOLVER, UnionSpace
from ranktune.tuner.search.dispatcher import outcome_of
from ranktune.tuner.study.problem import Problem
from ranktune.tuner.study.tasks import Tasks, without_path
from ranktune.tuner.workers.executor import Executor


def worth_a_look(problem: Problem, solvers: Sequence[str], seconds: float) -> bool:
    """Return whether no boosted fit would come near its end in the time, so that samples decide who gets it."""
    return len(solvers) > 1 and isinstance(problem.plan, tuple) and looks.is_worth_it(problem.durations, seconds)


def look(problem: Problem, space: UnionSpace, tasks: Tasks, executor: Executor, seconds: float) -> Look:
    """Fit every solver to samples, within a share of the seconds that the study has left."""
    return _Looking(problem, tasks, executor, problem.policy.look.share * seconds).run(space, seconds)


class _Looking:
    """Fits the samples. `budget` is in seconds of fitting, shared by the jobs; compiling is not part of it."""

    def __init__(self, problem: Problem, tasks: Tasks, executor: Executor, budget: float) -> None:
        assert isinstance(problem.plan, tuple)
        fold = problem.plan[0]
        self._tasks, self._executor, self._policy = tasks, executor, problem.policy
        self._fold, self._development = fold, problem.development
        self._parts, self._everything = len(problem.plan), len(fold.train)
        self._vali = min(len(fold.vali), self._policy.look.min_vali)
        self._budget = self._left = budget * executor.jobs
        self._cells = problem.durations.cells * self._everything / problem.development.n_queries

    def run(self, space: UnionSpace, seconds: float) -> Look:
        """Fit samples of growing size until the next would take too long."""
        begun, policy = time.monotonic(), self._policy
        arms = [Arm(str(params[SOLVER]), params) for params in space.defaults()]
        alive, size, widened = arms, looks.first_size(self._everything, self._cells, self._budget, policy), False
        while alive:
            self._fit(alive, size)
            if size >= self._everything:
                break
            size = min(2 * size, self._everything)
            fitted = [arm for arm in alive if size // 2 in arm.sizes or arm.scores]
            alive = looks.promising(fitted, self._everything, policy)
            if alive and not widened:
                widened = True
                alive = [*alive, *(other for arm in alive for other in _others(arm, space))]
                arms = [*arms, *(other for other in alive if not other.sizes)]
            alive = looks.affordable(alive, self._left, policy)
        looked = [arm for arm in arms if arm.scores]
        standings = tuple(self._standing(arm, looked) for arm in sorted(looked, key=lambda arm: arm.rank))
        longest = max((s.cost(self._everything) for s in standings if not s.hopeless), default=0.0)
        parts = looks.parts_of_trials(longest, self._parts, seconds, policy)
        return Look(standings, self._everything, parts, round(time.monotonic() - begun, 3))

    def _standing(self, arm: Arm, others: Sequence[Arm]) -> Standing:
        """Return the results of an arm, compared with others after samples of the same size."""
        values = tuple(mean_or_zero(scores, arm.weights) for scores in arm.scores)
        hopeless = looks.is_hopeless(arm, others, self._everything, self._policy)
        return Standing(arm.params, tuple(arm.sizes), values, tuple(arm.seconds), arm.growth, hopeless)

    def _fit(self, arms: Sequence[Arm], size: int) -> None:
        """Fit the arms to a sample; one that fails has no more scores."""
        plan = Sample.of_fold(self._fold, self._tasks.study.seed, size, self._vali)
        weights = self._development.query_weights
        jobs = [self._executor.submit(attempt, self._task(arm), plan) for arm in arms]
        for arm, job in zip(arms, jobs, strict=True):
            returned = outcome_of(job)
            outcome = returned if isinstance(returned, Outcome) else Outcome(error="lost")
            took = outcome.ended - outcome.begun
            self._left -= took
            if outcome.error is None and not outcome.given_up:
                arm.sizes.append(size)
                arm.scores.append(outcome.per_query[self._tasks.study.metric])
                arm.seconds.append(took)
                arm.weights = None if weights is None else weights[plan.evaluated]

    def _task(self, arm: Arm) -> Task:
        task = self._tasks.of(arm.params)
        rounds = min(task.bound, self._policy.look.rounds)
        parameters = {**task.parameters, "patience": self._policy.look.patience} if rounds else task.parameters
        return replace(
            task if rounds else without_path(task),
            parameters=parameters,
            path=(),
            bound=rounds,
            keep=False,
            limit=self._policy.look.longest * self._budget,
        )


def _others(arm: Arm, space: UnionSpace) -> Iterator[Arm]:
    """Yield the further configurations of the portfolio of an arm's solver."""
    for values in portfolio(arm.solver):
        params = space.configuration(arm.solver, values)
        if params is not None and params != arm.params:
            yield Arm(arm.solver, params)
