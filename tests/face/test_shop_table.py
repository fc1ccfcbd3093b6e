"""A table of a shop reaches a model by two commands, of which the first prints the second, and by two calls."""

import json
import shlex
from collections.abc import Mapping
from pathlib import Path

import pytest

import ranktune
from ranktune.solvers.data.columns.decisions import Undecided
from tests.support.commands import ranktune as run
from tests.support.shop_table import shop_table

FAST = ("--trials", "2", "--solver", "RidgeRanker", "--solver", "BestFeature", "--name", "shop")
GERMAN = {
    "query": "Suchbegriff", "query_id": "Suchanfrage_ID", "grade": "Relevanz", "id": "SKU", "clicks": "Klicks",
    "orders": "Käufe", "title": "the product's title, short", "position": "Rank",
}  # fmt: skip
DOUBLED = {"grade": "label", "reviews": "relevance", "url": "doc_id", "clicks": "add_to_cart", "orders": "purchases"}
TABLES: Mapping[str, Mapping[str, str]] = {"shop.csv": {}, "it's a $shop.csv": GERMAN, "two grades.parquet": DOUBLED}
WANTED = {"bm25_title", "bm25_text", "stock", "published:age_days", "clicks_last_30_days", "past_ctr", "brand=brand 3"}


@pytest.mark.parametrize("table", TABLES)
def test_the_questions_are_answered_by_the_command_that_is_printed(table: str, tmp_path: Path) -> None:
    def named(*names: str) -> set[str]:
        return {TABLES[table].get(name, name) for name in names}

    frame, file = shop_table(TABLES[table], queries=100), tmp_path / table
    frame.write_csv(file) if table.endswith("csv") else frame.write_parquet(file)
    shown = run("data", table, cwd=tmp_path).stdout
    places = [shown.index(word) for word in ("queries", "distinct grades", "Columns", "decisions about columns:\n1. ")]
    assert places == sorted(places) and " 100" in shown and "0: 600, 1: 250, 2: 100, 3: 50" in shown

    described = json.loads(run("data", table, "--json", cwd=tmp_path).stdout)
    assert shlex.split(described["command"])[:3] == ["ranktune", "tune", table]
    assert described["parts"][0]["queries"] == 100
    assert {row["column"] for row in described["columns"]} == set(frame.columns)
    needed = {name for row in described["decisions"] if row["is_needed"] for _, name in row["answer"]}
    assert needed >= named("clicks", "orders", "query_id", "title") - {"id"}

    command = run("tune", table, cwd=tmp_path, check=2).stderr.splitlines()[-1]
    assert command == shown.splitlines()[-1]
    words = shlex.split(command)
    assert words[:3] == ["ranktune", "tune", table]
    dropped = {name for at, word in enumerate(words) if word == "--drop" for name in words[at + 1].split(",")}
    assert not named("position", "clicks", "orders", "description", "search_date") - dropped - {"Rank"}
    assert not named("past_ctr", "clicks_last_30_days", "published", "brand", "stock") & dropped
    run(*words[1:], *FAST, cwd=tmp_path)
    features = set(ranktune.load_model(tmp_path / "ranktune-runs/shop/model.json").feature_names or ())
    assert features >= WANTED and not features & named("clicks", "orders", "position", "query", "grade", "id")


def test_the_words_that_are_given_are_in_the_command_that_is_printed(tmp_path: Path) -> None:
    shop_table(queries=60).write_csv(tmp_path / "shop.csv")
    said = run("tune", "shop.csv", *FAST, cwd=tmp_path, check=2).stderr.splitlines()[-1]
    assert shlex.split(said)[: 3 + len(FAST)] == ["ranktune", "tune", "shop.csv", *FAST]


@pytest.mark.filterwarnings("ignore::ranktune.solvers.core.errors.RankTuneWarning")
@pytest.mark.parametrize("names", TABLES.values(), ids=TABLES)
def test_in_python_the_error_has_the_call(names: Mapping[str, str], tmp_path: Path) -> None:
    data, home = shop_table(names, queries=100), tmp_path
    with pytest.raises(Undecided, match=r"\d decisions about columns:\n1\. ") as info:
        ranktune.tune(data, solvers="RidgeRanker", trials=1, home=home, drop="size,col*")
    call = str(info.value).splitlines()[-1].partition(": ")[2]
    scope = {"ranktune": ranktune, "data": data}
    result = eval(call.replace(f"home={home!r}", "home=home"), scope | {"home": home})
    assert "drop=['size,col*', " in call and "brand=brand 3" in result.best_model.feature_names
    assert not {"size=S", "colour=red"} & set(result.best_model.feature_names)
