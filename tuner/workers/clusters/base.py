"""The members of a cluster as an executor, whatever its engine.

Each function is assigned to one member: engines would silently restart it elsewhere when its member dies, but the
coordinator counts how often a trial is begun. On its host it runs on worker processes
(ranktune.tuner.workers.processes), as many as the member has threads, with the same limits and error messages as on one
machine. The data of a study are sent once to each member, also to those that join later.
"""

from __future__ import annotations

import sys
import threading
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Self, TypeVar

from ranktune.solvers.core.errors import RankTuneWarning, StudyError, WorkerLost
from ranktune.solvers.core.libraries import this_version
from ranktune.tuner.splits.archive import pack_problem
from ranktune.tuner.workers.clusters.host import WorkerInfo
from ranktune.tuner.workers.limits import Limits, pickled
from ranktune.tuner.workers.processes import Job, Processes

T = TypeVar("T")

POLL_SECONDS = 0.5
"""Seconds between two updates of the list of members."""


@dataclass(eq=False)
class ClusterJob(Job):
    """A job with its key on the cluster, the member it was sent to, and what the engine answers."""

    key: str = ""
    address: str = ""
    answer: Any = None


class ClusterWorkers(ABC):
    """The members of a cluster; a subclass defines what its engine does. jobs is the number of their threads.

    Members may come and go. A subclass connects before it calls this constructor.
    """

    engine: ClassVar[str]
    start: ClassVar[str]
    """The command that starts a member of the cluster at {address}."""

    def __init__(self, address: str, name: str, limits: Limits | None) -> None:
        self.limits = limits or Limits()
        self._name = name
        self._here = Processes(1)
        self._lock = threading.RLock()
        self._jobs: list[ClusterJob] = []  # in the order of submission
        self._sent: set[str] = set()
        self._refused: set[str] = set()
        self._count = 0
        self._closing = threading.Event()
        self._workers: dict[str, WorkerInfo] = {}
        try:
            self._refresh()
            if not self._workers:
                command = self.start.format(address=address)
                raise StudyError(f"the {self.engine} cluster at {address} has no worker. Start one: `{command}`.")
        except BaseException:
            self._disconnect(())
            raise
        self._watcher = threading.Thread(target=self._watch_workers, name=f"ranktune {self.engine}", daemon=True)
        self._watcher.start()

    # What a subclass defines.

    @abstractmethod
    def _present(self) -> Collection[str]:
        """Return the addresses of the present members. Raises an exception while they cannot be known."""

    @abstractmethod
    def _described(self, new: Sequence[str]) -> Mapping[str, object]:
        """Return the WorkerInfo of each new member that answers, or why it has none."""

    @abstractmethod
    def _publish(self, folder: str, packed: bytes) -> None:
        """Send the problem of a folder to all members, and to those that join later."""

    @abstractmethod
    def _begin(self, job: ClusterJob) -> None:
        """Start a job on the member at its address, and have _completed called when it is done."""

    @abstractmethod
    def _cancel(self, job: ClusterJob) -> None:
        """End a job that was begun."""

    @abstractmethod
    def _is_gone(self) -> bool:
        """Whether the cluster will not answer again."""

    @abstractmethod
    def _disconnect(self, folders: Collection[str]) -> None:
        """End what members do for this coordinator, forget the problems of folders, and leave the cluster."""

    @property
    def jobs(self) -> int:
        """Functions that run at a time."""
        return max(1, sum(info.threads for info in self._workers.values()))

    @jobs.setter
    def jobs(self, value: int) -> None:
        raise AttributeError("the cluster says how many jobs there are")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            while jobs := self._unfinished():
                wait([job.future for job in jobs])
        self._closing.set()
        for job in self._unfinished():
            self._abandon(job, WorkerLost("stopped"))
        self._watcher.join()
        self._disconnect(self._sent)
        self._here.__exit__(kind, error, trace)

    def submit(self, function: Callable[..., T], *arguments: object, limits: Limits | None = None) -> Future[T]:
        """Send function(*arguments) to the member with the most free threads; folder of an argument names its data."""
        for argument in arguments:
            folder = getattr(argument, "folder", None)
            if isinstance(folder, str | Path):
                self._send_data(str(folder))
        with self._lock:
            self._count += 1
            key = f"ranktune-{self._name}-{self._count}"
            payload = pickled((function, arguments), None)
            job = ClusterJob(payload, self.limits if limits is None else limits, key=key)
            job.future.set_running_or_notify_cancel()
            self._jobs.append(job)
        self._send()
        return job.future

    def call(self, function: Callable[..., T], *arguments: object) -> T:
        """Return function(*arguments), computed by a local worker process, where the files of the study are."""
        return self._here.call(function, *arguments)

    def stop(self, future: Future[Any]) -> None:
        """End the function of future: it fails with WorkerLost."""
        for job in self._unfinished():
            if job.future is future:
                self._abandon(job, WorkerLost("stopped"))

    def _unfinished(self) -> list[ClusterJob]:
        with self._lock:
            self._jobs = [job for job in self._jobs if not job.future.done()]
            return list(self._jobs)

    def _send_data(self, folder: str) -> None:
        with self._lock:
            if folder in self._sent or not Path(folder).is_dir():
                return
            self._sent.add(folder)
            self._publish(folder, pack_problem(Path(folder)))

    def _send(self) -> None:
        """Send waiting jobs to members with a free thread."""
        with self._lock:
            jobs = self._unfinished()
            free = {address: info.threads for address, info in self._workers.items()}
            for job in jobs:
                if job.address in free:
                    free[job.address] -= 1
            for job in jobs:
                address = max(free, key=free.__getitem__, default="")
                if not job.address and address and free[address] > 0:
                    free[address] -= 1
                    job.address = address
                    self._begin(job)

    def _completed(self, job: ClusterJob, found: Callable[[], object]) -> None:
        """Set the outcome of a job: what found returns or raises."""
        try:
            job.succeed(found())
        except Exception as error:
            job.fail(error)
        if not self._closing.is_set():
            self._send()

    def _abandon(self, job: ClusterJob, error: WorkerLost) -> None:
        job.fail(error)
        if job.answer is not None:
            with suppress(Exception):
                self._cancel(job)

    def _watch_workers(self) -> None:
        while not self._closing.wait(POLL_SECONDS):
            try:
                self._refresh()
            except Exception as error:  # engines reconnect
                if self._is_gone():
                    for job in self._unfinished():
                        job.fail(WorkerLost(f"the {self.engine} cluster is gone ({error})"))
                continue
            self._send()

    def _refresh(self) -> None:
        """Update the list of members; jobs on members that are gone fail."""
        there = self._present()
        new = [address for address in there if address not in self._workers and address not in self._refused]
        answers = self._described(new) if new else {}
        with self._lock:
            gone = set(self._workers) - set(there)
            self._workers = {address: info for address, info in self._workers.items() if address in there}
            for address, answer in answers.items():
                if wrong := _mismatch(answer):
                    if not self._workers and len(answers) == len(there):
                        raise StudyError(f"the {self.engine} worker {address} {wrong}.")
                    self._refused.add(address)
                    warnings.warn(f"the {self.engine} worker {address} {wrong}: it gets no trial.", RankTuneWarning, 2)
                elif isinstance(answer, WorkerInfo):
                    self._workers[address] = answer
            for job in self._jobs:
                if job.address in gone:
                    self._abandon(job, WorkerLost(f"the {self.engine} worker {job.address} left or died"))


def _mismatch(answer: object) -> str:
    """Return why a member with this answer cannot be used, "" if it can."""
    if isinstance(answer, ModuleNotFoundError | AttributeError):
        return f"has no RankTune {this_version()}: install the same version there"
    if not isinstance(answer, WorkerInfo):
        return f"does not answer as it should ({answer})"
    ours = f"{sys.version_info.major}.{sys.version_info.minor}"
    if answer.version != this_version():
        return f"has RankTune {answer.version}, here it is {this_version()}: install the same version there"
    return "" if answer.python == ours else f"runs Python {answer.python}, here it is {ours}: use the same there"
