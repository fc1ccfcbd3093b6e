"""Which column of a table is what, and what queries take from weights and times."""

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from ranktune.solvers.core.errors import DataError, ParameterError
from ranktune.solvers.data.columns.roles import DOCUMENTS, GRADES, QUERIES, Roles, WantedRoles, roles
from ranktune.solvers.data.sources import catalogue
from tests.support.frames import from_frame

COLUMNS = ("qid", "grade", "docid", "bm25_title", "bm25_body", "clicks", "a,b", "w[1]")


def test_all_columns_but_those_of_known_names_are_features() -> None:
    result = roles(COLUMNS, WantedRoles())
    assert result == Roles({"query": "qid", "grade": "grade", "document": "docid"}, COLUMNS[3:])
    assert result.keys == {"qid": "query id", "grade": "grade", "docid": "document id"}


@pytest.mark.parametrize(
    ("role", "name"), [("query", name) for name in QUERIES] + [("grade", name) for name in (*GRADES, "rating")]
    + [("document", name) for name in DOCUMENTS]
)  # fmt: skip
def test_usual_names_are_recognised(role: str, name: str) -> None:
    for written in (name, name.upper().replace("_", "-"), name.title().replace("_", " ")):
        others = {"query": "qid", "grade": "y", "document": "docid"} | {role: written}
        assert roles([*others.values(), "f"], WantedRoles())[role] == written


@pytest.mark.parametrize(
    ("given", "features"),
    [
        (["clicks", "bm25_body"], ("clicks", "bm25_body")),
        ("bm25_*", ("bm25_title", "bm25_body")),
        ("clicks, bm25_*", ("clicks", "bm25_title", "bm25_body")),
        (["*"], COLUMNS[3:]),
        (["a,b"], ("a,b",)),
        (["w[1]", "click?"], ("w[1]", "clicks")),
        (["docid"], ("docid",)),
    ],
)
def test_features_are_names_and_globs(given: Any, features: tuple[str, ...]) -> None:
    result = roles(COLUMNS, WantedRoles(features=given))
    assert result.features == features
    assert set(result.dropped) == set(COLUMNS) - set(features) - set(result.keys)


def test_dropped_columns_are_nothing_at_all() -> None:
    result = roles(COLUMNS, WantedRoles(drop=["bm25_*,clicks", "docid"]))
    assert result.features == ("a,b", "w[1]") and result["document"] is None
    assert result.dropped == dict.fromkeys(("bm25_title", "bm25_body", "clicks", "docid"), "drop")
    assert roles(("query", "query_id", "y", "f"), WantedRoles(drop="query"))["query"] == "query_id"


def test_a_column_that_is_called_by_name_is_not_dropped() -> None:
    result = roles(("s", "grade", "day", "f"), WantedRoles(qid="s", group_by_time="day", drop="s,da*"))
    assert result.keys == {"s": "query id", "grade": "grade", "day": "time"} and not result.dropped


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        (WantedRoles(qid="session"), "no column 'session' for the query ids"),
        (WantedRoles(**dict[str, Any](weight="wt")), "no column 'wt'"),
        (WantedRoles(features="bn25_title"), "Did you mean 'bm25_title'"),
        (WantedRoles(features="x*"), "features='x\\*' matches no column"),
        (WantedRoles(drop="x*"), "drop='x\\*' matches no column"),
        (WantedRoles(drop="*[a-z]*,*5*,a*,w*,qid"), "no column of the query ids"),
        (WantedRoles(features="clicks", drop="clicks"), "no feature columns"),
    ],
)
def test_columns_that_are_not_there_are_named(wanted: WantedRoles, words: str) -> None:
    with pytest.raises(DataError, match=words):
        roles(COLUMNS, wanted)


