"""Functions by `joblib.Parallel`: on loky, on a cluster of Dask or Ray, or on any other backend that is registered.

Each thread calls a `Parallel` for one function. A single one for all would let workers wait: joblib takes as many
functions as there are workers before it gives one away, and holds back results while it waits for them. On the worker
a process of ours runs the function (`ranktune.tuner.workers.joblib_worker`). The data of a study are sent to a worker
that does not see their folder and does not keep them yet.

An outage of a cluster is not the failure of a function: while it does not answer, or has no worker, all functions wait,
also those that ran, and are begun anew. Where a worker dies, Dask itself begins its functions anew on others; on loky
and Ray they are lost.
"""

from __future__ import annotations

import hashlib
import math
import pickle
import re
import shutil
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, TypeVar

import numpy as np
from joblib import Parallel, cpu_count, delayed

from ranktune.solvers.core.arrays import Array
from ranktune.solvers.core.errors import ParameterError, RankTuneWarning, StudyError, WorkerLost, WorkersAway, warn
from ranktune.solvers.core.files.atomic import temporary_folder
from ranktune.solvers.core.libraries import this_version
from ranktune.tuner.splits.archive import pack_problem
from ranktune.tuner.workers.joblib_worker import NEEDS, Call, run_call, versions
from ranktune.tuner.workers.lanes import Job, Lanes
from ranktune.tuner.workers.limits import CallLimits, check_limits
from ranktune.tuner.workers.processes import Processes

T = TypeVar("T")

POLL_SECONDS = 0.5
"""Seconds between two looks at a cluster."""
ANSWER_SECONDS = 30.0
"""Seconds without an answer after which a cluster is away."""
PATIENCE = 600.0
"""Seconds to wait for a cluster that is away."""
NO_WORKER = "it has no worker"
RETURNS = 3
"""How often a function is begun anew that ran when its cluster went away: it may be what ends it."""


class Cluster(Protocol):
    """The connection to a cluster, which the module of its backend has."""

    name: str
    start: str
    """How to start one, and a worker of it."""

    def size(self) -> int:
        """Return how many functions can run at a time; connect if it is not connected."""
        ...

    def backend(self) -> Any:
        """Return a backend of joblib for one function at a time."""
        ...

    def close(self) -> None:
        """End the connection."""
        ...


def _connected(backend: str, address: str) -> Cluster:
    """Return the connection to a cluster of that backend. Raises ImportError where its library is not installed."""
    if backend == "dask":
        from ranktune.tuner.workers.dask_backend import DaskWorkers

        return DaskWorkers(address)
    from ranktune.tuner.workers.ray_backend import RayNodes

    return RayNodes(address)


