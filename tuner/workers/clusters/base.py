"""The members of a cluster as an executor, whatever its engine.

Each function is assigned to one member: engines would silently restart it elsewhere when its member dies, but the
coordinator counts how often a trial is begun. There it runs on worker processes (ranktune.tuner.workers.clusters.host),
as many as the member has threads, with the same limits and error messages as on one machine. The data of a study are
sent once to each member, also to those that join later.

An outage of the cluster is not the failure of a function: while the cluster does not answer, or has no member, all
functions wait, also those that ran, and are begun anew on the members that are there afterwards.
"""

from __future__ import annotations

import math
import pickle
import threading
import time
import uuid
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Self, TypeVar

from ranktune.solvers.core.errors import RankTuneWarning, StudyError, WorkerLost, WorkersAway
from ranktune.solvers.core.libraries import this_version
from ranktune.tuner.splits.archive import pack_problem
from ranktune.tuner.workers.clusters.host import Versions, close_host, open_host, receive, stop, versions
from ranktune.tuner.workers.limits import Limits, payload_of
from ranktune.tuner.workers.processes import Job, Processes

T = TypeVar("T")

POLL_SECONDS = 0.5
"""Seconds between two updates of the list of members."""
ANSWER_SECONDS = 30.0
"""Seconds without an answer after which a cluster is away."""
PATIENCE = 600.0
"""Seconds to wait for a cluster that is away."""
PROOFS = 2
"""Updates in a row by which a cluster that has lost a member proves to be well otherwise."""
RETURNS = 3
"""How often a function is begun anew that ran when the last member left: it may be what ends them."""


@dataclass(eq=False)
class ClusterJob(Job):
    """A job with its key on the cluster, and the member it was sent to.

    lost says how that died, proofs counts the updates since, and returns how often no member was left.
    """

    key: str = ""
    address: str = ""
    lost: str = ""
    proofs: int = 0
    returns: int = 0


