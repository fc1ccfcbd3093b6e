"""Tuning and evaluation by a click log beside judgments that disagree: people judge by f0, users click by f1."""

import json
import sys
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest

import ranktune
from ranktune.command_line.app import _readable
from ranktune.dashboards.records.study import open_study
from ranktune.dashboards.views.overview import panels
from ranktune.solvers.clicks.counterfactual import ratio
from ranktune.solvers.clicks.examination import Examination
from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.errors import DataError, ParameterError
from ranktune.solvers.core.registrations import REGISTERED
from ranktune.tuner.study.declaration import Study
from tests.support.click_simulation import Users
from tests.support.commands import called, study_file
from tests.support.finished import clicked
from tests.support.study_samples import keyed

SOLVERS = [f"tests.support.custom_solvers:{name}" for name in ("ByFirst", "BySecond")]
CURVE = {place: 1.0 / place for place in range(1, 9)}


given = cache(partial(clicked, 6000))


@pytest.fixture
def files(tmp_path: Path) -> Any:
    judged, log, _ = given()
    judged.write_csv(tmp_path / "data.csv")
    log.write_csv(tmp_path / "log.csv")
    yield tmp_path
    for name in ("ByFirst", "BySecond"):
        REGISTERED.pop(name, None)


def truth(scores: Floats) -> float:
    """The clicks that a search expects, over all queries."""
    order = np.lexsort((-scores, np.repeat(np.arange(60), 8))).reshape(60, 8)
    attraction = Users().attraction(given()[2].grades)
    return float((attraction[order] @ np.array(list(CURVE.values()))).mean())


def run(*words: object) -> Any:
    return called(*words, env={"COLUMNS": "80"})


def test_the_choice_follows_the_metric_that_is_named(files: Path) -> None:
    judged, table = given()[0], files / "data.csv"
    options: dict[str, Any] = {
        "solvers": SOLVERS, "trials": 4, "home": files / "home", "clicks": files / "log.csv",
        "click_columns": {"document": "sku"},
    }  # fmt: skip
    by_clicks = ranktune.tune(judged, metric="dr", name="clicks", **options)
    by_people = ranktune.tune(table, name="people", also="ips@3", **options)
    plain = ranktune.tune(table, name="plain", also="err", solvers=SOLVERS, trials=4, home=files / "home")
    assert by_clicks.best.solver == "BySecond" and by_people.best.solver == "ByFirst"
    assert truth(by_clicks.best_model.predict(ranktune.read(judged))) > truth(judged["f0"].to_numpy()) + 0.2
    assert by_people.estimate == plain.estimate and by_people.expected_on_test == plain.expected_on_test
    for result, other, metric in ((by_clicks, "ByFirst", "ndcg@10"), (by_people, "BySecond", "ips@3")):
        found = result.clicks
        assert found is not None and (found.metric, found.best) == (metric, other)
        assert found.beside is not None and found.own is not None and found.beside.low > 0.0 > found.own.high
        rows = {row.solver: row for row in result.leaderboard}
        chosen, best = rows[result.best.solver].beside, rows[other].beside
        assert chosen is not None and best is not None and best.mean - chosen.mean == pytest.approx(found.beside.mean)
        assert result.test_metrics[metric] == pytest.approx(chosen.mean)
        said = f"On test {metric} would choose {other}: +"
        board = keyed(panels(open_study(Path(result.folder))), "leaderboard").table
        assert {metric, f"{metric} low"} <= set(board.columns)
        text = " ".join(result.conclusion.details)
        assert said in text and f"The choice followed {result.metric}." in text
        assert found.log["searches"] == 6000 and found.log["never_shown"] == 0
    resumed = ranktune.resume("people", trials=5, home=files / "home")
    assert resumed.trials == 5 and resumed.clicks == by_people.clicks


