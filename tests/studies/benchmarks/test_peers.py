"""The peers of the comparison of whole tools: what they get, how long they run, and that each learns."""

import importlib.util
import itertools
import subprocess
import time
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ranktune.solvers.core.errors import DataError, StudyError
from ranktune.solvers.data.blocks import QuerySplit
from ranktune.solvers.data.disk.stored import read_queries
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.metrics.metrics import parse_metric
from ranktune.studies.benchmarks.turnkey import libraries, peers
from ranktune.studies.benchmarks.turnkey.libraries import METRIC, PeerBudget
from ranktune.studies.benchmarks.turnkey.peers import OURS
from tests.support.turnkey_samples import queries


def test_a_tool_never_sees_test_grades(monkeypatch: pytest.MonkeyPatch) -> None:
    split = QuerySplit("Fold1", queries(6, 1), queries(6, 2), queries(6, 3))
    assert split.test is not None and split.test.grades.any()
    scores = np.arange(split.test.n_documents, dtype=np.float64)
    seen: dict[str, Queries] = {}
    estimate = "0.5"

    def process(command: list[str], env: dict[str, str], **options: Any) -> Any:
        folder = Path(command[4])
        seen.update({place.name: read_queries(place) for place in folder.iterdir()})
        assert env["OMP_NUM_THREADS"] == env["NUMBA_NUM_THREADS"] == command[6]
        np.save(folder / "scores.npy", scores)
        (folder / "report.json").write_text(f'{{"estimate": {estimate}}}')
        return subprocess.CompletedProcess(command, int(command[5] == "9.0"), stderr="first\nKeyError: at last")

    monkeypatch.setattr(subprocess, "run", process)
    result, report = peers.compete("lightgbm-optuna", split, PeerBudget(1.0, threads=3))
    assert np.array_equal(result, scores) and report == {"estimate": 0.5}
    assert set(seen) == {"train", "vali", "test"} and not seen["test"].grades.any()
    assert np.array_equal(seen["test"].features, split.test.features)
    with pytest.raises(StudyError, match="lightgbm-optuna on Fold1 failed: KeyError: at last"):
        peers.compete("lightgbm-optuna", split, PeerBudget(9.0))
    estimate = "NaN"
    with pytest.raises(StudyError, match="no finite estimate"):
        peers.compete("lightgbm-optuna", split, PeerBudget(1.0))
    scores[3] = np.nan
    with pytest.raises(StudyError, match="no finite score"):
        peers.compete("lightgbm-optuna", split, PeerBudget(1.0))


def test_a_quarter_of_the_training_queries_validates_where_none_are_given() -> None:
    whole = QuerySplit("Fold1", queries(20, 1), test=queries(5, 2))
    split = peers.with_validation(whole)
    assert split.vali is not None and (split.train.n_queries, split.vali.n_queries) == (15, 5)
    both = [*split.train.query_ids, *split.vali.query_ids]
    assert sorted(both) == sorted(whole.train.query_ids)
    repeated = peers.with_validation(whole)
    assert repeated.train.fingerprint == split.train.fingerprint and peers.with_validation(split) is split
    with pytest.raises(DataError, match="1 training query leaves none"):
        peers.with_validation(QuerySplit("Fold1", queries(1, 1)))


def test_ranktune_gets_all_training_queries_where_no_others_validate(monkeypatch: pytest.MonkeyPatch) -> None:
    split = QuerySplit("Fold1", queries(8, 1), test=queries(3, 2))
    seen: dict[str, dict[str, int]] = {}

    def process(command: list[str], **options: Any) -> Any:
        folder = Path(command[4])
        assert options["env"]["OMP_NUM_THREADS"] == ("3" if command[3] == "flaml" else "1")
        seen[command[3]] = {place.name: read_queries(place).n_queries for place in folder.iterdir()}
        np.save(folder / "scores.npy", np.zeros(36))
        (folder / "report.json").write_text('{"estimate": 0.5}')
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(subprocess, "run", process)
    for rival in (OURS, "flaml"):
        peers.compete(rival, split, PeerBudget(1.0, threads=3))
    whole = {"train": 8, "test": 3}
    assert seen == {OURS: whole, "flaml": {"train": 6, "vali": 2, "test": 3}}


