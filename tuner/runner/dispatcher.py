"""Who runs the trials that were asked for: lanes of the coordinator's own, and workers that joined; all under a lease.

A lease is a row beside the record: what is tried, by whom, under which token. A trial whose worker was lost is begun
once more with the same parameters, by whoever is free first; when that one is lost too it counts as failed.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Collection, Generator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, replace
from typing import Any

from ranktune.solvers.core.errors import TooLong, WorkerLost
from ranktune.solvers.core.space import Value
from ranktune.tuner.evaluation.outcome_checks import checked_outcome
from ranktune.tuner.evaluation.task import Outcome, Task
from ranktune.tuner.storage.leases import LEASED, Lease, Leases
from ranktune.tuner.study.events import Event, Events
from ranktune.tuner.workers.executor import Executor, InProcess

TICK, TICK_JOINED = 0.5, 0.05
"""Seconds between two looks at what happens elsewhere: where nobody has joined, and where somebody has."""
LOOK = 1.0
"""Seconds between two looks at who has joined and who is lost."""
LANES = "/lanes"
"""Ends the name of a coordinator that runs trials in processes of their own."""
GRACE = 4.0
"""Seconds that running trials get to finish when a study is interrupted."""


class Clock:
    """The time, and waiting for it to pass; a simulation has another one."""

    def now(self) -> float:
        """Return the seconds of a steady clock."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait so long."""
        time.sleep(seconds)

    def wait(self, futures: Collection[Future[Any]], seconds: float) -> set[Future[Any]]:
        """Wait for one of futures, so long at most, and return those that are done."""
        return wait(futures, timeout=seconds, return_when=FIRST_COMPLETED).done


@dataclass(frozen=True)
class Asked:
    """A trial that was asked for: its number, its parameters by flat name, and what a worker is to evaluate."""

    number: int
    params: Mapping[str, Value]
    task: Task


@dataclass(frozen=True)
class Ended:
    """What became of a trial, and how often it had to be begun again."""

    number: int
    outcome: Outcome
    restarts: int


