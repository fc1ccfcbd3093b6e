"""Click logs: every format gives the impressions that a reader by hand finds, and every line is accounted for."""

import csv
import gzip
import json
from collections import Counter
from pathlib import Path

import numpy as np
import polars
import pyarrow as pa
import pytest

from ranktune.solvers.clicks.reading import opening
from ranktune.solvers.clicks.reading import opening as sources
from ranktune.solvers.clicks.reading.click_log import ClickLog
from ranktune.solvers.clicks.reading.events import milliseconds
from ranktune.solvers.clicks.reading.store import NO_TIME
from ranktune.solvers.core.errors import DataError
from tests.support.click_logs import BASE, Event, by_hand, impressions, random_events, written

WEIGHTS = {"click": 1.0, "add_to_cart": 2.5}
EVENT = "event_attributes"


def nested(event: Event) -> Event:
    """Return an event in the schema of User Behavior Insights."""
    row = {name: value for name, value in event.items() if name not in ("document", "position")}
    if "document" in event:
        position = {"position": {"ordinal": event["position"]}} if "position" in event else {}
        row[EVENT] = {"object": {"object_id": event["document"], "size": {"of": 3}}, **position}
    return row


def bulk(path: Path, events: list[Event]) -> Path:
    lines = (f"{json.dumps({'index': {'_index': 'ubi'}})}\n{json.dumps(nested(event))}\n\n" for event in events)
    path.write_bytes(gzip.compress("".join(lines).encode()))
    return path


def files_of(form: str, events: list[Event], folder: Path) -> list[Path]:
    """Write events in a form."""
    table = polars.DataFrame(
        [{**event, "timestamp": str(event["timestamp"])} for event in events], infer_schema_length=None
    )
    if form == "apart":
        queries = [event for event in events if "user_query" in event]
        others = [nested(event) for event in events if "user_query" not in event]
        return [written(folder / "events.ndjson", others), written(folder / "queries.csv", queries)]
    path = folder / f"log.{form}"
    if form == "parquet":
        table.write_parquet(path)
    elif form == "ndjson.gz":
        return [bulk(path, events)]
    elif form == "csv.gz":
        path.write_bytes(gzip.compress(written(folder / "log.csv", events).read_bytes()))
    else:
        written(path, events)
    return [path]


@pytest.mark.parametrize("parts", [1 << 10, 1 << 40])
@pytest.mark.parametrize("form", ["csv", "csv.gz", "parquet", "jsonl", "ndjson.gz", "apart"])
def test_every_form_of_a_log_gives_what_a_reader_by_hand_finds(
    form: str, parts: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "PART", parts)
    monkeypatch.setattr(sources, "OBJECTS", 10)
    events = random_events(len(form))
    log = ClickLog.open(*files_of(form, events, tmp_path), weights=WEIGHTS)
    expected, fates = by_hand(events, WEIGHTS)
    assert impressions(log) == expected
    account = log.account
    assert account.used + account.left_out == fates
    assert len(fates) >= 11
    assert account.counted == account.lines == len(events) + account.other.total()


