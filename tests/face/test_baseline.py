"""The baseline of a study: its row, the gain over it, and its spellings, through Python and the command line."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import ranktune
from ranktune.notebook import StudyResult
from ranktune.solvers.core.errors import DataError, RankTuneWarning, StudyError
from ranktune.tuner.selection.evidence import EVIDENCE, read_evidence
from ranktune.tuner.selection.rows import BASELINE, WORSE
from tests.support.commands import called

STUDY: dict[str, Any] = {"solvers": "RidgeRanker", "trials": 2, "sampler": "random", "folds": 3}


def frame_of(n_queries: int, seed: int) -> pd.DataFrame:
    """Documents whose grades follow x and y; the score of today follows x alone, with much noise."""
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(8 * n_queries, 2))
    grade = np.digitize(X.sum(axis=1) + generator.normal(size=len(X)), [-1.0, 1.0])
    qid = generator.permutation(np.arange(len(X)) % n_queries)
    today = X[:, 0] + 2.0 * generator.normal(size=len(X))
    ids = [f"d{row}" for row in range(len(X))]
    noise = {f"z{k}": np.exp(3.0 * generator.normal(size=len(X))) for k in range(6)}
    known = {"x": X[:, 0], "w": X[:, 1], **noise, "today": today}
    return pd.DataFrame({"qid": qid, "docid": ids, "grade": grade, **known})


NAMES = ("x", "w", *(f"z{k}" for k in range(6)))
TRAIN, TEST = frame_of(40, 0), frame_of(30, 1)


def tuned(folder: Path, data: object = TRAIN, test: object = TEST, **settings: Any) -> StudyResult:
    return ranktune.tune(data, test=test, **STUDY | settings, home=folder)


def expected(result: StudyResult, test: pd.DataFrame) -> dict[str, Any]:
    """What the public compare finds on the test queries."""
    return ranktune.compare(result.best_model, "column:today", test).as_dict()


def assert_same(result: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    for name in ("difference", "mean_a", "mean_b", "wins", "ties", "losses", "queries"):
        assert result[name] == pytest.approx(wanted[name]), name
    assert result["interval"] == pytest.approx(wanted["interval"], abs=0.01)
    assert result["p_randomisation"] == pytest.approx(wanted["p_randomisation"], abs=0.01)


def test_a_column_is_compared_on_test(tmp_path: Path) -> None:
    result = tuned(tmp_path, baseline="column:today", drop="today", also="map")
    assert result.best_model.feature_names == NAMES
    assert result.gain is not None and result.gain.part == "test"
    assert_same(result.gain.as_dict(), expected(result, TEST))
    *_, row = result.leaderboard
    assert (row.solver, row.verdict, row.is_served) == (BASELINE, WORSE, True)
    assert row.test is not None and row.test.mean == pytest.approx(result.gain.comparison.mean_b)
    assert row.vali is not None and row.difference is not None
    assert row.difference.mean == pytest.approx(-result.gain.comparison.difference)
    assert BASELINE not in result.alternatives.values()
    evidence = read_evidence(Path(result.folder) / EVIDENCE)
    assert evidence.labels[-1] == BASELINE and evidence.models[-1] == ""
    assert np.nanmean(evidence.values["ndcg@10"][-1]) == pytest.approx(row.test.mean)
    assert f"better than the baseline column:today: {result.gain.comparison.difference:+.4f} (" in str(result)


@pytest.mark.parametrize("features", [None, ["x", "today"]])
def test_a_column_stays_a_feature_unless_it_is_dropped(features: list[str] | None, tmp_path: Path) -> None:
    result = tuned(tmp_path, baseline="today", features=features)
    assert result.best_model.feature_names == tuple(features or (*NAMES, "today"))
    assert_same((result.gain or pytest.fail()).as_dict(), expected(result, TEST))


def test_the_other_numbers_do_not_depend_on_a_baseline(tmp_path: Path) -> None:
    with_it = tuned(tmp_path / "a", name="s", baseline=TEST["today"], drop="today").as_dict()
    without = tuned(tmp_path / "b", name="s", drop="today").as_dict()
    row = with_it["leaderboard"].pop()
    assert row["kind"] == "baseline" and row["vali"] is None
    for compared, other in zip(with_it["leaderboard"], without["leaderboard"], strict=True):
        measured = ("microseconds", "seconds")
        assert {k: v for k, v in compared.items() if k not in measured} == {
            k: v for k, v in other.items() if k not in measured
        }
    assert with_it["estimate_interval"] == without["estimate_interval"] and without["gain"] is None


def given_in(kind: str, folder: Path) -> object:
    both = pd.concat([TRAIN, TEST])
    match kind:
        case "rows of test":
            return TEST["today"].to_numpy()
        case "rows of all":
            (folder / "all.txt").write_text("\n".join(map(repr, both["today"].tolist())))
            return folder / "all.txt"
        case "ids":
            TEST[["docid", "qid", "today"]].rename(columns={"today": "score"}).to_csv(folder / "ids.csv", index=False)
            return str(folder / "ids.csv")
    lines = [f"{row.qid} Q0 {row.docid} 1 {row.today!r} tag" for row in TEST.itertuples()]
    (folder / "today.run").write_text("\n".join(lines))
    return folder / "today.run"


@pytest.mark.parametrize("kind", ["rows of test", "rows of all", "ids", "run"])
def test_scores_give_the_same_gain_as_the_column(kind: str, tmp_path: Path) -> None:
    result = tuned(tmp_path / "runs", baseline=given_in(kind, tmp_path), drop="today")
    assert_same((result.gain or pytest.fail()).as_dict(), expected(result, TEST))
    assert (result.leaderboard[-1].vali is not None) == (kind == "rows of all")


def test_without_test_queries_the_corrected_estimate_is_compared(tmp_path: Path) -> None:
    result = tuned(tmp_path, test="none", baseline="column:today")
    assert result.gain is not None and result.gain.part == "validation"
    actual = result.gain.comparison
    assert actual.mean_a == pytest.approx(result.estimate.mean)
    values = ranktune.evaluate("column:today", TRAIN)["metrics"]["ndcg@10"]["mean"]
    assert actual.mean_b == pytest.approx(values) and actual.queries == 40
    assert "by validation on 40 queries, corrected for selection" in result.conclusion.gain


def test_a_fifth_set_aside_is_evaluated_by_the_scores_of_all_rows(tmp_path: Path) -> None:
    result = tuned(tmp_path, test=None, baseline=TRAIN["today"], drop="today")
    column = tuned(tmp_path, test=None, baseline="column:today", drop="today")
    assert result.gain == replace(column.gain or pytest.fail(), baseline=(result.gain or pytest.fail()).baseline)
    assert result.gain is not None and result.gain.comparison.queries == 8


def test_a_model_is_evaluated_on_test_alone_since_it_may_have_learnt_from_the_rest(tmp_path: Path) -> None:
    model = ranktune.RankSVM().fit(ranktune.read(TRAIN.drop(columns="today"))).as_model(feature_names=NAMES)
    model.save(tmp_path / "model.json")
    result = tuned(tmp_path / "runs", baseline=tmp_path / "model.json", drop="today")
    assert result.leaderboard[-1].vali is None
    expected = ranktune.compare(result.best_model, model, TEST).as_dict()
    assert_same((result.gain or pytest.fail()).as_dict(), expected)
    with pytest.warns(RankTuneWarning, match="on queries that it learned from it scores too high"):
        tuned(tmp_path / "runs", test=None, baseline=model, drop="today")


def test_a_nested_plan_compares_on_all_outer_folds(tmp_path: Path) -> None:
    result = tuned(tmp_path, test=None, baseline="column:today", plan="nested", outer=2)
    assert result.gain is not None and result.gain.comparison.queries == 40
    assert result.leaderboard[-1].solver == BASELINE


def test_a_study_goes_on_without_the_file_of_scores(tmp_path: Path) -> None:
    TRAIN.to_csv(tmp_path / "train.csv", index=False)
    TEST.to_csv(tmp_path / "test.csv", index=False)
    scores = tmp_path / "ids.csv"
    given_in("ids", tmp_path)
    home = tmp_path / "runs"
    data = {"data": str(tmp_path / "train.csv"), "test": str(tmp_path / "test.csv"), "drop": "today", "name": "mine"}
    first = tuned(home, **data, baseline=scores)
    scores.unlink()
    resumed = ranktune.resume("mine", trials=3, home=home)
    assert resumed.trials == 3 and first.gain is not None and resumed.gain is not None
    assert resumed.gain.comparison.mean_b == first.gain.comparison.mean_b
    kept = home / "mine" / "baseline.npz"
    content = bytearray(kept.read_bytes())
    content[len(content) // 2] ^= 255
    kept.write_bytes(content)
    with pytest.raises(StudyError, match=r"baseline.npz.*Remove it, and give the baseline again"):
        ranktune.resume("mine", trials=4, home=home)


def test_another_baseline_keeps_the_trials(tmp_path: Path) -> None:
    first = tuned(tmp_path, name="mine", baseline=TEST["today"], drop="today")
    other = tuned(tmp_path, name="mine", baseline=TEST["x"], drop="today")
    assert first.leaderboard[0].vali == other.leaderboard[0].vali
    assert first.gain is not None and other.gain is not None
    assert other.gain.comparison.mean_b > first.gain.comparison.mean_b


def test_scores_that_miss_evaluated_rows_are_refused_before_a_trial(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"7 scores: the test data have 240 rows, and all data together 560"):
        tuned(tmp_path, baseline=np.zeros(7), drop="today")
    of_train = TRAIN[["qid", "docid"]].assign(qid=lambda frame: frame.qid + 100, score=0.0)
    train = TRAIN.assign(qid=TRAIN.qid + 100)
    with pytest.raises(DataError, match="no scores of the test queries"):
        tuned(tmp_path, data=train, baseline=of_train, drop="today")
    assert not list(tmp_path.glob("*/study.json"))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    TRAIN.to_csv(tmp_path / "train.csv", index=False)
    TEST.to_csv(tmp_path / "test.csv", index=False)
    (tmp_path / "best.txt").write_text("\n".join(map(repr, (TEST.x + TEST.w).tolist())))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    return tmp_path


def test_the_command_line_prints_the_gain_and_sets_the_exit_code(folder: Path) -> None:
    options = ["--test", "test.csv", "--solver", "RidgeRanker", "--trials", "2", "--folds", "3"]
    done = called("tune", "train.csv", *options, "--name", "a", "--baseline", "column:today", "--fail-unless-better")
    assert done.exit_code == 0, done.output
    gain = json.loads(called("show", "a", "--json").stdout)["gain"]
    low, high = gain["interval"]
    line = f"the baseline column:today: {gain['difference']:+.4f} ({low:+.4f} to {high:+.4f}) on 30 test queries"
    for printed in (done.stdout, called("show", "a").stdout):
        assert f"{line}, p = {gain['p_randomisation']:.4f}." in " ".join(printed.split())
        assert "baseline" in printed
    toml = "\n".join(['data="train.csv"', 'test="test.csv"', 'solvers=["RidgeRanker"]', "trials=2", "folds=3"])
    (folder / "b.toml").write_text(f'{toml}\ndrop=["today"]\nbaseline="best.txt"\n')
    assert called("tune", "b.toml", "--fail-unless-better").exit_code == 4
    assert called("resume", "b", "--fail-unless-better").exit_code == 4
