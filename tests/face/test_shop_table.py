"""A table of a shop reaches a model by two commands, of which the first prints the second, and by two calls."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import Path

import pytest

import ranktune
from ranktune.solvers.data.columns.decisions import Undecided
from ranktune.tuner.workers.executor import InProcess
from tests.support.commands import ended
from tests.support.shop_table import shop_table

FAST = ("--trials", "2", "--solver", "RidgeRanker", "--solver", "BestFeature", "--jobs", "1", "--name", "shop")
GERMAN = {
    "query": "Suchbegriff", "query_id": "Suchanfrage_ID", "grade": "Relevanz", "id": "SKU", "clicks": "Klicks",
    "orders": "Käufe", "title": "the product's title, short", "position": "Rank",
}  # fmt: skip
DOUBLED = {"grade": "label", "reviews": "relevance", "url": "doc_id", "clicks": "add_to_cart", "orders": "purchases"}
TABLES: Mapping[str, Mapping[str, str]] = {"shop.csv": {}, "it's a $shop.csv": GERMAN, "two grades.parquet": DOUBLED}
WANTED = {"bm25_title", "bm25_text", "stock", "published:age_days", "clicks_last_30_days", "past_ctr", "brand=brand 3"}


@pytest.fixture(params=TABLES)
def table(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RANKTUNE_HOME", raising=False)
    frame, file = shop_table(TABLES[request.param]), str(request.param)
    frame.write_csv(file) if file.endswith("csv") else frame.write_parquet(file)
    return file


def named(table: str, *names: str) -> set[str]:
    return {TABLES[table].get(name, name) for name in names}


@pytest.mark.filterwarnings("ignore::ranktune.solvers.core.errors.RankTuneWarning")
def test_the_second_command_is_printed_by_the_first(
    table: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended(monkeypatch, "tune", table, *FAST) == 2
    said = capsys.readouterr().err.splitlines()
    words = shlex.split(said[-1])
    assert words[: 3 + len(FAST)] == ["ranktune", "tune", table, *FAST]
    dropped = {name for at, word in enumerate(words) if word == "--drop" for name in words[at + 1].split(",")}
    assert not named(table, "position", "clicks", "orders", "description", "search_date") - dropped - {"Rank"}
    assert not named(table, "past_ctr", "clicks_last_30_days", "published", "brand", "stock") & dropped
    assert ended(monkeypatch, *words[1:]) == 0
    features = set(ranktune.load_model("ranktune-runs/shop/model.json").feature_names or ())
    assert features >= WANTED and not features & named(table, "clicks", "orders", "position", "query", "grade", "id")


@pytest.mark.filterwarnings("ignore::ranktune.solvers.core.errors.RankTuneWarning")
def test_data_are_described_before_questions_and_without_an_error(
    table: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended(monkeypatch, "data", table) == 0
    shown = capsys.readouterr().out
    places = [shown.index(word) for word in ("queries", "distinct grades", "Columns", "decisions about columns:\n1. ")]
    command = shown.splitlines()[-1]
    assert places == sorted(places) and " 300" in shown and "0: 1,800, 1: 750, 2: 300, 3: 150" in shown
    assert ended(monkeypatch, "tune", table) == 2
    assert capsys.readouterr().err.splitlines()[-1] == command


@pytest.mark.filterwarnings("ignore::ranktune.solvers.core.errors.RankTuneWarning")
def test_the_questions_and_the_command_are_in_json(
    table: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended(monkeypatch, "data", table, "--json") == 0
    described = json.loads(capsys.readouterr().out)
    assert shlex.split(described["command"])[:3] == ["ranktune", "tune", table]
    assert described["parts"][0]["queries"] == 300
    assert {row["column"] for row in described["columns"]} == set(shop_table(TABLES[table]).columns)
    needed = {name for row in described["decisions"] if row["is_needed"] for _, name in row["answer"]}
    assert needed >= named(table, "clicks", "orders", "query_id", "title") - {"id"}


@pytest.mark.filterwarnings("ignore::ranktune.solvers.core.errors.RankTuneWarning")
@pytest.mark.parametrize("names", TABLES.values(), ids=TABLES)
def test_in_python_the_error_has_the_call(names: Mapping[str, str], tmp_path: Path) -> None:
    data, home, executor = shop_table(names, queries=100), tmp_path, InProcess()
    with pytest.raises(Undecided, match=r"\d decisions about columns:\n1\. ") as info:
        ranktune.tune(data, solvers="RidgeRanker", trials=1, executor=executor, home=home, drop="size,col*")
    call = str(info.value).splitlines()[-1].partition(": ")[2]
    scope = {"ranktune": ranktune, "data": data, "executor": executor}
    result = eval(call.replace(f"home={home!r}", "home=home"), scope | {"home": home})
    assert "drop=['size,col*', " in call and "brand=brand 3" in result.best_model.feature_names
    assert not {"size=S", "colour=red"} & set(result.best_model.feature_names)
