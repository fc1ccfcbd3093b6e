"""`ranktune watch` as a user runs it: a study of a table, days like before and days that differ, exit codes, pages."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import ranktune
from ranktune.dashboards.records.study import open_study
from ranktune.dashboards.views.registry import build
from ranktune.docs.shop import write_clicks, write_shop
from ranktune.solvers.core.errors import ParameterError, StudyError
from ranktune.tuner.drift import watch
from ranktune.tuner.drift.reference import REFERENCE
from tests.support.commands import called
from tests.support.reports import unpacked_page

COLUMNS: dict[str, Any] = {"qid": "search", "grade": "bought", "drop": ["sku", "day", "published"]}


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with data and a study in runs; published is left out, because ages change from day to day."""
    folder = tmp_path_factory.mktemp("shop")
    write_shop(folder)
    ranktune.tune(folder / "shop.csv", solvers=["RidgeRanker"], trials=2, name="shop", home=folder / "runs", **COLUMNS)
    return folder


def day_of(shop: Path, **columns: Any) -> pl.DataFrame:
    """Return the new searches with other columns."""
    return pl.read_csv(shop / "new.csv").with_columns(**columns)


def test_a_day_like_those_before_is_no_alarm_and_is_kept(shop: Path) -> None:
    done = called("watch", "shop", shop / "new.csv", "--home", shop / "runs", "--day", "2026-03-01", "--json")
    assert done.exit_code == 0
    found = json.loads(done.stdout)
    assert not found["alarm"] and found["moved"] == [] and found["notes"] == []
    assert json.loads((shop / "runs/shop/drift/2026-03-01.json").read_text()) == found
    assert 1 - (1 - found["rate_part"]) ** 2 == pytest.approx(0.05)
    scored = ranktune.evaluate(shop / "runs/shop/model.json", shop / "new.csv", qid="search", grade="bought")
    assert found["quality"]["mean"] == pytest.approx(scored["metrics"]["ndcg@10"]["mean"])


def test_a_changed_day_is_an_alarm_that_names_its_features(shop: Path) -> None:
    cheaper = day_of(shop, price=pl.col("price") * 1.5, brand=pl.col("brand").replace("Elm", "Fir"), rating=None)
    cheaper.write_csv(shop / "changed.csv")
    done = called("watch", "shop", shop / "changed.csv", "--home", shop / "runs", "--day", "2026-03-02")
    assert done.exit_code == 1 and "2026-03-02: ALARM" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    moved = re.findall(r"^  (\S+) .*sd|^  (\S+) +constant|^  (\S+=\(other\))", done.stdout, re.MULTILINE)
    assert {"".join(names) for names in moved} == {"price", "brand=Elm", "brand=(other)", "rating"}
    data = open_study(shop / "runs/shop")
    numbers, days, features = build("drift", data)
    assert re.match("Alarm on 2026-03-02: 4 of [0-9]+ features have moved", numbers.answer)
    cells = {row[0]: row[1] for row in features.table.rows}
    assert [sum(part) for part in cells["price"]] == pytest.approx([1.0, 1.0], abs=1e-3)
    assert np.cumsum(cells["price"][0])[5] > np.cumsum(cells["price"][1])[5]  # prices are higher
    assert [row[2] for row in days.table.rows][-1] == "alarm" and days.figure is not None
    assert set(cells) == {"price", "brand=Elm", "brand=(other)", "rating"}
    assert called("show", "shop", "--home", shop / "runs", "--page", shop / "page.html").exit_code == 0
    assert "2026-03-02" in unpacked_page((shop / "page.html").read_text())


def test_a_loss_is_found_by_grades_alone(shop: Path) -> None:
    grades = np.random.default_rng(0).permutation(pl.read_csv(shop / "new.csv")["bought"].to_numpy())
    found = watch("shop", day_of(shop, bought=pl.Series(grades)), home=shop / "runs", save=False)
    assert found.alarm and found.p_features is not None and found.p_features > found.rate_part
    assert found.quality is not None and not found.quality.holds and len(found.quality.worst) == 10


