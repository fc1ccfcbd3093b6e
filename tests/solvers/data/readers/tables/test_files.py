"""Table files: their kinds, numbers without titles, runs."""

import gzip
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import ranktune
from ranktune.solvers.core.errors import DataError
from ranktune.solvers.data.readers.formats import READERS, find_reader
from ranktune.solvers.data.readers.tables import delimited
from ranktune.solvers.data.sources.catalogue import load, read
from tests.support.refusals import assert_refused

TEXTS = {
    "2 qid:1 1:0.5 2:1\n": "text",
    "# a comment\n2 1:0.5 2:1\n": "text",
    "1 Q0 d 1 2.5 tag\n": "run",
    "\n1 0 d 1 2.5 tag\n": "run",
    "1 0 d 1\n": "judgments",
    "1\t0.5\t2\n": "csv",
    "1,0.5,\n": "csv",
    "": "text",
}
ENDINGS = {"a.CSV": "csv", "a.csv.gz": "csv", "a.tab": "csv", "a.ndjson": "json", "a.trec": "run", "a.npz": "npz"}


@pytest.mark.parametrize(("text", "reader"), TEXTS.items())
@pytest.mark.parametrize("name", ["data.txt", "data", "rank.train"])
def test_the_first_line_says_what_a_text_is(text: str, reader: str, name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    assert find_reader(tmp_path / name) is READERS[reader]


@pytest.mark.parametrize(("name", "reader"), ENDINGS.items())
def test_the_ending_decides(name: str, reader: str, tmp_path: Path) -> None:
    assert find_reader(tmp_path / name) is READERS[reader]
    (tmp_path / name).write_text("1 qid:1 1:1\n")
    assert find_reader(tmp_path / name) is READERS[reader]


def test_numbers_without_titles_need_the_sizes_of_the_queries(tmp_path: Path) -> None:
    file = tmp_path / "rank.csv"
    assert_refused(file, "1,0.5,2\n0,0.25,\n2,1,4\n", r"its first line holds numbers.*rank.csv.query")
    (tmp_path / "rank.csv.query").write_text("2\n1\n")
    queries = read(file, missing="zero")
    assert queries.grades.tolist() == [1, 0, 2] and queries.starts.tolist() == [0, 2, 3]
    assert queries.features.tolist() == [[0.5, 2], [0.25, 0], [1, 4]]
    file.write_text("label,bm25\n1,0.5\n0,0.25\n2,1\n")
    assert read(file).starts.tolist() == [0, 2, 3]  # titles, and the sizes beside it
    file.write_text("label,qid,bm25\n1,7,0.5\n0,8,0.25\n2,8,1\n")
    assert read(file).starts.tolist() == [0, 1, 3]  # a column of query ids comes first


def test_a_run_has_one_feature(tmp_path: Path) -> None:
    run, qrels = tmp_path / "mine.run", tmp_path / "judged.qrels"
    run.write_text("q2 Q0 a 1 2.5 bm25\nq1 Q0 b 1 1 bm25\n\nq1 Q0 a 2 -0.5 bm25\n")
    qrels.write_text("q1 0 a 1\nq1 0 b 0\nq2 0 a 2\n")
    queries = read(run, qrels=qrels)
    assert queries.feature_names == ("bm25",) and queries.query_ids.tolist() == ["q2", "q1"]
    assert queries.features.ravel().tolist() == [2.5, 1, -0.5] and queries.grades.tolist() == [2, 0, 1]
    assert read(run, feature_names=("bm25",), graded=False).grades.tolist() == [0, 0, 0]
    with pytest.raises(DataError, match="no column of the grades"):
        read(run)


def test_a_folder_of_runs_has_a_feature_a_run(tmp_path: Path) -> None:
    runs, qrels = tmp_path / "runs", tmp_path / "judged.qrels"
    runs.mkdir()
    (runs / "bm25.run").write_text("q1 Q0 a 1 3 x\nq1 Q0 b 2 2 x\nq2 Q0 a 1 5 x\n")
    (runs / "dense.trec").write_text("q1 Q0 b 1 -0.5 y\nq1 Q0 c 2 -0.75 y\n")
    qrels.write_text("q1 0 a 1\nq1 0 b 0\nq1 0 c 0\nq2 0 a 2\n")
    (split,) = load(runs, qrels=qrels)
    queries = split.train
    assert queries.feature_names == ("bm25", "dense")
    assert queries.document_ids is not None and queries.document_ids.tolist() == ["a", "b", "c", "a"]
    assert queries.features.tolist() == [[3, -0.75], [2, -0.5], [2, -0.75], [5, 0]]
    (runs / "dense.run.gz").write_bytes((runs / "dense.trec").read_bytes())
    with pytest.raises(DataError, match="names that differ"):
        read(runs, qrels=qrels)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("q1 0 a 1\n", "mine.run:1: 'q1 0 a 1' is judgments, which qrels= takes"),
        ("q1 Q0 a 1 high x\n", "mine.run:1:.*no such line"),
        ("q1 Q0 a 1 inf x\n", "mine.run:1:.*no such line"),
        ("\n", "no documents"),
    ],
)
def test_what_is_no_run_is_named(text: str, words: str, tmp_path: Path) -> None:
    assert_refused(tmp_path / "mine.run", text, words)