@pytest.mark.parametrize(("rival", "loss"), [("catboost", "YetiRank"), ("catboost-queryrmse", "QueryRMSE")])
def test_catboost_minimises_the_loss_of_its_name(rival: str, loss: str, tmp_path: Path) -> None:
    catboost = pytest.importorskip("catboost")
    train, vali = queries(25, 1), queries(15, 2)
    result = peers.PEERS[rival].run(QuerySplit("", train, vali), PeerBudget(600.0), tmp_path)
    expected = catboost.CatBoostRanker(
        loss_function=loss, learning_rate=0.1, iterations=10_000, thread_count=1, random_seed=0, silent=True,
        eval_metric="NDCG:top=10;type=Exp", early_stopping_rounds=100, allow_writing_files=False,
    )  # fmt: skip
    expected.fit(
        train.features, train.grades, group_id=train.query_of_document,
        eval_set=catboost.Pool(vali.features, vali.grades, group_id=vali.query_of_document),
    )  # fmt: skip
    assert np.array_equal(result.score(vali), expected.predict(vali.features))
    assert result.detail == {"trees": expected.tree_count_, "cut_by_deadline": False}


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look at the peers' clock takes a second."""
    seconds = itertools.count(1.0)
    monkeypatch.setattr(libraries, "time", SimpleNamespace(perf_counter=lambda: next(seconds), time=time.time))


def test_lightgbm_with_its_defaults_stops_by_itself(tmp_path: Path) -> None:
    lightgbm = pytest.importorskip("lightgbm")
    train, vali = queries(25, 1), queries(15, 2)
    result = libraries.lightgbm_defaults(QuerySplit("", train, vali), PeerBudget(600.0), tmp_path)
    ranker = lightgbm.LGBMRanker(n_estimators=10_000, random_state=0, n_jobs=1, verbosity=-1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ranker.fit(
            train.features, train.grades, group=train.lengths, eval_set=[(vali.features, vali.grades)],
            eval_group=[vali.lengths], eval_at=[10], callbacks=[lightgbm.early_stopping(50, verbose=False)],
        )  # fmt: skip
        assert np.array_equal(result.score(vali), ranker.predict(vali.features))
    assert result.detail == {"trees": ranker.best_iteration_, "cut_by_deadline": False} and result.tried == 1
    assert result.estimate == parse_metric(METRIC).mean(np.asarray(result.score(vali)), vali)


@pytest.mark.usefixtures("clock")
def test_a_trial_of_lightgbm_that_is_cut_by_the_deadline_counts(tmp_path: Path) -> None:
    pytest.importorskip("lightgbm")
    pytest.importorskip("optuna")
    train, vali = queries(25, 1), queries(15, 2)
    result = libraries.lightgbm_optuna(QuerySplit("", train, vali), PeerBudget(1.3), tmp_path)
    assert set(result.detail["trees_of_trials"]) == {1} and result.detail["trees"] == 1
    assert np.ptp(np.asarray(result.score(vali))) > 0.0


@pytest.mark.thorough
@pytest.mark.parametrize("rival", peers.PEERS)
def test_every_tool_learns(rival: str) -> None:
    absent = [name for name in peers.PEERS[rival].needs if importlib.util.find_spec(name) is None]
    if absent:
        pytest.skip(f"{', '.join(absent)} not installed")
    split = QuerySplit("Fold1", queries(25, 1), queries(15, 2), queries(15, 3))
    scores, report = peers.compete(rival, split, PeerBudget(2.0))
    assert split.test is not None
    metric = parse_metric(METRIC)
    chance = metric.mean(np.asarray(split.test.features)[:, 1], split.test)
    known = metric.mean(np.asarray(split.test.features)[:, 0], split.test)
    assert metric.mean(scores, split.test) > 0.5 * (chance + known)
    assert 0.0 < report["estimate"] <= 1.0 and report["seconds"] > 0.0
