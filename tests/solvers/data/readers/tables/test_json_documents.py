"""JSON documents and the feature logs of search engines."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from ranktune.solvers.core.errors import DataError
from ranktune.solvers.data.readers.tables.json_documents import read_documents
from ranktune.solvers.data.sources.catalogue import read


def written(folder: Path, *values: Any, name: str = "log.jsonl") -> Path:
    path = folder / name
    path.write_text("\n".join(value if isinstance(value, str) else json.dumps(value) for value in values))
    return path


LOGGED: dict[str, float] = {"bm25": 1.5, "clicks": 3.0}
PAIRS = [{"name": "bm25", "value": 1.5}, {"name": "clicks", "value": 3}]
FORMS: dict[str, dict[str, Any]] = {
    "features": {"features": LOGGED},
    "features as pairs": {"features": PAIRS},
    "features as text": {"features": "bm25=1.5,clicks=3"},
    "log entry": {"fields": {"_ltrlog": [{"log_entry1": PAIRS}]}},
    "two log entries": {"fields": {"_ltrlog": [{"one": PAIRS[:1], "two": PAIRS[1:]}]}},
    "entries in a list": {"fields": {"_ltrlog": [{"one": PAIRS[:1]}, {"two": PAIRS[1:]}]}},
    "map of values": {"fields": {"_ltrlog": [{"log_entry1": LOGGED}]}},
    "plain list": {"_ltrlog": PAIRS},
    "solr": {"[features]": "bm25=1.5,clicks=3.0"},
    "older solr": {"[features]": "bm25:1.5;clicks:3.0"},
}


@pytest.mark.parametrize("form", FORMS)
def test_a_log_has_many_forms(form: str, tmp_path: Path) -> None:
    columns, features = read_documents(
        written(tmp_path, {"qid": 7, "grade": 1, "title": "x", **FORMS[form]}), whole=False
    )
    assert features == ("bm25", "clicks")
    assert {name: columns[name] for name in ("qid", "grade", *features)} == {
        "qid": [7], "grade": [1], "bm25": [1.5], "clicks": [3.0],
    }  # fmt: skip


def test_a_feature_that_was_not_logged_is_0(tmp_path: Path) -> None:
    sparse = {"qid": 1, "label": 0, "[features]": "clicks=2.0"}
    unmatched = {"qid": 1, "label": 1, "_ltrlog": [{"name": "bm25", "value": 0.5}, {"name": "clicks"}]}
    queries = read(written(tmp_path, sparse, unmatched))
    assert queries.feature_names == ("clicks", "bm25")
    assert queries.features.tolist() == [[2.0, 0.0], [0.0, 0.5]]


def hit(name: str, **source: Any) -> dict[str, Any]:
    return {"_index": "i", "_id": name, "_score": 3.0, "_source": source, "fields": {"_ltrlog": [{"e": PAIRS}]}}


def test_query_and_grade_may_be_in_the_source_or_around_it(tmp_path: Path) -> None:
    inside = {"took": 1, "hits": {"hits": [hit("a", qid="q", grade=2), hit("b", qid="q", grade=0)]}}
    around = {"qid": "q", "hits": {"hits": [{"grade": 2, **hit("a")}, {"grade": 0, **hit("b")}]}}
    for value in (inside, around):
        queries = read(written(tmp_path, value))
        assert queries.query_ids.tolist() == ["q"] and queries.grades.tolist() == [2.0, 0.0]
        assert queries.document_ids is not None and queries.document_ids.tolist() == ["a", "b"]
        assert queries.feature_names == ("bm25", "clicks")  # not _score


def test_each_response_is_a_query_where_none_is_named(tmp_path: Path) -> None:
    first, second = ({"hits": {"hits": [hit(name, grade=1)]}} for name in "ab")
    assert read(written(tmp_path, first, second)).n_queries == 2
    assert read(written(tmp_path, {"responses": [first, second]}, name="all.json")).n_queries == 2
    named = [{"hits": {"hits": [hit("a", grade=1, query="x")]}}, {"hits": {"hits": [hit("b", grade=0, query="x")]}}]
    assert read(written(tmp_path, *named)).query_ids.tolist() == ["x"]


def test_inner_objects_of_plain_documents_are_columns(tmp_path: Path) -> None:
    document = {"qid": 1, "grade": 1, "bm25": {"title": 0.5, "body": 2}, "fresh": True}
    queries = read(written(tmp_path, document))
    assert queries.feature_names == ("bm25.title", "bm25.body", "fresh")
    assert queries.features.tolist() == [[0.5, 2.0, 1.0]]


def test_a_missing_field_of_a_plain_document_is_missing(tmp_path: Path) -> None:
    columns, features = read_documents(
        written(tmp_path, {"qid": 1, "f": 1}, {"qid": 1, "f": None}, {"qid": 1}), whole=False
    )
    assert features is None and columns["f"] == [1, None, None]


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("name", ["docs.json", "docs.jsonl"])
def test_json_is_one_value_or_one_a_line(name: str, indent: int | None, tmp_path: Path) -> None:
    documents = [{"qid": 1, "grade": 1, "f": 0.5}, {"qid": 1, "grade": 0, "f": 0.25}]
    lines = written(tmp_path, *documents, name=name)
    assert read(lines).features.ravel().tolist() == [0.5, 0.25]
    if indent is None or name.endswith("json"):
        lines.write_text(json.dumps(documents, indent=indent))
        assert read(lines).features.ravel().tolist() == [0.5, 0.25]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (['{"qid": 1}', "{oops"], r"log.jsonl:2: is not JSON"),
        ([], "no documents"),
        ([5], "log.jsonl:1: holds 5 where a document must be"),
        ([{"qid": 1, "features": {"f": "high"}}], 'log.jsonl:1: a feature is "high"'),
        ([{"qid": 1, "[features]": "bm25"}], "'bm25' is no feature of Solr"),
        ([{"qid": 1, "[features]": "bm25=x"}], "'bm25=x' is no feature of Solr"),
        ([{"qid": 1, "features": True}, {"qid": 1, "features": {"f": 1}}], "document 1 has no features"),
        ([{"qid": 1, "features": None}], "are no features"),
        ([{"qid": 1, "features": {"f": 10**400}}], "log.jsonl:1: a feature is 1000"),
        (['{"qid": 1, "f": ' + "9" * 5000 + "}"], "log.jsonl:1: is not JSON"),
        (["[" * 100_000], "log.jsonl:1: is n"),
        (["[" * 900 + "]" * 900], "no documents|nested too deeply"),
    ],
)
def test_what_is_no_document_is_named(values: list[Any], words: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=words):
        read(written(tmp_path, *values))


NAMES = (
    "qid",
    "grade",
    "features",
    "_ltrlog",
    "fields",
    "_source",
    "hits",
    "docs",
    "responses",
    "name",
    "value",
    "bm25",
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["a=1", "x", "", "10" * 200]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4),
    max_leaves=12,
)


@example([{"hits": [{"grade": None, "bm25": ""}]}])
@given(st.lists(VALUES, min_size=1, max_size=3))
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_json_is_read_or_refused(tmp_path: Path, values: list[Any]) -> None:
    path = written(tmp_path, *map(json.dumps, values))
    try:
        queries = read(path)
    except DataError as error:
        assert str(path) in str(error)
    else:
        assert queries.n_documents > 0


def test_half_of_a_character_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"qid": 1, "grade": 1, "a": "x\\ud800"}\n')
    with pytest.raises(DataError, match=r"a\.jsonl:1: is not JSON .*surrogates"):
        read_documents(path, whole=False)