class ClusterWorkers(ABC):
    """The members of a cluster; a subclass defines what its engine does. jobs is the number of their threads.

    Members may come and go.
    """

    engine: ClassVar[str]
    start: ClassVar[str]
    """The command that starts a member of the cluster at {address}."""
    shares_files: ClassVar[bool] = False
    """Whether all members see the folder of the study, so that its data are not sent."""

    def __init__(self, address: str, limits: Limits | None) -> None:
        self._address, self.limits = address, limits or Limits()
        self._token = uuid.uuid4().hex
        self._here = Processes(1)
        self._lock = threading.RLock()
        self._unended: list[ClusterJob] = []  # in the order of submission
        self._problems: dict[str, bytes] = {}
        self._refused: set[str] = set()
        self._count = 0
        self._closing = threading.Event()
        self._threads: dict[str, int] = {}  # of each member
        self._connected, self._away_since = False, math.inf
        self._receiver = ThreadPoolExecutor(1)  # threads of engines may not wait for the lock
        try:
            self._refresh()
            if not self._threads:
                command = self.start.format(address=address)
                raise StudyError(f"the {self.engine} cluster at {address} has no worker. Start one: `{command}`.")
        except BaseException:
            self._disconnect()
            raise
        self._watcher = threading.Thread(target=self._watch_members, name=f"ranktune {self.engine}", daemon=True)
        self._watcher.start()

    # What a subclass defines.

    @abstractmethod
    def _connect(self) -> None:
        """Connect, anew if it was before, to the cluster at the address. Raises StudyError where none answers."""

    @abstractmethod
    def _members(self) -> Mapping[str, int]:
        """Return the threads of the present members, by address. Raises an exception while they cannot be known."""

    @abstractmethod
    def _tell(self, addresses: Collection[str], function: Callable[..., object], *arguments: Any) -> dict[str, object]:
        """Return what a function of ranktune.tuner.workers.clusters.host returns or raises, by address."""

    @abstractmethod
    def _begin(self, job: ClusterJob) -> Future[bytes | None]:
        """Start `run` of ranktune.tuner.workers.clusters.host on the member at the job's address."""

    @abstractmethod
    def _disconnect(self) -> None:
        """Leave the cluster."""

    @property
    def jobs(self) -> int:
        """Functions that run at a time."""
        return max(1, sum(self._threads.values()))

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
            job.fail(WorkerLost("stopped"))
        self._watcher.join()
        if self._away_since == math.inf:
            with suppress(Exception):  # members may be gone
                self._tell(self._threads, close_host, self._token)
        with suppress(Exception):
            self._disconnect()
        self._receiver.shutdown()
        self._here.__exit__(kind, error, trace)

    def submit(self, function: Callable[..., T], *arguments: object, limits: Limits | None = None) -> Future[T]:
        """Send ``function(*arguments)`` to the member with most free threads; folder of an argument names its data."""
        for argument in arguments:
            folder = getattr(argument, "folder", None)
            if isinstance(folder, str | Path) and not self.shares_files:
                self._send_data(str(folder))
        with self._lock:
            job = ClusterJob(payload_of(function, arguments), self.limits if limits is None else limits)
            job.future.set_running_or_notify_cancel()
            self._unended.append(job)
        self._send()
        return job.future

    def call(self, function: Callable[..., T], *arguments: object) -> T:
        """Return ``function(*arguments)``, computed by a local worker process, where the files of the study are."""
        return self._here.call(function, *arguments)

    def stop(self, future: Future[Any]) -> None:
        """End the function of future: it fails with WorkerLost."""
        for job in self._unfinished():
            if job.future is future:
                self._abandon(job, WorkerLost("stopped"))

    def _unfinished(self) -> list[ClusterJob]:
        with self._lock:
            self._unended = [job for job in self._unended if not job.future.done()]
            return list(self._unended)

    def _send_data(self, folder: str) -> None:
        with self._lock:
            if folder not in self._problems and Path(folder).is_dir():
                self._problems[folder] = pack_problem(Path(folder))
                try:
                    self._tell(self._threads, receive, self._token, folder, self._problems[folder])
                except Exception:  # all members get them once there is another connection
                    self._connected = False

    def _send(self) -> None:
        """Send waiting jobs to members with a free thread."""
        with self._lock:
            jobs, free = self._unfinished(), dict(self._threads)
            for job in jobs:
                if job.address in free:
                    free[job.address] -= 1
            for job in jobs:
                address = max(free, key=free.__getitem__, default="")
                if not job.address and address and free[address] > 0:
                    free[address] -= 1
                    self._count += 1
                    job.key, job.address = f"ranktune-{self._token}-{self._count}", address
                    try:
                        self._begin(job).add_done_callback(partial(self._receive, job, job.key))
                    except Exception:
                        job.address, self._connected = "", False

    def _receive(self, job: ClusterJob, key: str, answer: Future[bytes | None]) -> None:
        with suppress(RuntimeError):  # it is too late
            self._receiver.submit(self._completed, job, key, answer)

    def _completed(self, job: ClusterJob, key: str, answer: Future[bytes | None]) -> None:
        """Set the outcome of a job; a member that does not answer as it should is asked again who it is."""
        with self._lock:
            if job.key != key or job.future.done():  # it was begun anew, or stopped
                pass
            elif answer.cancelled() or answer.exception() is not None:
                self._threads.pop(job.address, None)
                job.lost = str(answer.exception()) if not answer.cancelled() else "it was stopped"
            elif (packed := answer.result()) is None:  # it was started anew, and has not begun
                self._threads.pop(job.address, None)
                job.address = ""
            else:
                returned, value = pickle.loads(packed)
                (job.succeed if returned else job.fail)(value)
        if not self._closing.is_set():
            self._send()

    def _abandon(self, job: ClusterJob, error: WorkerLost) -> None:
        job.fail(error)
        if job.address in self._threads and self._away_since == math.inf:
            with suppress(Exception):
                self._tell([job.address], stop, self._token, job.key)

    def _watch_members(self) -> None:
        """Update the list of members again and again; note where that fails, or takes too long."""
        looking, begun = Future[str](), 0.0
        looking.set_result("")
        while not self._closing.wait(POLL_SECONDS):
            if looking.done():
                looking, begun = Future(), time.monotonic()
                threading.Thread(target=self._look, args=(looking,), daemon=True).start()
            wait([looking], POLL_SECONDS)
            if looking.done():
                self._note(looking.result())
            elif time.monotonic() - begun > ANSWER_SECONDS:
                self._note("no answer", silent=True)
            self._send()

    def _look(self, looking: Future[str]) -> None:
        """Update the list of members, and say what is wrong with the cluster, "" if it is well."""
        try:
            looking.set_result("" if self._refresh() else "it has no worker")
        except Exception as error:
            self._connected = False
            looking.set_result(" ".join(str(error).split()) or type(error).__name__)

    def _note(self, away: str, silent: bool = False) -> None:
        """Note how the cluster is away, "" if it is well; functions on members that are gone are put back."""
        now, name = time.monotonic(), f"the {self.engine} cluster at {self._address}"
        with self._lock:
            was_well, since = self._away_since == math.inf, min(self._away_since, now)
            self._away_since = since if away else math.inf
            for job in [] if silent else self._unfinished():
                job.returns += bool(away and job.address and self._connected)
                job.proofs = job.proofs + 1 if job.lost else 0
                if job.returns > RETURNS or (job.proofs > PROOFS and not away):
                    job.fail(WorkerLost(f"the {self.engine} worker {job.address} left or died ({job.lost or away})"))
                elif away:
                    job.address = job.lost = ""
            if away and not silent:
                self._threads.clear()
        if away and now - since >= PATIENCE:
            error = WorkersAway(
                f"{name} was away for {PATIENCE:.0f} seconds: {away.rstrip('.')}. Start it again, or give another "
                "address (address=); what had finished is kept, and `ranktune resume` goes on."
            )
            for job in self._unfinished():
                job.fail(error)
        elif bool(away) == was_well:
            what = f"answers again after {now - since:.1f} seconds"
            with suppress(RankTuneWarning):  # where warnings are errors: this thread has to go on
                warnings.warn(f"{name} {f'is away: {away}. Waiting for it' if away else what}", RankTuneWarning, 2)

    def _refresh(self) -> bool:
        """Update the list of members, by another connection where the last one failed; return whether there are any."""
        if not self._connected:
            self._connect()
            self._connected = True
        members = self._members()
        new = [address for address in members if address not in self._threads and address not in self._refused]
        answers = self._tell(new, open_host, self._token, max(members.values())) if new else {}
        with self._lock:
            gone = self._threads.keys() - members.keys()
            self._threads = {address: members[address] for address in self._threads if address in members}
            for address, answer in answers.items():
                if wrong := _mismatch(answer):
                    if not self._threads and len(answers) == len(members):
                        raise StudyError(f"the {self.engine} worker {address} {wrong}.")
                    self._refused.add(address)
                    warnings.warn(f"the {self.engine} worker {address} {wrong}: it gets no trial.", RankTuneWarning, 2)
                else:
                    for problem in self._problems.items():
                        self._tell([address], receive, self._token, *problem)
                    self._threads[address] = members[address]
            for job in self._unfinished():
                if job.address in gone:
                    job.lost = job.lost or "it is no member any more"
        return not members.keys() <= self._refused


def _mismatch(answer: object) -> str:
    """Return why a member with this answer cannot be used, "" if it can."""
    if isinstance(answer, ModuleNotFoundError | AttributeError):
        return f"has no RankTune {this_version()}: install the same version there"
    if not isinstance(answer, Versions):
        return f"does not answer as it should ({answer})"
    here = versions()
    if answer.ranktune != here.ranktune:
        return f"has RankTune {answer.ranktune}, here it is {here.ranktune}: install the same version there"
    return "" if answer == here else f"runs Python {answer.python}, here it is {here.python}: use the same there"
