"""A worker that joined: it runs trials of a study that another process coordinates, on this or another machine.

It renews the lease of each trial while it runs, and delivers the outcome; the coordinator writes that into the record.
Workers may join and leave at any time.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import replace

from ranktune.solvers.core.errors import WorkerLost
from ranktune.tuner.evaluation.evaluate import attempt
from ranktune.tuner.evaluation.task import Task, TaskOutcome
from ranktune.tuner.runner.joining import Joinable, JoinedSplit
from ranktune.tuner.search.dispatcher import GRACE, lost_twice, outcome_of, own_name
from ranktune.tuner.storage.leases import Lease
from ranktune.tuner.storage.membership import this_host
from ranktune.tuner.workers.executor import Executor
from ranktune.tuner.workers.interrupts import Interrupts

POLL = 0.05
"""Seconds between two looks for a trial."""
HEARTBEAT = 1.0
"""Seconds between two heartbeats, and two looks at the splits of the study."""
WAIT = 600.0
"""Seconds without a trial after which a worker leaves."""


class JoinedWorker:
    """Runs trials in the worker processes of an executor, until the study ends or no trial came for `wait` seconds.

    `on_message` is called with a line of text for whatever happens.
    """

    def __init__(
        self,
        study: Joinable,
        executor: Executor,
        on_message: Callable[[str], None],
        *,
        wait: float = WAIT,
        objective: Callable[[Task], TaskOutcome] = attempt,
    ) -> None:
        self._study, self._executor, self._on_message, self._wait = study, executor, on_message, wait
        self._objective = objective
        self.name = f"{own_name()}/joined"
        self.done = self.put_back = 0
        self._running: dict[Future[TaskOutcome], tuple[JoinedSplit, Lease]] = {}
        self._joined: dict[str, JoinedSplit] = {}
        self._last_heartbeat, self._busy = float("-inf"), time.monotonic()

    def run(self) -> int:
        """Run trials and return how many were delivered. Raises KeyboardInterrupt after a signal to end.

        Running trials have some seconds to finish then; the others wait for another worker.
        """
        with Interrupts() as interrupts, interrupts.deferred():
            try:
                while not interrupts.requested and not self._over():
                    self._heartbeat()
                    took = self._take()
                    self._deliver(self._completed(0.0 if took else POLL))
                self._stop(GRACE)
            except KeyboardInterrupt:
                self._stop(0.0)
                raise
            finally:
                for split in self._joined.values():
                    split.leases.leave(self.name)
        return self.done

    def _over(self) -> bool:
        if self._running:
            self._busy = time.monotonic()
            return False
        if time.monotonic() - self._busy > self._wait:
            self._on_message(f"no trial to take for {self._wait:.0f} seconds: leaving")
            return True
        return self._study.is_concluded()

    def _heartbeat(self) -> None:
        """Join new splits, renew the leases, and stop the trials that others have by now, once every HEARTBEAT."""
        now = time.monotonic()
        if now - self._last_heartbeat < HEARTBEAT:
            return
        self._last_heartbeat = now
        for split in self._study.splits():
            if split.name not in self._joined or not split.leases.heartbeat(self.name):
                split.leases.join(self.name, this_host(), os.getpid(), self._executor.jobs, split.version)
                if split.name not in self._joined:
                    self._on_message(f"joined {split.name}")
                self._joined[split.name] = split
        for split in self._joined.values():
            running = {lease.token: future for future, (of, lease) in self._running.items() if of is split}
            for token in running.keys() - split.leases.renew(list(running)):
                future = running[token]
                _, lease = self._running.pop(future)
                self._on_message(f"trial {lease.number + 1} was given to another worker")
                self._executor.stop(future)

    def _take(self) -> bool:
        """Take trials while a worker process is free; return whether there was one."""
        took = False
        for split in self._joined.values():
            while len(self._running) < self._executor.jobs:
                lease = split.leases.claim(self.name)
                if lease is None:
                    break
                took = True
                limit = float("inf") if lease.limit is None else lease.limit
                try:
                    task = split.task_of(lease.params, lease.path)
                except BaseException:
                    split.leases.give_back([lease.token])
                    raise
                task = replace(task, limit=limit, incumbent=lease.incumbent, race=lease.race)
                self._running[self._executor.submit(self._objective, task)] = split, lease
        return took

    def _completed(self, seconds: float) -> Iterable[Future[TaskOutcome]]:
        if not self._running:
            time.sleep(seconds)
            return ()
        return wait(self._running, timeout=seconds, return_when=FIRST_COMPLETED).done

    def _deliver(self, futures: Iterable[Future[TaskOutcome]]) -> None:
        for future in futures:
            split, lease = self._running[future]  # until it is delivered: an interrupt gives it back
            outcome = outcome_of(future)
            if isinstance(outcome, WorkerLost):
                self._on_message(f"trial {lease.number + 1}: {outcome}")
                if lease.attempt == 1:
                    split.leases.reissue(lease.number, lease.token)
                    del self._running[future]
                    continue
                outcome = lost_twice(outcome)
            delivered = split.leases.deliver(lease.number, lease.token, outcome)
            del self._running[future]
            if delivered:
                self.done += 1
                self._on_message(f"trial {lease.number + 1} {_summary(outcome)}")

    def _stop(self, grace: float) -> None:
        """Deliver what finishes within grace seconds, and give the rest back."""
        until = time.monotonic() + grace
        while self._running and time.monotonic() < until:
            self._deliver(self._completed(max(until - time.monotonic(), 0.0)))
        for future, (split, lease) in self._running.items():
            self._executor.stop(future)
            split.leases.give_back([lease.token])
        self.put_back = len(self._running)
        self._running.clear()


def _summary(outcome: TaskOutcome) -> str:
    """Return how a trial ended, in a few words."""
    if outcome.error:
        return f"failed: {outcome.error}"
    return f"stopped after {outcome.stopped}, significantly worse" if outcome.stopped else "done"
