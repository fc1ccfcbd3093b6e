"""Judgments in a separate file. Files of judgments of other tools: the separator is that of the whole file, and
nothing is read in another way."""

import csv
import gzip
import io
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import ranktune
from ranktune.solvers.core.errors import DataError, RankTuneWarning
from ranktune.solvers.data.columns.decisions import Undecided
from ranktune.solvers.data.readers.judgments import read_judgments
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
    ):
        frame.write_parquet(path)
        with pytest.raises(DataError, match=words):
            read(FRAME, qrels=path)


JUDGED = {"shoe": {"D1": 2.0, "D2": 0.0}, "shoe red": {"D4": 1.0, "D 2": 3.0}, "hat": {"D6": 1.0}}
ROWS = [(query, document, grade) for query, judged in JUDGED.items() for document, grade in judged.items()]
RATINGS = [
    {"query": query, "ratings": [{"docId": document, "rating": str(grade)} for document, grade in judged.items()]}
    for query, judged in JUDGED.items()
]
REQUESTS = [
    {"id": query, "ratings": [{"_index": "i", "_id": document, "rating": grade} for document, grade in judged.items()]}
    for query, judged in JUDGED.items()
]
NUMBERS = {query: str(number) for number, query in enumerate(JUDGED)}


def table(sign: str, titles: str, template: str = "{0}|{1}|{2}") -> str:
    return "\n".join([titles, *(template.format(*row) for row in ROWS)]).replace("|", sign)


FILES = {
    "beir": table("\t", "query-id|corpus-id|score"),
    "trec by tabs": table("\t", "", "{0}|0|{1}|{2}").lstrip("\n"),
    "without titles": table("\t", "").lstrip("\n"),
    "quepid": table(",", "query,docid,rating") + "\nshoe,D9,\nnever rated,,",
    "quepid, a query alone": table(",", "query,docid,rating") + "\nnever rated",
    "quepid in detail": table(",", "Team,Query Text,Doc ID,Title,Rating", 't,"{0}",{1},"a, b",{2}'),
    "semicolons": table(";", "Query;Document;Relevance"),
    "pyterrier": table("\t", "qid|docno|label|iteration", "{0}|{1}|{2}|0"),
    "quotes of the text": table("\t", "query|doc|note|rating", '{0}|{1}|"x" y|{2}'),
    "lists": "\n".join(
        [f"# qid:{number}: {query}" for query, number in NUMBERS.items()]
        + [f"{grade:g} qid:{NUMBERS[query]} # {document.replace(' ', '_')} a title" for query, document, grade in ROWS]
    ),
    "opensearch": json.dumps({"name": "x", "judgmentRatings": RATINGS}),
    "opensearch, as searched": json.dumps({"hits": {"hits": [{"_source": {"judgmentRatings": RATINGS}}]}}),
    "rank_eval": json.dumps({"requests": REQUESTS}, indent=1),
}


@pytest.mark.parametrize("name", FILES)
def test_judgments_of_other_tools_give_their_grades(name: str, tmp_path: Path) -> None:
    (tmp_path / "judged").write_text(FILES[name])
    documents = [document.replace(" ", "_") if name == "lists" else document for _, document, _ in ROWS]
    frame = pl.DataFrame({"query": [query for query, _, _ in ROWS], "docid": documents, "bm25": range(len(ROWS))})
    queries = ranktune.read(frame, qrels=tmp_path / "judged")
    assert queries.grades.tolist() == [grade for _, _, grade in ROWS]


def test_columns_of_any_name_are_named_by_the_options_of_columns(tmp_path: Path) -> None:
    (tmp_path / "judged").write_text(table(";", "note|keyword|sku|stars", "n|{0}|{1}|{2}"))
    frame = pl.DataFrame({"keyword": [row[0] for row in ROWS], "sku": [row[1] for row in ROWS], "f": range(len(ROWS))})
    options: Any = {"qid": "keyword", "document": "sku", "grade": "stars"}
    queries = ranktune.read(frame, qrels=tmp_path / "judged", **options)
    assert queries.grades.tolist() == [row[2] for row in ROWS]


