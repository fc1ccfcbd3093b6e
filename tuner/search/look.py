"""A first look at every solver: fits on samples of the queries, of growing size, within a small part of the time.

A study with a time limit on very large data cannot afford a trial of every solver, nor one boosted fit to its end. So
the default configuration of each is fitted on a sample, then those that may still win on samples of twice the size,
with further configurations of the leaders. The result is which solver leads, what a trial on all queries will cost, and
how much each solver gains from twice the queries. A solver that is significantly behind the leader, its gain up to all
queries included, gets no trial.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Self

import numpy as np

from ranktune.solvers.core.arrays import Floats, JsonView
from ranktune.solvers.core.space import Value
from ranktune.solvers.metrics.means import mean_or_zero
from ranktune.solvers.registry import solver_class
from ranktune.tuner.evaluation.evaluate import attempt
from ranktune.tuner.evaluation.plans import Sample
from ranktune.tuner.evaluation.task import Outcome, Task
from ranktune.tuner.samplers.space import SOLVER, UnionSpace
from ranktune.tuner.selection.time_reserve import cells, fit_seconds
from ranktune.tuner.selection.typed import typed
from ranktune.tuner.statistics.intervals import SIGNIFICANT_Z, z_score
from ranktune.tuner.study.problem import Problem
from ranktune.tuner.study.tasks import Tasks, without_path
from ranktune.tuner.workers.executor import Executor

SHARE = 0.1
"""Share of the time that the look may take."""
SECONDS_A_CELL = 5e-7
"""Rough seconds to fit one feature of one document by the rounds of boosting that a sample gets."""
TOO_LONG = 4.0
"""Multiple of the time from which a boosted fit is so long that samples are compared first."""
EXPENSIVE = 0.05
"""Share of the time from which a trial of boosting is expensive: it is compared on a sample first."""
MIN_SAMPLE, MIN_VALI = 30, 300
"""The smallest sample of training queries, and of validation queries where there are as many."""
MAX_ROUNDS, PATIENCE = 100, 15
"""Rounds of boosting on a sample, and those without improvement after which it ends."""
GROWTH_OF_COST = 1.6
"""Factor of the time of a fit to a sample of twice the size; validation costs the same."""
FIRST = 1.0 / 30.0
"""Share of the time of the look that the first sample should take."""
CHEAP = 0.05
"""A configuration is cheap if its trial takes at most this share of the longest."""
ONE_PART = 0.1
"""Share of the time that a trial by all folds may take; where it is more, trials are scored by the first fold alone."""


@dataclass(frozen=True)
class Standing:
    """The results of a configuration on samples.

    Attributes
    ----------
    params : mapping
        The configuration, by flat name.
    sizes, values, seconds : tuple of float
        Training queries of each sample, the mean of the metric after it, and the seconds that it took.
    growth : float
        What the last doubling of the queries gained; NaN after one sample.
    hopeless : bool
        Whether it is significantly behind the leader, its growth up to all queries included.
    """

    params: JsonView
    sizes: tuple[int, ...] = ()
    values: tuple[float, ...] = ()
    seconds: tuple[float, ...] = ()
    growth: float = float("nan")
    hopeless: bool = False

    @property
    def solver(self) -> str:
        """Name of the solver."""
        return str(self.params[SOLVER])

    def cost(self, queries: int) -> float:
        """Return the expected seconds of a fit to so many queries: in proportion, from the largest sample."""
        return self.seconds[-1] * queries / self.sizes[-1]


@dataclass(frozen=True)
class Look:
    """The result of the look.

    Attributes
    ----------
    standings : tuple of Standing
        The configurations, the leader first.
    queries : int
        The training queries of one part of the plan.
    parts : int
        The parts of the plan by which trials are scored: all, or 1 where all would take too long.
    seconds : float
        How long the look took.
    """

    standings: tuple[Standing, ...]
    queries: int
    parts: int
    seconds: float = 0.0

    @property
    def hopeless(self) -> frozenset[str]:
        """The solvers none of whose configurations may still win."""
        promising = {s.solver for s in self.standings if not s.hopeless}
        return frozenset(s.solver for s in self.standings) - promising

    def first(self) -> list[dict[str, Value]]:
        """Return what to try first: the best configuration of each promising cheap solver, and that of the leader."""
        best: dict[str, Standing] = {}
        for standing in self._promising:
            best.setdefault(standing.solver, standing)
        leader, *others = best.values() or [None]
        if leader is None:
            return []
        cheap = [s for s in others if s is not None and self._is_cheap(s)]
        return [dict(s.params) for s in ([leader, *cheap] if self._is_cheap(leader) else [*cheap, leader])]

    def then(self) -> list[dict[str, Value]]:
        """Return the other promising configurations of the expensive solvers: the best of each solver, then others."""
        first = self.first()
        others = [s for s in self._promising if not self._is_cheap(s) and dict(s.params) not in first]
        seen = {params[SOLVER] for params in first}
        news = {s.solver: s for s in reversed(others) if s.solver not in seen}
        ordered = [s for s in others if s is news.get(s.solver)]
        return [dict(s.params) for s in (*ordered, *(s for s in others if s not in ordered))]

    @property
    def _promising(self) -> list[Standing]:
        return [s for s in self.standings if not s.hopeless]

    def _is_cheap(self, standing: Standing) -> bool:
        """Return whether a trial takes little of the time of the longest."""
        return standing.cost(self.queries) <= CHEAP * max(other.cost(self.queries) for other in self.standings)

    def cost(self, solver: str) -> float:
        """Return the expected seconds of a trial of a solver; 0 where nothing is known."""
        return self.parts * next((s.cost(self.queries) for s in self.standings if s.solver == solver), 0.0)

    @property
    def sample(self) -> int:
        """The training queries on which trials of an expensive solver are compared first."""
        return max(self.queries // 8, min(MIN_SAMPLE, self.queries))

    def allowance(self, solver: str, other: str, size: int) -> float:
        """Return by how much a solver is expected to gain more than another from a sample to all queries."""
        growth = {s.solver: s.growth for s in reversed(self.standings) if math.isfinite(s.growth)}
        ahead = growth.get(solver, 0.0) - growth.get(other, 0.0)
        return max(0.0, ahead) * math.log2(max(self.queries / size, 1.0))

    def text(self) -> str:
        """Return it as JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return what text() wrote. Raises ValueError, KeyError or TypeError for anything else."""
        return typed(cls, json.loads(text))


def worth_a_look(problem: Problem, solvers: Sequence[str], seconds: float) -> bool:
    """Return whether no boosted fit would come near its end in the time, so that samples decide who gets it."""
    if len(solvers) < 2 or not math.isfinite(seconds) or not isinstance(problem.plan, tuple):
        return False
    return fit_seconds(problem) > TOO_LONG * seconds


def look(problem: Problem, space: UnionSpace, tasks: Tasks, executor: Executor, seconds: float) -> Look:
    """Fit every solver to samples, within a share of the seconds that the study has left."""
    return _Looking(problem, tasks, executor, SHARE * seconds).run(space, seconds)


@dataclass
class _Arm:
    """A configuration with what it scored by validation query after each sample, and the weights of these queries."""

    params: Mapping[str, Value]
    sizes: list[int] = field(default_factory=list)
    scores: list[Floats] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    weights: Floats | None = None

    def standing(self, others: Sequence[_Arm], everything: int) -> Standing:
        """Return its results, compared with others after samples of the same size."""
        values = tuple(mean_or_zero(scores, self.weights) for scores in self.scores)
        hopeless = self.is_hopeless(others, everything)
        return Standing(self.params, tuple(self.sizes), values, tuple(self.seconds), self.growth, hopeless)

    @property
    def growth(self) -> float:
        """What the last doubling of the queries gained, NaN after one sample."""
        return mean_or_zero(self.scores[-1] - self.scores[-2], self.weights) if len(self.scores) > 1 else math.nan

    @property
    def rank(self) -> tuple[int, float]:
        """Sort key: those that were fitted to the largest samples first, then by what they scored."""
        return -self.sizes[-1], -mean_or_zero(self.scores[-1], self.weights)

    def is_hopeless(self, others: Sequence[_Arm], everything: int) -> bool:
        """Return whether it is significantly behind another after a sample of the same size, with all its growth."""
        doublings = math.log2(everything / self.sizes[-1])
        alike = [arm for arm in (self, *others) if arm.params[SOLVER] == self.params[SOLVER]]
        known = [arm.growth for arm in alike if math.isfinite(arm.growth)]
        if not known and doublings > 0.0:
            return False
        gain = max(0.0, self.growth if math.isfinite(self.growth) else max(known, default=0.0)) * doublings
        same = [arm.scores[arm.sizes.index(self.sizes[-1])] for arm in others if self.sizes[-1] in arm.sizes]
        return any(z_score(scores, self.scores[-1] + gain, self.weights) > SIGNIFICANT_Z for scores in same)


class _Looking:
    """Fits the samples. `budget` is in seconds of fitting, shared by the jobs; compiling is not part of it."""

    def __init__(self, problem: Problem, tasks: Tasks, executor: Executor, budget: float) -> None:
        assert isinstance(problem.plan, tuple)
        fold = problem.plan[0]
        self._tasks, self._executor = tasks, executor
        self._fold, self._development = fold, problem.development
        self._parts, self._everything = len(problem.plan), len(fold.train)
        self._vali = min(len(fold.vali), MIN_VALI)
        self._budget = self._left = budget * executor.jobs
        self._cells = cells(problem) * self._everything / problem.development.n_queries

    def run(self, space: UnionSpace, seconds: float) -> Look:
        """Fit samples of growing size until the next would take too long."""
        begun = time.monotonic()
        arms = [_Arm(params) for params in space.defaults()]
        alive, size, widened = arms, self._first_size(), False
        while alive:
            self._fit(alive, size)
            if size >= self._everything:
                break
            size = min(2 * size, self._everything)
            alive = self._promising([arm for arm in alive if size // 2 in arm.sizes or arm.scores])
            if alive and not widened:
                widened = True
                alive = [*alive, *(other for arm in alive for other in _others(arm, space))]
                arms = [*arms, *(other for other in alive if not other.sizes)]
            alive = self._affordable(alive)
        looked = [arm for arm in arms if arm.scores]
        standings = tuple(arm.standing(looked, self._everything) for arm in sorted(looked, key=lambda arm: arm.rank))
        longest = max((s.cost(self._everything) for s in standings if not s.hopeless), default=0.0)
        parts = 1 if longest * self._parts > ONE_PART * seconds else self._parts
        return Look(standings, self._everything, parts, round(time.monotonic() - begun, 3))

    def _first_size(self) -> int:
        """Return the size of the first sample, by a rough estimate of the time of boosting."""
        share = min(FIRST * self._budget / (self._cells * SECONDS_A_CELL), 0.25)
        return int(np.clip(self._everything * share, min(MIN_SAMPLE, self._everything), self._everything))

    def _fit(self, arms: Sequence[_Arm], size: int) -> None:
        """Fit the arms to a sample; one that fails has no more scores."""
        plan = Sample.of_fold(self._fold, self._tasks.study.seed, size, self._vali)
        weights = self._development.query_weights
        jobs = [self._executor.submit(attempt, self._task(arm), plan) for arm in arms]
        for arm, job in zip(arms, jobs, strict=True):
            outcome = Outcome(error="lost") if job.exception() is not None else job.result()
            took = outcome.ended - outcome.begun
            self._left -= took
            if outcome.error is None and not outcome.given_up:
                arm.sizes.append(size)
                arm.scores.append(outcome.per_query[self._tasks.study.metric])
                arm.seconds.append(took)
                arm.weights = None if weights is None else weights[plan.evaluated]

    def _task(self, arm: _Arm) -> Task:
        task = self._tasks.of(arm.params)
        rounds = min(task.bound, MAX_ROUNDS)
        parameters = {**task.parameters, "patience": PATIENCE} if rounds else task.parameters
        return replace(
            task if rounds else without_path(task),
            parameters=parameters,
            path=(),
            bound=rounds,
            keep=False,
            limit=2.0 * self._budget,  # a fit that is cut would not be comparable
        )

    def _promising(self, arms: Sequence[_Arm]) -> list[_Arm]:
        """Return those that may still win, the best first; after two samples at most half of them."""
        ordered = sorted(arms, key=lambda arm: arm.rank)
        may_win = [arm for arm in ordered if not arm.is_hopeless(ordered, self._everything)]
        return may_win if len(ordered[0].sizes) < 2 else may_win[: max(2, len(arms) // 2)]

    def _affordable(self, arms: Sequence[_Arm]) -> list[_Arm]:
        """Return the first arms whose fits to the next sample fit into the budget; none unless at least two do."""
        kept, left = [], self._left
        for arm in arms:
            known = arm.seconds or next(
                (other.seconds for other in arms if other.params[SOLVER] == arm.params[SOLVER] and other.seconds), [0.0]
            )
            left -= GROWTH_OF_COST * known[-1]
            if left >= 0.0:
                kept.append(arm)
        return kept if len(kept) > 1 else []


def _others(arm: _Arm, space: UnionSpace) -> Iterator[_Arm]:
    """Yield the further configurations of the portfolio of an arm's solver."""
    for values in solver_class(str(arm.params[SOLVER])).portfolio:
        params = space.configuration(str(arm.params[SOLVER]), values)
        if params is not None and params != arm.params:
            yield _Arm(params)
