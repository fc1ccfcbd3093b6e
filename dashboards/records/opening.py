"""The finished trials of a split, whether its record is a file or in a database."""

from __future__ import annotations

from ranktune.dashboards.records.file import Reader, RecordReader
from ranktune.dashboards.records.trial import Trial
from ranktune.solvers.core.errors import StudyError
from ranktune.tuner.splits.sealing import is_written
from ranktune.tuner.study.home import PLACES, StudyFolder


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