@pytest.mark.parametrize("sign", [",", "\t", ";"])
def test_a_quoted_cell_keeps_its_lines_and_others_their_quotes(sign: str, tmp_path: Path) -> None:
    (tmp_path / "judged").write_text('query|docid|rating\n"a\n""b"""|D1|2\nc|D2|1\nc|D3|0'.replace("|", sign))
    assert read_judgments(tmp_path / "judged").by_query == {'a\n"b"': {"D1": 2.0}, "c": {"D2": 1.0, "D3": 0.0}}
    (tmp_path / "judged").write_text('"new york" hotel|0|D1|2\nc|0|D2|1'.replace("|", sign))
    assert read_judgments(tmp_path / "judged").by_query == {'"new york" hotel': {"D1": 2.0}, "c": {"D2": 1.0}}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("q_id,docno,rating\na,D1,1\na,D1,2", "document D1 of query a has the grades 1 and 2"),
        ("shoe red\tD1\t1\nshoe 0 D2 1", "judged:1: has a tab and a space"),
        ('{"a": 1}', "has no column of the query id"),
        ("[" * 5000, "no JSON"),
        ("2 qid:1 # D1\nD1 1", "is no line GRADE qid:ID"),
        ("query,docid,Rater A,Rater B\na,D1,3,2", 'has no column of the grade. Name it: grade="COLUMN"'),
        ("shoe red D1 2\nhat 0 D6 1", "not clear"),
        ("query-id\tcorpus-id\tscore\na\tD1\t1\nb D2 1", "judged:3: has 1 cell, and the first line 3"),
        ("q,d,rating\na,D1,1", "has no column of the query id. Name it: qid="),
        ("", "no judgments"),
        ("7 0 a 2\n7 0 b 1\n7 0 a 1\n", "document a of query 7 has the grades 2 and 1"),
        ("7 0 a 2\n7 0 a x\n", "judged: 'x' is no grade, of document a of query 7"),
        ("7 0 a 2 3\n", "judged:1: '7 0 a 2 3' is not clear"),
    ],
)
def test_what_is_not_clear_is_refused(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "judged").write_text(text)
    with pytest.raises(DataError, match=words):
        read_judgments(tmp_path / "judged")


def random_file(generator: np.random.Generator) -> tuple[str, dict[str, dict[str, float]]]:
    """Judgments without titles, with any separator, and what they say."""
    sign = str(generator.choice(list("\t,; ")))
    letters = list("ab1.:/-_ '") + ([] if sign == "\t" else [",", ";"])
    letters = [letter for letter in letters if not (sign == " " and letter in " \t")]

    def name() -> str:
        return "".join(generator.choice(letters, generator.integers(1, 6))).strip() or "x"

    pairs = dict.fromkeys((name(), name()) for _ in range(generator.integers(2, 12)))
    rows = [(query, document, int(generator.integers(0, 4))) for query, document in pairs]
    iteration = ["0"] * int(generator.integers(2))
    lines = [[query, *iteration, document, str(grade)] for query, document, grade in rows]
    expected: dict[str, dict[str, float]] = {}
    for query, document, grade in rows:
        expected.setdefault(query, {})[document] = float(grade)
    text = io.StringIO()
    if sign == " ":
        text.write("\n".join(" ".join(line) for line in lines))
    else:
        csv.writer(text, delimiter=sign).writerows(lines)
    return text.getvalue(), expected


@pytest.mark.parametrize("seed", {*range(int(os.environ.get("RANKTUNE_CASES", "100"))), 623})
def test_no_separator_changes_a_judgment(seed: int, tmp_path: Path) -> None:
    text, expected = random_file(np.random.default_rng(seed))
    (tmp_path / "judged").write_text(text)
    try:
        read = read_judgments(tmp_path / "judged").by_query
    except DataError:
        return
    assert read == expected


@pytest.mark.parametrize(
    "text",
    [
        "shoe 0 D1 Good\nshoe 0 D2 Bad\n",
        "query,docid,rating\nshoe,D1,Good\nshoe,D2,Bad\n",
        "Good qid:shoe # D1\nBad qid:shoe # D2\n",
        json.dumps(
            {"requests": [{"id": "shoe", "ratings": [{"_id": "D1", "rating": "Good"}, {"_id": "D2", "rating": "Bad"}]}]}
        ),
    ],
)
def test_grades_may_be_words(text: str, tmp_path: Path) -> None:
    (tmp_path / "judged").write_text(text)
    frame = pl.DataFrame({"query": ["shoe", "shoe"], "docid": ["D2", "D1"], "bm25": [1, 2]})
    with pytest.raises(Undecided, match=r"'Good' is no grade.*grades=\"Bad=0,Good=1\""):
        ranktune.read(frame, qrels=tmp_path / "judged")
    for grades in ("Bad=0,Good=2", {"Bad": 0, "Good": 2.0}):
        assert ranktune.read(frame, qrels=tmp_path / "judged", grades=grades).grades.tolist() == [0.0, 2.0]
