"""The loop of a split: ask for a trial, run trials in parallel, tell what became of each, write it down.

A trial's number is its place in the order of asking. The sampler sees the finished trials and those still running,
kept in memory (ranktune.tuner.turns); the record on disk gets each trial once, when it has finished. A resumed run puts
the finished trials back into memory and asks for the numbers that are missing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from dataclasses import dataclass, field, replace
from typing import Any

from optuna.trial import FrozenTrial, TrialState

from ranktune.solvers.arrays import Floats
from ranktune.solvers.errors import StudyError
from ranktune.solvers.space import Value
from ranktune.tuner.deadline import Deadline
from ranktune.tuner.executor import Executor
from ranktune.tuner.interrupts import Interrupts
from ranktune.tuner.objective import Outcome, Task, evaluate
from ranktune.tuner.progress import Progress, Told
from ranktune.tuner.record import ERROR, Record, number_of, seconds_of
from ranktune.tuner.space import UnionSpace
from ranktune.tuner.study import Study
from ranktune.tuner.turns import Suggested, Turns

MAX_FAILURES = 20
"""Trials that may fail in a row, none ever having succeeded since, before the study gives up."""

Objective = Callable[[Task], Outcome]


@dataclass
class Running:
    """A trial at work: what was suggested and when, what is evaluated, and how often a dead worker cost it a start."""

    number: int
    suggested: Suggested
    task: Task
    asking: float
    restarts: int = 0


@dataclass
class TrialLoop:
    """Runs the missing trials of one split; task_of turns a solver and its parameters into a Task.

    After the deadline, less what reserve says that the end takes (from the seconds that each solver's best trial took),
    no trial is begun. With a deadline each solver is searched apart (ranktune.tuner.turns), unless apart is False.
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
    space: UnionSpace = field(init=False)

    def __post_init__(self) -> None:
        """Put what the record holds into memory, where the sampler looks."""
        self.space = self.study.union_space()
        self.finished = self.record.trials()
        self.turns = Turns(self.study, self.space, apart=self.apart and self.deadline.left < float("inf"))
        self.turns.remember((trial, self._values(trial)) for trial in self.finished)
        self.failed_in_a_row = 0

    def _values(self, trial: FrozenTrial) -> Floats | None:
        return self.record.per_query(trial)[self.study.metric] if trial.state == TrialState.COMPLETE else None

    def run(self) -> None:
        """Run until the study's number of trials have finished. Raises StudyError where all of the last 20 failed."""
        done = {number_of(trial) for trial in self.finished}
        missing = [number for number in range(self.study.trials) if number not in done]
        self.progress.split(self.split, self.study.trials, min(len(done), self.study.trials))
        with Interrupts() as interrupts:
            self._run(missing, interrupts)

    def _run(self, missing: list[int], interrupts: Interrupts) -> None:
        pending: dict[Future[Outcome], Running] = {}
        while missing or pending:
            interrupts.check()
            while missing and len(pending) < self.executor.jobs:
                running = self._ask(missing[0])
                if running is None:
                    missing.clear()
                    break
                del missing[0]
                pending[self.executor.submit(self.objective, running.task)] = running
            if not pending:
                break
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

    def _time_left(self) -> float:
        """Return the seconds that are left for trials, those that the end will take put aside; one always runs.

        What is for sure behind needs no time at the end: it is scored again if there is some.
        """
        if not self.finished or self.deadline.left == float("inf"):
            return float("inf")
        best: dict[str, FrozenTrial] = {}
        for trial in self.finished:
            solver = self.space.split(trial.params)[0]
            if trial.value is not None and (solver not in best or trial.value > (best[solver].value or 0.0)):
                best[solver] = trial
        seconds = {s: seconds_of(trial) for s, trial in best.items() if not self.turns.is_behind(s)}
        ending = self.reserve(seconds) if seconds else 0.0
        return self.deadline.left - ending / self.executor.jobs

    def _ask(self, number: int) -> Running | None:
        """Return the trial of that number, None where it is better to end."""
        begun, left = time.monotonic(), self._time_left()
        suggested = self.turns.next(number, left) if left > 0.0 else None
        if suggested is None:
            return None
        task = replace(self.task_of(*self.space.split(suggested.params)), limit=left)
        return Running(number, suggested, task, time.monotonic() - begun)

    def _tell(self, running: Running, outcome: Outcome) -> None:
        written = self.record.append(
            running.number, running.suggested.params, self.space.distributions, outcome, running.restarts
        )
        seconds = running.asking + outcome.ended - outcome.begun
        self.turns.told(running.suggested, written, seconds, outcome.per_query.get(self.study.metric))
        self.finished.append(written)
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
