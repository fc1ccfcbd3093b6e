"""Finished trials read from a record, a SQLite file or in a PostgreSQL database, without ever writing to it.

The record has Optuna's schema. Optuna's storage opens it for writing and builds an object for every row, which takes
seconds at 10,000 trials, and pages read it often. A record only grows: trials that were read are kept, and only new
rows are read.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from ranktune.dashboards.records.trial import Trial
from ranktune.solvers.core.errors import RankTuneError, StudyError, without_secrets
from ranktune.tuner.splits.seals import is_written
from ranktune.tuner.storage.attributes import check_trial
from ranktune.tuner.study.events import FILE as EVENTS
from ranktune.tuner.study.home import PLACES, StudyFolder
from ranktune.tuner.study.settings import DECLARED

if TYPE_CHECKING:
    from ranktune.solvers.core.arrays import Json
    from ranktune.solvers.core.space import Value

CONNECT_TIMEOUT = 5
"""Seconds to wait for a server before a page reports that it cannot be reached."""
FileState = tuple[int, int, int] | None
_DECLARATION = f"SELECT value_json FROM study_user_attributes WHERE {{}} AND key = '{DECLARED}'"
_PARAMS = "SELECT trial_id, param_name, param_value, distribution_json FROM trial_params WHERE {}"
_ATTRIBUTES = "SELECT trial_id, key, value_json FROM trial_user_attributes WHERE {}"
_TRIALS = (
    "SELECT trial_id, state, datetime_start, datetime_complete, "
    "(SELECT v.value FROM trial_values v WHERE v.trial_id = trials.trial_id) "
    "FROM trials WHERE {} ORDER BY trial_id"
)
_FILES = ("*.json", "drift/*.json", "*.npz", "record.db", "record.db-wal", "lock")


class TrialReader:
    """The finished trials of a split; data is the digest of the data that the record says they are of, "" of none."""

    def __init__(self, split: str) -> None:
        self.split, self.data = split, ""
        self._known: list[Trial] = []
        self._last = 0

    def trials(self) -> list[Trial]:
        """Return every finished trial in the order of finishing. Raises StudyError where the record is none."""
        raise NotImplementedError

    def _read_new(self, run: Callable[[str], Iterable[Sequence[Any]]], study: str, new: str) -> None:
        """Read the trials that meet a condition in SQL; study is that of their study, and run returns rows."""
        self.data = next((str(json.loads(text)["data"]) for (text,) in run(_DECLARATION.format(study))), "")
        params: dict[int, Json] = {}
        for trial, name, value, distribution in run(_PARAMS.format(new)):
            params.setdefault(trial, {})[name] = _value(distribution, value)
        attributes: dict[int, Json] = {}
        for trial, name, text in run(_ATTRIBUTES.format(new)):
            attributes.setdefault(trial, {})[name] = json.loads(text)
        for trial, state, begun, ended, value in run(_TRIALS.format(new)):
            if state not in ("COMPLETE", "PRUNED", "FAIL"):
                break  # whatever follows is read when this trial has ended
            content = params.get(trial, {}), None if state == "FAIL" else value, attributes.get(trial, {})
            check_trial(state, content[1], content[0], content[2])
            self._known.append(Trial.from_record(*content, _seconds(begun), _seconds(ended), self.split))
            self._last = trial


class RecordReader(TrialReader):
    """The trials of one record.db; none while there is no such file."""

    def __init__(self, path: Path, split: str = "") -> None:
        super().__init__(split)
        self.path, self._inode = path, 0

    def trials(self) -> list[Trial]:
        """Return every finished trial in the order of finishing. Raises StudyError where the file is not a record."""
        state = file_states([self.path])[0]
        is_made = not Path(f"{self.path}-journal").exists()  # else its maker is at work, or was killed
        inode = state[2] if state is not None and is_made else 0
        if inode != self._inode:  # another study of that name
            self._known, self._last, self._inode = [], 0, inode
        if inode:
            try:
                with closing(_connected(self.path)) as connection:
                    if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'trials'").fetchone():
                        connection.execute("BEGIN")  # all tables as they are at one moment
                        self._read_new(connection.execute, "study_id > 0", f"trial_id > {self._last}")
            except (sqlite3.Error, ValueError, KeyError) as error:
                raise StudyError(f"cannot read the record {self.path}: {error}.") from None
        return list(self._known)


class StoredReader(TrialReader):
    """The trials of the Optuna study of that name in the database at url; none while there is no such study."""

    def __init__(self, url: str, study: str, split: str = "") -> None:
        super().__init__(split)
        self.url, self.study = url, study

    def trials(self) -> list[Trial]:
        """Return every finished trial in the order of finishing. Raises StudyError where it cannot be read."""
        from sqlalchemy import create_engine, text  # it takes a while to load
        from sqlalchemy.exc import SQLAlchemyError
        from sqlalchemy.pool import NullPool

        from ranktune.tuner.storage.database import check_url, shown_url

        waits, options = {"connect_timeout": CONNECT_TIMEOUT}, {"isolation_level": "REPEATABLE READ"}
        engine = create_engine(check_url(self.url), poolclass=NullPool, connect_args=waits)
        cause = ""
        try:
            with engine.connect().execution_options(**options, postgresql_readonly=True) as connection:
                named = text("SELECT study_id FROM studies WHERE study_name = :name")
                has_tables = connection.execute(text("SELECT to_regclass('trials')")).scalar()
                number = has_tables and connection.execute(named, {"name": self.study}).scalar()
                if number is not None:
                    new = f"SELECT trial_id FROM trials WHERE study_id = {number} AND trial_id > {self._last}"
                    self._read_new(
                        lambda query: connection.execute(text(query)).all(),
                        f"study_id = {number}",
                        f"trial_id IN ({new})",
                    )
        except SQLAlchemyError as error:
            cause = str(getattr(error, "orig", error)).strip().splitlines()[0]
        if cause:
            raise StudyError(f"cannot read the record in {shown_url(self.url)}: {without_secrets(cause)}.")
        return list(self._known)


def reader_of(home: StudyFolder, name: str) -> TrialReader:
    """Return the reader of the record of a split, a file or a database."""
    if is_written(home.path / PLACES):
        from ranktune.tuner.storage.locations import Locations, record_name

        if (url := Locations.load(home.path).storage) is not None:
            return StoredReader(url, record_name(home.path.name, name), name)
    return RecordReader(home.split(name) / "record.db", name)


def trials_of(home: StudyFolder, name: str, reader: TrialReader) -> list[Trial]:
    """Return the finished trials of a split. Raises StudyError where the record is of other data."""
    trials = reader.trials()
    if reader.data and reader.data != home.digests()[name]:
        raise StudyError(
            f"the record of study '{home.path.name}' is another study's: the digest of its data differs. Restore it "
            "from a backup."
        )
    return trials


def files_of(home: StudyFolder) -> list[Path]:
    """Return the files of a study, and of its splits, that pages show."""
    try:
        splits = [home.split(name) for name in home.split_names()]
    except RankTuneError:
        splits = []
    folders = dict.fromkeys((home.path, *splits))
    files = [file for folder in folders for pattern in _FILES for file in sorted(folder.glob(pattern))]
    # A record in a database changes with the event log.
    return [*files, home.path / EVENTS] if (home.path / PLACES).exists() else files


def changed_of(home: StudyFolder) -> str:
    """Return when a file of a study was written last, in ISO format; "" where it has none."""
    last = max((state[0] for state in file_states(files_of(home)) if state is not None), default=None)
    return "" if last is None else datetime.fromtimestamp(last / 1e9).astimezone().isoformat("T", "seconds")


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
