"""Click logs that are wrong: each fault is counted by its reason, said in a remark, or an error with a remedy."""

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ranktune.solvers.clicks.reading import opening
from ranktune.solvers.clicks.reading import opening as sources
from ranktune.solvers.clicks.reading.account import ReadingAccount
from ranktune.solvers.clicks.reading.click_log import ClickLog
from ranktune.solvers.core.errors import DataError, ParameterError
from tests.support.click_logs import BASE, Event, impressions, iso, written

GOOD: Event = {
    "query": "q", "doc_id": "d", "rank": 1, "click": 0, "user": "u", "time": iso(BASE), "propensity": 0.5,
}  # fmt: skip
CLICKED: Event = {**GOOD, "doc_id": "e", "rank": 2, "click": 1}
SEARCH: Event = {"query_id": "i", "user_query": "q", "client_id": "c", "timestamp": iso(BASE)}
VIEW: Event = {
    "query_id": "i",
    "action_name": "view",
    "doc_id": "d",
    "rank": 1,
    "client_id": "c",
    "timestamp": BASE + 1,
}
CLICK: Event = {**VIEW, "action_name": "click", "timestamp": BASE + 9}
EVENTS = [SEARCH, VIEW, CLICK]


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ({"query": ""}, "no query"),
        ({"doc_id": "NULL"}, "no document"),
        ({"rank": ""}, "no position"),
        ({"rank": 2.5}, "impossible position"),
        ({"rank": -1}, "impossible position"),
        ({"rank": "top"}, "impossible position"),
        ({"rank": 1001}, "a position above the page"),
        ({"rank": 10**12}, "a position above the page"),
        ({"click": -1}, "impossible number of clicks or other events"),
        ({"click": "often"}, "impossible number of clicks or other events"),
        ({"propensity": 0}, "a propensity that is not above 0 and at most 1"),
        ({"propensity": ""}, "a propensity that is not above 0 and at most 1"),
        ({"time": "soon"}, "unreadable time"),
        ({"time": ""}, "no time"),
        ({"time": "2999-01-01"}, "time in the future"),
        ({}, "a duplicate"),
    ],
)
@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_a_faulty_impression_is_left_out(fault: Event, reason: str, form: str, tmp_path: Path) -> None:
    rows = [GOOD, CLICKED, {**GOOD, **fault}]
    rows = rows if form == "csv" else [{k: v for k, v in row.items() if v not in ("", "NULL")} for row in rows]
    log = ClickLog.open(written(tmp_path / f"log.{form}", rows))
    assert log.account.left_out == {reason: 1}
    assert log.account.counted == log.account.lines
    assert impressions(log) == {("q", "d", 1, 0.0): 1, ("q", "e", 2, 1.0): 1}


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({**CLICK, "query_id": "j"}, "no partner query"),
        ({**VIEW, "query_id": ""}, "no search"),
        ({**CLICK, "doc_id": "x", "rank": 7}, "no impression in its search"),
        ({**CLICK, "doc_id": "D"}, "another document was shown at its position"),
        ({**CLICK, "timestamp": BASE + 10}, "repeated for its impression"),
        (CLICK, "a duplicate"),
        ({**CLICK, "action_name": ""}, "no kind of event"),
        ({**CLICK, "action_name": "hover"}, "an action without a weight: hover"),
        ({**SEARCH, "user_query": ""}, "a query without text"),
        (SEARCH, "a further record of a query"),
        ({**SEARCH, "query_id": "k"}, "a query for which nothing was shown"),
    ],
)
def test_a_faulty_event_is_left_out(more: Event, reason: str, tmp_path: Path) -> None:
    log = ClickLog.open(written(tmp_path / "log.csv", [*EVENTS, more]))
    assert log.account.left_out == {reason: 1}
    assert log.account.used == {"impression": 1, "click": 1, "query": 1}
    assert impressions(log) == {("q", "d", 1, 1.0): 1}


