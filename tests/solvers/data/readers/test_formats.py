"""The table of readers: every row is whole, a package may offer more, and what is said and completed comes from it."""

from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from ranktune.solvers.core import table
from ranktune.solvers.core.errors import DataError, ParameterError
from ranktune.solvers.core.table import named
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.readers.formats import (
    READERS,
    DataReader,
    completions,
    find_reader,
    give,
    help_rows,
    name_of,
)
from ranktune.solvers.data.sources import catalogue

FUNCTIONS = ("folder", "line", "queries", "table", "splits", "write")


def read_boxes(path: Path, *, scale: float = 1.0) -> Queries:
    """A format of a package: a grade, a query and a feature a line."""
    rows = np.array([[float(cell) for cell in line.split()] for line in path.read_text().splitlines()])
    return Queries.from_arrays(scale * rows[:, 2:], rows[:, 0], qid=rows[:, 1].astype(int))


def read_sheet(path: Path) -> pl.DataFrame:
    """A format of a package that has columns."""
    return pl.DataFrame({"qid": [1, 1], "grade": [0, 1], "bm25": [0.5, len(path.read_bytes())]})


BOXES = DataReader(".boxes", endings=(".boxes",), options=("scale",), queries=f"{__name__}:read_boxes")
SHEET = DataReader(".sheet", endings=(".sheet",), options="FrameOptions", table=f"{__name__}:read_sheet")


@pytest.fixture
def offers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A package that offers two readers."""
    points = {
        name: metadata.EntryPoint(name, f"{__name__}:{name.upper()}", READERS.group) for name in ("boxes", "sheet")
    }
    monkeypatch.setattr(table, "offered", lambda group: points if group == READERS.group else {})
    monkeypatch.setattr(READERS, "_rows", dict(READERS._rows))


@pytest.mark.parametrize("name", READERS)
def test_every_reader_is_whole(name: str) -> None:
    reader = READERS[name]
    assert all(callable(named(getattr(reader, field))) for field in FUNCTIONS if getattr(reader, field))
    assert sum(bool(how) for how in (reader.queries, reader.table, reader.splits)) == 1
    assert not (reader.is_table_file and not reader.table) and not (reader.write and not reader.queries)
    assert set(reader.option_names) <= {*READERS["text"].option_names, *READERS["frame"].option_names}
    assert bool(reader.help) == bool(reader.label)


def test_no_ending_has_two_readers() -> None:
    endings = [suffix for reader in READERS.values() for suffix in reader.endings]
    assert len(set(endings)) == len(endings)
    assert all(suffix == suffix.lower() and suffix.startswith(".") for suffix in endings)


@pytest.mark.usefixtures("offers")
def test_a_package_offers_readers(tmp_path: Path) -> None:
    boxes, sheet = tmp_path / "a.boxes", tmp_path / "a.sheet"
    boxes.write_text("1 7 0.5\n0 7 0.25\n")
    sheet.write_bytes(b"PK\x03\x04 as a spreadsheet begins")
    assert catalogue.read(boxes, **{"scale": 2.0}).features.tolist() == [[1.0], [0.5]]  # type: ignore[arg-type]
    (split,) = catalogue.load(sheet, vali=sheet, features="bm25")
    assert split.name == "a" and split.train.feature_names == ("bm25",) and split.vali is not None
    with pytest.raises(ParameterError, match="one_based= is not an option"):
        catalogue.read(boxes, one_based=False)
    assert ".boxes" in give() and str(boxes) in completions(f"{tmp_path}/a.b")


def test_a_package_is_imported_only_for_what_no_reader_knows(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    point = metadata.EntryPoint("broken", "no_such_module:reader", READERS.group)
    monkeypatch.setattr(table, "offered", lambda group: {"broken": point} if group == READERS.group else {})
    (tmp_path / "a.csv").write_text("qid,grade,f\n1,0,1\n1,1,2\n")
    (tmp_path / "a.else").write_text("0 qid:1 1:1\n")
    assert catalogue.read(tmp_path / "a.csv").n_documents == 2
    with pytest.raises(ParameterError, match="'broken' cannot be imported"):
        catalogue.read(tmp_path / "a.else")


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("x/web.train.txt", "web.train"),
        ("a.csv.gz", "a"),
        ("b.npz", "b"),
        ("api-search", "api-search"),
        ((1, 2), "data"),
    ],
)
def test_names_are_those_of_files_without_their_endings(source: Any, name: str) -> None:
    assert name_of(source) == name


def test_help_and_messages_name_every_kind_of_file() -> None:
    shown = help_rows("help")
    assert all(suffix in shown or suffix in give() for suffix in (".csv", ".tsv", ".parquet", ".jsonl", ".run", ".npz"))
    assert all(len(line) < 80 for line in shown.splitlines())
    assert help_rows("note").count("\n") == 1  # all tables share a row
    with pytest.raises(DataError, match=r"from dict\. Make a frame .*\. Give a file of LETOR.*the name api-search"):
        catalogue.read({})
    assert find_reader({}) is None