def test_rows_with_clicks_are_as_given(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    rows: list[Event] = [
        {
            "QID": f"q {generator.integers(3)}", "item_id": f"{generator.integers(9):03d}", "rank": rank,
            "clicked": int(generator.random() < 0.3), "purchases": int(generator.integers(3)), "pscore": 0.5,
        }
        for rank in generator.integers(1, 9, 200).tolist()
    ]  # fmt: skip
    expected = Counter((r["QID"], r["item_id"], r["rank"], 4.0 * r["purchases"] + r["clicked"]) for r in rows)  # type: ignore[operator]
    log = ClickLog.open(written(tmp_path / "log.csv", rows), weights={"purchases": 4})
    assert impressions(log) == expected
    (batch,) = log
    assert batch.time is None and batch.propensity is not None and (batch.propensity == 0.5).all()
    assert len(set(batch.session.tolist())) == 200
    assert log.account.used == {"impression": 200}
    other = {"slot": "rank", "c": "clicked"}
    frame = polars.DataFrame(rows).rename({name: new for new, name in other.items()})
    frame.write_parquet(tmp_path / "log.parquet")
    renamed = ClickLog.open(
        tmp_path / "log.parquet", weights={"purchase": 4}, columns={"position": "slot", "click": "c"}
    )
    assert impressions(renamed) == expected


def test_each_application_has_its_first_position(tmp_path: Path) -> None:
    rows: list[Event] = [
        {"query": "q", "doc_id": f"{name}{k}", "position": first + k, "click": int(k == 1), "application": name}
        for name, first in (("old", 0), ("new", 1))
        for k in range(3)
    ]
    path = written(tmp_path / "log.csv", rows)
    log = ClickLog.open(path)
    assert {shown[1]: shown[2] for shown in impressions(log)} == {
        f"{name}{k}": k + 1 for name in ("old", "new") for k in range(3)
    }
    assert [remark for remark in log.remarks if "begin at" in remark] == [
        "Positions begin at 0 in old, by the positions seen.",
        "Positions begin at 1 in new, by the positions seen.",
    ]
    given = ClickLog.open(path, first_position=1)
    assert given.account.left_out == {"impossible position": 1}
    assert "Positions begin at 1 in old and new, as given." in given.remarks
    rows += [{"query": "q", "doc_id": "x", "position": p, "click": 0, "application": "new"} for p in [1] * 40 + [0]]
    assert ClickLog.open(written(path, rows)).account.left_out == {"impossible position": 1}


def test_times_of_all_forms_are_the_same_instant() -> None:
    texts = [
        "2023-11-14T22:13:20Z", "2023-11-14 22:13:20.000000+00:00", "2023-11-14T23:13:20.000+0100",
        "2023-11-14 22:13:20", "2023-11-14T17:13:20-05", "1700000000", "1700000000000", "1700000000000000", "1.7e18",
    ]  # fmt: skip
    assert set(milliseconds(pa.array(texts)).tolist()) == {BASE}
    others = ["2023-11-14", "14.11.2023", "2023-11-14T22:13Z", "14.11.2023 22:13", "", "soon", None]
    assert milliseconds(pa.array(others)).tolist() == [BASE - 80_000_000] * 2 + [BASE - 20_000] * 2 + [NO_TIME] * 3


def test_sessions_are_divided_by_their_first_events(tmp_path: Path) -> None:
    generator = np.random.default_rng(1)
    times = BASE + generator.integers(0, 10**9, 400)
    rows: list[Event] = [
        {"query": "q", "doc_id": k, "rank": 1 + k % 5, "click": k % 2, "user": f"u{generator.integers(40)}", "ts": time}
        for k, time in enumerate(times.tolist())
    ]
    first = {user: min(r["ts"] for r in rows if r["user"] == user) for user in {r["user"] for r in rows}}  # type: ignore[type-var]
    log = ClickLog.open(written(tmp_path / "log.csv", rows))
    earlier, later = log.parts(0.5)
    for part in (earlier, later):
        assert part.account.counted == part.account.lines == 401
    assert impressions(earlier) + impressions(later) == impressions(log)
    users = [{batch.sessions[s] for batch in half for s in batch.session} for half in (earlier, later)]
    assert len(users[0]) == len(users[1]) == 20
    assert max(first[u] for u in users[0]) < min(first[u] for u in users[1])  # type: ignore[type-var, operator]


def test_all_lines_of_a_log_of_user_behavior_insights_are_accounted_for(real_data: Path) -> None:
    path = real_data / "clicks" / "ubi" / "ubi_queries_events.ndjson.gz"
    records = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    actions = Counter(record.get("action_name", "query") for record in records if "index" not in record)
    log = ClickLog.open(path)
    account = log.account
    assert account.lines == account.counted == len(records)
    assert account.other == {"actions of a bulk request": sum("index" in record for record in records)}
    assert account.used["click"] == sum(batch.click.sum() for batch in log) > 0
    ignored = {what.rpartition(" ")[2]: n for what, n in account.left_out.items() if what.startswith("an action")}
    counted = ("query", "impression", "click", "add_to_cart", "purchase")
    assert ignored == {kind: n for kind, n in actions.items() if kind not in counted}
    assert {remark[:42] for remark in log.remarks} >= {
        "Positions begin at 0 in esci_ubi_sample, b",
        "Positions begin at 1 in Chorus, by the pos",
    }


@pytest.mark.parametrize("name", ["bts_men", "random_women"])
def test_open_bandit_is_read_with_its_propensities(real_data: Path, name: str) -> None:
    path = real_data / "clicks" / "open_bandit" / f"{name}.csv.gz"
    with gzip.open(path, "rt") as file:
        rows = list(csv.DictReader(file))
    log = ClickLog.open(path)
    got = [
        (batch.documents[d], p, c, e)
        for batch in log
        for d, p, c, e in zip(batch.document, batch.position, batch.click, batch.propensity, strict=True)  # type: ignore[arg-type]
    ]
    expected = [(r["item_id"], int(r["position"]), float(r["click"]), float(r["propensity_score"])) for r in rows]
    assert Counter(got) == Counter(expected)
    assert log.account.used == {"impression": len(rows)} and not log.account.left_out


def test_the_latest_share_of_sessions_is_set_aside(tmp_path: Path) -> None:
    rows: list[Event] = [
        {
            "query": "q",
            "doc_id": f"d{k}",
            "rank": 1,
            "click": k % 2,
            "user": f"u{k % 10}",
            "ts": BASE + 60_000 * (k % 5),
        }
        for k in range(40)
    ]
    log = ClickLog.open(written(tmp_path / "log.csv", rows))
    earlier, later = log.parts(0.3)  # u4 and u9 are last, and before them u8 is after u3
    assert impressions(earlier) + impressions(later) == impressions(log)
    assert {batch.sessions[s] for batch in later for s in batch.session} == {"u4", "u9", "u8"}
    without = ClickLog.open(written(tmp_path / "log.csv", [{**row, "ts": ""} for row in rows]))
    assert {batch.sessions[s] for batch in without.parts(0.3)[1] for s in batch.session} == {"u7", "u8", "u9"}
    with pytest.raises(DataError, match="cannot be divided: there are 10"):
        log.parts(0.04)


def test_sessions_of_listed_results_have_the_times_of_their_queries(tmp_path: Path) -> None:
    rows: list[Event] = [
        {
            "query_id": f"i{k}", "user_query": "q", "session_id": f"s{k}", "timestamp": BASE + k,
            "query_response_object_ids": ["a", "b"],
        }
        for k in range(8)
    ]  # fmt: skip
    clicks: list[Event] = [
        {"query_id": f"i{k}", "action_name": "click", "document": "a", "session_id": f"s{k}", "timestamp": BASE + 9 + k}
        for k in (1, 6)
    ]
    earlier, later = ClickLog.open(written(tmp_path / "log.jsonl", rows + clicks)).parts(0.5)
    assert sorted(impressions(earlier).items()) == sorted(impressions(later).items())
    assert impressions(earlier)["q", "a", 1, 1.0] == 1 and impressions(earlier)["q", "b", 2, 0.0] == 4
