"""The files of a study, and the finished trials of a split, whether its record is a file or in a database."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from ranktune.dashboards.records.file import Reader, RecordReader, file_states
from ranktune.dashboards.records.trial import Trial
from ranktune.solvers.core.errors import RankTuneError, StudyError
from ranktune.tuner.splits.seals import is_written
from ranktune.tuner.study.events import FILE as EVENTS
from ranktune.tuner.study.home import PLACES, StudyFolder

_FILES = ("*.json", "drift/*.json", "*.npz", "record.db", "record.db-wal", "lock")


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


def reader_of(home: StudyFolder, name: str) -> Reader:
    """Return the reader of the record of a split, a file or a database."""
    if is_written(home.path / PLACES):
        from ranktune.dashboards.records.database import StoredReader  # SQLAlchemy takes a while to load
        from ranktune.tuner.storage.locations import Locations, record_name

        if (url := Locations.load(home.path).storage) is not None:
            return StoredReader(url, record_name(home.path.name, name), name)
    return RecordReader(home.split(name) / "record.db", name)


def trials_of(home: StudyFolder, name: str, reader: Reader) -> list[Trial]:
    """Return the finished trials of a split. Raises StudyError where the record is of other data."""
    trials = reader.trials()
    if reader.data and reader.data != home.digests()[name]:
        raise StudyError(
            f"the record of study '{home.path.name}' is another study's: the digest of its data differs. Restore it "
            "from a backup."
        )
    return trials
