"""The ownership of a study whose record is in a database, with a sign of life while the owner runs."""

from __future__ import annotations

import os
import threading
from datetime import UTC, datetime
from typing import Self

from ranktune.solvers.core.errors import StudyError
from ranktune.tuner.storage.database import open_storage
from ranktune.tuner.storage.membership import PERIOD, Membership, this_host

BEAT = 3.0
"""Seconds between two signs of life. Another process that wants the study waits for one, and is refused."""


class Ownership:
    """Holds a study in a database from enter to exit. Raises StudyError if another process holds it.

    `check` raises StudyError once another process has taken it over. Set `concluded` when there will be no more trials.
    """

    def __init__(self, url: str, study: str, period: float = PERIOD) -> None:
        self._storage = open_storage(url)
        self._membership = Membership(self._storage, study, period)
        self.concluded = False
        self._over = threading.Event()
        self._lost: StudyError | None = None
        self._thread = threading.Thread(target=self._live, name="ownership", daemon=True)

    def __enter__(self) -> Self:
        self._token = self._membership.acquire(
            this_host(), os.getpid(), datetime.now(UTC).isoformat(timespec="seconds")
        )
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        try:
            if self._lost is None:
                self._membership.release(self._token, self.concluded)
        finally:
            self._membership.disconnect()
            self._storage.engine.dispose()

    @property
    def held(self) -> tuple[str, str]:
        """The study, and the token by which a transaction checks the ownership."""
        return self._membership.study, self._token

    def check(self) -> None:
        """Raise StudyError if another process owns the study by now: all work would be done twice."""
        if self._lost is not None:
            raise self._lost

    def _live(self) -> None:
        while not self._over.wait(min(self._membership.period / 3.0, BEAT)):
            try:
                self._membership.confirm(self._token)
            except StudyError as error:
                self._lost = error
                return