def test_ids_that_differ_as_text_stay_different(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text("qid,docid,grade,a\n01,007,1,0.5\n1,7,0,0.25\n001,7.0,1,0.75\n1,8,1,0.5\n")
    queries = read(path)
    assert queries.query_ids.tolist() == ["01", "1", "001"]
    assert queries.document_ids is not None and queries.document_ids.tolist() == ["007", "7", "8", "7.0"]
    path.write_text(f"qid,grade,a\n7,1,0.5\n-8,0,0.25\n{10**18 - 1},1,0.75\n")
    assert read(path).query_ids.tolist() == [7, -8, 10**18 - 1]
    path.write_text(f"session,grade,a\n07,1,0.5\n{2**64},0,0.25\n7,1,0.75\n")
    assert read(path, qid="session").query_ids.tolist() == ["07", str(2**64), "7"]
    assert_refused(path, "qid,grade,a\n7,1,0.5\n,0,0.25\n", "no id in row 2 below the titles")


PLAIN = "qid,grade,a,b\n1,1,0.5,-3\n1,0,-0.25,4\n2,2,1.125,5\n2,0,7.5,6\n"


@pytest.mark.parametrize(
    "text",
    [
        PLAIN.replace(",", ";").replace(".", ","),
        PLAIN.replace(",", "|"),
        PLAIN.replace(",", "\t").replace(".", ","),
        PLAIN + "\n\n",
        PLAIN.replace("\n", "\r\n") + "\r\n",
        '"qid","grade","a","b"\n' + PLAIN.partition("\n")[2].replace("0.5", '"0.5"') + "\n",
    ],
)
@pytest.mark.parametrize("name", ["data.csv", "data.csv.gz"])
def test_what_other_programs_call_csv(text: str, name: str, tmp_path: Path) -> None:
    (tmp_path / "plain.csv").write_text(PLAIN)
    content = text.encode()
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    expected = read(tmp_path / "plain.csv").fingerprint
    assert read(tmp_path / name).fingerprint == expected
    assert ranktune.convert(tmp_path / name, tmp_path / "made").fingerprint == expected


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "has no rows"),
        (b"\n" + PLAIN.encode(), r"data\.csv:1: is empty"),
        (b"\n" + PLAIN.replace("qid", '"qid"').encode(), r"data\.csv:1: is empty"),
        (PLAIN.replace("\n2,2", '\n\n"2",2').encode(), r"data\.csv:4: is empty"),
        (b"qid;grade;a\n1;1;1,234\n1;0;987\n", "no feature can be made of 'a'"),
        (PLAIN.replace("a,b", "a,größe").encode("latin-1"), "Save it as UTF-8"),
        (b"qid,grade,a\r\n1,1,0.5\r\n\r1,0,0.25\r\n", r"data\.csv:3: is empty, and rows follow"),
    ],
)
def test_what_is_no_csv_is_refused(content: bytes, words: str, tmp_path: Path) -> None:
    assert_refused(tmp_path / "data.csv", content, words)


