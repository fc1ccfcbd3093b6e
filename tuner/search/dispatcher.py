"""Runs the trials of a study in the worker processes of this host and on workers that joined, each under a lease.

A lease is a row beside the record: which trial, which worker, which token. A trial whose worker was lost is begun once
more with the same parameters, by the first free worker. The second loss makes it a failed trial. A loss that several
trials have in common, or in which none begins, has another cause than a trial, and does not count.
"""

from __future__ import annotations

import os
import socket
import time
from collections import Counter
from collections.abc import Callable, Collection, Generator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, replace

from ranktune.solvers.core.errors import TooLong, WorkerLost, WorkersAway
from ranktune.solvers.core.space import Value
from ranktune.tuner.evaluation.models import growing_model
from ranktune.tuner.evaluation.outcome_checks import checked_outcome
from ranktune.tuner.evaluation.task import Rounds, Task, TaskOutcome, listening
from ranktune.tuner.policy.policy import POLICY
from ranktune.tuner.storage.leases import LEASED, Lease, Leases, Offer
from ranktune.tuner.study.events import Event, Events
from ranktune.tuner.workers.executor import Executor, InProcess, Processes
from ranktune.tuner.workers.processes import NOT_STARTED

POLL, POLL_JOINED = 0.5, 0.05
"""Seconds between two looks for completed trials: without workers that joined, and with them."""
WORKERS_POLL = 1.0
"""Seconds between two looks at which workers have joined and which are lost."""
LANES = "/lanes"
"""Suffix of the name of a coordinator that runs trials in processes of their own."""
OVERDUE = 1.0
"""Seconds after its limit, and a hundredth of that, at which a trial in a process of its own is ended."""
GRACE = 4.0
"""Seconds that running trials get to finish when a study is interrupted."""
IN_COMMON = 2
"""Losses of a trial that do not count, if other trials were lost too and none has ended in between."""


class Clock:
    """The time, and waiting; a simulation has another one."""

    def now(self) -> float:
        """Return the seconds of a steady clock."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait for some seconds."""
        time.sleep(seconds)

    def wait(self, futures: Collection[Future[TaskOutcome]], seconds: float) -> set[Future[TaskOutcome]]:
        """Return the futures that are done, after one is or the seconds are over."""
        return wait(futures, timeout=seconds, return_when=FIRST_COMPLETED).done


@dataclass(frozen=True)
class Running:
    """A trial between its request and its outcome.

    Attributes
    ----------
    number : int
    params : mapping
        Its parameters by flat name.
    task : Task
        What is evaluated.
    """

    number: int
    params: Mapping[str, Value]
    task: Task


