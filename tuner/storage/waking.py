"""Waiting for trials that are offered: a PostgreSQL server notifies its workers, an SQLite file is looked at.

A notification goes to those who are connected at that time, and some proxies of PostgreSQL forward none: a worker does
not rely on it, and looks for trials from time to time too.
"""

from __future__ import annotations

import hashlib
import select
import socket
from contextlib import suppress
from typing import Any

from sqlalchemy import Connection, Engine, text

SHORTEST, LONGEST = 0.005, 0.5
"""Seconds between two looks at an SQLite file: right after a trial was found, and after a long time without one."""


class Waking:
    """Lets a worker wait until one of its trials ends, which calls `wake`, or one may have been offered."""

    def __init__(self) -> None:
        self._waked, self._waker = socket.socketpair()
        self._waker.setblocking(False)
        self._waked.setblocking(False)
        self._pause = SHORTEST

    def wake(self, *_: object) -> None:
        """End the wait, in any thread."""
        with suppress(OSError):  # it is full, or closed
            self._waker.send(b"\0")

    def close(self) -> None:
        """Close both ends."""
        self._waked.close()
        self._waker.close()

    def found(self) -> None:
        """Look again soon: a trial was found."""
        self._pause = SHORTEST

    def wait(self, seconds: float, engine: Engine | None = None, study: str = "") -> None:
        """Wait for so many seconds at most; for offers of a study only if an engine is given."""
        if engine is None:
            self._select(seconds)
        elif engine.dialect.name == "sqlite":
            self._select(min(self._pause, seconds))
            self._pause = min(2.0 * self._pause, LONGEST)
        else:
            with engine.connect() as connection:
                try:
                    self._listen(connection, channel_of(study), seconds)
                except connection.dialect.loaded_dbapi.Error:
                    connection.invalidate()  # the server is away: the next look for trials waits for it

    def _listen(self, connection: Connection, channel: str, seconds: float) -> None:
        """Wait for a notification; a new connection begins to listen, and misses what was offered before."""
        known, driver = connection.connection.info, connection.connection.driver_connection
        assert driver is not None
        if channel not in known:
            connection.exec_driver_sql(f"LISTEN {channel}")
            connection.commit()
            known[channel] = True
        elif not [*driver.notifies(timeout=0)]:  # none came with the answers to other statements
            self._select(seconds, driver)
            for _ in driver.notifies(timeout=0):
                pass

    def _select(self, seconds: float, *others: Any) -> None:
        if self._waked in select.select([self._waked, *others], [], [], seconds)[0]:
            self._waked.recv(4096)


def notify(connection: Connection, study: str) -> None:
    """Wake the workers of a study once the transaction is committed."""
    if connection.dialect.name != "sqlite":
        connection.execute(_NOTIFY, {"channel": channel_of(study)})


_NOTIFY = text("SELECT pg_notify(:channel, '')")


def channel_of(study: str) -> str:
    """Return the channel of a study and all its splits, whose name may be longer than that of a channel."""
    return "ranktune_" + hashlib.sha256(study.partition("/")[0].encode()).hexdigest()[:16]
