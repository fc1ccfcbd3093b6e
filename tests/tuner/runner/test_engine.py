"""A study from end to end on small data whose answer is known."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ranktune
from ranktune.dashboards.terminal.listing import listing
from ranktune.solvers.base.linear import LinearRanker
from ranktune.solvers.core.errors import DataError, ParameterError, RankTuneWarning, StudyError
from ranktune.solvers.data.queries import Queries, concatenate
from ranktune.solvers.metrics.metrics import parse_metric
from ranktune.solvers.models.base import load_model
from ranktune.solvers.registry import make
from ranktune.tuner.selection.results import Result, load_result
from ranktune.tuner.selection.rows import LINEAR_BLEND
from ranktune.tuner.splits.plans import random_orders
from ranktune.tuner.storage.record import Record
from ranktune.tuner.study.home import StudyFolder, find_folder
from ranktune.tuner.workers.executor import InProcess
from tests.support.engine_samples import SOLVERS, graded, on_test, tuned, weights
from tests.support.process_samples import Lasting


def test_the_chosen_model_ranks_as_reported(result: Result) -> None:
    test = graded(30, 2)
    scores = result.best_model.predict(test)
    for name, value in result.test_metrics.items():
        assert parse_metric(name).mean(scores, test) == pytest.approx(value, abs=1e-12)
    assert on_test(result.best) == pytest.approx(result.test_metrics["ndcg@10"], abs=1e-12)
    assert list(result.test_metrics) == ["ndcg@10", "map", "ndcg@10:letor"]


def test_a_weighted_sum_beats_a_single_feature(result: Result) -> None:
    rows = {row.solver: row for row in result.leaderboard}
    assert set(rows) == {*SOLVERS, LINEAR_BLEND}
    assert on_test(rows["RankSVM"]) > on_test(rows["BestFeature"]) + 0.05
    assert rows["BestFeature"].nonzeros == 1
    p_value = rows["BestFeature"].p_value
    assert p_value is not None
    assert p_value < 0.01
    assert result.leaderboard[0].p_value is None
    assert on_test(result.best) > 0.9


def test_the_chosen_is_best_when_rescored_or_alone(result: Result) -> None:
    merits = [
        (False, row.vali.mean if row.vali else -1.0) if row.again is None else (True, row.again.mean)
        for row in result.leaderboard
    ]
    assert merits[1:] == sorted(merits[1:], reverse=True)
    assert result.best.is_blend or merits[0] == max(merits)


def test_the_model_is_refitted_on_train_and_validation(result: Result) -> None:
    for row in (row for row in result.leaderboard if not row.is_blend):
        ranker = make(row.solver, dict(row.params or {}), 0)
        assert isinstance(ranker, LinearRanker)
        ranker.fit(concatenate([graded(40, 0), graded(20, 1)]))
        model = load_model(Path(result.folder) / "models" / f"{row.solver}.json")
        np.testing.assert_allclose(weights(model), ranker.coef_, rtol=1e-12)


def test_the_json_is_complete(result: Result) -> None:
    actual = json.loads((Path(result.folder) / "result.json").read_text())
    assert actual == json.loads(json.dumps(result.as_dict()))
    assert {"study", "metric", "best", "leaderboard", "trials", "seconds", "model"} <= set(actual)
    best = {"solver", "params", "vali", "test", "test_interval", "test_metrics", "nonzeros"}
    assert best <= set(actual["best"])
    assert actual["trials"] == 9
    assert actual["best"]["test_interval"][0] <= actual["best"]["test"] <= actual["best"]["test_interval"][1]


def test_the_workers_data_is_gone_after_the_end(result: Result) -> None:
    assert not (Path(result.folder) / "data").exists()


def test_the_same_name_with_other_settings_is_refused_and_named(result: Result) -> None:
    home = Path(result.folder).parent
    with pytest.raises(StudyError, match="metric is 'ndcg@10' there, 'map' here"):
        tuned(home, metric="map", name="known")


def test_a_finished_study_gets_more_trials(tmp_path: Path) -> None:
    np.savez(tmp_path / "d.npz", X=graded(40, 0).features, y=graded(40, 0).grades, qid=np.repeat(np.arange(40), 12))
    first = tuned(tmp_path / "home", tmp_path / "d.npz", solvers="RankSVM")
    more = ranktune.resume("s", trials=5, home=tmp_path / "home", jobs=1)
    whole = tuned(tmp_path / "home", tmp_path / "d.npz", solvers="RankSVM", trials=5, name="w")
    assert (first.trials, more.trials) == (3, 5)
    assert replace(more, study="", folder="", model="", seconds=0, folds=()).best.params == whole.best.params
    assert more.best.test == whole.best.test


def test_data_in_memory_that_is_gone_is_told(result: Result) -> None:
    with pytest.raises(StudyError, match="cannot be read again"):
        ranktune.resume("known", trials=20, home=Path(result.folder).parent, jobs=1)
    assert find_folder(Path(result.folder).parent, "known").study().trials == 9, "it changes nothing"


@pytest.mark.thorough
def test_two_processes_find_what_one_finds_with_a_sampler_without_memory(tmp_path: Path) -> None:
    results = [tuned(tmp_path, trials=8, name=f"j{jobs}", jobs=jobs) for jobs in (1, 2)]
    assert results[0].best.params == results[1].best.params
    assert [row.vali for row in results[0].leaderboard] == [row.vali for row in results[1].leaderboard]


def test_a_study_that_is_running_is_not_run_twice(tmp_path: Path) -> None:
    folder = StudyFolder(tmp_path / "s")
    folder.path.mkdir()
    with folder.owned(), pytest.raises(StudyError, match="is being run by process"):
        tuned(tmp_path)


def test_nothing_to_learn_is_told_before_anything_runs(tmp_path: Path) -> None:
    queries = graded(20, 0)
    with pytest.raises(DataError, match="nothing to learn"):
        tuned(tmp_path, replace(queries, grades=np.ones(len(queries.grades))))


def test_an_unknown_study_names_the_nearest(result: Result) -> None:
    with pytest.raises(StudyError, match="Did you mean 'known'"):
        ranktune.resume("knwon", home=Path(result.folder).parent)


def test_a_metric_that_cannot_judge_the_grades_is_told_before_anything_runs(tmp_path: Path) -> None:
    queries = graded(20, 0)
    with pytest.raises(DataError, match="gain"):
        tuned(tmp_path, replace(queries, grades=20 * queries.grades), metric="ndcg@10:gain=exp2")
    assert not (tmp_path / "s" / "record.db").exists()


@pytest.mark.parametrize("content", ["", "{", "[]", "null", '{"format": 99}', "\ufeff{}"])
@pytest.mark.parametrize("name", ["study.json", "result.json"])
def test_a_damaged_file_is_told_and_spares_the_other_studies(
    result: Result, tmp_path: Path, name: str, content: str
) -> None:
    for copy in ("damaged", "whole"):
        shutil.copytree(result.folder, tmp_path / copy)
    (tmp_path / "damaged" / name).write_text(content, encoding="utf-8")
    with pytest.raises(StudyError, match=re.escape(name)):
        find_folder(tmp_path, "damaged").study()
        load_result(tmp_path / "damaged" / "result.json")
    states = {line["study"]: line["state"] for line in listing(tmp_path)}
    assert states["whole"] == "finished"
    assert name == "study.json" or states["damaged"].startswith("unreadable")


def test_a_progressive_study_scores_queries_before_it_learns_from_them(tmp_path: Path) -> None:
    data = graded(60, 0)
    space = {"ElasticRank.passes": 1, "ElasticRank.scaling": ["none", "list"]}  # others have that of all queries
    plan: dict[str, Any] = {"plan": "progressive", "permutations": 3, "solvers": ["ElasticRank"], "space": space}
    result = tuned(tmp_path, data, test=graded(30, 2), trials=2, **plan)
    record = Record(tmp_path / "s", "s", "ndcg@10")
    ndcg = parse_metric("ndcg@10")
    for trial in record.trials():
        params = {name.split(".")[1]: value for name, value in trial.params.items() if "." in name}
        expected, visited = np.zeros(60), []
        for order in random_orders(data, 3, 0).orders:
            ranker: Any = make("ElasticRank", {**params, "passes": 1}, 0)
            scores = np.zeros(data.n_documents)
            for q in order:  # by hand: rank, then learn
                query = data.select(np.array([q]))
                if hasattr(ranker, "coef_"):
                    scores[data.starts[q] : data.starts[q + 1]] = ranker.predict(query)
                ranker.partial_fit(query)
            visited.append(ndcg.per_query(scores, data)[order])
            expected += ndcg.per_query(scores, data) / 3
        assert np.allclose(record.per_query(trial)["ndcg@10"], expected, rtol=0, atol=1e-12)
        assert trial.value == pytest.approx(np.nanmean(expected))
        learned, following = np.array(trial.user_attrs["learning_curve"]).T
        assert np.array_equal(learned, 3.0 * np.arange(20) + 1.0)  # 20 blocks of 3 queries
        assert np.allclose(following, np.nanmean(np.reshape(visited, (3, 20, 3)), axis=(0, 2)), rtol=0, atol=1e-12)
    record.close()
    assert result.best.test is not None and result.best.test.mean > 0.6


def test_a_metric_that_is_the_same_for_all_is_told(tmp_path: Path) -> None:
    short = Queries.from_arrays(graded(20, 0).features[:160], graded(20, 0).grades[:160], group=[8] * 20)
    with pytest.warns(RankTuneWarning, match=r"all 3 trials scored 0 by ndcg@10:letor"):
        tuned(tmp_path, short, metric="ndcg@10:letor")


def test_a_study_that_came_to_nothing_leaves_its_name_free(tmp_path: Path) -> None:
    with pytest.raises(DataError):
        tuned(tmp_path, "missing.txt", name="gone")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "notes.txt").write_text("mine")
    with pytest.raises(DataError):
        tuned(tmp_path, "missing.txt", name="own")
    assert [file.name for file in (tmp_path / "own").iterdir()] == ["notes.txt"]


def test_one_name_needs_no_list_and_jobs_are_a_count(tmp_path: Path) -> None:
    result = tuned(tmp_path, solvers="RidgeRanker", also="map", trials=1)
    assert [row.solver for row in result.leaderboard] == ["RidgeRanker"]
    assert {"ndcg@10", "map"} <= set(result.test_metrics)
    for jobs in ("2", 0, 1.5):
        with pytest.raises(ParameterError, match=f"jobs={jobs!r}: it must be a whole number"):
            tuned(tmp_path, solvers="RidgeRanker", jobs=jobs)


@pytest.mark.parametrize("apart", [False, True])
def test_a_timeout_ends_the_search_and_the_rest_is_done(apart: bool, tmp_path: Path, two_lanes: Lasting) -> None:
    executor = two_lanes if apart else InProcess()
    result = tuned(tmp_path, timeout=0.01, trials=None, executor=executor, jobs=None)
    assert result.trials == 1  # the first always runs, and no other beside it
    assert result.best.test is not None
    assert tuned(tmp_path, trials=4, executor=executor, jobs=None).trials == 4


def test_without_refitting_trees_are_those_of_the_trial(tmp_path: Path) -> None:
    train, vali = graded(40, 0), graded(20, 1)
    options: dict[str, Any] = {"trials": 1, "solvers": ["LambdaMART"], "test": "none", "vali": vali}
    options["space"] = {"LambdaMART.trees": 10}
    result = tuned(tmp_path, train, refit=False, name="as", **options)
    bagged = tuned(tmp_path, train, name="bag", **options)
    assert "seeds" not in (result.best.params or {})
    assert "seeds" in (bagged.best.params or {})
