"""Finished trials read from a record's SQLite file, without ever writing to it.

The record has Optuna's schema. Optuna's storage opens it for writing and builds an object for every row, which takes
seconds at 10,000 trials, and pages read it often. A record only grows: trials that were read are kept, and only new
rows are read.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import quote

from ranktune.dashboards.records.trial import Trial
from ranktune.solvers.core.errors import StudyError
from ranktune.tuner.storage.attributes import check_trial
from ranktune.tuner.study.settings import DECLARED

if TYPE_CHECKING:
    from ranktune.solvers.core.arrays import Json
    from ranktune.solvers.core.space import Value

FileState = tuple[int, int, int] | None


class Reader(Protocol):
    """The finished trials of a record; data is the digest of the data that it says they are of, "" if it does not."""

    data: str

    def trials(self) -> list[Trial]:
        """Return every finished trial in the order of finishing."""
        ...


@dataclass
class RecordReader:
    """The trials of one record.db; each is read once."""

    path: Path
    split: str = ""
    data: str = ""
    _known: list[Trial] = field(default_factory=list)
    _last: int = 0
    _file: tuple[int, int] | None = None

    def trials(self) -> list[Trial]:
        """Return every finished trial in the order of finishing; none while there is no record.

        Raises StudyError where the file is not a record.
        """
        try:
            stat = self.path.stat()
            if Path(f"{self.path}-journal").exists():  # its tables are being made, or their maker was killed
                raise FileNotFoundError
        except OSError:
            self._known, self._last, self._file = [], 0, None
            return []
        if self._file != (stat.st_dev, stat.st_ino):  # another study of that name
            self._known, self._last, self._file = [], 0, (stat.st_dev, stat.st_ino)
        try:
            with closing(_connected(self.path)) as connection:
                self._read_new(connection)
        except (sqlite3.Error, ValueError, KeyError) as error:
            raise StudyError(f"cannot read the record {self.path}: {error}.") from None
        return list(self._known)

    def _read_new(self, connection: sqlite3.Connection) -> None:
        if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'trials'").fetchone():
            return  # the file is being created
        connection.execute("BEGIN")  # all tables as they are at one moment
        self.data = declared_data(connection.execute(DECLARATION.format("study_id > ?"), (0,)).fetchall())
        new, self._last = trials_since(lambda query: connection.execute(query, (self._last,)), self._last, self.split)
        self._known += new


def trials_since(
    run: Callable[[str], Iterable[Sequence[Any]]], last: int, split: str, since: str = "trial_id > ?"
) -> tuple[list[Trial], int]:
    """Return the finished trials of a split after the id last, and the id of the last of them.

    run returns the rows of an SQL query; since is the condition that selects those trials.
    """
    params: dict[int, Json] = {}
    for trial, name, value, distribution in run(_PARAMS.format(since)):
        params.setdefault(trial, {})[name] = _value(distribution, value)
    attributes: dict[int, Json] = {}
    for trial, name, text in run(_ATTRIBUTES.format(since)):
        attributes.setdefault(trial, {})[name] = json.loads(text)
    new = []
    for trial, state, begun, ended, value in run(_TRIALS.format(since)):
        if state not in ("COMPLETE", "PRUNED", "FAIL"):
            break  # whatever follows is read when this trial has ended
        scored = None if state == "FAIL" else value
        check_trial(state, scored, params.get(trial, {}), attributes.get(trial, {}))
        times = (_seconds(begun), _seconds(ended))
        new.append(Trial.from_record(params.get(trial, {}), scored, attributes.get(trial, {}), *times, split))
        last = trial
    return new, last


def declared_data(rows: Sequence[Sequence[Any]]) -> str:
    """Return the digest of the data in the rows of what a record declares, "" without rows."""
    return str(json.loads(rows[0][0])["data"]) if rows else ""


DECLARATION = f"SELECT value_json FROM study_user_attributes WHERE {{}} AND key = '{DECLARED}'"
_PARAMS = "SELECT trial_id, param_name, param_value, distribution_json FROM trial_params WHERE {}"
_ATTRIBUTES = "SELECT trial_id, key, value_json FROM trial_user_attributes WHERE {}"
_TRIALS = (
    "SELECT trial_id, state, datetime_start, datetime_complete, "
    "(SELECT v.value FROM trial_values v WHERE v.trial_id = trials.trial_id) "
    "FROM trials WHERE {} ORDER BY trial_id"
)


def file_states(files: Iterable[Path]) -> tuple[FileState, ...]:
    """Return the modification time, the size and the inode of each file, None of a missing one."""
    states: list[FileState] = []
    for file in files:
        try:
            stat = file.stat()
            states.append((stat.st_mtime_ns, stat.st_size, stat.st_ino))
        except OSError:
            states.append(None)
    return tuple(states)


def _connected(path: Path) -> sqlite3.Connection:
    """Return a read-only connection; without a write-ahead log nothing else has the file open, and it is immutable."""
    open_elsewhere = Path(f"{path}-wal").exists()
    mode = "mode=ro" if open_elsewhere else "mode=ro&immutable=1"
    return sqlite3.connect(f"file:{quote(str(path.resolve()))}?{mode}", uri=True, timeout=5, isolation_level=None)


def _value(distribution: str, stored: float) -> Value:
    """Return a value as Optuna stores it, of a distribution as Optuna writes it: of a choice its place is stored."""
    about = json.loads(distribution)
    if about["name"] == "CategoricalDistribution":
        value: Value = about["attributes"]["choices"][int(stored)]
        return value
    return int(stored) if about["name"].startswith("Int") else stored


def _seconds(moment: str | datetime | None) -> float | None:
    """Return the seconds since 1970 of a time as Optuna stores it: in UTC, without a time zone."""
    if moment is None:
        return None
    known = datetime.fromisoformat(moment) if isinstance(moment, str) else moment
    return known.replace(tzinfo=UTC).timestamp()
