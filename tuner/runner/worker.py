"""A worker that joined: it takes trials of a study that another process runs, here or on another machine.

What it takes is under a lease that it renews. It hands in what became of each trial; the process that owns the study
writes it into the record. It may come and go at any time.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, replace

from ranktune.solvers.core.errors import WorkerLost
from ranktune.tuner.evaluation.objective import evaluate
from ranktune.tuner.evaluation.task import Outcome, Task
from ranktune.tuner.runner.dispatcher import GRACE, own_name, returned
from ranktune.tuner.runner.joining import Joinable, Part
from ranktune.tuner.storage.leases import Lease
from ranktune.tuner.storage.membership import this_host
from ranktune.tuner.workers.executor import Executor
from ranktune.tuner.workers.interrupts import Interrupts

TICK = 0.05
"""Seconds between two looks for a trial to take."""
LOOK = 1.0
"""Seconds between two looks at what the study is about to do, and two signs of life."""
WAIT = 600.0
"""Seconds without a trial to take after which a worker leaves."""


@dataclass(frozen=True)
class _Work:
    """A trial that was taken: of which part of the study, under which lease."""

    part: Part
    lease: Lease


class JoinedWorker:
    """Runs trials of study on the lanes of executor until the study is finished, or for wait seconds had none."""

    def __init__(
        self,
        study: Joinable,
        executor: Executor,
        told: Callable[[str], None],
        *,
        wait: float = WAIT,
        objective: Callable[[Task], Outcome] = evaluate,
    ) -> None:
        self._study, self._executor, self._told, self._wait = study, executor, told, wait
        self._objective = objective
        self.name = f"{own_name()}/joined"
        self.done = self.put_back = 0
        self._running: dict[Future[Outcome], _Work] = {}
        self._entered: dict[str, Part] = {}
        self._looked, self._busy = float("-inf"), time.monotonic()

    def run(self) -> int:
        """Work, and return how many trials were handed in. Raises KeyboardInterrupt after a signal to end.

        What runs then has some seconds to finish; the rest waits for another worker.
        """
        with Interrupts() as interrupts, interrupts.gentle():
            try:
                while not interrupts.asked and not self._over():
                    self._look()
                    took = self._take()
                    self._hand_in(self._ready(0.0 if took else TICK))
                self._stop(GRACE)
            except KeyboardInterrupt:
                self._stop(0.0)
                raise
            finally:
                for part in self._entered.values():
                    part.leases.leave(self.name)
        return self.done

    def _over(self) -> bool:
        if self._running:
            self._busy = time.monotonic()
            return False
        if time.monotonic() - self._busy > self._wait:
            self._told(f"no trial to take for {self._wait:.0f} seconds: leaving")
            return True
        return self._study.is_concluded()

    def _look(self) -> None:
        """Once in a while: enter the parts that the study has by now, give signs of life, stop what is ours no more."""
        now = time.monotonic()
        if now - self._looked < LOOK:
            return
        self._looked = now
        for part in self._study.parts():
            if part.name not in self._entered or not part.leases.seen(self.name):
                part.leases.join(self.name, this_host(), os.getpid(), self._executor.jobs, part.version)
                if part.name not in self._entered:
                    self._told(f"joined {part.name}")
                self._entered[part.name] = part
        for part in self._entered.values():
            own = {work.lease.token: future for future, work in self._running.items() if work.part is part}
            kept = part.leases.renew(list(own))
            for token in own.keys() - kept:
                future = own[token]
                self._told(f"trial {self._running[future].lease.number} was given to another worker")
                del self._running[future]
                self._executor.stop(future)

    def _take(self) -> bool:
        """Take trials while a lane is free; return whether there was one."""
        took = False
        for part in self._entered.values():
            while len(self._running) < self._executor.jobs:
                lease = part.leases.claim(self.name)
                if lease is None:
                    break
                took = True
                task = replace(part.task_of(lease.params), incumbent=lease.incumbent)
                if lease.limit is not None:
                    task = replace(task, limit=lease.limit)
                self._running[self._executor.submit(self._objective, task)] = _Work(part, lease)
        return took

    def _ready(self, seconds: float) -> Iterable[Future[Outcome]]:
        if not self._running:
            time.sleep(seconds)
            return ()
        return wait(self._running, timeout=seconds, return_when=FIRST_COMPLETED).done

    def _hand_in(self, futures: Iterable[Future[Outcome]]) -> None:
        for future in futures:
            work = self._running[future]  # until it is handed in: an interrupt gives it back
            lease, leases = work.lease, work.part.leases
            outcome = returned(future)
            if isinstance(outcome, WorkerLost):
                self._told(f"trial {lease.number}: {outcome}")
                if lease.attempt == 1:
                    leases.reissue(lease.number, lease.token)
                    del self._running[future]
                    continue
                outcome = Outcome(error=f"its worker was lost twice, the last time: {outcome}")
            delivered = leases.deliver(lease.number, lease.token, outcome)
            del self._running[future]
            if delivered:
                self.done += 1
                self._told(f"trial {lease.number} {_end(outcome)}")

    def _stop(self, grace: float) -> None:
        """Hand in what finishes within grace seconds, and give the rest back."""
        until = time.monotonic() + grace
        while self._running and time.monotonic() < until:
            self._hand_in(self._ready(max(until - time.monotonic(), 0.0)))
        for future, work in self._running.items():
            self._executor.stop(future)
            work.part.leases.give_back([work.lease.token])
        self.put_back = len(self._running)
        self._running.clear()


def _end(outcome: Outcome) -> str:
    """Return what became of a trial, in a few words."""
    if outcome.error:
        return f"failed: {outcome.error}"
    return f"stopped after {outcome.stopped}, for sure behind" if outcome.stopped else "done"
