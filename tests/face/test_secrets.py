"""What a person gives with a password in it is never printed with it, whatever the command says of it."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import ranktune
from ranktune.dashboards.web.one_view import write_history
from ranktune.solvers.clicks.judgments import Judgments
from ranktune.solvers.core.errors import DataError, RankTuneWarning, without_secrets
from ranktune.solvers.data.readers.judgments import read_judgments
from ranktune.tuner.study.events import FILE, Event, Events
from tests.support.commands import ended
from tests.support.reports import payload_of

URLS = (
    "s3://AKIAKEY:S3CR3T/x+y@bucket/x.csv",
    "https://user:S3CR3T@host.example/x.csv",
    "https://S3CR3T@host.example/x.csv",
    "gs://me:S3CR3T:@host:9000/a b.parquet",
    "https://host.example/x.csv?api_key=S3CR3T&v=1",
    "https://host.example/x.csv?X-Amz-Signature=S3CR3T",
)
COMMANDS = (
    ("data", "{}"), ("evaluate", "{}", "x.csv"), ("evaluate", "column:x", "{}"), ("tune", "{}", "--trials", "1"),
    ("tune", "x.csv", "--test", "{}"), ("interleave", "--judge", "{}"), ("interleave", "{}", "{}", "{}", "-o", "y.csv"),
    ("clicks", "{}", "-o", "y.csv"), ("predict", "{}", "x.csv"), ("export", "{}", "--format", "solr"),
    ("watch", "{}", "x.csv"), ("retune", "s", "{}"),
    ("show", "{}"), ("explain", "{}", "x.csv"),
)  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_no_command_prints_the_password_of_an_address(
    command: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    url = URLS[COMMANDS.index(command) % len(URLS)]
    assert ended(monkeypatch, *(word.format(url) for word in command)) not in (0, 70)
    printed = "".join(capfd.readouterr())
    assert printed and "S3CR3T" not in printed


@pytest.mark.parametrize("url", URLS)
def test_errors_warnings_and_events_have_no_password(url: str, tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        ranktune.read(url)
    for said in (caught.value, DataError(f"{url[:-4]}... is cut"), RankTuneWarning(f"'{url}', and more")):
        assert "S3CR3T" not in str(said) and "***" in str(said)
    lines: list[str] = []
    with Events(tmp_path, lines.append) as events:
        events.write(Event.STUDY_STARTED, data=url, parts=[url])
    assert "S3CR3T" not in (tmp_path / FILE).read_text() + "".join(lines)


@pytest.mark.parametrize(
    "text",
    [
        "http://127.0.0.1:5000/x, tcp://h:8786; http://[::1]:80/",
        "see http://h:9200.", "'http://h:80'", "C:/data/x.csv",
        "(http://HOST:8983/solr/COLLECTION)", "postgresql://me@h/db", "qid:1 3:0.5 me@host", "s3://bucket/a:b/c",
        "s3://k:***@bucket", "a note: keep 5 of 9", "file:///data/a:b.csv",
        "trial 3: postgresql://me@h/db?sslmode=require, passed = 3, x@y.z, http://h/a?b=c",
    ],
)  # fmt: skip
def test_what_has_no_password_stays(text: str) -> None:
    assert without_secrets(text) == text


CELLS = ("=1+1", "+1", "-shoes", "@a", "\tb", "\rb", "'=a", "''=a", "'a", "'", "", "a=b", "shoes", "-", "=" * 5)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_judgments_from_clicks_run_no_formula_and_are_read_back_as_they_are(ending: str, tmp_path: Path) -> None:
    n, path = len(CELLS), tmp_path / f"judged.{ending}"
    ones = np.ones(n)
    Judgments(CELLS, CELLS[::-1], ones / 2, ones, ones, ones, ones, ones, ("known",) * n).save(path)
    if ending == "csv":
        raw = pl.read_csv(path, schema_overrides={"query": pl.String, "document": pl.String})
        assert not [cell for cell in (*raw["query"], *raw["document"]) if cell and cell[0] in "=+-@\t\r"]
    read = read_judgments(path)
    assert {(q, d) for q, graded in read.by_query.items() for d in graded} == {*zip(CELLS, CELLS[::-1], strict=True)}


@pytest.mark.parametrize("name", ["<b>v2</b>", "<a href='javascript:x'>v2</a>", "v2\u202e&lt;i&gt;<i>"])
def test_the_page_of_versions_has_no_markup_of_their_names(name: str, tmp_path: Path) -> None:
    row = {
        "version": name, "current": True, "decision": "replace", "state": "done", "solver": "RankSVM", "quality": 0.5,
        "interval": [0.4, 0.6], "gain": 0.1, "features": ["a"], "queries": 9, "changes": [],
    }  # fmt: skip
    rows = [row, row | {"version": "v1"}, row | {"version": name}]
    page = write_history({"study": "s", "metric": "ndcg@10", "versions": rows}, tmp_path / "page.html").read_text()
    data = payload_of(page)
    (figure,) = [panel["figure"] for panel in data["views"][0]["panels"]]
    shown = [*figure["data"][0]["x"], *figure["layout"]["xaxis"]["categoryarray"]]
    assert data["study"]["facts"] == ["3 versions"]
    alone = write_history({"study": "s", "metric": "ndcg@10", "versions": [row]}, tmp_path / "one.html")
    assert payload_of(alone.read_text())["study"]["facts"] == ["1 version"]
    assert len({*shown}) == 3 and not any(sign in text for text in shown for sign in "<>\u202e")
