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
from ranktune.tuner.storage.membership import BEAT, this_host
from ranktune.tuner.storage.waking import Waking
from ranktune.tuner.workers.executor import Executor
from ranktune.tuner.workers.interrupts import Interrupts

HEARTBEAT = 1.0
"""Seconds between two heartbeats, and two looks at the splits of the study, of a worker without a trial."""
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
        self._waking, self._concluded = Waking(), False

    def run(self) -> int:
        """Run trials and return how many were delivered. Raises KeyboardInterrupt after a signal to end.

        Running trials have some seconds to finish then; the others wait for another worker.
        """
        with Interrupts() as interrupts, interrupts.deferred():
            try:
                while not interrupts.requested and not self._over():
                    self._take()
                    self._await_next()
                    self._deliver([future for future in self._running if future.done()])
                self._stop(GRACE)
            except KeyboardInterrupt:
                self._stop(0.0)
                raise
            finally:
                self._waking.close()
                for split in self._joined.values():
                    split.leases.leave(self.name)
        return self.done

    def _over(self) -> bool:
        """Return whether there is nothing more to do, after a heartbeat."""
        self._heartbeat()
        if self._running:
            self._busy = time.monotonic()
            return False
        if time.monotonic() - self._busy > self._wait:
            self._on_message(f"no trial to take for {self._wait:.0f} seconds: leaving")
            return True
        return self._concluded

    def _heartbeat(self) -> None:
        """Join new splits, renew the leases, and stop the trials that others have by now, from time to time."""
        now = time.monotonic()
        if now - self._last_heartbeat < (BEAT if self._running else HEARTBEAT):
            return
        self._last_heartbeat, self._concluded = now, not self._running and self._study.is_concluded()
        if self._concluded:
            return
        for split in [*self._joined.values()] if self._running else self._study.splits():
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

    def _take(self) -> None:
        """Take trials for the worker processes that are free."""
        for split in self._joined.values():
            free = self._executor.jobs - len(self._running)
            leases = split.leases.claim(self.name, free) if free > 0 else []
            while leases:
                self._waking.found()
                try:
                    self._start(split, leases[0])
                except BaseException:
                    split.leases.give_back([lease.token for lease in leases])
                    raise
                del leases[0]

    def _start(self, split: JoinedSplit, lease: Lease) -> None:
        limit = float("inf") if lease.limit is None else lease.limit
        task = split.task_of(lease.params, lease.path)
        task = replace(task, limit=limit, incumbent=lease.incumbent, race=lease.race)
        future = self._executor.submit(self._objective, task)
        self._running[future] = split, lease
        future.add_done_callback(self._waking.wake)

    def _await_next(self) -> None:
        """Wait until a trial has ended, or, if a worker process is free, until one may have been offered."""
        split = next(iter(self._joined.values()), None)
        if split is None or len(self._running) >= self._executor.jobs:
            self._waking.wait(HEARTBEAT)
        else:
            split.leases.wait(self._waking, HEARTBEAT)

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
            self._deliver(wait(self._running, max(until - time.monotonic(), 0.0), FIRST_COMPLETED).done)
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
