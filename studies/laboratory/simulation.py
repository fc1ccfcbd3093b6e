"""A study on the table, with a virtual clock: what would be tried, in which order, until when, and what is known then.

The code that decides is that of a study: the scheduler with its first configurations and its samplers, the time that is
reserved for the end, and where trials are scored. Only what fits models is replaced:

suggestions  are rows of the table that the study has not used (`ranktune.studies.laboratory.suggestions`). A search
             whose rows are used up ends.
seconds      of a trial are the processor seconds of the row, for each fold, times a factor; those of a suggestion are
             constants. All were measured on studies of the same tasks.
boosting     that runs into its limit counts with its best checkpoint before, where trials are scored once. Where the
             scheduler lets it continue, it takes the seconds that it has not taken yet.

Not simulated: folds have the values of the given validation queries alone, which are fewer; trials are not stopped for
being worse; nothing is scored again, blended, or fitted with other seeds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from optuna.samplers import BaseSampler
from optuna.study import Study as OptunaStudy
from optuna.trial import FrozenTrial

from ranktune.solvers.core.arrays import Floats
from ranktune.studies.benchmarks.task_table import ConfigurationRow, ModelCheckpoint, mean_value
from ranktune.studies.laboratory.known import KnownTask
from ranktune.studies.laboratory.rows import METRIC, Configuration, task_of
from ranktune.studies.laboratory.suggestions import RANDOM, Answering, Suggested, suggested
from ranktune.tuner.evaluation.task import Task, TaskOutcome
from ranktune.tuner.policy.actions import Finish
from ranktune.tuner.policy.next_trial import next_action
from ranktune.tuner.policy.policy import POLICY, Policy
from ranktune.tuner.policy.racing import time_limit
from ranktune.tuner.samplers.space import SOLVER, UnionSpace, widened
from ranktune.tuner.search.requests import FinishedTrials, SplitBudget, with_chosen
from ranktune.tuner.search.search_scheduler import SearchScheduler, observations
from ranktune.tuner.search.searches import SearchOptions
from ranktune.tuner.storage.record import finished_trial, number_of
from ranktune.tuner.study.deadline import Deadline
from ranktune.tuner.study.declaration import Study

START, A_TRIAL, A_SUGGESTION, FACTOR = 0.5, 0.05, 0.1, 1.5
"""Seconds before the first trial, around a trial, and of a suggestion of the Gaussian process; and the factor from the
processor seconds of a row to the seconds of a fold."""


@dataclass
class VirtualClock:
    """A clock whose time is set."""

    now: float = START

    def __call__(self) -> float:
        """Return the seconds."""
        return self.now


@dataclass
class Simulated:
    """The finished trials of a simulated study, as a `Record` returns them.

    Attributes
    ----------
    tests : dict of int to float
        The mean of the metric on test queries of each trial.
    used : float
        Seconds until the end, with those reserved for it.
    exhausted : bool
        Whether the table had no more rows, so that a real study would have gone on.
    """

    task: KnownTask
    study: Study
    metric: str = METRIC
    weights: Floats | None = None
    finished: list[FrozenTrial] = field(default_factory=list)
    values: dict[int, Floats] = field(default_factory=dict)
    tests: dict[int, float] = field(default_factory=dict)
    used: float = 0.0
    exhausted: bool = False

    def trials(self) -> list[FrozenTrial]:
        """Return the finished trials, by their number."""
        return self.finished

    def per_query(self, trial: FrozenTrial) -> Mapping[str, Floats]:
        """Return the values of a trial by validation query."""
        return {self.metric: self.values[number_of(trial)]}


Suggestions = dict[tuple[object, ...], Suggested]
"""The row that answered a suggestion, by all that the suggestion depends on: studies that begin alike share them."""


class Simulation:
    """One simulated study of a task.

    Parameters
    ----------
    task : KnownTask
    study : Study
        With a timeout, which is that of the virtual clock.
    suggested : dict, optional
        The answers of earlier studies, to which those of this one are added.
    policy : Policy
    """

    def __init__(
        self, task: KnownTask, study: Study, suggested: Suggestions | None = None, policy: Policy = POLICY
    ) -> None:
        assert study.timeout is not None
        self._task, self._study, self._suggested = task, study, {} if suggested is None else suggested
        self._policy = policy
        self._problem, self._clock = task.scored(study.timeout, policy), VirtualClock()
        assert isinstance(self._problem.plan, tuple)
        self._parts = len(self._problem.plan)
        options = SearchOptions(
            one_part=self._problem.given_split,
            fit_seconds=self._problem.durations.a_fit,
        )
        self._startup = policy.search.startup_apart
        self._scheduler = SearchScheduler(
            study, task.space, options, timed=True, clock=self._clock, policy=policy, sampler=self._sampler
        )
        self._finished = FinishedTrials(study, task.space)
        deadline = Deadline(study.timeout, self._clock)
        self._budget = SplitBudget(
            deadline, self._problem.durations.reserve, 1, self._finished, self._scheduler, policy
        )
        self._unused = list(range(len(task.rows)))
        self._paid: dict[int, float] = {}
        self._last: dict[str, Suggested] = {}
        self._told: dict[str, list[object]] = {}
        self._seen: Counter[str] = Counter()
        self._asked = False
        self.result = Simulated(task, study)

    def run(self) -> Simulated:
        """Run the study until its time is over, or the table has no more rows."""
        for number in range(self._study.n_trials):
            left = self._budget.left() if self.result.finished else float("inf")
            self._asked = False
            action = next_action(self._scheduler.state, left, self._policy)
            if isinstance(action, Finish) or not self._try(number, self._scheduler.begin(number, action), left):
                break
        self.result.exhausted = not self._unused
        self.result.used = self._clock.now + self._budget.ending()
        return self.result

    def _sampler(self, name: str, *, number: int, space: UnionSpace, **others: object) -> BaseSampler:
        return Answering(space, partial(self._answer, name, number, space))

    def _answer(
        self, sampler: str, number: int, space: UnionSpace, study: OptunaStudy, trial: FrozenTrial
    ) -> Configuration:
        """Return the parameters of the row that is suggested in a search."""
        self._asked = True
        solvers = [str(params[SOLVER]) for params in space.defaults()]
        search, seed = self._search_of({SOLVER: solvers[0]}), self._study.seed
        key = (self._task.name, self._problem.given_split, self._startup, seed, sampler, number, *solvers)
        key += tuple(self._told.get(search, ()))
        if key not in self._suggested:
            places = [place for place in self._unused if self._task.solvers[place] in solvers]
            generator = np.random.default_rng([seed, number])
            if sampler == RANDOM or self._seen[search] < self._startup:
                self._suggested[key] = Suggested(int(generator.choice(places)))
            else:
                last = self._last.get(search)
                self._suggested[key] = suggested(self._task, places, space, study, trial, generator, last)
        self._last[search] = self._suggested[key]
        return self._task.params[self._suggested[key].place]

    def _try(self, number: int, params: Configuration, left: float) -> bool:
        """Run a trial of a row, and return whether it came to an end."""
        place, search = self._task.place(params), self._search_of(params)
        limit = time_limit(self._scheduler.state, self._task.solvers[place], left, 1)
        around = A_TRIAL + (A_SUGGESTION if self._asked and self._seen[search] >= self._startup else 0.0)
        self._clock.now += around
        row = self._task.rows[place]
        task = task_of(row.configuration)
        reached = reached_by(row, task, self._parts, limit, self._paid.get(place, 0.0))
        begun, self._clock.now = self._clock.now, self._clock.now + min(limit, reached.seconds if reached else limit)
        if reached is None:
            return False
        outcome = replace(reached.outcome, begun=begun, ended=self._clock.now)
        params = with_chosen(params, task, outcome)
        trial = finished_trial(number, params, widened(self._task.space.distributions, params), outcome, METRIC)
        self._tell(number, search, trial, reached, around)
        self._told.setdefault(search, []).append((place, reached.outcome.chosen, reached.seconds))
        self._paid[place] = self._paid.get(place, 0.0) + reached.seconds
        if place in self._unused:
            self._unused.remove(place)
        if all(self._search_of(self._task.params[other]) != search for other in self._unused):
            self._scheduler.state.accounts[search].size = 0
        return True

    def _tell(self, number: int, search: str, trial: FrozenTrial, reached: SimulatedTrial, around: float) -> None:
        values = reached.outcome.per_query[METRIC]
        self._finished.add(search, trial, values)
        self._scheduler.tell(number, trial, around + reached.seconds, values)
        self._seen[search] += len(observations(trial))
        self.result.finished.append(trial)
        self.result.values[number], self.result.tests[number] = values, reached.test

    def _search_of(self, params: Configuration) -> str:
        return self._scheduler.search_of(params)


@dataclass(frozen=True, eq=False)
class SimulatedTrial:
    """What a trial of a row comes to: its outcome, its seconds, and the mean of the metric on test queries."""

    outcome: TaskOutcome
    seconds: float
    test: float


def reached_by(row: ConfigurationRow, task: Task, parts: int, limit: float, paid: float = 0.0) -> SimulatedTrial | None:
    """Return what a trial of a row on so many folds comes to within the limit; None where it is given up.

    Boosting that is cut counts with its best checkpoint, whose values by query are those of the row, in proportion. It
    is unfinished. If it continues, it takes the seconds beyond those already paid.
    """
    assert row.vali is not None
    within = [point for point in row.checkpoints if FACTOR * parts * point.seconds <= paid + limit]
    cut = len(within) < len(row.checkpoints)
    if cut and not (within and parts == 1 and task.bound):
        return None
    best = max(within, key=lambda point: point.vali)
    values, test = row.vali, mean_value(row.test)
    seconds = limit if cut else max(FACTOR * parts * row.checkpoints[-1].seconds - paid, 0.0)
    if cut:
        whole = mean_value(row.vali)
        values, test = values * (best.vali / whole if whole > 0.0 else 1.0), best.test
    # A row may have fewer rounds than the space, of which a study scores no model.
    chosen = max(_value(best), task.least) if task.bound else _value(best) if task.path else None
    scored = [(_value(point), point.vali) for point in row.checkpoints] if task.path and not task.bound else []
    path = ((chosen, best.vali),) if chosen is not None and task.bound else tuple(scored)
    outcome = TaskOutcome(
        {METRIC: values},
        seconds=seconds / FACTOR,
        path_parameter=task.path_parameter,
        chosen=chosen,
        path=path,
        unfinished=cut,
    )
    return SimulatedTrial(outcome, seconds, test)


def _value(point: ModelCheckpoint) -> float:
    """Return the value of a checkpoint, which a packed table has in single precision."""
    return float(f"{point.value:.6g}")
