"""Retries of database operations: wait for a server that is away, and stop with a cause if waiting is no help.

An operation that is retried must be repeatable: the answer to its commit may be lost after the commit was done.
"""

from __future__ import annotations

import errno
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import quote, quote_plus

from optuna.exceptions import StorageInternalError
from sqlalchemy import URL, Engine
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from ranktune.solvers.core.errors import HIDDEN, StudyError, warn, without_secrets
from ranktune.solvers.core.files.atomic import remedy_of
from ranktune.tuner.workers.interrupts import since_interrupt

T = TypeVar("T")
OnEvent = Callable[[str, str], None]
"""Called with "storage_away" or "storage_back", and a message."""

AWAY, BACK = "storage_away", "storage_back"
PATIENCE = 600.0
"""Seconds to wait for a database that is away."""

SHORTEST, LONGEST = 0.1, 5.0  # seconds between two tries
HURRIED = 2.0
"""Seconds to wait for a database that is away once this process was asked to end."""
STARTING = 60.0
"""Seconds to wait at least for a server that is starting up."""

_GOES_ON = "then `ranktune resume` goes on."
_DAMAGED = "Restore record.db from a copy, or begin a study of another name."
_BY_POSTGRES = (
    # what the server or libpq says, its SQLSTATE, what to do
    (r"password authentication failed|no password supplied", "28P01", "Check the user and the password of the URL."),
    (r"pg_hba\.conf|role \S+ does not exist", "28000", "Check the user of the URL, and what the server lets in."),
    (r"database \S+ does not exist", "3D000", "Create it (createdb), or name another one."),
    (r"permission denied", "42501", "Let the user of the URL create tables there (GRANT CREATE ON SCHEMA public)."),
    (r"read-only transaction", "25006", "Give the URL of the primary server, which can be written to."),
    (r"No space left on device|could not extend file", "53100", "Free space on the server, then `ranktune resume`."),
)
_PASSING = ("08", "57P", "40001", "40P01", "53300", "55P03")  # SQLSTATEs that pass: connection, shutdown, conflict


