"""Trials in a database are read as those in a file are, and the pages of such a study are made from them."""

import os
import time
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

from ranktune.dashboards.records.reader import RecordReader, StoredReader
from ranktune.dashboards.records.study import open_study
from ranktune.dashboards.terminal.listing import state
from ranktune.solvers.core.errors import StudyError
from ranktune.tuner.evaluation.task import TaskOutcome
from ranktune.tuner.storage.locations import Locations
from ranktune.tuner.storage.record import Record
from ranktune.tuner.study.declaration import Study
from ranktune.tuner.study.home import make_folder
from tests.support.postgres_server import Server

STUDY = Study(name="s", solvers=("RankSVM",), trials=4)


def filled(folder: Path, url: str | None) -> None:
    """Append trials, of which one failed."""
    record, space = Record(folder, "s", "ndcg@10", url), STUDY.union_space()
    for number in range(3):
        outcome = TaskOutcome(
            {"ndcg@10": np.array([0.1 * number, 0.5])}, 3.0, 0.25, begun=1.6e9 + number, ended=1.6e9 + 9
        )
        record.append(number, space.defaults()[0], space.distributions, outcome)
    record.append(
        3, space.defaults()[0], space.distributions, TaskOutcome(error="ValueError: no", begun=1.6e9, ended=1.6e9)
    )
    record.close()


def test_a_database_reads_as_a_file_does(tmp_path: Path, postgres: Server) -> None:
    url = postgres.new_database()
    filled(tmp_path / "file", None)
    filled(tmp_path / "elsewhere", url)
    reader = StoredReader(url, "s")
    in_file = RecordReader(tmp_path / "file" / "record.db").trials()
    assert reader.trials() == in_file
    assert [trial.begun for trial in in_file[:3]] == [1.6e9, 1.6e9 + 1, 1.6e9 + 2]
    assert reader.trials() == in_file  # nothing new
    assert StoredReader(url, "other").trials() == []
    assert StoredReader(postgres.new_database(), "s").trials() == []


@pytest.mark.skipif(not hasattr(time, "tzset"), reason="the time zone of a process cannot be set here")
def test_times_do_not_depend_on_where_one_lives(tmp_path: Path) -> None:
    filled(tmp_path, None)
    zones = ("UTC", "Asia/Tokyo", "America/New_York")
    with mock.patch.dict(os.environ):
        for zone in zones:
            os.environ["TZ"] = zone
            time.tzset()
            assert time.tzname[0] in ("UTC", "JST", "EST")
            assert RecordReader(tmp_path / "record.db").trials()[0].begun == 1.6e9
    time.tzset()


def test_the_pages_find_the_record_where_it_is(
    tmp_path: Path, postgres: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = postgres.new_database()
    folder = make_folder(tmp_path, "s")
    Locations(url).save(folder.path)
    folder.declare(STUDY, {"": "0" * 32})
    filled(folder.path, url)
    assert postgres.password not in (folder.path / "places.json").read_text()
    with pytest.raises(StudyError, match="cannot read the record in postgresql://tester@") as raised:
        open_study(folder.path)
    assert postgres.password not in str(raised.value)
    monkeypatch.setenv("RANKTUNE_STORAGE", url)
    (split,) = open_study(folder.path).splits
    assert [trial.number for trial in split.trials] == [0, 1, 2, 3]
    result = state(folder.path)
    assert (result["done"], result["best"]) == (4, pytest.approx(0.35))


def test_a_database_that_cannot_be_reached_is_an_error_soon() -> None:
    begun = time.monotonic()
    with pytest.raises(StudyError, match=r"cannot read the record in postgresql://me@127\.0\.0\.1:1/x"):
        StoredReader("postgresql://me:secret@127.0.0.1:1/x", "s").trials()
    assert time.monotonic() - begun < 30.0, "a safety net"
