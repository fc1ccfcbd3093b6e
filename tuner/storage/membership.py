"""The members of a study: the one process that owns it, and the workers that joined.

Each of them changes a marker while it runs. Others watch the marker by their own steady clock, so that a clock that
jumps, here or on the server, ends nothing.
"""

from __future__ import annotations

import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Self, TypeVar

import psutil
from optuna.storages import RDBStorage
from sqlalchemy import ColumnElement, Connection, and_, bindparam, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from ranktune.solvers.core.errors import StudyError
from ranktune.tuner.storage.database import OWNERS, WORKERS, lease_engine, open_storage
from ranktune.tuner.storage.retrying import PATIENCE, OnEvent, retrying

PERIOD = 30.0
"""Seconds without a heartbeat after which a worker or an owner counts as gone."""
BEAT = 3.0
"""Seconds between two heartbeats of an owner. Another process that asks for the study waits for one, and is refused."""

T = TypeVar("T")


class Watch:
    """How long markers have not changed, by a steady clock.

    A gap between two looks counts as a third of the period at most: it may be the watching process that was suspended.
    So look at least three times a period.
    """

    def __init__(self, period: float, clock: Callable[[], float]) -> None:
        self._period, self._clock = period, clock
        self._seen: dict[Hashable, tuple[Hashable, float, float]] = {}

    def gone(self, key: Hashable, marker: Hashable) -> bool:
        """Note a marker; return whether it has been the same for a period."""
        now = self._clock()
        before, still, looked = self._seen.get(key, (marker, 0.0, now))
        still = still + min(max(now - looked, 0.0), self._period / 3.0) if before == marker else 0.0
        self._seen[key] = marker, still, now
        return still >= self._period * (1.0 - 1e-9)

    def keep_only(self, keys: set[Hashable]) -> None:
        """Remove all other keys."""
        self._seen = {key: seen for key, seen in self._seen.items() if key in keys}


@dataclass(frozen=True)
class Owner:
    """The process that runs a study, or ran it last (`is_running` is then False)."""

    host: str
    pid: int
    started: str
    is_running: bool
    concluded: bool


@dataclass(frozen=True)
class Worker:
    """A process that joined a study."""

    name: str
    host: str
    pid: int
    jobs: int
    version: str


