"""The loop of a split: request a trial, dispatch it, write its outcome into the record, tell the sampler.

The number of a trial is its place in the order of requests. The sampler uses the finished trials and those still
running, in memory (`ranktune.tuner.runner.search_scheduler`). The record gets each trial once, when it has finished; a
running trial has a lease beside the record (`ranktune.tuner.runner.dispatcher`). A resumed run reads the finished
trials into memory, begins the interrupted ones again, and requests the missing numbers.

Determinism. With one job and the same data, settings, versions and kind of machine, a seed gives the same trials,
parameters and values to the last bit, also if the run was killed and resumed (unless the search is timed: a study with
a timeout chooses solvers by the seconds of their trials). With several jobs this holds if trials also end in the same
order (sampler random with every trial in full: in any order), since samplers and races use what has ended by the time
of the request. Otherwise the search takes another course; the values of a trial in full remain a function of its
parameters alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from optuna.trial import FrozenTrial, TrialState

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.errors import AllFailed, StudyError
from ranktune.solvers.core.space import Value
from ranktune.solvers.registry import solver_class
from ranktune.tuner.evaluation.objective import evaluate
from ranktune.tuner.evaluation.outcome_checks import comparable_outcome, failed_outcome, judged_queries
from ranktune.tuner.evaluation.task import Outcome, Task, chosen_parameters
from ranktune.tuner.runner.dispatcher import GRACE, Clock, Dispatcher, Running
from ranktune.tuner.runner.incumbents import Incumbents
from ranktune.tuner.runner.look import EXPENSIVE, Look
from ranktune.tuner.runner.progress import Progress, TrialReport
from ranktune.tuner.runner.search_scheduler import SearchScheduler
from ranktune.tuner.samplers.first import is_first
from ranktune.tuner.samplers.space import UnionSpace, widened
from ranktune.tuner.storage.record import ERROR, STOPPED, Record, number_of, seconds_of
from ranktune.tuner.study.deadline import Deadline
from ranktune.tuner.study.declaration import Study
from ranktune.tuner.study.events import Event, Events
from ranktune.tuner.study.tasks import without_path
from ranktune.tuner.workers.executor import Executor
from ranktune.tuner.workers.interrupts import Interrupted, Interrupts

MAX_FAILURES = 20
"""Failures in a row after which the study gives up."""

OVERDUE = 1.0
"""Seconds after its limit at which a trial in a process of its own is ended."""

Objective = Callable[[Task], Outcome]

_EVENTS = {
    TrialState.COMPLETE: Event.FINISHED,
    TrialState.PRUNED: Event.PRUNED,
    TrialState.FAIL: Event.FAILED,
}


@dataclass
class TrialLoop:
    """Runs the missing trials of one split.

    Attributes
    ----------
    task_of : callable
        Turns a solver and its parameters into a task.
    deadline, reserve : Deadline, callable
        No trial begins after the deadline less the reserve: the seconds that selection and refit take, computed from
        the seconds of each solver's best trial, and whether first configurations of boosting are still to come.
    looked : Look, optional
        The first look at the solvers.
    one_part : bool
        Whether trials are scored on one part, where boosting that is cut at a limit counts with the rounds that it has.
    fit_seconds : float
        The rough seconds of a boosted fit until it stops.
    per_solver : bool
        Whether a study with a deadline searches each solver by itself.
    check : callable
        Raises StudyError once another process has taken the study over.
    """

    study: Study
    split: str
    record: Record
    task_of: Callable[[str, Mapping[str, Value]], Task]
    executor: Executor
    progress: Progress
    objective: Objective = evaluate
    deadline: Deadline = field(default_factory=Deadline)
    reserve: Callable[[float, Mapping[str, float], bool], float] = lambda total, seconds, growing: 0.0
    looked: Look | None = None
    one_part: bool = False
    fit_seconds: float = 0.0
    per_solver: bool = True
    events: Events = field(default_factory=lambda: Events(None))
    check: Callable[[], None] = lambda: None
    clock: Clock = field(default_factory=Clock)
    space: UnionSpace = field(init=False)

    def __post_init__(self) -> None:
        """Read the record into memory."""
        self.space = self.study.union_space()
        timed = self.deadline.left < float("inf")
        self.scheduler = SearchScheduler(
            self.study,
            self.space,
            per_solver=self.per_solver and timed,
            timed=timed,
            looked=self.looked,
            one_part=self.one_part,
            fit_seconds=self.fit_seconds,
            weights=self.record.weights,
        )
        self.total = self.deadline.left
        self.record.settle()
        self.dispatcher = Dispatcher(
            self.executor, self.record.leases, self.objective, self.events, self.clock, self.split
        )
        self.judged: NDArray[np.bool_] | None = None
        self.incumbents = Incumbents(
            self.study.limits, progressive=self.study.plan == "progressive", weights=self.record.weights
        )
        finished = self.record.trials()
        self.best: dict[str, FrozenTrial] = {}
        self.first_seconds: dict[str, float] = {}
        self.scheduler.remember((trial, self._add(trial, self._per_query(trial))) for trial in finished)
        self.begun = Counter(self.space.split(trial.params)[0] for trial in finished)
        done = {number_of(trial) for trial in finished}
        self.done = self.done_before = len(done)
        self.begun_at = self.clock.now()
        self.missing = [number for number in range(self.study.n_trials) if number not in done]
        self.failed_in_a_row = 0
        self._waiting: Running | None = None
        self._due = float("inf")
        self.ended = "all trials were run"

    def _per_query(self, trial: FrozenTrial) -> Floats | None:
        return self.record.per_query(trial)[self.study.metric] if trial.state == TrialState.COMPLETE else None

    def _add(self, trial: FrozenTrial, per_query: Floats | None, samples: tuple[Floats, ...] = ()) -> Floats | None:
        """Update the best trials and the incumbents by a finished trial, and return its values by query."""
        solver = self.space.split(trial.params)[0]
        best = self.best.get(solver)
        if trial.state == TrialState.COMPLETE and trial.value is not None:
            if is_first(trial.params, self.space):
                self.first_seconds[solver] = self.first_seconds.get(solver, 0.0) + seconds_of(trial)
            if best is None or trial.value > (best.value or 0.0):
                self.best[solver] = trial
        if per_query is not None and self.judged is None:
            self.judged = judged_queries(per_query)
        self.incumbents.update(self.scheduler.search_of(trial.params), solver, trial, per_query, samples)
        return per_query

    def run(self) -> None:
        """Run until the study's number of trials have finished.

        Raises AllFailed if the last MAX_FAILURES trials failed, and Interrupted after a signal: running trials had
        some seconds to finish, the others are put back for the next run.
        """
        self.progress.split(self.split, self._wanted, min(self.done, self.study.n_trials))
        with Interrupts() as interrupts:
            try:
                with interrupts.deferred(self.dispatcher.in_processes):
                    self._run(interrupts)
            except KeyboardInterrupt:  # a second signal, or the first if the trial runs in this process
                interrupts.requested = True
                self._stop(0.0)
            except Exception:
                with suppress(StudyError):  # if even that cannot be written, the next run puts the trials back
                    self._stop(0.0)
                raise
            self.dispatcher.close()
            if interrupts.requested:
                raise Interrupted(self.dispatcher.put_back)

    def _run(self, interrupts: Interrupts) -> None:
        for number, params in self.dispatcher.unfinished(self.missing).items():
            self.missing.remove(number)
            self.dispatcher.resume(self._begin(number, self.scheduler.resume(number, params), self._time_left()))
        while (self.missing or self._waiting or self.dispatcher.busy) and not interrupts.requested:
            while self._start() and self.missing and self.dispatcher.free > 0 and not interrupts.requested:
                self._request(self.missing.pop(0))
            self.check()
            for trial, outcome in self.dispatcher.completed():
                self._complete(trial, outcome)
            self._cut()
        if interrupts.requested:
            self.progress.stage("stopping: running trials have a few seconds to finish; Ctrl-C again ends at once")
            self._stop(GRACE)

    def _cut(self) -> None:
        """End the trials that are still running well after their limit, between whose steps there was no end."""
        if self.dispatcher.busy and self.clock.now() > self._due + OVERDUE:
            self.missing.clear()
            self._stop(0.0)

    def _stop(self, grace: float) -> None:
        with closing(self.dispatcher.stop(grace)) as ending:
            for trial, outcome in ending:
                self._complete(trial, outcome)

    def _time_left(self) -> float:
        """Return the seconds that are left for trials, less those reserved for the end; one trial always runs.

        Solvers that are significantly worse have no share of the reserve: they are rescored only if there is time.
        """
        if not self.done or self.deadline.left == float("inf"):
            return float("inf")
        jobs = max(self.executor.jobs, 1)
        return self.deadline.left - self._reserved(self.total * jobs) / jobs

    def _reserved(self, total: float) -> float:
        """Return the seconds of one worker that selection and refit take, of total seconds of all workers."""
        return self.reserve(total, self._best_seconds(), self.scheduler.first_to_grow > 0)

    def _best_seconds(self) -> dict[str, float]:
        """Return the seconds of each competitive solver's best trial, the best solver first."""
        ranked = sorted(self.best.items(), key=lambda own: -(own[1].value or 0.0))
        competitive = [(s, trial) for s, trial in ranked if not self.scheduler.is_significantly_worse(s)]
        seconds = {s: max(seconds_of(trial), self.first_seconds.get(s, 0.0)) for s, trial in competitive}
        expected = self.scheduler.untried_leader()
        return seconds if expected is None else dict([expected]) | seconds

    def _request(self, number: int) -> None:
        """Start the trial of that number, or end the search if no trial fits into the time left."""
        left = self._time_left()
        params = self.scheduler.next(number, left) if left > 0.0 else None
        if params is None:
            self.missing.clear()
            self.ended = "no further trial fits into the time" if left < self.total / 2 else "nothing is left to try"
            return
        self._waiting = self._begin(number, params, left)

    def _start(self) -> bool:
        """Start the trial that waits, unless it needs more of the workers than are free; return whether none waits."""
        if self._waiting is not None and self.dispatcher.free >= self._waiting.task.threads:
            self.dispatcher.start(self._waiting)
            self._due = self.clock.now() + self._waiting.task.limit
            self._waiting = None
        return self._waiting is None

    def _begin(self, number: int, params: Mapping[str, Value], left: float) -> Running:
        solver, parameters = self.space.split(params)
        search = self.scheduler.search_of(params)
        incumbent = None if self.study.full else self.incumbents.scores(search, solver)
        limit = left if left == float("inf") else self.scheduler.limit(params, left, self.executor.jobs)
        task = replace(self.task_of(solver, parameters), limit=limit, incumbent=incumbent)
        if solver_class(solver).path_expensive and self.begun[solver] != 1:
            # The defaults are evaluated as they are, the level to beat; after one path, single values are tried.
            task = without_path(task)
        if self.looked is not None and self.looked.parts == 1 and not self.study.full:
            task = self._economical(task, search, self.looked, number)
        self.begun[solver] += 1
        self.events.write(Event.ASKED, trial=number, split=self.split, params=params)
        return Running(number, params, task)

    def _economical(self, task: Task, search: str, looked: Look, number: int) -> Task:
        """Return a task of large data: an expensive one is raced on a sample first, and has the threads of all workers.

        The first trial of a solver is not raced, since it may help in a blend, nor is a finer version of the best.
        """
        size = looked.sample
        task = replace(task, samples=(size,))
        if looked.cost(task.solver) < EXPENSIVE * self.total:
            return task
        task = replace(task, threads=self.executor.jobs if self.dispatcher.in_processes else 1)
        if self.begun[task.solver] == 0 or number == self.scheduler.finer:
            return replace(task, incumbent=None)
        leader, incumbent, samples = self.incumbents.leader(search)
        gain = looked.allowance(task.solver, leader, size)
        return replace(task, incumbent=incumbent, incumbent_samples=tuple(values - gain for values in samples))

    def _complete(self, trial: Running, outcome: Outcome) -> None:
        """Write a completed trial into the record, and update all that depends on it."""
        metric, task = self.study.metric, trial.task
        outcome = comparable_outcome(outcome, metric, self.judged, self.record.weights)
        if outcome.given_up:  # it gave up at the deadline, and is not recorded
            self.missing.clear()
            self.events.write(Event.PRUNED, trial=trial.number, split=self.split, reason=outcome.error)
            self.dispatcher.recorded(trial.number)
            return
        if outcome.stopped and task.incumbent is None:
            outcome = failed_outcome(outcome, "it was stopped although it had no incumbent")
        estimate = self.incumbents.estimate(outcome, metric, task.incumbent, task.incumbent_samples)
        params = chosen_params(trial.params, task, outcome)
        distributions = widened(self.space.distributions, params)
        written = self.record.append(trial.number, params, distributions, outcome, estimate)
        self.done += 1
        self._log(trial.number, outcome, written)
        per_query = self._add(written, None if outcome.stopped else outcome.per_query.get(metric), outcome.samples)
        self.scheduler.tell(trial.number, written, outcome.ended - outcome.begun, per_query)
        self.progress.trial(self._report(trial, written))
        self.failed_in_a_row = self.failed_in_a_row + 1 if written.state == TrialState.FAIL else 0
        if self.failed_in_a_row >= MAX_FAILURES:
            raise AllFailed(
                f"the last {MAX_FAILURES} trials failed, the last with: {written.user_attrs[ERROR]}. "
                "What had finished is in the record; `ranktune resume` goes on."
            )

    @property
    def _wanted(self) -> int | None:
        """The trials that are wanted, None where the study ends at a time or when little gain is expected."""
        return self.study.n_trials if self.study.ends_by_count else None

    def _seconds_left(self) -> float | None:
        """Return how long the split will go on: the mean time of its trials for each to come, and that of its end.

        Where the trials are not counted it is the time until the deadline, None without one.
        """
        ran = self.done - self.done_before
        if not self.study.ends_by_count:
            return None if self.deadline.left == float("inf") else max(self.deadline.left, 0.0)
        if ran == 0:
            return None
        now = self.clock.now()
        to_come = (now - self.begun_at) / ran * max(self.study.n_trials - self.done, 0)
        ending = self._reserved(self.total) / max(self.executor.jobs, 1)
        return min(to_come + ending, max(self.deadline.left, 0.0))

    def _log(self, number: int, outcome: Outcome, written: FrozenTrial) -> None:
        for at, what, value in outcome.steps:
            self.events.write(Event.STEP, at=at, trial=number, split=self.split, step=what, value=value)
        event = _EVENTS[written.state]
        fields: dict[str, object] = {"value": written.value} if event != Event.FAILED else {}
        if event != Event.FINISHED:
            fields["reason"] = written.user_attrs.get(ERROR) or f"significantly worse after {outcome.stopped}"
        self.events.write(event, at=None, trial=number, split=self.split, **fields, worker=outcome.worker)

    def _report(self, trial: Running, written: FrozenTrial) -> TrialReport:
        best_solver, best = max(self.best.items(), key=lambda own: own[1].value or float("-inf"), default=(None, None))
        return TrialReport(
            split=self.split,
            number=trial.number,
            done=self.done,
            total=self._wanted,
            solver=trial.task.solver,
            value=written.value,
            error=written.user_attrs.get(ERROR),
            stopped=str(written.user_attrs.get(STOPPED, "")),
            seconds_left=self._seconds_left(),
            best=None if best is None else best.value,
            best_solver=best_solver,
        )


def chosen_params(params: Mapping[str, Value], task: Task, outcome: Outcome) -> dict[str, Value]:
    """Return the parameters of a trial, by flat name, with the best value of its path."""
    flat_names = {flat.partition("[")[0]: flat for flat in params}
    chosen = {f"{task.solver}.{name}": value for name, value in chosen_parameters(task, outcome).items()}
    return {**params, **{flat_names.get(name, name): value for name, value in chosen.items()}}
