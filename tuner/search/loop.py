"""The loop of a split: request a trial, dispatch it, tell the sampler its outcome, write it into the record.

The number of a trial is its place in the order of requests. The sampler uses the finished trials and those still
running, in memory (`ranktune.tuner.search.search_scheduler`). The record gets each trial once, when it has finished; a
running trial has a lease beside the record (`ranktune.tuner.search.dispatcher`). A resumed run reads the finished
trials into memory, begins the interrupted ones again, and requests the missing numbers.

Determinism. With one job and the same data, settings, versions and kind of machine, a seed gives the same trials,
parameters and values to the last bit, also if the run was killed and resumed (unless the search is timed: a study with
a timeout chooses solvers by the seconds of their trials). With several jobs this holds if trials also end in the same
order (sampler random with every trial in full: in any order), since samplers and races use what has ended by the time
of the request. Otherwise the search takes another course; the values of a trial in full remain a function of its
parameters alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress

from optuna.trial import FrozenTrial, TrialState

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.errors import AllFailed, StudyError
from ranktune.solvers.core.space import Value
from ranktune.tuner.evaluation.evaluate import attempt
from ranktune.tuner.evaluation.outcome_checks import comparable_outcome, failed_outcome
from ranktune.tuner.evaluation.task import Rounds, Task, TaskOutcome
from ranktune.tuner.policy.actions import Finish
from ranktune.tuner.policy.next_trial import ALL_RUN, GIVEN_UP, IN_VAIN, NO_TIME, next_action
from ranktune.tuner.policy.policy import POLICY, Policy
from ranktune.tuner.samplers.space import SOLVER
from ranktune.tuner.search.dispatcher import GRACE, Clock, Dispatcher, Running
from ranktune.tuner.search.progress import Progress, TrialReport
from ranktune.tuner.search.requests import FinishedTrials, Requests, Reserve, SplitBudget
from ranktune.tuner.search.search_scheduler import SearchScheduler
from ranktune.tuner.search.searches import SearchOptions
from ranktune.tuner.storage.attributes import ERROR, LEAD, STOPPED
from ranktune.tuner.storage.record import Finished, Record, number_of
from ranktune.tuner.study.deadline import Deadline
from ranktune.tuner.study.declaration import Study
from ranktune.tuner.study.events import Event, Events
from ranktune.tuner.workers.executor import Executor
from ranktune.tuner.workers.interrupts import Interrupted, Interrupts

_EVENTS = {TrialState.COMPLETE: Event.FINISHED, TrialState.PRUNED: Event.PRUNED, TrialState.FAIL: Event.FAILED}
FAILURES = 20
"""Trials in a row that fail after which the study gives up: what is wrong is then in the data or the machine."""
CTRL_C = "Ctrl-C ended the search"
"""Why no more trials were run."""


class Reports:
    """Reports the trials of one split.

    Attributes
    ----------
    done : int
        Finished trials, those of earlier runs among them.
    """

    def __init__(
        self, study: Study, split: str, progress: Progress, events: Events, budget: SplitBudget, done: int
    ) -> None:
        self._study, self._split, self._progress, self._events = study, split, progress, events
        self._budget = budget
        self.done = done

    def split_begins(self) -> None:
        """Show that the trials of the split begin."""
        self._progress.split(self._split, self._wanted, min(self.done, self._study.n_trials))

    def stage(self, text: str) -> None:
        """Show what happens outside of trials."""
        self._progress.stage(text)

    def asked(self, trial: Running) -> None:
        """Log that a trial was requested."""
        origin = self._budget.scheduler.origins[trial.number]
        self._events.write(Event.ASKED, at=None, trial=trial.number, split=self._split, **origin, params=trial.params)

    def given_up(self, trial: Running, outcome: TaskOutcome) -> None:
        """Log that a trial ended at the deadline, and is not recorded."""
        self._events.write(Event.PRUNED, trial=trial.number, split=self._split, reason=outcome.error)

    def rounds(self, trial: Running, rounds: Rounds) -> None:
        """Log and show how far the fit of a trial is."""
        self._events.write(Event.ROUNDS, trial=trial.number, split=self._split, **vars(rounds))
        self._progress.fit(f"trial {trial.number + 1} {trial.task.solver}, {rounds}")

    def recorded(self, number: int, outcome: TaskOutcome, written: FrozenTrial) -> None:
        """Count and log a trial that is in the record."""
        self.done += 1
        for at, what, value in outcome.steps:
            self._events.write(Event.STEP, at=at, trial=number, split=self._split, step=what, value=value)
        event = _EVENTS[written.state]
        fields: dict[str, object] = {"value": written.value, LEAD: written.user_attrs.get(LEAD)}
        if event != Event.FINISHED:
            fields["reason"] = written.user_attrs.get(ERROR) or f"significantly worse after {outcome.stopped}"
        self._events.write(event, at=None, trial=number, split=self._split, **fields, worker=outcome.worker)

    def show(self, trial: Running, written: FrozenTrial) -> None:
        """Show a trial that is in the record."""
        best = self._budget.finished.leader()
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
                best=None if best is None else best.value,
                best_solver=None if best is None else str(best.params[SOLVER]),
            )
        )

    @property
    def _wanted(self) -> int | None:
        """The trials that are wanted, None where the study ends at a time or when little gain is expected."""
        return self._study.n_trials if self._study.ends_by_count else None

    def _seconds_left(self) -> float | None:
        """Return how long the split will go on: the time of the trials to come, and that of its end.

        A search that ends by gain is expected to end with the next trials in vain, one of which will not be while there
        are first configurations. Where nothing says how many trials are to come it is the time until the deadline, None
        without one.
        """
        left, state = max(self._budget.deadline.left, 0.0), self._budget.scheduler.state
        if self._wanted is not None:
            return min(self._budget.to_come(max(self._wanted - self.done, 0)), left)
        if state.most_in_vain < float("inf"):
            new = sum(one.solver not in state.begun for one in state.first) + bool(state.first)
            return self._budget.to_come(new + max(int(state.most_in_vain) - state.in_vain, state.running))
        return None if left == float("inf") else left


Objective = Callable[[Task], TaskOutcome]


class TrialLoop:
    """Runs the missing trials of one split.

    Parameters
    ----------
    task_of : callable
        Turns a solver and its parameters into a task.
    deadline, reserve : Deadline, callable
        No trial begins after the deadline less the reserve: the seconds that selection and refit take, computed from
        the seconds of each solver's best trial, and whether first configurations of boosting are still to come.
    options : SearchOptions, optional
        What was decided before the search.
    check : callable
        Raises StudyError once another process has taken the study over.
    policy : Policy
        What decides.
    may_end : bool
        Whether the first Ctrl-C ends the search, and the study goes on with the trials that have finished.

    Attributes
    ----------
    ended : str
        Why no more trials were run.
    """

    def __init__(
        self,
        study: Study,
        split: str,
        record: Record,
        task_of: Callable[[str, Mapping[str, Value]], Task],
        executor: Executor,
        progress: Progress,
        objective: Objective = attempt,
        deadline: Deadline | None = None,
        reserve: Reserve = lambda *_: 0.0,
        *,
        options: SearchOptions | None = None,
        events: Events | None = None,
        check: Callable[[], None] = lambda: None,
        clock: Clock | None = None,
        policy: Policy = POLICY,
        may_end: bool = False,
    ) -> None:
        """Read the record into memory."""
        space, options, events = study.union_space(), options or SearchOptions(), events or Events(None)
        deadline, clock = deadline or Deadline(), clock or Clock()
        timed = deadline.left < float("inf")
        self.scheduler = SearchScheduler(study, space, options, timed=timed, weights=record.weights, policy=policy)
        self._record, self._check, self._policy = record, check, policy
        record.settle()
        self._may_end = may_end
        self._dispatcher = Dispatcher(executor, record.leases, objective, events, clock, split)
        self._finished = FinishedTrials(study, space, record.weights)
        budget = SplitBudget(deadline, reserve, max(executor.jobs, 1), self._finished, self.scheduler, policy)
        trials = record.trials()
        for trial in trials:
            complete = trial.state == TrialState.COMPLETE
            self._remember(trial, record.per_query(trial)[study.metric] if complete else None)
        done = {number_of(trial) for trial in trials}
        self._missing = [number for number in range(study.n_trials) if number not in done]
        self._reports = Reports(study, split, progress, events, budget, len(done))
        self._dispatcher.on_rounds = self._reports.rounds
        self._requests = Requests(study, space, task_of, self._dispatcher, budget)
        self._failed_in_a_row = 0
        self._waiting: Running | None = None
        self.ended = ALL_RUN

    def _remember(self, trial: FrozenTrial, per_query: Floats | None) -> None:
        self._finished.add(self.scheduler.search_of(trial.params), trial, per_query)
        self.scheduler.remember([(trial, per_query)])

    def run(self) -> None:
        """Run until the study's number of trials have finished.

        The first Ctrl-C ends the search where a trial has finished and it may end early. Raises AllFailed if as many
        trials failed in a row as end a study, and Interrupted after another signal: running trials had some seconds to
        finish, the others are put back for the next run.
        """
        self._reports.split_begins()
        with Interrupts() as interrupts:
            try:
                with interrupts.deferred(lambda: not self._dispatcher.runs_here):
                    try:
                        self._run(interrupts)
                    except KeyboardInterrupt:  # in a trial that runs in this process
                        if not interrupts.is_ctrl_c:
                            raise
                    if interrupts.requested:
                        self._answer_signal(interrupts)
            except KeyboardInterrupt:  # a second signal, or one that ends a trial in this process
                interrupts.requested = True
                self._stop(0.0)
            except Exception:
                with suppress(StudyError):  # if even that cannot be written, the next run puts the trials back
                    self._stop(0.0)
                raise
            self._dispatcher.close()
            if interrupts.requested:
                raise Interrupted(self._dispatcher.put_back)

    def _run(self, interrupts: Interrupts) -> None:
        for number, params in self._dispatcher.unfinished(self._missing).items():
            self._missing.remove(number)
            trial = self._requests.resumed(number, params, self._time_left())
            self._reports.asked(trial)
            self._dispatcher.resume(trial)
        while (self._missing or self._waiting or self._dispatcher.busy) and not interrupts.requested:
            while self._start() and self._missing and self._can_request and not interrupts.requested:
                self._request(self._missing.pop(0))
            self._check()
            if not (self._missing or self._waiting or self._dispatcher.busy):
                return  # the search has just ended: there is nothing to wait for
            self._complete(self._dispatcher.completed())
            if self._dispatcher.is_overdue:  # between two steps of the running trials there was no end
                self._finish(GIVEN_UP)
                self._stop(0.0, cut=True)

    def _answer_signal(self, interrupts: Interrupts) -> None:
        """End the search after the first Ctrl-C, if there is something to choose from; else stop in good order."""
        may_end = self._may_end and interrupts.is_ctrl_c
        if may_end and self._finished.leader() is not None:
            self._stop(0.0, cut=True)
        else:
            self._reports.stage("stopping: running trials have a few seconds to finish; Ctrl-C again ends at once")
            self._stop(GRACE)
        if may_end and self._finished.leader() is not None:
            self._finish(CTRL_C)
            interrupts.forget()

    def _stop(self, grace: float, *, cut: bool = False) -> None:
        with closing(self._dispatcher.stop(grace, cut=cut)) as ending:
            for ended in ending:
                self._complete([ended])

    def _time_left(self) -> float:
        """Return the seconds that are left for trials; one trial always runs, however long, and no other beside it."""
        begun = self._reports.done or self._dispatcher.busy
        return self._requests.budget.left() if begun else float("inf")

    def _request(self, number: int) -> None:
        """Carry out the next action: the trial of that number, or the end of the search."""
        left = self._time_left()
        match next_action(self.scheduler.state, left, self._policy):
            case Finish(reason):
                self._finish(reason)
            case action:
                self._waiting = self._requests.begin(number, action, left)
                self._reports.asked(self._waiting)

    def _finish(self, reason: str) -> None:
        """Request no more trials, and do not start those that wait."""
        self._missing, self._waiting, self.ended = [], None, reason
        self._dispatcher.withdraw()

    @property
    def _can_request(self) -> bool:
        """Whether a worker is free, or the next trial can be requested while several worker processes are busy.

        With one job a trial is requested when the one before has ended, so that a resumed study requests the same.
        """
        return self._dispatcher.free > 0 or (self._dispatcher.in_processes and self._dispatcher.jobs > 1)

    def _start(self) -> bool:
        """Start the trial that waits, if a worker is free; return whether none waits.

        What has finished since it was requested changes the time that it has, and what it has to beat.
        """
        if self._waiting is not None and self._dispatcher.free > 0:
            trial, self._waiting, left = self._waiting, None, self._time_left()
            state = self.scheduler.state
            if state.in_vain >= state.most_in_vain:
                self._finish(IN_VAIN)
            elif left > 0.0:
                self._dispatcher.start(self._requests.renewed(trial, left))
            else:
                self._finish(NO_TIME)
        return self._waiting is None

    def _complete(self, ended: Sequence[tuple[Running, TaskOutcome]]) -> None:
        """Update all that depends on completed trials, and write them into the record."""
        taken: list[tuple[Running, TaskOutcome]] = []
        every: list[Finished] = []
        for trial, returned in ended:
            outcome = self._comparable(trial, returned)
            if outcome.given_up:  # it gave up at the deadline, and is not recorded
                self._finish(GIVEN_UP)
                self._reports.given_up(trial, outcome)
                self._dispatcher.recorded(trial.number)
            else:
                taken.append((trial, outcome))
                every.append(self._remembered(trial, outcome))
        for (trial, outcome), written in zip(taken, self._record.write(every) if every else (), strict=True):
            self._reports.recorded(trial.number, outcome, written)
            self._reports.show(trial, written)
            self._failed_in_a_row = self._failed_in_a_row + 1 if written.state == TrialState.FAIL else 0
            if self._failed_in_a_row >= FAILURES:
                raise AllFailed(
                    f"the last {self._failed_in_a_row} trials failed, the last with: {written.user_attrs[ERROR]}. "
                    "What had finished is in the record; `ranktune resume` goes on."
                )

    def _comparable(self, trial: Running, outcome: TaskOutcome) -> TaskOutcome:
        outcome = comparable_outcome(outcome, self._record.metric, self._finished.counted, self._record.weights)
        if outcome.stopped and trial.task.incumbent is None and not outcome.given_up:
            return failed_outcome(outcome, "it was stopped although it had no incumbent")
        return outcome

    def _remembered(self, trial: Running, outcome: TaskOutcome) -> Finished:
        """Return a completed trial as it is written, once the searches know of it."""
        params, distributions = self._requests.chosen(trial, outcome)
        estimate, best = self._finished.estimate(outcome, trial.task), self.scheduler.state.best
        origin = self.scheduler.origins.pop(trial.number)
        result = self._record.finished(trial.number, params, distributions, outcome, estimate, best, origin)
        per_query = None if outcome.stopped else outcome.per_query.get(self._record.metric)
        self._finished.add(self.scheduler.search_of(params), result[0], per_query)
        self.scheduler.tell(trial.number, result[0], outcome.ended - outcome.begun, per_query)
        return result