def test_the_queries_of_the_study_itself_are_paired_and_nothing_is_lost(shop: Path) -> None:
    found = watch("shop", shop / "shop.csv", home=shop / "runs", save=False)
    assert not found.alarm and found.quality is not None
    assert found.quality.paired == 48 and abs(found.quality.difference) < 1e-9  # a fifth of 240 are test queries


def test_without_grades_the_features_have_the_whole_rate(shop: Path) -> None:
    day_of(shop).drop("bought").write_csv(shop / "ungraded.csv")
    found = watch("shop", shop / "ungraded.csv", home=shop / "runs", save=False)
    assert found.quality is None and found.rate_part == pytest.approx(0.05)
    assert "no column 'bought' for the grades" in found.notes[0]


def test_a_study_that_kept_nothing_takes_the_training_data(shop: Path, tmp_path: Path) -> None:
    shutil.copytree(shop / "runs/shop", tmp_path / "shop", ignore=shutil.ignore_patterns(REFERENCE, "drift"))
    without = watch("shop", shop / "new.csv", home=tmp_path, save=False)
    assert without.p_features is None and without.features == () and "reference=" in without.notes[0]
    given = ["watch", "shop", shop / "new.csv", "--home", tmp_path, "--reference", shop / "shop.csv", "--no-save"]
    done = called(*given, "--json")
    assert done.exit_code == 0 and json.loads(done.stdout)["reference_queries"] == 240
    assert "--reference" in called("watch", "shop", shop / "new.csv", "--home", tmp_path, "--no-save").stdout
    assert not (tmp_path / "shop/drift").exists()


def test_a_metric_of_clicks_is_watched_by_the_log_of_the_new_data(shop: Path) -> None:
    write_clicks(shop)
    columns = {**COLUMNS, "document": "sku", "drop": ["day", "published"]}
    log: dict[str, Any] = {"clicks": shop / "clicks.csv", "click_columns": {"document": "sku"}}
    ranktune.tune(
        shop / "shop.csv", metric="dr@5", solvers=["RidgeRanker"], trials=1, name="clicked", home=shop / "runs",
        **log, **columns,
    )  # fmt: skip
    with_log = watch("clicked", shop / "shop.csv", home=shop / "runs", clicks=shop / "clicks.csv", save=False)
    assert with_log.quality is not None and with_log.quality.metric == "dr@5" and not with_log.alarm
    without = watch("clicked", shop / "shop.csv", home=shop / "runs", save=False)
    assert without.quality is None and "dr@5 is of clicks" in without.notes[0]


def test_folds_have_the_reference_of_the_model_that_is_delivered(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    for fold in ("Fold1", "Fold2"):
        (tmp_path / "data" / fold).mkdir(parents=True)
        for part in ("train", "vali", "test"):
            rows = [
                f"{int(x + generator.normal() > 0.7)} qid:{q} 1:{x:.4f} 2:{generator.normal():.4f}\n"
                for q in range(30)
                for x in generator.normal(size=6)
            ]
            (tmp_path / "data" / fold / f"{part}.txt").write_text("".join(rows))
    ranktune.tune(tmp_path / "data", solvers=["RidgeRanker"], trials=1, name="folds", home=tmp_path / "runs")
    found = watch("folds", tmp_path / "data/Fold1/test.txt", home=tmp_path / "runs")
    assert found.quality is not None and found.quality.part == "test" and found.tested == 30


def test_mistakes_are_named(shop: Path, tmp_path: Path) -> None:
    for wrong in ({"alarm": 0.0}, {"day": "yesterday"}):
        with pytest.raises(ParameterError, match=rf"^{next(iter(wrong))}"):
            watch("shop", shop / "new.csv", home=shop / "runs", **wrong)
    shutil.copytree(shop / "runs/shop", tmp_path / "shop", ignore=shutil.ignore_patterns("result.json"))
    with pytest.raises(StudyError, match=r"missing|not finished"):
        watch("shop", shop / "new.csv", home=tmp_path)
