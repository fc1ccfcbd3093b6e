"""Finished trials of a record in a PostgreSQL database, read in read-only transactions."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlalchemy import Connection, create_engine, text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import NullPool

from ranktune.dashboards.records.file import DECLARATION, declared_data, trials_since
from ranktune.dashboards.records.trial import Trial
from ranktune.solvers.core.errors import StudyError, without_secrets
from ranktune.tuner.storage.database import check_url, shown_url

CONNECT_TIMEOUT = 5
"""Seconds to wait for a server before a page reports that it cannot be reached."""


@dataclass
class StoredReader:
    """The trials of the Optuna study of that name in the database at url; each is read once."""

    url: str
    study: str
    split: str = ""
    data: str = ""
    _known: list[Trial] = field(default_factory=list)
    _last: int = -1

    def trials(self) -> list[Trial]:
        """Return every finished trial in the order of finishing; none while there is no such study.

        Raises StudyError where the database cannot be read.
        """
        waits = {"connect_timeout": CONNECT_TIMEOUT}
        engine = create_engine(check_url(self.url), poolclass=NullPool, connect_args=waits)
        cause = ""
        try:
            with engine.connect().execution_options(
                isolation_level="REPEATABLE READ", postgresql_readonly=True
            ) as connection:
                self._read_new(connection)
        except SQLAlchemyError as error:
            cause = str(getattr(error, "orig", error)).strip().splitlines()[0]
        if cause:
            raise StudyError(f"cannot read the record in {shown_url(self.url)}: {without_secrets(cause)}.")
        return list(self._known)

    def _read_new(self, connection: Connection) -> None:
        if not connection.execute(text("SELECT to_regclass('trials')")).scalar():
            return
        number = connection.execute(
            text("SELECT study_id FROM studies WHERE study_name = :name"), {"name": self.study}
        ).scalar()
        if number is None:
            return
        declared = connection.execute(text(DECLARATION.format("study_id = :number")), {"number": number}).all()
        self.data = declared_data(declared)
        since = f"trial_id IN (SELECT trial_id FROM trials WHERE study_id = {int(number)} AND trial_id > {self._last})"
        new, self._last = trials_since(
            lambda query: connection.execute(text(query)).all(), self._last, self.split, since
        )
        self._known += new