def _sleep(seconds: float) -> None:
    """Sleep, and not much longer once this process was asked to end: the handler of a signal ends no sleep."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0.0:
        time.sleep(min(left, SHORTEST))
        if since_interrupt():
            return


@dataclass(frozen=True)
class DatabaseFault:
    """Why a database failed, and the remedy; without a remedy the fault is expected to pass."""

    cause: str
    remedy: str = ""

    @property
    def starting(self) -> bool:
        """Whether the server is there and will answer soon."""
        return "starting up" in self.cause or "recovery mode" in self.cause or "not yet accepting" in self.cause


def retrying(
    operation: Callable[[], T],
    engine: Engine,
    *,
    on_event: OnEvent | None = None,
    patience: float = PATIENCE,
    quietly: bool = False,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = _sleep,
) -> T:
    """Return what operation returns, retried for `patience` seconds while the database is away.

    Once the process was asked to end, HURRIED seconds are enough.

    A warning is given, and on_event called, when it is away and when it is back, unless `quietly`. Raises StudyError,
    of one line, if waiting is no help or takes too long.
    """
    since, pause = None, SHORTEST
    where = str(engine.url.database) if engine.dialect.name == "sqlite" else without_password(engine.url)
    while True:
        fault = None
        try:
            result = operation()
        except (SQLAlchemyError, StorageInternalError, OSError) as error:
            fault = fault_of(error, engine)
            if fault is None:
                raise
        if fault is None:
            if since is not None and not quietly:
                _report(on_event, BACK, f"the record {where} answers again after {clock() - since:.1f} seconds")
            return result
        if fault.remedy:  # raised outside the except block: the chained exception could show a password
            raise StudyError(f"cannot use the record {where}: {fault.cause}. {fault.remedy}")
        if since is None:
            since = clock()
            if not quietly:
                _report(on_event, AWAY, f"the record {where} does not answer: {fault.cause}. Waiting for it")
        if clock() - since >= (max(patience, STARTING) if fault.starting else patience):
            raise StudyError(
                f"the record {where} did not answer for {patience:.0f} seconds: {fault.cause}. "
                "Check the address, and that the server runs; what had finished is kept."
            )
        if since_interrupt() > HURRIED:
            raise StudyError(
                f"the record {where} does not answer, and the process was asked to end: {fault.cause}. "
                "What had finished is kept."
            )
        engine.dispose()  # connections that a restarted server has forgotten
        sleep(pause)
        pause = min(2.0 * pause, LONGEST)


def without_password(url: URL) -> str:
    """Return a URL of PostgreSQL without passwords, for messages."""
    hidden = [name for name in url.query if "pass" in name]
    shown = url.set(drivername="postgresql").difference_update_query(hidden)
    return shown._replace(password=None).render_as_string()


def passwords_of(url: URL) -> list[str]:
    """Return the passwords of a URL as they may stand in a message, those in its query too, the longest first."""
    passwords = [] if url.password is None else [str(url.password)]
    for name, value in url.query.items():
        if "pass" in name:
            passwords += [value] if isinstance(value, str) else list(value)
    forms = {form(password) for password in passwords if password for form in (str, quote, quote_plus)}
    return sorted(forms, key=len, reverse=True)


def fault_of(error: BaseException, engine: Engine) -> DatabaseFault | None:
    """Return why a database failed, None if the error is no failure of a database."""
    secrets = passwords_of(engine.url)
    for link in _chain(error):
        fault = fault_of_file(link) if isinstance(link, OSError) else _fault_of_database(link, engine.dialect.name)
        if fault is not None:
            cause = fault.cause
            for secret in secrets:
                cause = cause.replace(secret, HIDDEN)
            return DatabaseFault(without_secrets(cause), fault.remedy)
    return None


def _chain(error: BaseException) -> list[BaseException]:
    chain: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in chain:
        chain.append(cause)
        cause = cause.__cause__ or cause.__context__
    return chain


def fault_of_file(error: OSError) -> DatabaseFault | None:
    """Return why a file could not be used, None if no remedy is known."""
    remedy = "Put the study's folder back" if error.errno == errno.ENOENT else remedy_of(error)
    if remedy is None:
        return None
    name = f" ({error.filename})" if error.filename else ""
    return DatabaseFault(f"{error.strerror or error}{name}", f"{remedy}, {_GOES_ON}")


def _fault_of_database(error: BaseException, dialect: str) -> DatabaseFault | None:
    if isinstance(error, PoolTimeout):
        return DatabaseFault("all connections are in use")
    if not isinstance(error, DBAPIError):
        return None
    message = " ".join(str(error.orig).split())
    if dialect == "sqlite":
        if "locked" in message:
            return DatabaseFault("another process keeps the database locked")
        if "malformed" in message or "not a database" in message:
            return DatabaseFault(message, _DAMAGED)
        remedy = remedy_of(error.orig or error)
        return None if remedy is None else DatabaseFault(message, f"{remedy}, {_GOES_ON}")
    state = str(getattr(error.orig, "sqlstate", None) or "")
    for pattern, code, remedy in _BY_POSTGRES:
        if state == code or (not state and re.search(pattern, message)):
            return DatabaseFault(_last_sentence(message), remedy)
    if state.startswith(_PASSING) or error.connection_invalidated:
        return DatabaseFault(_last_sentence(message))
    lost = type(error.orig).__name__ in ("OperationalError", "InterfaceError", "ConnectionTimeout", "AdminShutdown")
    return DatabaseFault(_last_sentence(message)) if lost and not state else None


def _last_sentence(message: str) -> str:
    """Return the message of a server without the preface and the advice around it."""
    message = re.split(r" Is the server running| \(Background on| Multiple connection attempts", message)[0]
    return re.split(r"FATAL: +|ERROR: +", message)[-1].strip().rstrip(".")


def _report(on_event: OnEvent | None, event: str, message: str) -> None:
    warn(message)
    if on_event is not None:
        on_event(event, message)
