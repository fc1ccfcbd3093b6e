"""A study is retuned on new data: through the public function and the command line."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import ranktune
from ranktune.command_line.production.retune import EXIT_CODES
from ranktune.daily.retuning import Retuned, retune
from ranktune.earlier import record
from ranktune.solvers.core.errors import DataError, ParameterError, StudyError
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.metrics.metrics import parse_metric
from ranktune.tuner.drift import watch
from ranktune.tuner.retuning.earlier import load_earlier
from ranktune.tuner.retuning.portfolio import load_fitted
from ranktune.tuner.retuning.versions import CURRENT, DELIVERED, current, model_file, versions
from ranktune.tuner.study.home import StudyFolder
from tests.support.commands import called, succeeded, write_letor
from tests.support.reports import unpacked_page

BEFORE, AFTER = (1.0, 1.0, 0.0, 0.0), (0.0, 1.0, 1.0, 0.0)


def day(seed: int, truth: tuple[float, ...] = BEFORE, count: int = 60) -> Queries:
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(count * 10, 4))
    grades = np.digitize(X @ truth + 0.5 * generator.normal(size=len(X)), [0.5, 1.5])
    return Queries.from_arrays(X, grades, qid=np.repeat(np.arange(count), 10))


def again(home: Path, data: Queries, **options: Any) -> Retuned:
    return retune("shop", data, home=home, **options)


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("home")
    solvers = ["RidgeRanker", "RankSVM"]
    ranktune.tune(day(0), name="shop", solvers=solvers, trials=7, home=home)
    return home


def test_the_same_data_give_the_same_values_and_keep(home: Path) -> None:
    kept = [path for path in (home / "shop").rglob("*") if path.is_file() and not path.name.startswith("record.db-")]
    before = {path: path.read_bytes() for path in kept}
    done = again(home, day(0), version="same")
    assert done.decision == "keep" and done.model == home / "shop" / "model.json"
    moved = done.evidence["movement"]
    assert (moved["shift"], moved["variance"]) == (0.0, 0.0), "the earlier trials count in full"
    seen = done.evidence["seen"]
    assert 44 <= seen <= 48, "the development queries, which the incumbent was fitted to, but for those of one grade"
    assert {each["queries"] for each in done.evidence["contenders"].values()} <= set(range(8, 61 - seen))
    assert before == {path: path.read_bytes() for path in before}, "yesterday's study is not touched"
    earlier = load_earlier(home / "same")
    assert earlier is not None and done.result.trials == max(1, len(earlier.per_query) + 1)
    trials = record(StudyFolder(home / "same"), "").trials
    repeated = [trial for trial in trials if earlier.place(trial.params) is not None]
    assert trials[: len(repeated)] == repeated, "they come first"
    known = {str(one.params) for one in earlier.observed}
    assert not any(str(trial.params) in known for trial in trials[len(repeated) :]), "nothing known is tried again"


def test_where_the_truth_moves_the_model_changes_and_a_version_comes_back(home: Path) -> None:
    done = again(home, day(1, AFTER), version="moved")
    assert done.decision in ("refit", "replace") and done.model.parent == home / "moved"
    contender = done.evidence["contenders"][done.decision]
    new, old = (ranktune.load_model(path) for path in (done.model, home / "shop" / "model.json"))
    other = ranktune.compare(new, old, day(2, AFTER))
    assert contender["interval"][0] > 0.0 and other.low > 0.0, "on queries of another day too"
    assert done.evidence["seen"] == 0 and contender["queries"] >= 55, "on all queries of the day"
    watched = watch("shop", day(2, AFTER), home=home, save=False)
    assert not watched.alarm and watched.quality is not None and "version 'moved'" in watched.notes[0]
    values = parse_metric("ndcg@10").per_query(new.predict(day(2, AFTER)), day(2, AFTER))
    assert watched.quality.mean == pytest.approx(np.nanmean(values))
    third = again(home, day(3, AFTER), version="third")
    assert third.decision == "keep" and third.model == done.model
    assert [folder.path.name for folder in versions(home, "third")] == ["shop", "moved", "third"]
    succeeded("retune", "shop", "--rollback", "shop", "--home", home)
    assert current(home, "shop").path(home) == home / "shop" / "model.json" == model_file(home, "shop")
    assert watch("shop", day(2, AFTER), home=home, save=False).alarm
    assert model_file(home, "third") == done.model, "what that version delivered"
    found = json.loads(succeeded("retune", "shop", "--history", "--home", home, "--json", "--page", home / "page.html"))
    lines = found["versions"]
    assert [line["decision"] for line in lines] == ["first", done.decision, "keep"]
    assert [line["current"] for line in lines] == [True, False, False] and lines[1]["changes"]
    low, high = lines[1]["interval"]
    assert low < lines[1]["quality"] < high and "moved" in unpacked_page((home / "page.html").read_text())
    (home / "shop" / CURRENT).write_text("{}")
    with pytest.raises(StudyError, match="retune shop --rollback"):
        current(home, "shop")


def test_unrelated_trials_have_no_influence(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The suggestions are those of a study that knows nothing of the earlier values."""
    blank = Path(shutil.copytree(home, home / "blank"))
    done = again(home, day(4, (0.0, 0.0, 0.0, 1.0)), version="noise", trials=8)
    assert done.evidence["movement"]["variance"] is None
    first = record(StudyFolder(home / "noise"), "").trials
    earlier = load_earlier(home / "noise")
    assert earlier is not None
    measured = earlier.per_query
    observed = [one if k in measured else replace(one, value=1 - one.value) for k, one in enumerate(earlier.observed)]
    with monkeypatch.context() as patch:
        patch.setattr("ranktune.daily.portfolio._observed", lambda trial, path: observed.pop(0))
        other = again(blank, day(4, (0.0, 0.0, 0.0, 1.0)), version="noise", trials=8)
    assert other.evidence["movement"]["variance"] is None
    assert [t.params for t in record(StudyFolder(blank / "noise"), "").trials] == [t.params for t in first]


