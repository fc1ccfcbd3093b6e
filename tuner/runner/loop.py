"""The loop of a split: ask for a trial, have it run, tell what became of it, write it down.

A trial's number is its place in the order of asking. The sampler sees the finished trials and those still running,
kept in memory (ranktune.tuner.runner.search_scheduler); the record on disk gets each trial once, when it has finished;
those at work have a lease beside it (ranktune.tuner.runner.dispatcher). A resumed run puts the finished trials back
into memory, begins those again that were interrupted, and asks for the numbers that are missing.

What is the same. With one job and the same data, settings, versions and kind of machine, a seed gives the same trials,
parameters and values to the last bit, also where the run was killed and resumed (unless a solver is chosen by the
seconds that trials took, which a study with a timeout does). With several jobs that holds where trials also end in the
same order (sampler random, every trial in full: in any order), for what a sampler sees, and whom a trial is raced
against, is what has ended when it is asked. Otherwise the search goes another way; what was judged in full is still a
function of its parameters alone.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from optuna.trial import FrozenTrial, TrialState

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.errors import AllFailed, StudyError
from ranktune.solvers.core.space import Value
from ranktune.solvers.registry import solver_class
from ranktune.tuner.evaluation.objective import evaluate
from ranktune.tuner.evaluation.outcome_checks import comparable_outcome, failed_outcome, judged_queries
from ranktune.tuner.evaluation.task import Outcome, Task
from ranktune.tuner.runner.dispatcher import GRACE, Asked, Clock, Dispatcher, Ended
from ranktune.tuner.runner.incumbents import Incumbents
from ranktune.tuner.runner.progress import Progress, Told
from ranktune.tuner.runner.search_scheduler import SearchScheduler, Suggested
from ranktune.tuner.samplers.space import UnionSpace
from ranktune.tuner.storage.record import ERROR, STOPPED, Record, number_of, seconds_of
from ranktune.tuner.study.deadline import Deadline
from ranktune.tuner.study.declaration import Study
from ranktune.tuner.study.events import Event, Events
from ranktune.tuner.workers.executor import Executor
from ranktune.tuner.workers.interrupts import Interrupted, Interrupts

MAX_FAILURES = 20
"""Trials that may fail in a row, none ever having succeeded since, before the study gives up."""

Objective = Callable[[Task], Outcome]

_ENDS = {
    TrialState.COMPLETE: Event.FINISHED,
    TrialState.PRUNED: Event.PRUNED,
    TrialState.FAIL: Event.FAILED,
}


@dataclass(frozen=True)
class Running:
    """A trial at work: what was suggested, how long that took in seconds, and its task."""

    suggested: Suggested
    solver: str
    asking: float
    task: Task


@dataclass
class TrialLoop:
    """Runs the missing trials of one split; task_of turns a solver and its parameters into a Task.

    After the deadline, less what reserve says that the end takes (from the seconds that each solver's best trial took),
    no trial is begun. With a deadline each solver is searched apart (ranktune.tuner.runner.search_scheduler), unless
    apart is False.
    """

    study: Study
    split: str
    record: Record
    task_of: Callable[[str, Mapping[str, Value]], Task]
    executor: Executor
    progress: Progress
    objective: Objective = evaluate
    deadline: Deadline = field(default_factory=Deadline)
    reserve: Callable[[Mapping[str, float]], float] = lambda seconds: 0.0
    apart: bool = True
    events: Events = field(default_factory=lambda: Events(None))
    check: Callable[[], None] = lambda: None
    clock: Clock = field(default_factory=Clock)
    space: UnionSpace = field(init=False)

    def __post_init__(self) -> None:
        """Put what the record holds into memory, where the sampler looks."""
        self.space = self.study.union_space()
        timed = self.deadline.left < float("inf")
        self.turns = SearchScheduler(self.study, self.space, apart=self.apart and timed, timed=timed)
        self.record.settle()
        self.dispatcher = Dispatcher(
            self.executor, self.record.leases, self.objective, self.events, self.clock, self.split
        )
        self.judged: NDArray[np.bool_] | None = None
        self.incumbents = Incumbents(self.study.limits, progressive=self.study.plan == "progressive")
        finished = self.record.trials()
        self.turns.remember(self._known(trial) for trial in finished)
        self.best: dict[str, FrozenTrial] = {}
        self.begun = Counter(self.space.split(trial.params)[0] for trial in finished)
        for trial in finished:
            self._note(trial)
        done = {number_of(trial) for trial in finished}
        self.done = len(done)
        self.missing = [number for number in range(self.study.n_trials) if number not in done]
        self.running: dict[int, Running] = {}
        self.failed_in_a_row = 0

    def _known(self, trial: FrozenTrial) -> tuple[FrozenTrial, Floats | None]:
        """Return a recorded trial with what it gave each query, (n,), None where it failed or was stopped; note it."""
        values = None
        if trial.state == TrialState.COMPLETE:
            values = self.record.per_query(trial)[self.study.metric]
            self.judged = judged_queries(values) if self.judged is None else self.judged
        self.incumbents.note(self.turns.search_of(trial.params), self.space.split(trial.params)[0], trial, values)
        return trial, values

    def run(self) -> None:
        """Run until the study's number of trials have finished.

        Raises AllFailed where all of the last 20 failed, and Interrupted after a signal to end: what ran then was
        given some seconds to finish, the rest is put back for the next run.
        """
        self.progress.split(self.split, self.study.n_trials, min(self.done, self.study.n_trials))
        with Interrupts() as interrupts:
            try:
                with interrupts.gentle(self.dispatcher.apart):
                    self._run(interrupts)
            except KeyboardInterrupt:  # a second signal, or the first where the trial itself runs in this process
                interrupts.asked = True
                self._stop(0.0)
            except Exception:
                with suppress(StudyError):  # where even that cannot be written, the next run puts it back
                    self._stop(0.0)
                raise
            if interrupts.asked:
                raise Interrupted(self.dispatcher.put_back)

    def _run(self, interrupts: Interrupts) -> None:
        for number, params in self.dispatcher.left_over(self.missing).items():
            self.missing.remove(number)
            self.dispatcher.resume(self._begun(number, self.turns.again(params), self._time_left(), 0.0))
        while (self.missing or self.dispatcher.busy) and not interrupts.asked:
            while self.missing and self.dispatcher.room > 0 and not interrupts.asked:
                self._ask(self.missing.pop(0))
            self.check()
            for ended in self.dispatcher.ended():
                self._tell(ended)
        if interrupts.asked:
            self.progress.stage("stopping: running trials have a few seconds to finish; Ctrl-C again ends at once")
            self._stop(GRACE)

    def _stop(self, grace: float) -> None:
        with closing(self.dispatcher.stop(grace)) as ending:
            for ended in ending:
                self._tell(ended)

    def _time_left(self) -> float:
        """Return the seconds that are left for trials, those that the end will take put aside; one always runs.

        What is for sure behind needs no time at the end: it is scored again if there is some.
        """
        if not self.done or self.deadline.left == float("inf"):
            return float("inf")
        seconds = {s: seconds_of(trial) for s, trial in self.best.items() if not self.turns.is_behind(s)}
        ending = self.reserve(seconds) if seconds else 0.0
        return self.deadline.left - ending / self.executor.jobs

    def _ask(self, number: int) -> None:
        """Have the trial of that number run, or no further one where it is better to end."""
        begun, left = time.monotonic(), self._time_left()
        suggested = self.turns.next(number, left) if left > 0.0 else None
        if suggested is None:
            self.missing.clear()
            return
        self.dispatcher.start(self._begun(number, suggested, left, time.monotonic() - begun))

    def _begun(self, number: int, suggested: Suggested, left: float, asking: float) -> Asked:
        solver, parameters = self.space.split(suggested.params)
        incumbent = None if self.study.full else self.incumbents.of(suggested.search, solver)
        task = replace(self.task_of(solver, parameters), limit=left, incumbent=incumbent)
        if solver_class(solver).path_expensive and self.begun[solver] != 1:
            # The defaults are a floor, to be judged as they are; after one path, single values where they promise most.
            task = replace(task, path_parameter="", path=())
        self.begun[solver] += 1
        self.running[number] = Running(suggested, solver, asking, task)
        self.events.write(Event.ASKED, trial=number, split=self.split, params=suggested.params)
        return Asked(number, suggested.params, task)

    def _tell(self, ended: Ended) -> None:
        running = self.running.pop(ended.number)
        outcome = comparable_outcome(ended.outcome, self.study.metric, self.judged)
        if outcome.given_up:  # the time is over: it never was
            self.missing.clear()
            self.events.write(Event.PRUNED, trial=ended.number, split=self.split, reason=outcome.error)
            self.dispatcher.recorded(ended.number)
            return
        if outcome.stopped and running.task.incumbent is None:
            outcome = failed_outcome(outcome, "it was stopped, and there was nobody to be behind")
        estimate = self.incumbents.estimate(outcome, self.study.metric, running.task.incumbent)
        params = chosen(running.suggested.params, running.task, outcome)
        written = self.record.append(ended.number, params, self.space.distributions, outcome, ended.restarts, estimate)
        self.done += 1
        self._note(written)
        self._log(ended, written)
        seconds = running.asking + outcome.ended - outcome.begun
        values = None if outcome.stopped else outcome.per_query.get(self.study.metric)
        self.judged = judged_queries(values) if self.judged is None and values is not None else self.judged
        self.incumbents.note(running.suggested.search, running.solver, written, values)
        self.turns.told(running.suggested, written, seconds, values)
        self.progress.trial(self._told(ended.number, running.solver, written))
        self.failed_in_a_row = self.failed_in_a_row + 1 if written.state == TrialState.FAIL else 0
        if self.failed_in_a_row >= MAX_FAILURES:
            raise AllFailed(
                f"the last {MAX_FAILURES} trials failed, the last with: {written.user_attrs[ERROR]}. "
                "What had finished is in the record; `ranktune resume` goes on."
            )

    def _log(self, ended: Ended, written: FrozenTrial) -> None:
        for at, what, value in ended.outcome.steps:
            self.events.write(Event.STEP, at=at, trial=ended.number, split=self.split, step=what, value=value)
        kind = _ENDS[written.state]
        told: dict[str, Any] = {"value": written.value} if kind != Event.FAILED else {}
        if kind != Event.FINISHED:
            told["reason"] = written.user_attrs.get(ERROR) or f"for sure behind after {ended.outcome.stopped}"
        self.events.write(kind, trial=ended.number, split=self.split, **told, worker=ended.outcome.worker)

    def _note(self, trial: FrozenTrial) -> None:
        """Remember the best trial of each solver."""
        solver = self.space.split(trial.params)[0]
        known = self.best.get(solver)
        if trial.state != TrialState.COMPLETE:
            return
        if trial.value is not None and (known is None or trial.value > (known.value or 0.0)):
            self.best[solver] = trial

    def _told(self, number: int, solver: str, written: FrozenTrial) -> Told:
        best_solver, best = max(self.best.items(), key=lambda own: own[1].value or float("-inf"), default=(None, None))
        return Told(
            split=self.split,
            number=number,
            done=self.done,
            total=self.study.n_trials,
            solver=solver,
            value=written.value,
            error=written.user_attrs.get(ERROR),
            stopped=str(written.user_attrs.get(STOPPED, "")),
            best=None if best is None else best.value,
            best_solver=best_solver,
        )


def chosen(params: Mapping[str, Value], task: Task, outcome: Outcome) -> dict[str, Value]:
    """Return the parameters of a trial, by flat name, with the best value of the one whose path it followed."""
    flat = f"{task.solver}.{outcome.path_parameter}"
    if outcome.chosen is None or flat not in params:
        return dict(params)
    return {**params, flat: int(outcome.chosen) if isinstance(params[flat], int) else outcome.chosen}
