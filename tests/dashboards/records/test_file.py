"""Reading a record without writing to it."""

import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from ranktune.dashboards.records.reader import RecordReader
from ranktune.dashboards.records.study import StudyData, Watching, open_study
from ranktune.dashboards.records.trial import Trial
from ranktune.solvers.core.errors import StudyError
from ranktune.tuner.storage.record import Record
from tests.support.page_studies import append, declare, finish
from tests.support.study_samples import trial, trials_of


@pytest.fixture
def home(tmp_path: Path) -> Path:
    declare(tmp_path, "s")
    append(tmp_path, "s", [*trials_of(6, failing=3)])
    return tmp_path


def test_it_reads_what_optuna_reads(home: Path) -> None:
    result = RecordReader(home / "s" / "record.db").trials()
    record = Record(home / "s", "s", "ndcg@10")
    theirs = record.study.get_trials()
    record.close()
    assert len(result) == len(theirs) == 6
    for ours, other in zip(result, theirs, strict=True):
        assert other.datetime_start is not None and other.datetime_complete is not None
        times = other.datetime_start.timestamp(), other.datetime_complete.timestamp()
        assert ours == Trial.from_record(other.params, other.value, other.user_attrs, *times)
        assert (ours.flat_params, ours.value, ours.number) == (other.params, other.value, other.number)
        assert ours.seconds == other.user_attrs["seconds"] and ours.means == other.user_attrs.get("means", {})
    assert sum(result.value is None for result in result) == 2


def test_nothing_is_written(home: Path) -> None:
    def state() -> dict[str, tuple[int, bytes]]:
        files = [path for path in home.rglob("*") if path.is_file()]
        return {str(path): (path.stat().st_mtime_ns, path.read_bytes()) for path in files}

    before = state()
    assert len(open_study(home / "s").trials) == 6
    assert state() == before


def test_a_record_that_is_being_written_is_read_and_only_what_is_new(home: Path) -> None:
    reader = RecordReader(home / "s" / "record.db")
    record = Record(home / "s", "s", "ndcg@10")  # keeps the write-ahead log open
    first = reader.trials()
    append(home, "s", trials_of(8)[6:])
    second = reader.trials()
    record.close()
    assert len(second) == 8
    assert all(a is b for a, b in zip(first, second, strict=False))  # not read again


def test_another_record_under_the_same_name_is_read_anew(home: Path) -> None:
    reader = RecordReader(home / "s" / "record.db")
    assert len(reader.trials()) == 6
    (home / "s" / "record.db").rename(home / "s" / "old.db")
    assert reader.trials() == []
    append(home, "s", trials_of(2))
    assert len(reader.trials()) == 2


def test_a_file_that_is_no_record_is_an_error(home: Path) -> None:
    (home / "s" / "record.db").write_bytes(b"no database, by any means" * 100)
    with pytest.raises(StudyError, match="cannot read the record"):
        RecordReader(home / "s" / "record.db").trials()
    (home / "s" / "record.db").write_bytes(b"")
    assert RecordReader(home / "s" / "record.db").trials() == []  # just being made
    with sqlite3.connect(home / "s" / "other.db") as other:
        other.execute("CREATE TABLE trials (x)")
    other.close()
    with pytest.raises(StudyError, match="cannot read the record"):
        RecordReader(home / "s" / "other.db").trials()


def test_a_watched_study_is_read_once_a_change(home: Path) -> None:
    watched = Watching(home).find("s")
    assert watched is not None
    made: list[int] = []

    def make(data: StudyData) -> bytes:
        made.append(len(data.trials))
        return b"made"

    watched.cached("overview", make)
    watched.cached("overview", make)
    before = watched.signature()
    append(home, "s", [trial(6, "RankSVM", {"C": 1.0}, 0.5)])
    assert watched.signature() != before
    watched.cached("overview", make)
    finish(home, "s")
    watched.cached("overview", make)
    assert made == [6, 7, 7]
    assert watched.data().result is not None


def test_only_studies_are_listed(home: Path) -> None:
    (home / "no-study").mkdir()
    watching = Watching(home)
    assert watching.names() == ["s"]
    for name in ("no-study", "..", "", ".", "s/", "s/../s", "/", "S"):
        assert watching.find(name) is None
    assert Watching(home / "nowhere").names() == []


KILLED = """
import os, sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("PRAGMA cache_size=1")
connection.execute("BEGIN")
for k in range(40):
    connection.execute(f"CREATE TABLE t{k} (a)")
os._exit(0)
"""


def test_a_record_whose_maker_was_killed_has_no_trials(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", KILLED, tmp_path / "record.db"], check=True)
    assert (tmp_path / "record.db-journal").exists()
    assert RecordReader(tmp_path / "record.db").trials() == []