def test_an_interrupted_version_goes_on(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = again(Path(shutil.copytree(home, home / "uninterrupted")), day(5, AFTER), version="whole")

    def ended(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("ranktune.tuner.runner.choice_stages.blended_candidates", ended)
        again(home, day(5, AFTER), version="whole")
    assert not StudyFolder(home / "whole").has_result
    with pytest.raises(StudyError, match="'whole' of 'shop' was interrupted"):
        retune("shop", "api-search", version="whole", home=home)
    done = again(home, day(5, AFTER))
    assert (done.result.study, done.decision) == ("whole", whole.decision)
    assert done.evidence["movement"] == whole.evidence["movement"]
    assert done.evidence["contenders"] == whole.evidence["contenders"]


def test_what_cannot_be_retuned_is_refused(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(StudyError, match="already"):
        again(home, day(1), version="shop")
    for data, test in (("gone.csv", None), (day(1), "gone.csv")):
        with pytest.raises(DataError, match=r"gone.csv: there is no such file"):
            retune("shop", data, test=test, verbose=True, home=home)
    assert capsys.readouterr().err == "", "nothing is begun"
    with pytest.raises(ParameterError, match="trials"):
        again(home, day(1), trials=-1)
    (home / "shop" / "model.json").unlink()
    shutil.rmtree(home / "shop" / DELIVERED)
    with pytest.raises(StudyError, match="is gone"):
        again(home, day(1))


def test_exit_codes_and_names_of_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RANKTUNE_HOME", raising=False)
    files = {}
    for name, (seed, truth) in {"old": (0, BEFORE), "same": (1, BEFORE), "new": (2, AFTER)}.items():
        queries = day(seed, truth, 40)
        ids = [f"{name}{q}" for q in np.repeat(np.arange(40), 10)]
        files[name] = write_letor(tmp_path / f"{name}.txt", np.asarray(queries.features), queries.grades, ids)
    succeeded("tune", files["old"], "--name", "shop", "--solver", "RidgeRanker", "--trials", 3)
    kept = json.loads(succeeded("retune", "shop", files["same"], "--json"))
    assert kept["decision"] == "keep" and kept["study"].startswith("shop@2")
    done = called("retune", "shop", files["new"], "--as", "new")
    assert done.exit_code == EXIT_CODES["refit"] == 10 and "Refit:" in done.output
    repeated = called("retune", "shop", files["new"], "--as", "new")
    assert (repeated.exit_code, repeated.stdout) == (10, done.stdout), "as after a kill before its exit"
    other = called("retune", "shop", files["same"], "--as", "new")
    assert "there is a study 'new' already" in str(other.exception)
    by_name, by_file = (
        json.loads(succeeded("evaluate", model, files["new"], "--json"))["metrics"]
        for model in ("shop", "ranktune-runs/new/refit.json")
    )
    assert by_name == by_file


def test_with_times_the_current_model_is_judged_on_later_queries_than_its_own(tmp_path: Path) -> None:
    """It knows days 10 to 20 of 30; on days before these its ranking is poor, which is no reason to replace it."""
    generator = np.random.default_rng(0)
    X, days = generator.normal(size=(3000, 2)), np.repeat(np.sort(generator.integers(0, 30, 300)), 10)
    grades = np.where(days < 10, X[:, 1], X[:, 0]) + 0.5 * generator.normal(size=3000) > 0.5
    frame = pl.DataFrame(
        {"qid": np.arange(3000) // 10, "day": days, "grade": grades.astype(int), "a": X[:, 0], "b": X[:, 1]}
    )
    begun = frame.filter(pl.col("day").is_between(10, 20))
    given: dict[str, Any] = {"home": tmp_path}
    ranktune.tune(begun, time="day", solvers="RidgeRanker", trials=2, name="shop", **given)
    fitted = load_fitted(tmp_path / "shop")
    assert 16 <= fitted.latest <= 18, "without the test queries"
    rest = frame.filter(pl.col("day") < 28)
    done = retune("shop", rest, test=frame.filter(pl.col("day") >= 28), **given)
    (contender,) = {each["queries"] for each in done.evidence["contenders"].values()}
    assert done.decision == "keep" and 0 < contender <= frame.filter(pl.col("day") > fitted.latest)["qid"].n_unique()


@pytest.mark.parametrize("solver", ["LambdaMART", "SOLAR1"])
def test_a_model_of_many_queries_learns_on_from_a_few(solver: str, tmp_path: Path) -> None:
    """Of 30 new queries alone a model is worse than the current one that learns on from them."""
    ranktune.tune(day(0, count=200), name="shop", solvers=solver, trials=1, home=tmp_path)
    done = again(tmp_path, day(1, count=30), version="few")
    assert done.evidence["continued_by"] == solver
    before, after = (ranktune.load_model(tmp_path / path) for path in ("shop/model.json", "few/refit.json"))
    judge = day(2, count=400)
    assert not np.allclose(before.predict(judge), after.predict(judge))
    alone = ranktune.load_model(tmp_path / "few" / "model.json")
    assert ranktune.compare(after, alone, judge).difference > 0.0
    assert done.evidence["means"]["refit"][0] == pytest.approx(
        np.nanmean(parse_metric("ndcg@10").per_query(after.predict(judge), judge)), abs=0.06
    ), "validation is honest"