class Dispatcher:
    """Runs trials; room says for how many more there are hands, start gives one out, ended waits for some to end.

    split is whose trials they are, in the log.
    """

    def __init__(
        self,
        executor: Executor,
        leases: Leases,
        objective: Callable[[Task], Outcome],
        events: Events,
        clock: Clock | None = None,
        split: str = "",
    ) -> None:
        self._executor, self._leases, self._objective, self._events = executor, leases, objective, events
        self._clock, self._split = clock or Clock(), split
        self._own: dict[Future[Outcome], tuple[Asked, Lease]] = {}
        self._offered: dict[int, Asked] = {}
        self._joined: dict[str, int] = {}
        self._here = own_name() + (LANES if self.apart else "")
        self._lost: list[Ended] = []
        self._looked, self._renewed = float("-inf"), self._clock.now()

    @property
    def apart(self) -> bool:
        """Whether trials run in processes of their own."""
        return not isinstance(self._executor, InProcess)

    @property
    def busy(self) -> bool:
        """Whether a trial is running, or waits for somebody to run it."""
        return bool(self._own or self._offered)

    @property
    def jobs(self) -> int:
        """How many trials run at once."""
        return self._executor.jobs + sum(self._joined.values())

    @property
    def room(self) -> int:
        """How many more trials there are hands for."""
        self._look()
        return self.jobs - len(self._own) - len(self._offered)

    def start(self, asked: Asked) -> None:
        """Have a trial run: on a lane if one is free, else by whoever has joined."""
        self._offered[asked.number] = asked
        if len(self._own) < self._executor.jobs:
            self._take(asked)
        else:
            self._leases.offer(asked.number, asked.params, _limit(asked.task), asked.task.incumbent)

    def left_over(self, wanted: Collection[int]) -> dict[int, Mapping[str, Value]]:
        """Return the parameters of wanted trials that an earlier run has asked for and not recorded.

        What ran on lanes of a coordinator that is gone waits again, by no fault of its own. What ran in the process of
        the coordinator itself may be what ended it: that counts as an attempt.
        """
        found: dict[int, Mapping[str, Value]] = {}
        for lease in self._leases.rows():
            if lease.number not in wanted:
                self._leases.close(lease.number)
                continue
            found[lease.number] = lease.params
            if lease.state == LEASED and not lease.joined:
                if lease.worker.endswith(LANES):
                    self._leases.requeue([lease.number])
                elif self._leases.reissue(lease.number, lease.token) is None:
                    continue  # it ended two coordinators: expired tells of it
                self._log(Event.REQUEUED, lease.number, worker=lease.worker)
        return found

    def resume(self, asked: Asked) -> None:
        """Have a trial run that was left over, by a lane or by whoever has joined."""
        self._offered[asked.number] = asked
        self._leases.set_incumbent(asked.number, asked.task.incumbent)

    def ended(self) -> list[Ended]:
        """Return the trials that have ended; waits a little for one, so that the caller can look at other things."""
        self._look()
        self._take_offered()
        tick = TICK_JOINED if self._offered else TICK
        done = self._clock.wait(self._own, tick) if self._own else set()
        if not self._own:
            self._clock.sleep(tick)
        found = [ended for future in done if (ended := self._ended(future)) is not None]
        lost, self._lost = self._lost, []
        return found + lost + (self._collected() if self._offered else [])

    def recorded(self, number: int) -> None:
        """Hear that what became of a trial is in the record: its lease is over."""
        self._leases.close(number)

    def stop(self, grace: float = GRACE) -> Generator[Ended, None, None]:
        """End all work: yield what finishes within grace seconds, then put back what this process still holds.

        Also what was yielded and is not in the record by then is put back, and when the iterator is closed early.
        """
        until = self._clock.now() + grace
        try:
            while self._own and self._clock.now() < until:
                for future in self._clock.wait(self._own, max(until - self._clock.now(), 0.0)):
                    ended = self._ended(future)
                    if ended is not None:
                        yield ended
        finally:
            for future in self._own:
                self._executor.stop(future)
            self._own.clear()
            self._put_back()

    put_back = 0
    """How many trials stop has put back."""

    def _put_back(self) -> None:
        """Have wait what is leased to this process: it was interrupted, by no fault of the trial."""
        held = [lease for lease in self._leases.rows() if lease.state == LEASED and not lease.joined]
        mine = [lease for lease in held if lease.worker == self._here]
        self._leases.give_back([lease.token for lease in mine])
        for lease in mine:
            self._log(Event.REQUEUED, lease.number)
        self.put_back += len(mine)

    def _log(self, event: Event, number: int, *, at: float | None = None, **fields: Any) -> None:
        self._events.write(event, at=at, trial=number, split=self._split, **fields)

    def _take(self, asked: Asked) -> None:
        """Run an offered trial on a lane, unless a worker that joined has taken it."""
        lease = self._leases.give(asked.number, asked.params, self._here)
        if lease is None:
            return
        del self._offered[asked.number]
        self._log(Event.STARTED, asked.number, attempt=lease.attempt)
        self._own[self._executor.submit(self._objective, asked.task)] = asked, lease

    def _take_offered(self) -> None:
        for asked in list(self._offered.values()):
            if len(self._own) >= self._executor.jobs:
                return
            self._take(asked)

    def _ended(self, future: Future[Outcome]) -> Ended | None:
        """Return what became of a trial on a lane, None where it is begun again."""
        asked, lease = self._own.pop(future)
        outcome = returned(future)
        if isinstance(outcome, Outcome):
            return Ended(asked.number, outcome, lease.attempt - 1)
        again = self._leases.reissue(asked.number, lease.token)
        if again is None:
            return Ended(asked.number, _lost(outcome), 1)
        self._log(Event.REISSUED, asked.number, reason=str(outcome))
        self.resume(asked)
        return None

    def _collected(self) -> list[Ended]:
        """Return what workers that joined have delivered, and what was lost with them for good."""
        found = []
        for lease, outcome in self._leases.collect():
            asked = self._offered.pop(lease.number, None)
            if asked is not None:
                at = outcome.begun or None
                self._log(Event.STARTED, lease.number, at=at, attempt=lease.attempt, worker=lease.worker)
                host = lease.worker.rpartition(":")[0]
                found.append(
                    Ended(lease.number, replace(outcome, worker=f"{host}:{outcome.worker}"), lease.attempt - 1)
                )
        return found

    def _look(self) -> None:
        """Look, once in a while, who has joined and who is lost, and renew the leases of the own lanes."""
        now = self._clock.now()
        if now - self._looked < LOOK:
            return
        self._looked = now
        if now - self._renewed > self._leases.period / 3.0:
            self._renewed = now
            self._leases.renew_own([lease.token for _, lease in self._own.values()])
        present = {worker.name: worker.jobs for worker in self._leases.workers()}
        for name in present.keys() - self._joined.keys():
            self._events.write(Event.WORKER_JOINED, worker=name, jobs=present[name])
        for name in self._joined.keys() - present.keys():
            self._events.write(Event.WORKER_LOST, worker=name)
        self._joined = present
        if self._offered:
            self._lost += self._expired()

    def _expired(self) -> list[Ended]:
        """Offer anew what a worker that joined has not been heard of about, and return what was lost for good."""
        found = []
        for lease, again in self._leases.expired():
            reason = f"{lease.worker} was not heard of any more"
            if again:
                self._log(Event.REISSUED, lease.number, reason=reason)
            elif self._offered.pop(lease.number, None) is not None:
                found.append(Ended(lease.number, _lost(WorkerLost(reason)), 1))
        return found


def own_name() -> str:
    """Return how this process is called among workers: HOST:PID."""
    return f"{socket.gethostname()}:{os.getpid()}"


def _limit(task: Task) -> float | None:
    return None if task.limit == float("inf") else task.limit


def returned(future: Future[Any]) -> Outcome | WorkerLost:
    """Return what the worker returned, made sound, or how it was lost; a limit that was reached is an outcome too."""
    try:
        outcome: object = future.result()
    except WorkerLost as lost:
        return lost
    except TooLong as error:
        outcome = Outcome(error=str(error))
    except Exception as error:
        outcome = Outcome(error=f"{type(error).__name__}: {error}")
    return checked_outcome(outcome)


def _lost(error: WorkerLost) -> Outcome:
    return Outcome(error=f"its worker was lost twice, the last time: {error}")