@pytest.mark.parametrize(
    ("columns", "words", "answer"),
    [
        (["query", "session_id", "y", "f"], r'query ids \(query, session_id\).*qid="COLUMN"', {"qid": "query"}),
        (["qid", "label", "rating", "f"], r'grades \(label, rating\).*grade="COLUMN"', {"grade": "label"}),
        (["qid", "y", "_id", "product_id", "f"], r'\(product_id, _id\).*document="COLUMN"', {"document": "_id"}),
        (["qid", "y", "Position", "f"], r'the old ranking.*drop="Position"', {"drop": "Position"}),
        (["qid", "y", "Position", "f"], r'features="\*,Position"', {"features": "*,Position"}),
    ],
)
def test_a_column_that_may_be_two_things_is_a_question_that_names_the_option(
    columns: list[str], words: str, answer: dict[str, Any]
) -> None:
    with pytest.raises(DataError, match=words):
        roles(columns, WantedRoles())
    result = roles(columns, WantedRoles(**answer))
    assert all(result[role] == answer[role] for role in ("grade", "document") if role in answer)
    assert ("Position" in result.features) == (answer.get("features") is not None)


FRAME: dict[str, list[Any]] = {
    "qid": ["b", "a", "b", "c"],
    "grade": [1, 0, 2, 0],
    "f": [1.0, 2.0, 3.0, 4.0],
    "w": [2.0, 5.0, 2.0, 1.0],
}


@pytest.mark.parametrize("library", [pd, pl])
def test_a_weight_is_of_a_query(library: Any) -> None:
    queries = from_frame(library.DataFrame(FRAME), weight="w")
    assert queries.feature_names == ("f",) and queries.query_ids.tolist() == ["b", "a", "c"]
    assert queries.weight_of_query.tolist() == [2.0, 5.0, 1.0]
    (split,) = catalogue.load(library.DataFrame(FRAME), vali=library.DataFrame(FRAME), weight="w")
    assert split.vali is not None and split.vali.weight_of_query.tolist() == [2.0, 5.0, 1.0]
    with pytest.raises(DataError, match="'w' differs between the documents of query b"):
        from_frame(library.DataFrame({**FRAME, "w": [1.0, 1.0, 2.0, 1.0]}), weight="w")
    with pytest.raises(DataError, match="positive"):
        from_frame(library.DataFrame({**FRAME, "w": [0.0, 1.0, 0.0, 1.0]}), weight="w")


@pytest.mark.parametrize("library", [pd, pl])
@pytest.mark.parametrize(
    "times",
    [
        [3, 9, 1, 2],
        ["2026-03-01", "2027-01-01", "2026-01-01", "2026-02-01"],
        ["2026-03-01T00:30:00+02:00", "2026-03-01T00:30:00Z", "2026-02-01T00:30:00Z", "2026-02-28T22:00:00Z"],
        pd.to_datetime(["2026-03-01", "2027-01-01", "2026-01-01", "2026-02-01"]).to_pydatetime().tolist(),
        pd.to_datetime(["2026-03-01", "2027-01-01", "2026-01-01", "2026-02-01"]).date.tolist(),
    ],
    ids=["numbers", "dates", "zones", "datetime", "date"],
)
def test_queries_are_in_the_order_of_their_latest_document(library: Any, times: list[Any]) -> None:
    frame = library.DataFrame({**FRAME, "when": times})
    queries = from_frame(frame, group_by_time="when", drop="w")
    assert queries.query_ids.tolist() == ["c", "b", "a"] and queries.feature_names == ("f",)
    assert queries.features.ravel().tolist() == [4.0, 1.0, 3.0, 2.0]
    assert queries.in_caller_order(queries.features.ravel()).tolist() == FRAME["f"]


@pytest.mark.parametrize("times", [["soon", "later", "now", "never"], [1.0, None, 2.0, 3.0], [1.0, np.inf, 2.0, 3.0]])
def test_times_that_are_none_are_refused(times: list[Any]) -> None:
    with pytest.raises(DataError, match="time column 'when'"):
        from_frame(pl.DataFrame({**FRAME, "when": times}), group_by_time="when")


@pytest.mark.parametrize("options", [{"features": "f*"}, {"qid": "session"}, {"weight": "w"}, {"qrels": "q.txt"}])
def test_sources_without_columns_say_so(tmp_path: Any, options: dict[str, Any]) -> None:
    file = tmp_path / "train.txt"
    file.write_text("1 qid:1 1:0.5\n")
    (name,) = options
    for source in (file, (np.eye(2), [0, 1], [1, 1])):
        with pytest.raises(ParameterError, match=f"{name}=.* names columns of a table"):
            catalogue.read(source, **options)