class Membership:
    """The owner of a study and its workers, in tables beside the Optuna study of that name.

    All methods wait while the database is away, for `patience` seconds; `on_event` is called when it is away or back.
    `ownership` is the study and the token of the process that owns it, once that is this one.
    """

    def __init__(
        self,
        storage: RDBStorage,
        study: str,
        period: float = PERIOD,
        clock: Callable[[], float] = time.monotonic,
        *,
        on_event: OnEvent | None = None,
        patience: float = PATIENCE,
    ) -> None:
        self.study, self.period = study, period
        self.on_event, self.patience = on_event, patience
        self.engine = lease_engine(storage)
        self._owned_engine = self.engine is not storage.engine
        self._clock = clock
        self._workers, self._owners = Watch(period, clock), Watch(period, clock)
        self.ownership: tuple[str, str] | None = None

    def disconnect(self) -> None:
        """Close the connections to the database."""
        if self._owned_engine:
            self.engine.dispose()

    def _run(self, work: Callable[[Connection], T]) -> T:
        """Return what work does in one transaction, tried again while the database is away."""

        def once() -> T:
            with self.engine.begin() as connection:
                return work(connection)

        return self._retried(once)

    def _retried(self, operation: Callable[[], T]) -> T:
        return retrying(operation, self.engine, on_event=self.on_event, patience=self.patience)

    # the owner

    def acquire(
        self,
        host: str,
        pid: int,
        started: str,
        *,
        alive: Callable[[int], bool] = psutil.pid_exists,
        sleep: Callable[[float], None] = time.sleep,
    ) -> str:
        """Become the only owner of the study and return the token of it.

        An owner is replaced if it released the study, if it is a process of this host that is gone, or if it sends no
        heartbeat for a period. Raises StudyError if another owner is running: at once, or at its next heartbeat.
        """
        token = secrets.token_hex(16)
        first: tuple[str, int] | None = None
        while True:
            owner = self._run(lambda connection: self._take(connection, token, None, (host, pid, started)))
            if owner is None:
                return self._holding(token)
            holder, its_token, beat = owner
            dead = holder.host == host and not alive(holder.pid)
            if dead or self._owners.gone(its_token, beat):
                acquired = self._run(lambda c, old=its_token: self._take(c, token, old, (host, pid, started)))  # type: ignore[misc]
                if acquired is None:
                    return self._holding(token)
                continue
            first = first or (its_token, beat)
            if (its_token, beat) != first:
                raise StudyError(
                    f"study '{self.study}' is run by process {holder.pid} on {holder.host} since {holder.started}. "
                    "Wait for it, help it by ranktune.api.work, or choose another name (name=)."
                )
            sleep(min(self.period / 60.0, 0.5))

    def _holding(self, token: str) -> str:
        self.ownership = self.study, token
        return token

    def confirm(self, token: str) -> None:
        """Record a heartbeat of the owner. Raises StudyError if another process has taken the study over."""
        self._run(lambda connection: confirm_owner(connection, self.study, token))

    def release(self, token: str, concluded: bool = False) -> None:
        """Let others own the study; `concluded` is the sign for its workers that there will be no more trials."""
        owned = and_(OWNERS.c.study == self.study, OWNERS.c.token == token)
        self._run(lambda c: c.execute(update(OWNERS).where(owned).values(token="", concluded=concluded)))
        self.ownership = None

    def owner(self) -> Owner | None:
        """Return the process that runs the study or ran it last, None if there was none."""
        row = self._run(lambda c: c.execute(select(OWNERS).where(OWNERS.c.study == self.study)).one_or_none())
        return None if row is None else Owner(row.host, row.pid, row.started, bool(row.token), row.concluded)

    def _take(
        self, connection: Connection, token: str, old: str | None, who: tuple[str, int, str]
    ) -> tuple[Owner, str, int] | None:
        """Write the new owner if there is none, or if its token is the old one; else return the present owner."""
        values = dict(zip(("host", "pid", "started"), who, strict=True)) | {"token": token, "concluded": False}
        free = OWNERS.c.token.in_(["", token, *([] if old is None else [old])])
        taking = update(OWNERS).where(OWNERS.c.study == self.study, free).values(**values, beat=OWNERS.c.beat + 1)
        if connection.execute(taking).rowcount:
            return None
        row = connection.execute(select(OWNERS).where(OWNERS.c.study == self.study)).one_or_none()
        if row is None:
            try:
                with connection.begin_nested():
                    connection.execute(insert(OWNERS).values(study=self.study, beat=0, **values))
                return None
            except IntegrityError:
                row = connection.execute(select(OWNERS).where(OWNERS.c.study == self.study)).one()
        return Owner(row.host, row.pid, row.started, True, row.concluded), row.token, row.beat

    # workers that joined

    def join(self, worker: str, host: str, pid: int, jobs: int, version: str) -> None:
        """Enter a worker, or update its entry."""
        values = {"host": host, "pid": pid, "jobs": jobs, "version": version}
        entry = update(WORKERS).where(self._entry(worker)).values(**values, beat=WORKERS.c.beat + 1)

        def work(connection: Connection) -> None:
            if not connection.execute(entry).rowcount:
                connection.execute(insert(WORKERS).values(study=self.study, worker=worker, beat=0, **values))

        self._run(work)

    def heartbeat(self, worker: str) -> bool:
        """Record a heartbeat of a worker; return False if it has no entry (any more) and should join again."""
        beat = update(WORKERS).where(self._entry(worker)).values(beat=WORKERS.c.beat + 1)
        return bool(self._run(lambda c: c.execute(beat).rowcount))

    def leave(self, worker: str) -> None:
        """Remove the entry of a worker."""
        self._run(lambda c: c.execute(delete(WORKERS).where(self._entry(worker))))

    def _entry(self, worker: str) -> ColumnElement[bool]:
        return and_(WORKERS.c.study == self.study, WORKERS.c.worker == worker)

    def workers(self) -> list[Worker]:
        """Return the workers that are running, by name, and remove those without a heartbeat for a period."""
        rows = self._run(lambda c: c.execute(select(WORKERS).where(WORKERS.c.study == self.study)).all())
        gone = {row.worker for row in rows if self._workers.gone(row.worker, row.beat)}
        self._workers.keep_only({row.worker for row in rows} - gone)
        for name in gone:
            self.leave(name)
        rows = sorted((row for row in rows if row.worker not in gone), key=lambda row: str(row.worker))
        return [Worker(row.worker, row.host, row.pid, row.jobs, row.version) for row in rows]


class Ownership(Membership):
    """Holds a study in a database from enter to exit. Raises StudyError if another process holds it.

    `check` raises StudyError once another process has taken it over. Set `concluded` when there will be no more trials.
    """

    def __init__(self, url: str, study: str, period: float = PERIOD) -> None:
        self._storage = open_storage(url)
        super().__init__(self._storage, study, period)
        self.concluded = False
        self._over = threading.Event()
        self._lost: StudyError | None = None
        self._thread = threading.Thread(target=self._live, name="ownership", daemon=True)

    def __enter__(self) -> Self:
        self._token = self.acquire(this_host(), os.getpid(), datetime.now(UTC).isoformat(timespec="seconds"))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        try:
            if self._lost is None:
                self.release(self._token, self.concluded)
        finally:
            self.disconnect()
            self._storage.engine.dispose()

    def check(self) -> None:
        """Raise StudyError if another process owns the study by now: all work would be done twice."""
        if self._lost is not None:
            raise self._lost

    def _live(self) -> None:
        while not self._over.wait(min(self.period / 3.0, BEAT)):
            try:
                self.confirm(self._token)
            except StudyError as error:
                self._lost = error
                return


def confirm_owner(connection: Connection, study: str, token: str) -> None:
    """Record a heartbeat of the owner, within a transaction. Raises StudyError if another process has taken over."""
    if not connection.execute(_BEAT, {"of_study": study, "held": token}).rowcount:
        raise StudyError(
            f"study '{study}' was taken over by another process while this one sent no heartbeat. "
            "What this one had finished is in the record."
        )


_HELD = and_(OWNERS.c.study == bindparam("of_study"), OWNERS.c.token == bindparam("held"))
_BEAT = update(OWNERS).where(_HELD).values(beat=OWNERS.c.beat + 1)


def this_host() -> str:
    """Return the name of this machine."""
    return socket.gethostname()