@pytest.mark.parametrize("title", ['price "net"', '"', 'size 3" ""', "plain"])
def test_titles_are_unescaped(title: str, tmp_path: Path) -> None:
    quoted = title.replace('"', '""')
    (tmp_path / "data.csv").write_text(f'qid,grade,"{quoted}"\n1,1,0.5\n1,0,0.25\n')
    queries = read(tmp_path / "data.csv")
    assert queries.feature_names == (title,) and queries.features.ravel().tolist() == [0.5, 0.25]
    ranktune.convert(tmp_path / "data.csv", tmp_path / "folder")
    assert read(tmp_path / "folder").fingerprint == queries.fingerprint


def test_whole_numbers_of_any_size_are_features(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text(f"qid,grade,a\n1,1,{2**63}\n1,0,{2**70}\n1,0,-{2**64}\n")
    assert read(path).features.ravel().tolist() == [2.0**63, 2.0**70, -(2.0**64)]


def _with_checksums(path: Path, column: pd.Series) -> bytearray:
    frame = pd.DataFrame({"qid": 1, "grade": np.arange(len(column)) % 2, "a": column})
    table = pa.Table.from_pandas(frame, preserve_index=False)
    pq.write_table(table, path, write_page_checksum=True, compression="none", use_dictionary=False)
    return bytearray(path.read_bytes())


def test_the_checksums_of_parquet_pages_are_compared(tmp_path: Path) -> None:
    path, column = tmp_path / "data.parquet", pd.Series(np.random.default_rng(0).normal(size=32))
    content = _with_checksums(path, column)
    assert read(path).features.ravel().tolist() == column.tolist()
    content[content.find(column.to_numpy().tobytes()[64:80]) + 3] ^= 4
    assert_refused(path, content, r"data\.parquet: cannot be read")


def test_what_a_table_declares_must_fit_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "data.parquet"
    _with_checksums(path, pd.Series(np.arange(32.0)))
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=700))
    with pytest.raises(DataError, match="a table of 32 rows and 3 columns takes about 0 MB"):
        read(path)


def test_one_wrong_cell_makes_no_category_of_numbers(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    assert_refused(
        path,
        "qid,grade,a\n" + "".join(f"{k // 4},{k % 2},{k % 3 / 2}\n" for k in range(12)) + "3,1,0.5:\n",
        r"'a' \(numbers, except '0.5:': correct or empty such cells\)",
    )
    path.write_text("qid,grade,a\n" + "".join(f"{k // 4},{k % 2},{['1', '2', '3+'][k % 3]}\n" for k in range(12)))
    assert read(path).feature_names == ("a=1", "a=2", "a=3+")


LATER = {
    "whole": ("1", "2.5"),
    "fraction": ("1.5", "red"),
    "large": ("1", str(2**63)),
    "truth": ("true", "red"),
    "mixed": ("true", "1"),
    "text": ("red", "1"),
    "exponent": ("1", "1e3"),
    "unknown": ("", "2"),
    "named": ("", "blue"),
    "missing": ("3", ""),
    "null": ("NULL", "4.5"),
    "id": ("01", "1"),
    "date": ("2024-01-02", "31/12/2024"),
    "moment": ("2024-01-02", "2024-01-02T03:04:05"),
    "number": ("2024-01-02T03:04:05", "7"),
}
"""The value of a column in the first rows, and in the last one."""


def outcome_of(path: Path) -> str:
    try:
        queries = read(path)
    except DataError as error:
        return str(error)
    return repr((queries.features.tolist(), queries.query_ids.tolist(), queries.feature_names))


@pytest.mark.parametrize("columns", [*([name] for name in LATER), list(LATER)], ids=lambda names: "+".join(names))
def test_types_of_the_first_block_are_those_of_all(
    columns: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, last = zip(*(LATER[name] for name in columns), strict=True)
    rows = [("qid", "grade", *columns), *((str(k), "1", *first) for k in "11223"), ("3", "0", *last)]
    path = tmp_path / "table.csv"
    path.write_text("".join(",".join(row) + "\n" for row in rows))
    whole = outcome_of(path)
    monkeypatch.setattr(delimited, "BLOCK", 2 * len(path.read_text()) // 3)
    assert outcome_of(path) == whole
    if whole.startswith("("):
        ranktune.convert(path, tmp_path / "made")
        assert outcome_of(tmp_path / "made") == whole
