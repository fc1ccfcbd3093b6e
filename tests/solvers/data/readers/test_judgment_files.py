"""Files of judgments of other tools: the separator is that of the whole file, and nothing is read in another way."""

import csv
import io
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import ranktune
from ranktune.solvers.core.errors import DataError
from ranktune.solvers.data.columns.decisions import Undecided
from ranktune.solvers.data.readers.judgments import read_judgments

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
        ("query-id\tcorpus-id\tscore\na\tD1\t1\nb D2 1", "judged:3: has 1 cells, and the first line 3"),
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