class JoblibWorkers(Lanes):
    """The workers of a backend of joblib, for `ranktune.tune(executor=...)`.

    Parameters
    ----------
    backend : str, default="loky"
        Name of the backend, as `joblib.parallel_config` takes it.
    jobs : int or None, default=None
        Functions that run at a time; None for one a core, on a cluster one a thread of its workers.
    address : str or None, default=None
        Address of the cluster of Dask ("tcp://HOST:8786") or Ray ("HOST:6379", "ray://HOST:10001", "auto").
    limits : Limits or None, default=None
        Limits of a function that has none of its own.

    Raises
    ------
    ParameterError
        If there is no such backend.
    StudyError
        If no cluster answers at the address.
    """

    def __init__(
        self,
        backend: str = "loky",
        jobs: int | None = None,
        address: str | None = None,
        limits: CallLimits | None = None,
    ) -> None:
        check_limits(limits or CallLimits())
        super().__init__(jobs or (cpu_count() if address is None else 1), limits)
        self.backend, self._most = backend, jobs
        self._running: dict[Job, tuple[str, Parallel]] = {}
        self._packed: dict[str, tuple[str, Array]] = {}
        self._packing, self._closing = threading.Lock(), threading.Event()
        self._cluster: Cluster | None = None
        self._away, self._heard, self._away_since = "", 0.0, math.inf
        if address is not None:
            self._connect(address)
        else:
            try:
                Parallel(n_jobs=2, backend=backend)
            except ValueError as error:
                raise ParameterError(f"executor='joblib:{backend}': {error}. Register the backend first.") from None
        self._marks, self._here = temporary_folder(), Processes(1)

    def _connect(self, address: str) -> None:
        """Connect to the cluster at address, and begin to look at it."""
        try:
            cluster = _connected(self.backend, address)
        except ImportError:
            raise StudyError(f'{self.backend} needs another package: pip install "ranktune[{self.backend}]"') from None
        self._cluster, self._name = cluster, f"the {cluster.name} cluster at {address}"
        if not (self._look(cluster) or self._look(cluster)):  # the first connection may fail for once
            raise StudyError(f"no {cluster.name} cluster answers at {address!r} ({self._away}). {cluster.start}")
        for watch in (self._look, self._note):
            threading.Thread(target=self._watch, args=(watch, cluster), daemon=True).start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        self._closing.set()
        shutil.rmtree(self._marks, ignore_errors=True)
        if self._cluster is not None:
            self._cluster.close()
        self._here.__exit__(kind, error, trace)

    def call(self, function: Callable[..., T], *arguments: object) -> T:
        """Return function(*arguments), computed by a local worker process, where the files of the study are."""
        return self._here.call(function, *arguments)

    def _end(self, job: Job) -> None:
        key, parallel = self._running.get(job, ("", None))
        if parallel is not None:
            (self._marks / key).touch()
            if self.backend != "loky":  # whose workers would all end
                parallel.timeout = 0.0

    def _run(self, job: Job) -> None:
        if not Path(job.folder).is_dir():
            job.folder = ""
        packed, fails = None, 0
        while not job.future.done():
            try:
                refusal, outcome = self._answer(job, packed)
            except BaseException as error:  # of joblib, or of a worker that died
                fails += 1
                why = _short(error)
                if re.search("^(ImportError|AttributeError)|No module named|deserializ", why):
                    here = f"RankTune {this_version()}: install the same there"
                    job.fail(WorkersAway(f"a worker of {self.backend}, or its scheduler, has no {here} ({why})."))
                elif not self._was_away(job, time.monotonic()) or fails > RETURNS:
                    job.fail(WorkerLost(f"the worker of {self.backend} left or died ({why})"))
                continue
            if refusal == NEEDS:
                packed = self._data(job.folder)[1]
            elif refusal:
                job.fail(WorkersAway(f"a worker of {self.backend} {refusal}."))
            else:
                returned, value = pickle.loads(outcome)
                (job.succeed if returned else job.fail)(value)

    def _answer(self, job: Job, packed: Array | None) -> tuple[str, bytes]:
        """Return what a worker answers to a job."""
        key, name = uuid.uuid4().hex, self._packed.get(job.folder, ("",))[0]
        call = Call(job.payload, job.limits, self._marks, key, job.folder, name, versions())
        backend = self.backend if self._cluster is None else self._cluster.backend()
        parallel = Parallel(n_jobs=self.jobs, backend=backend, batch_size=1)
        with self._lock:
            self._running[job] = key, parallel
            if job.future.done():
                self._end(job)
        try:
            (answer,) = parallel([delayed(run_call)(call, packed)])
        finally:
            del self._running[job]
        return answer  # type: ignore[no-any-return]

    def _data(self, folder: str) -> tuple[str, Array]:
        """Return the name of the data of a folder and the packed data: an array, which joblib sends only once."""
        with self._packing:
            if folder not in self._packed:
                packed = pack_problem(Path(folder))
                name = f"{Path(folder).name}-{hashlib.sha256(packed).hexdigest()[:16]}"
                self._packed[folder] = name, np.frombuffer(packed, np.uint8)
            return self._packed[folder]

    def _was_away(self, job: Job, failed: float) -> bool:
        """Wait until the cluster was looked at again, and as long as it is away; return whether it was."""
        was_away = False
        while self._cluster is not None and not job.future.done():
            if self._heard > failed:
                if not self._away:
                    break
                was_away = True
            time.sleep(POLL_SECONDS)
        return was_away

    def _watch(self, watch: Callable[[Cluster], object], cluster: Cluster) -> None:
        while not self._closing.wait(POLL_SECONDS):
            watch(cluster)

    def _look(self, cluster: Cluster) -> bool:
        """Look how many functions the cluster can run, and what is wrong with it; return whether it answers."""
        away = NO_WORKER
        try:
            if size := cluster.size():
                self.jobs, away = min(size, self._most or size), ""
        except Exception as error:
            cluster.close()
            away = _short(error)
        self._away, self._heard = away, time.monotonic()
        return away in ("", NO_WORKER)

    def _note(self, cluster: Cluster) -> None:
        """Say that the cluster is away, or back; fail all functions if it stays away."""
        now, was_well = time.monotonic(), self._away_since == math.inf
        away = self._away or ("no answer" if now - self._heard > ANSWER_SECONDS else "")
        gone, self._away_since = now - self._away_since, min(self._away_since, now) if away else math.inf
        if away and gone >= PATIENCE:
            error = WorkersAway(
                f"{self._name} was away for {PATIENCE:.0f} seconds: {away.rstrip('.')}. Start it again, or give "
                "another address (address=); what had finished is kept, and `ranktune resume` goes on."
            )
            with self._lock:
                for job in list(self._jobs.values()):
                    job.fail(error)
                    self._end(job)
        elif bool(away) == was_well:
            what = f"is away: {away}. Waiting for it" if away else f"answers again after {gone:.1f} seconds"
            with suppress(RankTuneWarning):  # where warnings are errors: this thread has to go on
                warn(f"{self._name} {what}")


def _short(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]