def test_the_commands_tell_what_sessions_tell(files: Path) -> None:
    table, log, curve = files / "data.csv", files / "log.csv", files / "curve.csv"
    polars.DataFrame({"position": list(CURVE), "propensity": list(CURVE.values())}).write_csv(curve)
    options = ["--clicks", log, "--click-column", "document=sku", "--propensities", curve]
    declared = study_file(
        files / "s.toml", data="data.csv", propensities="curve.csv", click_columns="document=sku", solvers=SOLVERS
    )
    tuned = run("tune", declared, "--metric", "ips", "--trials", 3, "--jobs", 1, "--clicks", log, "--home", files / "h")
    assert tuned.exit_code == 0, tuned.output
    assert "Use BySecond" in tuned.stdout and max(map(len, tuned.stdout.splitlines())) <= 80
    assert "ndcg@10 would choose ByFirst" in run("show", "s", "--wide", "--home", files / "h").stdout
    evaluated = run("evaluate", "column:f1", table, "--against", "column:f0", "--metric", "dr", *options, "--json")
    found = json.loads(evaluated.stdout)["clicks"]
    judged, impressions, _ = given()
    rank = {
        docid: place
        for part in judged.partition_by("qid")
        for place, docid in enumerate(part.sort("f1", descending=True)["docid"], 1)
    }
    target = np.array([rank[name] for name in impressions["sku"]])
    examined = Examination.given(CURVE)
    weight = examined.at(target) / examined.at(impressions["rank"].to_numpy())
    click, session = impressions["click"].to_numpy().astype(float), impressions["session"].to_numpy()
    by_hand = ratio(weight * click, np.ones(len(click)), session)
    expected = [8 * end for end in (by_hand.value, by_hand.low, by_hand.high)]  # 8 impressions a search
    assert [found["model"]["ips"]["value"], *found["model"]["ips"]["interval"]] == pytest.approx(expected, rel=1e-9)
    for metric, own in found["model"].items():
        low, high = own["interval"]
        assert low < truth(judged["f1"].to_numpy()) < high, metric
        assert found["difference"][metric]["value"] == pytest.approx(own["value"] - found["against"][metric]["value"])
    by_query = json.loads(evaluated.stdout)["metrics"]["dr"]["mean"]
    assert by_query == pytest.approx(found["model"]["dr"]["value"], rel=1e-9)
    shown = run("evaluate", "column:f1", table, "--against", "column:f0", *options)
    assert "Clicks a search, by session" in shown.stdout and max(map(len, shown.stdout.split("\n"))) <= 80


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["tune", "data.csv", "--metric", "dr"], "no click log. Give it (--clicks)"),
        (["tune", "p.toml"], "there is none. Give it (--clicks)"),
        (["tune", "data.csv", "--clicks", "log.csv"], 'Perhaps it is: click_columns = "document=sku" (study file)'),
        (
            ["evaluate", "column:f0", "data.csv", "--clicks", "log.csv", "--click-column", "document"],
            "document: write pairs of ROLE=NAME",
        ),
        (["evaluate", "column:f0", "data.csv", "--metric", "dr"], "Give --clicks LOG"),
        (["one-pass", "data.csv", "-o", "pass", "--metric", "snips"], "a single pass does not read"),
    ],
)
def test_what_is_missing_is_named(files: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], message: str) -> None:
    monkeypatch.chdir(files)
    study_file(files / "p.toml", data="data.csv", propensities="p.csv")
    monkeypatch.setattr(sys, "argv", ["ranktune", *words])
    error = run(*words).exception
    assert isinstance(error, DataError | ParameterError) and message in _readable(error)


def test_a_log_of_other_documents_is_refused(files: Path) -> None:
    judged, _, _ = given()
    others = judged.with_columns(docid=polars.col("docid") + "x")
    with pytest.raises(DataError, match=r"has shown none of the documents.*must be the same text"):
        ranktune.tune(others, clicks=str(files / "log.csv"), click_columns={"document": "sku"}, home=files)
    with pytest.raises(DataError, match=r'document="COLUMN"'):
        ranktune.evaluate("column:f0", judged.drop("docid"), clicks=files / "log.csv", click_columns=["document=sku"])
    with pytest.raises(ParameterError, match="'documnt', which no column is"):
        Study(clicks=["log.csv"], click_columns={"documnt": "sku"})
    assert not (files / "study").exists() and Study(clicks=["log.csv"], metric="DR@5").also == ("ndcg@10",)
