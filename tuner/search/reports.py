"""What a running split says of its trials: to the display, and in the log of events."""

from __future__ import annotations

from optuna.trial import FrozenTrial, TrialState

from ranktune.tuner.evaluation.task import Outcome
from ranktune.tuner.search.dispatcher import Clock, Running
from ranktune.tuner.search.progress import Progress, TrialReport
from ranktune.tuner.search.requests import Budget
from ranktune.tuner.storage.record import ERROR, STOPPED
from ranktune.tuner.study.declaration import Study
from ranktune.tuner.study.events import Event, Events

_EVENTS = {
    TrialState.COMPLETE: Event.FINISHED,
    TrialState.PRUNED: Event.PRUNED,
    TrialState.FAIL: Event.FAILED,
}


class Reports:
    """Reports the trials of one split.

    Attributes
    ----------
    done : int
        Finished trials, those of earlier runs among them.
    """

    def __init__(
        self, study: Study, split: str, progress: Progress, events: Events, budget: Budget, clock: Clock, done: int
    ) -> None:
        self._study, self._split, self._progress, self._events = study, split, progress, events
        self._budget, self._clock = budget, clock
        self.done = self._done_before = done
        self._begun_at = clock.now()

    def split_begins(self) -> None:
        """Show that the trials of the split begin."""
        self._progress.split(self._split, self._wanted, min(self.done, self._study.n_trials))

    def stage(self, text: str) -> None:
        """Show what happens outside of trials."""
        self._progress.stage(text)

    def asked(self, trial: Running) -> None:
        """Log that a trial was requested."""
        self._events.write(Event.ASKED, trial=trial.number, split=self._split, params=trial.params)

    def given_up(self, trial: Running, outcome: Outcome) -> None:
        """Log that a trial ended at the deadline, and is not recorded."""
        self._events.write(Event.PRUNED, trial=trial.number, split=self._split, reason=outcome.error)

    def recorded(self, number: int, outcome: Outcome, written: FrozenTrial) -> None:
        """Count and log a trial that is in the record."""
        self.done += 1
        for at, what, value in outcome.steps:
            self._events.write(Event.STEP, at=at, trial=number, split=self._split, step=what, value=value)
        event = _EVENTS[written.state]
        fields: dict[str, object] = {"value": written.value} if event != Event.FAILED else {}
        if event != Event.FINISHED:
            fields["reason"] = written.user_attrs.get(ERROR) or f"significantly worse after {outcome.stopped}"
        self._events.write(event, at=None, trial=number, split=self._split, **fields, worker=outcome.worker)

    def show(self, trial: Running, written: FrozenTrial) -> None:
        """Show a trial that is in the record."""
        best = self._budget.finished.best
        solver = max(best, key=lambda name: best[name].value or float("-inf"), default=None)
        self._progress.trial(
            TrialReport(
                split=self._split,
                number=trial.number,
                done=self.done,
                total=self._wanted,
                solver=trial.task.solver,
                value=written.value,
                error=written.user_attrs.get(ERROR),
                stopped=str(written.user_attrs.get(STOPPED, "")),
                seconds_left=self._seconds_left(),
                best=None if solver is None else best[solver].value,
                best_solver=solver,
            )
        )

    @property
    def _wanted(self) -> int | None:
        """The trials that are wanted, None where the study ends at a time or when little gain is expected."""
        return self._study.n_trials if self._study.ends_by_count else None

    def _seconds_left(self) -> float | None:
        """Return how long the split will go on: the mean time of its trials for each to come, and that of its end.

        Where the trials are not counted it is the time until the deadline, None without one.
        """
        ran, left = self.done - self._done_before, max(self._budget.deadline.left, 0.0)
        if not self._study.ends_by_count:
            return None if left == float("inf") else left
        if ran == 0:
            return None
        to_come = (self._clock.now() - self._begun_at) / ran * max(self._study.n_trials - self.done, 0)
        return min(to_come + self._budget.ending(), left)