def test_lines_that_are_no_rows_are_counted(tmp_path: Path) -> None:
    path = written(tmp_path / "log.csv", [GOOD, CLICKED])
    path.write_text(f"{path.read_text()}\n\n")
    account = ClickLog.open(path).account
    assert account.other == {"titles": 1} and account.counted == account.lines == 3
    path = written(tmp_path / "log.jsonl", [GOOD, CLICKED])
    path.write_bytes(path.read_bytes() + b'{"query"\n[1]\n\n{"query": "\xff"}\n' + b"[" * 100_000 + b"\n")
    account = ClickLog.open(path).account
    assert account.left_out == {"no JSON object": 4} and account.counted == account.lines == 7


USUAL = [
    {
        **GOOD, "user": f"u{k}", "doc_id": k % 7, "rank": 1 + k % 7, "click": k % 2,
        "price": k + 0.5, "new": k > 4, "tags": ["x"], "at": None,
    }
    for k in range(36)
]  # fmt: skip
STRANGE = [
    *(b'{"query":"q","doc_id":"d","rank":1,"click":0,%s}' % end for end in (
        b'"rank":2', b'"rank":null', b'"r\\u0061nk":1', b'"x":{"y":1,"y":2}', b'"x":01', b'"x":1.', b'"x":"\\ud800"',
        b'"x":"\t"', b'"x":"\xff"', b'"x":NaN', b'"user":"\\u00e9"', b'"user":7', b'"user":7.0', b'"user":1e400',
        b'"user":true', b'"user":123456789012345678901', b'"user":["x"]', b'"user":{"y":1}', b'"USER":"u9"',
        b'"session_id":null', b'"session_id":"s"', b'"price":3', b'"price":3.0', b'"price":"3"', b'"new":1',
        b'"tags":[1]', b'"at":"x"', b'"at":{"y":1}',
    )),
    b"{}", b'{"query":"q"} {"query":"q"}', b'{"query":"q",\n"rank":1}', b'{"index":{}}', b'{"_source":"x"}', b"", b"1",
    b'{"index":{"_id":"1","_id":"2"}}', b'{"_source":{"query":"q","doc_id":"x","rank":1,"click":1}}', b' {"query":"q"}',
]  # fmt: skip


@pytest.mark.parametrize("line", STRANGE)
def test_a_strange_line_is_counted_and_changes_no_other(
    line: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "OBJECTS", 8)
    path = written(tmp_path / "log.jsonl", USUAL)
    lines = path.read_bytes().splitlines(keepends=True)
    usual = impressions(ClickLog.open(path, columns={"session": "user"}, further=True))
    path.write_bytes(b"".join([*lines[:25], line, b"\n", *lines[25:]]))
    log = ClickLog.open(path, columns={"session": "user"}, further=True)
    assert usual.total() == 36 and not usual - impressions(log) and (impressions(log) - usual).total() <= 1
    assert log.account.counted == log.account.lines == 37 + line.count(b"\n")


def test_lists_and_objects_are_no_text(tmp_path: Path) -> None:
    """Also where a whole block has them, as here the second file."""
    path, faulty = written(tmp_path / "log.jsonl", [GOOD, CLICKED]), tmp_path / "faulty.jsonl"
    for fault, reason in (({"time": [7]}, "no time"), ({"doc_id": {"x": 7}}, "no document")):
        account = ClickLog.open(path, written(faulty, [{**GOOD, **fault}])).account
        assert account.left_out == {reason: 1}


