"""The loop of a split: ask the sampler, run trials in parallel, tell it, write each down.

A trial's number is its place in the order of asking. The sampler sees the finished trials and those still running,
kept in an Optuna study in memory; the record on disk gets each trial once, when it has finished. A resumed run puts the
finished trials back into memory and asks for the numbers that are missing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from dataclasses import dataclass, field, replace
from typing import Any

import optuna
from optuna.trial import FrozenTrial, Trial, TrialState

from ranktune.solvers.errors import StudyError
from ranktune.solvers.space import Value
from ranktune.tuner.deadline import Deadline
from ranktune.tuner.executor import Executor
from ranktune.tuner.objective import Outcome, Task, evaluate
from ranktune.tuner.progress import Progress, Told
from ranktune.tuner.record import ERROR, VARIANCE, Record, number_of, quiet, seconds_of
from ranktune.tuner.samplers import make_sampler
from ranktune.tuner.space import UnionSpace
from ranktune.tuner.study import Study

MAX_FAILURES = 20
"""Trials that may fail in a row, none ever having succeeded since, before the study gives up."""

Objective = Callable[[Task], Outcome]


@dataclass
class Running:
    """A trial at work: where the sampler knows it, what is evaluated, and how often a dead worker cost it a start."""

    number: int
    trial: Trial
    params: dict[str, Value]
    task: Task
    restarts: int = 0


@dataclass
class TrialLoop:
    """Runs the missing trials of one split; task_of turns a solver and its parameters into a Task.

    After the deadline, less what reserve says that the end takes (from the seconds that each solver's best trial took),
    no trial is begun.
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
    space: UnionSpace = field(init=False)

    def __post_init__(self) -> None:
        """Put what the record holds into memory, where the sampler looks."""
        self.space = self.study.union_space()
        with quiet():
            self.memory = optuna.create_study(direction="maximize")
        self.finished = self.record.trials()
        self.memory.add_trials(self.finished)
        self.failed_in_a_row = 0
        self._usual = 0.0

    def run(self) -> None:
        """Run until the study's number of trials have finished. Raises StudyError where all of the last 20 failed."""
        done = {number_of(trial) for trial in self.finished}
        missing = [number for number in range(self.study.trials) if number not in done]
        self.progress.split(self.split, self.study.trials, min(len(done), self.study.trials))
        pending: dict[Future[Outcome], Running] = {}
        while missing or pending:
            if self._out_of_time():
                missing.clear()
            while missing and len(pending) < self.executor.jobs:
                running = self._ask(missing.pop(0))
                pending[self.executor.submit(self.objective, running.task)] = running
            ready, _ = wait(pending, return_when=FIRST_COMPLETED)
            for future in ready:
                running = pending.pop(future)
                outcome = _outcome(future)
                if outcome is not None and outcome.given_up:  # the time is over: it never was
                    missing.clear()
                elif outcome is None and running.restarts == 0:  # its worker died: the same parameters once more
                    running.restarts = 1
                    pending[self.executor.submit(self.objective, running.task)] = running
                else:
                    self._tell(
                        running, outcome or Outcome(error="the worker process died twice (killed, or out of memory)")
                    )

    def _out_of_time(self) -> bool:
        """Return whether another trial would leave too little time to choose and learn again; the first always runs."""
        return self._time_left() < self._usual

    def _time_left(self) -> float:
        """Return the seconds that are left for trials, those that the end will take put aside."""
        if not self.finished or self.deadline.left == float("inf"):
            return float("inf")
        best: dict[str, FrozenTrial] = {}
        for trial in self.finished:
            solver = self.space.split(trial.params)[0]
            if trial.value is not None and (solver not in best or trial.value > (best[solver].value or 0.0)):
                best[solver] = trial
        ending = self.reserve({solver: seconds_of(trial) for solver, trial in best.items()}) if best else 0.0
        return self.deadline.left - ending / self.executor.jobs

    def _ask(self, number: int) -> Running:
        first = self.space.defaults()
        if number < len(first):  # every solver's own defaults come first: a floor that search has to beat
            self.memory.enqueue_trial(first[number])
        self.memory.sampler = make_sampler(self.study.sampler, seed=self.study.seed, number=number, space=self.space)
        trial = self.memory.ask()
        params = self.space.suggest(trial)
        solver, own = self.space.split(params)
        task = replace(self.task_of(solver, own), limit=self._time_left())
        return Running(number, trial, params, task)

    def _tell(self, running: Running, outcome: Outcome) -> None:
        written = self.record.append(
            running.number, running.params, self.space.distributions, outcome, running.restarts
        )
        if VARIANCE in written.user_attrs:  # how sure the value is: the Gaussian process wants to know
            running.trial.set_user_attr(VARIANCE, written.user_attrs[VARIANCE])
        self.memory.tell(running.trial, written.value, state=written.state)
        self.finished.append(written)
        self._usual = max(self._usual * 0.9, outcome.ended - outcome.begun)
        self.progress.trial(self._told(running, written))
        self.failed_in_a_row = 0 if written.state == TrialState.COMPLETE else self.failed_in_a_row + 1
        if self.failed_in_a_row >= MAX_FAILURES:
            raise StudyError(
                f"the last {MAX_FAILURES} trials failed, the last with: {written.user_attrs[ERROR]}. "
                "What had finished is in the record; `ranktune resume` goes on."
            )

    def _told(self, running: Running, written: FrozenTrial) -> Told:
        complete = [t for t in self.finished if t.state == TrialState.COMPLETE]
        best = max(complete, key=lambda t: t.value or float("-inf"), default=None)
        return Told(
            split=self.split,
            number=running.number,
            done=len(self.finished),
            total=self.study.trials,
            solver=running.task.solver,
            value=written.value,
            error=written.user_attrs.get(ERROR),
            best=None if best is None else best.value,
            best_solver=None if best is None else self.space.split(best.params)[0],
        )


def _outcome(future: Future[Any]) -> Outcome | None:
    """Return what the worker returned, or None where it died."""
    try:
        outcome: Outcome = future.result()
    except BrokenExecutor:
        return None
    return outcome
