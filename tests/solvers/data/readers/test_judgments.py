"""Judgments in a separate file."""

import gzip
from pathlib import Path

import polars as pl
import pytest

from ranktune.solvers.core.errors import DataError, RankTuneWarning
from ranktune.solvers.data.sources.catalogue import load, read
from ranktune.streaming import convert
from tests.support.refusals import assert_refused

FRAME = pl.DataFrame({"qid": [7, 7, 8], "docid": ["a", "b", "a"], "bm25": [0.5, 0.25, 1.0], "grade": [9, 9, 9]})


TREC = "7\tQ0\ta\t2\r\n\n7 0 b -2\n8 0 a 1.0"


@pytest.mark.parametrize("packed", [False, True])
def test_grades_come_from_the_file(tmp_path: Path, packed: bool) -> None:
    path = tmp_path / "judged.qrels"
    path.write_bytes(gzip.compress(TREC.encode()) if packed else TREC.encode())
    for frame in (FRAME, FRAME.drop("grade")):
        queries = read(frame, qrels=path)
        assert queries.grades.tolist() == [2.0, 0.0, 1.0] and queries.feature_names == ("bm25",)
    (split,) = load(FRAME, vali=FRAME, qrels=path)
    assert split.vali is not None and split.vali.fingerprint == split.train.fingerprint


def test_documents_without_a_judgment_have_grade_0(tmp_path: Path) -> None:
    path = tmp_path / "judged.qrels"
    path.write_text("7 0 a 2\n9 0 a 2\n")
    with pytest.warns(RankTuneWarning, match=r"1 of 3 documents, and no document of 1 queries.*1 of its judgments"):
        assert read(FRAME, qrels=path).grades.tolist() == [2.0, 0.0, 0.0]
    path.write_text("7 0 z 2\n")
    with pytest.raises(DataError, match=r"judges none .* has document 'z' of query '7' first, .* 'a' of query '7'"):
        read(FRAME, qrels=path)


def test_judgments_alone_are_no_data(tmp_path: Path) -> None:
    path = tmp_path / "judged.qrels"
    assert_refused(path, "7 0 a 2\n", r'holds TREC judgments and no features.*qrels=".*judged.qrels"')


def test_both_ids_are_needed(tmp_path: Path) -> None:
    path = tmp_path / "judged.qrels"
    path.write_text("7 0 a 2\n")
    with pytest.raises(DataError, match=r'no column of document ids.*document="COLUMN"'):
        read(FRAME.drop("docid"), qrels=path)


CLICKED = pl.DataFrame(
    {
        "query": ["7", "7", "8", "7"],
        "document": ["a", "b", "a", "c"],
        "relevance": [0.5, 0.125, None, 0.25],
        "weight": [0.75, 0.5, 0.0, 1.0],
        "status": ["known", "one position", "unknown", "known"],
    }
)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("is_file", [False, True])
def test_judgments_from_clicks_give_grades_and_weights_of_what_is_known(
    tmp_path: Path, ending: str, is_file: bool
) -> None:
    path, data = tmp_path / f"judged.{ending}", tmp_path / "data.csv"
    frame = pl.DataFrame({"qid": [8, 7, 8, 7], "docid": ["z", "b", "a", "a"], "bm25": [9.0, 0.25, 1.0, 0.5]})
    frame.write_csv(data)
    CLICKED.write_csv(path) if ending == "csv" else CLICKED.write_parquet(path)
    with pytest.warns(
        RankTuneWarning, match="judges 2 of 4 documents, and no document of 1 queries: the others are left"
    ):
        queries = read(data if is_file else frame, qrels=path)
    assert queries.query_ids.tolist() == [7] and queries.in_caller_order(queries.grades).tolist() == [0.125, 0.5]
    assert queries.document_weights is not None and queries.document_ids is not None
    assert queries.document_weights.tolist() == [0.5, 0.75] and queries.document_ids.tolist() == ["b", "a"]
    assert queries.features.tolist() == [[0.25], [0.5]]
    weighed = frame.with_columns(count=pl.Series([1.0, 2.0, 3.0, 4.0]))
    with pytest.warns(RankTuneWarning, match="left out"):
        own = read(weighed, qrels=path, document_weight="count").document_weights
    assert own is not None and own.tolist() == [2.0, 4.0]


def test_large_tables_with_judgments_from_clicks_are_converted(tmp_path: Path) -> None:
    data, path = tmp_path / "data.parquet", tmp_path / "judged.parquet"
    FRAME.write_parquet(data)
    CLICKED.write_parquet(path)
    with pytest.warns(RankTuneWarning, match="left out"):
        stored = convert(data, tmp_path / "folder", qrels=path)
    assert stored.grades.tolist() == [0.5, 0.125] and stored.document_weights is not None
    assert read(tmp_path / "folder").document_weights.tolist() == [0.75, 0.5]  # type: ignore[union-attr]


def test_a_table_that_is_no_judgments_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "judged.parquet"
    CLICKED.drop("weight").write_parquet(path)
    with pytest.warns(RankTuneWarning, match="the others are not judged and have grade 0"):
        assert read(FRAME, qrels=path).grades.tolist() == [0.5, 0.125, 0.0]
    for frame, words in (
        (CLICKED.drop("document"), r'has no column of the document id\. Name it: document="COLUMN"'),
        (CLICKED.with_columns(relevance=pl.lit("high")), "'high' is no grade, of document a of query 7"),
        (
            CLICKED.with_columns(weight=pl.lit("high")),
            r"judged\.parquet: the document weight column 'weight' holds string",
        ),
        (CLICKED.with_columns(relevance=None), "holds no judgments"),
        (pl.concat([CLICKED, CLICKED.with_columns(relevance=0.75)]), "document a of query 7 has the grades 0.5 and"),
    ):
        frame.write_parquet(path)
        with pytest.raises(DataError, match=words):
            read(FRAME, qrels=path)