@pytest.mark.parametrize("clicks", [30, 60])
def test_bots_are_left_out(clicks: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    people = [{**GOOD, "doc_id": k, "user": f"u{k // 60}", "click": int(k % 60 < clicks)} for k in range(120)]
    path = written(tmp_path / "log.csv", [*people, {**CLICKED, "user": "v"}, {**GOOD, "user": "v"}])
    monkeypatch.setattr(opening, "MOST_CLICKS", 59)
    log = ClickLog.open(path)
    bots = clicks == 60
    assert log.account.left_out == ({"bots": 120} if bots else {})
    assert any("2 sessions are left out as bots" in remark for remark in log.remarks) == bots
    monkeypatch.setattr(opening, "MOST_CLICKS", 29)
    assert ClickLog.open(path).account.left_out == {"bots": 120}


@pytest.mark.parametrize("documents", [1, 50])
def test_a_session_that_clicks_one_document_often_is_no_bot(documents: int, tmp_path: Path) -> None:
    views = [{**VIEW, "doc_id": k, "rank": k + 1} for k in range(50)]
    clicks = [{**CLICK, "doc_id": k % documents, "timestamp": BASE + 9 + k} for k in range(50)]
    log = ClickLog.open(written(tmp_path / "log.csv", [SEARCH, *views, *clicks, {**SEARCH, "client_id": "other"}]))
    assert log.account.left_out["bots"] == (100 if documents == 50 else 0)


def remarks(path: Path, rows: list[Event], **options: Any) -> str:
    return "\n".join(ClickLog.open(written(path, rows), **options).remarks)


def test_what_is_suspicious_is_said(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    usual = remarks(path, [GOOD, CLICKED])
    assert "Columns: query from query; document from doc_id; position from rank" in usual
    assert "click 1 (1)" in usual and "1 of 1 queries" not in usual and "All impressions" not in usual
    assert "All impressions are at position 3" in remarks(path, [{**GOOD, "rank": 3}, {**CLICKED, "rank": 3}])
    assert "The first position with an impression is 2" in remarks(path, [{**GOOD, "rank": 3}, CLICKED])
    assert "1 of 2 queries have no click" in remarks(path, [{**GOOD, "query": "r"}, CLICKED])
    assert "1 impressions share their place" in remarks(path, [GOOD, {**CLICKED, "rank": 1}])
    late = {**GOOD, "time": iso(BASE + 5)}
    assert "1 events come after a later one of their session" in remarks(path, [late, CLICKED])
    assert "come after" not in remarks(path, [CLICKED, late])
    assert "1 events are earlier than the impression" in remarks(path, [SEARCH, VIEW, {**CLICK, "timestamp": BASE}])
    assert "earlier" not in remarks(path, EVENTS)
    assert "Times are dates (0) and" not in remarks(path, EVENTS)
    assert "Times are dates (1) and numbers (2)" in remarks(path, EVENTS)
    assert "purchase 0 (1)" in remarks(path, [*EVENTS, {**CLICK, "action_name": "purchase"}])
    bare = [{name: row[name] for name in ("doc_id", "rank", "click")} for row in (GOOD, CLICKED)]
    said = remarks(path, bare)
    assert "no column of queries" in said and "no column of sessions" in said and "There are no times" in said


def test_results_of_queries_are_impressions_where_no_event_shows_any(tmp_path: Path) -> None:
    results = {"query_response_hit_ids": ["d", "e", "d"]}
    other = {**SEARCH, **results, "query_id": "j", "user_query": "r"}
    rows = [{**SEARCH, **results}, other, *EVENTS[1:], {**CLICK, "query_id": "j", "doc_id": "e", "rank": 2}]
    log = ClickLog.open(written(tmp_path / "log.jsonl", rows))
    assert impressions(log) == {("q", "d", 1, 1.0): 1, ("r", "d", 1, 0.0): 1, ("r", "e", 2, 1.0): 1}
    assert log.account.used == {"impression": 1, "query": 2, "click": 2}
    assert any(remark.startswith("2 impressions are results that queries list") for remark in log.remarks)


def test_events_of_a_shared_id_belong_to_the_latest_impression_of_their_session(tmp_path: Path) -> None:
    views = [
        {**VIEW, "client_id": client, "rank": rank, "timestamp": BASE + 10 * rank}
        for client in "ab"
        for rank in (1, 2, 3)
    ]
    clicks: list[Event] = [
        {**CLICK, "client_id": "b", "timestamp": BASE + 25},
        {**CLICK, "client_id": "a", "timestamp": BASE},
    ]
    log = ClickLog.open(written(tmp_path / "log.csv", [*clicks, SEARCH, *reversed(views)]))
    clicked = [
        (batch.sessions[s], p)
        for batch in log
        for s, p, c in zip(batch.session, batch.position, batch.click, strict=True)
        if c
    ]
    assert sorted(clicked) == [("a", 1), ("b", 2)]


def test_the_value_of_an_event_is_weighted(tmp_path: Path) -> None:
    bought = {**CLICK, "action_name": "order", "value": 19.5}
    log = ClickLog.open(written(tmp_path / "log.jsonl", [*EVENTS, bought]), weights={"value": 2, "purchase": 3})
    assert impressions(log) == {("q", "d", 1, 1.0 + 3.0 + 39.0): 1}
    log = ClickLog.open(written(tmp_path / "log.csv", [GOOD, {**CLICKED, "value": "$5"}]))
    assert impressions(log) == {("q", "d", 1, 0.0): 1, ("q", "e", 2, 1.0): 1}  # what has no weight may be no number


@pytest.mark.parametrize(
    ("rows", "options", "words"),
    [
        ([SEARCH, CLICK], {}, "holds 1 clicks and no impressions"),
        ([CLICKED], {}, "all 1 impressions have a click"),
        ([GOOD], {}, "nothing with a weight happened"),
        ([SEARCH, VIEW], {}, "nothing with a weight happened"),
        ([{**GOOD, "time": "soon"}], {}, r"no impressions.*Most lines are left out: unreadable time \(1\)"),
        ([{"query": "q", "doc_id": "d", "click": 1}], {}, "no column of the position.*columns={'position'"),
        ([GOOD, CLICKED], {"columns": {"session": "uzer"}}, "no column 'uzer' for the session. Did you mean 'user'"),
        ([GOOD], {"columns": {"positon": "rank"}}, "'positon', which no column is. Did you mean 'position'"),
        (EVENTS, {"weights": {"klick": 1}}, "'klick', which is not in the log. Did you mean 'click'"),
        (EVENTS, {"weights": {"click": -1}}, r"weights\['click'\]=-1"),
        (EVENTS, {"first_position": 2}, "positions begin at 0 or 1"),
    ],
)  # fmt: skip
def test_what_nothing_can_be_learnt_from_is_an_error(
    rows: list[Event], options: dict[str, Any], words: str, tmp_path: Path
) -> None:
    with pytest.raises((DataError, ParameterError), match=words):
        ClickLog.open(written(tmp_path / "log.csv", rows), **options)


def test_files_that_cannot_be_read_are_an_error(tmp_path: Path) -> None:
    damaged = tmp_path / "log.csv.gz"
    noise = np.random.default_rng(0).bytes(4000)
    damaged.write_bytes(gzip.compress(b"query,doc_id,rank,click\n" + noise.hex().encode())[:-2000])
    for name, content in (
        ("log.parquet", b"PAR1"),
        ("log.xlsx", b"PK"),
        ("log.csv", b""),
        ("utf.csv", b"query,doc_id,rank,click\n\xff,d,1,1\n"),
    ):
        (tmp_path / name).write_bytes(content)
    for path in (*tmp_path.iterdir(), tmp_path / "missing.csv"):
        with pytest.raises(DataError, match=str(path)):
            ClickLog.open(path)
    with pytest.raises(ParameterError, match="no file"):
        ClickLog.open()


def test_an_account_is_a_table_of_80_columns() -> None:
    account = ReadingAccount(1_234_567)
    account.used.update({"impression": 1_000_000})
    account.left_out.update({"an action without a weight: " + "x" * 90: 234_567})
    lines = str(account).splitlines()
    assert [len(line) for line in lines] == [80, 80, 80]
    assert "1,000,000" in lines[0] and "..." in lines[1] and account.counted == account.lines