class Dispatcher:
    """Runs trials in worker processes and on workers that joined.

    `free` counts the trials that could be started now, `start` begins one, and `completed` returns those that have
    ended with their outcomes. `split` is the name of the split in the events.
    """

    def __init__(
        self,
        executor: Executor,
        leases: Leases,
        objective: Callable[[Task], TaskOutcome],
        events: Events,
        clock: Clock | None = None,
        split: str = "",
        apart: Callable[[], Executor] = lambda: Processes(1),
    ) -> None:
        self._executor, self._leases, self._objective, self._events = executor, leases, objective, events
        self._clock, self._split = clock or Clock(), split
        self._on_lanes: dict[Future[TaskOutcome], tuple[Running, Lease]] = {}
        self._offered: dict[int, Running] = {}
        self._new: dict[int, Offer] = {}
        self._queued: set[int] = set()
        self._ran, self._seconds = 0, 0.0  # of the trials that workers that joined have delivered
        self._joined: dict[str, int] = {}
        self._name = own_name() + (LANES if self.in_processes else "")
        self._failed: list[tuple[Running, TaskOutcome]] = []
        self._apart = apart
        self._other: Executor | None = None
        self._suspects: set[int] = set()
        self.on_rounds: Callable[[Running, Rounds], None] = lambda *_: None
        self._lost: Counter[int] = Counter()  # the losses of each trial, since one has ended
        self._polled, self._renewed, self._due = float("-inf"), self._clock.now(), float("inf")

    @property
    def in_processes(self) -> bool:
        """Whether trials run in processes of their own."""
        return not isinstance(self._executor, InProcess)

    @property
    def busy(self) -> bool:
        """Whether a trial is running or waits for a worker."""
        return bool(self._on_lanes or self._offered)

    @property
    def is_overdue(self) -> bool:
        """Whether a trial is still running well after its limit."""
        return self.busy and self._clock.now() > self._due

    @property
    def jobs(self) -> int:
        """How many trials run at once."""
        return self._executor.jobs + sum(self._joined.values())

    @property
    def free(self) -> int:
        """How many more trials may begin: as many as could run at once, and those ahead of them.

        Where trials are short, there is one ahead for each worker that joined, so that it waits for no suggestion. A
        long trial is not suggested before it can begin: a suggestion is better with all that has ended before it.
        """
        self._poll_workers()
        is_short = 0.0 < self._seconds <= self._ran * POLICY.search.short
        return self.jobs + is_short * sum(self._joined.values()) - len(self._on_lanes) - len(self._offered)

    def start(self, trial: Running) -> None:
        """Begin a trial in a free worker process, or else let `offer` offer it to the workers that joined."""
        self._offered[trial.number] = trial
        self._due = self._clock.now() + trial.task.limit * 1.01 + OVERDUE
        if len(self._on_lanes) < self._executor.jobs:
            lease = self._leases.give(_offer(trial), self._name)
            if lease is not None:
                self._start_on_lane(trial, lease)
        else:
            self._new[trial.number] = _offer(trial)

    def offer(self) -> None:
        """Offer all trials that were started and have no worker process here, at once."""
        self._leases.offer(*self._new.values())
        self._queued |= self._new.keys()
        self._new.clear()

    def withdraw(self) -> None:
        """Take back the trials that were offered and that no worker has taken."""
        for number in self._new.keys() | (self._leases.withdraw(self._queued) if self._queued else set()):
            self._offered.pop(number, None)
        self._new.clear()
        self._queued.clear()

    def unfinished(self, wanted: Collection[int]) -> dict[int, Mapping[str, Value]]:
        """Return the parameters of the wanted trials that an earlier run began and did not finish.

        A trial that an earlier coordinator ran waits again, in the same attempt: that process may have been killed. If
        the trial ran in that process, it may also be what ended it, so that it now gets a process of its own.
        """
        resumed: dict[int, Mapping[str, Value]] = {}
        for lease in self._leases.rows():
            if lease.number not in wanted:
                self._leases.close(lease.number)
                continue
            resumed[lease.number] = lease.params
            if lease.state == LEASED and not lease.joined:
                self._leases.give_back([lease.token])
                if not lease.worker.endswith(LANES):
                    self._suspects.add(lease.number)
                self._log(Event.REQUEUED, lease.number, worker=lease.worker)
        return resumed

    def resume(self, trial: Running) -> None:
        """Begin an unfinished trial in a worker process or on a worker that joined."""
        self._offered[trial.number] = trial
        self._leases.set_race(_offer(trial))

    def completed(self) -> list[tuple[Running, TaskOutcome]]:
        """Return the trials that have ended, after a short wait."""
        self._poll_workers()
        self.offer()
        free = self._executor.jobs - len(self._on_lanes)
        for lease in self._leases.claim(self._name, free, joined=False) if free > 0 and self._offered else ():
            self._start_on_lane(self._offered[lease.number], lease)
        delivered = self._delivered() if self._offered else []
        seconds = 0.0 if delivered else POLL_JOINED if self._offered else POLL
        done = self._clock.wait(self._on_lanes, seconds) if self._on_lanes else set()
        for future, (trial, _) in self._on_lanes.items():
            executor = self._executor_of(trial)
            if isinstance(executor, Processes) and (rounds := executor.new_rounds(future)) is not None:
                self.on_rounds(trial, rounds)
        if not self._on_lanes:
            self._clock.sleep(seconds)
        ends = {future: outcome_of(future) for future in done}
        self._lost.update(self._on_lanes[one][0].number for one, end in ends.items() if isinstance(end, WorkerLost))
        outcomes = [ended for one, end in ends.items() if (ended := self._returned(one, end)) is not None]
        failed, self._failed = self._failed, []
        return outcomes + failed + delivered

    def recorded(self, number: int) -> None:
        """End the lease of a trial that is not written into the record by `Record.write`."""
        self._leases.close(number)

    def stop(self, grace: float = GRACE, *, cut: bool = False) -> Generator[tuple[Running, TaskOutcome], None, None]:
        """Yield the trials that finish within grace seconds, then put back those that this process holds.

        With cut, boosting whose model was saved as it grew counts with the rounds of that, and is not put back. A trial
        that was yielded and is not in the record by then is put back too, also if the iterator is closed.
        """
        until = self._clock.now() + grace
        self.withdraw()
        try:
            while self._on_lanes and self._clock.now() < until:
                for future in self._clock.wait(self._on_lanes, max(until - self._clock.now(), 0.0)):
                    ended = self._returned(future, outcome_of(future))
                    if ended is not None:
                        yield ended
            for future, (trial, _) in list(self._on_lanes.items()) if cut else ():
                self._executor_of(trial).stop(future)
                if growing_model(trial.task) is None:
                    continue
                outcome = self._objective(replace(trial.task, limit=0.0, incumbent=None))
                if outcome.error is None:
                    del self._on_lanes[future]
                    yield trial, outcome
        finally:
            for future, (trial, _) in self._on_lanes.items():
                self._executor_of(trial).stop(future)
            self._on_lanes.clear()
            self.close()
            leased = [lease for lease in self._leases.rows() if lease.state == LEASED and not lease.joined]
            leases = [lease for lease in leased if lease.worker == self._name]
            self._leases.give_back([lease.token for lease in leases])  # they wait again, without counting an attempt
            for lease in leases:
                self._log(Event.REQUEUED, lease.number)
            self.put_back += len(leases)

    def close(self) -> None:
        """End the process of the trials that get one of their own."""
        other, self._other = self._other, None
        if other is not None:
            other.__exit__(None, None, None)

    runs_here = False
    """Whether a trial runs in this process at this moment."""
    put_back = 0
    """How many trials `stop` has put back."""

    def _log(self, event: Event, number: int, *, at: float | None = None, **fields: object) -> None:
        self._events.write(event, at=at, trial=number, split=self._split, **fields)

    def _start_on_lane(self, trial: Running, lease: Lease) -> None:
        """Run an offered trial here."""
        del self._offered[trial.number]
        self._log(Event.STARTED, trial.number, attempt=lease.attempt)
        executor, begun = self._executor_of(trial), Future[TaskOutcome]()
        self._on_lanes[begun] = trial, lease  # where it runs in this process, it may be interrupted
        self.runs_here = isinstance(executor, InProcess)
        with listening(lambda rounds: self.on_rounds(trial, rounds)):
            future = executor.submit(self._objective, trial.task)
        self.runs_here = False
        self._on_lanes[future] = self._on_lanes.pop(begun)

    def _executor_of(self, trial: Running) -> Executor:
        if trial.number not in self._suspects:
            return self._executor
        self._other = self._other or self._apart()
        return self._other

    def _returned(
        self, future: Future[TaskOutcome], outcome: TaskOutcome | WorkerLost
    ) -> tuple[Running, TaskOutcome] | None:
        """Return a trial that ran here with its outcome, None if it is begun again."""
        trial, lease = self._on_lanes.pop(future)
        if isinstance(outcome, TaskOutcome):
            self._lost.clear()
            return trial, replace(outcome, restarts=lease.attempt - 1)
        unstarted = outcome.reason.startswith(NOT_STARTED)
        if unstarted or (len(self._lost) > 1 and self._lost[trial.number] <= IN_COMMON):
            self._leases.give_back([lease.token])  # it waits again, without counting an attempt
            if unstarted and self._lost[trial.number] > IN_COMMON:
                raise WorkersAway(f"{outcome}. What had finished is kept, and `ranktune resume` goes on.")
        elif self._leases.reissue(trial.number, lease.token) is None:
            del self._lost[trial.number]
            return trial, lost_twice(outcome)
        self._log(Event.REISSUED, trial.number, reason=str(outcome))
        self.resume(trial)
        return None

    def _delivered(self) -> list[tuple[Running, TaskOutcome]]:
        """Return the trials that workers that joined have delivered, with their outcomes."""
        outcomes = []
        for lease, outcome in self._leases.collect():
            trial = self._offered.pop(lease.number, None)
            if trial is not None:
                self._ran, self._seconds = self._ran + 1, self._seconds + outcome.ended - outcome.begun
                self._queued.discard(lease.number)
                at = outcome.begun or None
                self._log(Event.STARTED, lease.number, at=at, attempt=lease.attempt, worker=lease.worker)
                worker = f"{lease.worker.rpartition(':')[0]}:{outcome.worker}"
                outcomes.append((trial, replace(outcome, worker=worker, restarts=lease.attempt - 1)))
        return outcomes

    def _poll_workers(self) -> None:
        """Renew the leases of this host, and note which workers have joined or are lost, once every WORKERS_POLL."""
        now = self._clock.now()
        if now - self._polled < WORKERS_POLL:
            return
        self._polled = now
        if now - self._renewed > self._leases.period / 3.0:
            self._renewed = now
            self._leases.renew([lease.token for _, lease in self._on_lanes.values()])
        present = {worker.name: worker.jobs for worker in self._leases.workers()}
        for name in present.keys() - self._joined.keys():
            self._events.write(Event.WORKER_JOINED, worker=name, jobs=present[name])
        for name in self._joined.keys() - present.keys():
            self._events.write(Event.WORKER_LOST, worker=name)
        self._joined = present
        if self._offered:
            self._failed += self._expired()

    def _expired(self) -> list[tuple[Running, TaskOutcome]]:
        """Offer the trials of lost workers again, and return those that were lost for the second time."""
        outcomes = []
        for lease, again in self._leases.expired():
            reason = f"{lease.worker} sent no heartbeat"
            if again:
                self._log(Event.REISSUED, lease.number, reason=reason)
            elif (trial := self._offered.pop(lease.number, None)) is not None:
                outcomes.append((trial, lost_twice(WorkerLost(reason))))
        return outcomes


def own_name() -> str:
    """Return the name of this process among the workers, HOST:PID."""
    return f"{socket.gethostname()}:{os.getpid()}"


def outcome_of(future: Future[TaskOutcome]) -> TaskOutcome | WorkerLost:
    """Return the checked outcome of a future, or how its worker was lost; a limit that was reached is an outcome."""
    try:
        returned: object = future.result()
    except WorkersAway:
        raise
    except WorkerLost as lost:
        return lost
    except TooLong as error:
        returned = TaskOutcome(error=str(error))
    except Exception as error:
        returned = TaskOutcome(error=f"{type(error).__name__}: {error}")
    return checked_outcome(returned)


def lost_twice(error: WorkerLost) -> TaskOutcome:
    """Return the failure of a trial whose worker was lost for the second time."""
    return TaskOutcome(error=f"its worker was lost twice, the second time: {error}", restarts=1)


def _offer(trial: Running) -> Offer:
    """Return what a worker has to know of a trial."""
    task = trial.task
    limit = None if task.limit == float("inf") else task.limit
    return Offer(trial.number, trial.params, limit, task.incumbent, task.race, bool(task.path))
