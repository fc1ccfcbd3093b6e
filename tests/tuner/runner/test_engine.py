"""A study from end to end on small data whose answer is known. Where trials are scored: on folds where fits are cheap,
once where folds would leave few of them."""

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
from ranktune.solvers.core.errors import DataError, RankTuneWarning, StudyError
from ranktune.solvers.data.blocks import QuerySplit
from ranktune.solvers.data.queries import Queries, concatenate
from ranktune.solvers.metrics.metrics import parse_metric
from ranktune.solvers.registry import make
from ranktune.tuner.evaluation.evaluate import attempt
from ranktune.tuner.evaluation.task import Task, TaskOutcome
from ranktune.tuner.policy.policy import POLICY
from ranktune.tuner.runner.search_stages import SCORED, scored_once
from ranktune.tuner.selection.results import Result, load_result
from ranktune.tuner.splits.plans import random_orders
from ranktune.tuner.storage.record import Record
from ranktune.tuner.study.declaration import Study
from ranktune.tuner.study.home import find_folder
from ranktune.tuner.study.problem import SplitProblem, assemble, write_split
from tests.support.engine_samples import graded, on_test, tuned
from tests.support.finished import Heard
from tests.support.policies import run_by


def test_the_chosen_model_ranks_as_reported(result: Result) -> None:
    test = graded(30, 2)
    scores = result.best_model.predict(test)
    for name, value in result.test_metrics.items():
        assert parse_metric(name).mean(scores, test) == pytest.approx(value, abs=1e-12)
    assert on_test(result.best) == pytest.approx(result.test_metrics["ndcg@10"], abs=1e-12)
    assert list(result.test_metrics) == ["ndcg@10", "map", "ndcg@10:letor"]


def test_the_chosen_is_best_when_rescored_or_alone(result: Result) -> None:
    merits = [
        (False, row.vali.mean if row.vali else -1.0) if row.again is None else (True, row.again.mean)
        for row in result.leaderboard
    ]
    assert merits[1:] == sorted(merits[1:], reverse=True)
    assert result.best.is_blend or merits[0] == max(merits)


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


def test_without_refitting_trees_are_those_of_the_trial(tmp_path: Path) -> None:
    train, vali = graded(40, 0), graded(20, 1)
    options: dict[str, Any] = {"trials": 1, "solvers": ["LambdaMART"], "test": "none", "vali": vali}
    options["space"] = {"LambdaMART.trees": 10}
    result = tuned(tmp_path, train, refit=False, name="as", **options)
    bagged = tuned(tmp_path, train, name="bag", **options)
    assert "seeds" not in (result.best.params or {})
    assert "seeds" in (bagged.best.params or {})


FEW = {"GBDTRanker.trees": 10}
TRAIN, VALI, TEST = graded(60, 0), graded(25, 1), graded(20, 2)


def problem_of(folder: Path, study: Study, *, vali: bool = True) -> SplitProblem:
    folder.mkdir()
    write_split(assemble(QuerySplit("", TRAIN, VALI if vali else None), study), study, folder)
    (study_folder,) = folder.iterdir()
    return SplitProblem.open(study_folder, "")


def study_of(**more: Any) -> Study:
    return Study(name="x", solvers=("RidgeRanker",), trials=3, test="none", **more)


def test_the_split_is_used_as_given_where_folds_leave_few_fits(tmp_path: Path) -> None:
    study = study_of()
    problem = problem_of(tmp_path / "p", study)
    enough = POLICY.time.min_fits * 5 * problem.durations.a_fit
    assert not scored_once(tmp_path, problem, study, 1.01 * enough, begun=False)
    (tmp_path / SCORED).unlink()
    assert scored_once(tmp_path, problem, study, 0.99 * enough, begun=False)
    once = problem.by_one_part()
    np.testing.assert_array_equal(once.validation, np.arange(60, 85))
    assert once.given_split and not once.fresh
    assert SplitProblem.open(problem.folder, "").given_split  # as workers see it


def test_without_validation_queries_it_is_the_first_fold(tmp_path: Path) -> None:
    problem = problem_of(tmp_path / "p", study_of(), vali=False)
    enough = POLICY.time.min_fits_dealt * 5 * problem.durations.a_fit
    assert not scored_once(tmp_path, problem, study_of(), 1.01 * enough, begun=False)
    (tmp_path / SCORED).unlink()
    assert scored_once(tmp_path, problem, study_of(), 0.99 * enough, begun=False)
    assert isinstance(problem.plan, tuple)
    np.testing.assert_array_equal(problem.by_one_part().validation, problem.plan[0].vali)


@pytest.mark.parametrize("more", [{"folds": 3}, {"repeats": 2}, {"full": True}])
def test_what_the_user_asked_for_is_kept(tmp_path: Path, more: dict[str, Any]) -> None:
    study = study_of(**more)
    assert not scored_once(tmp_path, problem_of(tmp_path / "p", study), study, 0.001, begun=False)


def test_without_a_time_limit_folds_choose(tmp_path: Path) -> None:
    assert not scored_once(tmp_path, problem_of(tmp_path / "p", study_of()), study_of(), float("inf"), begun=False)


def test_a_study_goes_on_by_what_it_began_with(tmp_path: Path) -> None:
    study = study_of()
    problem = problem_of(tmp_path / "p", study)
    assert not scored_once(tmp_path, problem, study, 1e-9, begun=True)  # of a version that kept no decision
    assert scored_once(tmp_path, problem, study, 1e-9, begun=False)
    assert scored_once(tmp_path, problem, study, 1e9, begun=True)
    (tmp_path / SCORED).write_text("perhaps")
    with pytest.raises(StudyError, match=r"scored\.json, by which trials were chosen and scored, cannot be read"):
        scored_once(tmp_path, problem, study, 1e9, begun=True)
    assert not scored_once(tmp_path, problem, study, 1e9, begun=False)


def test_a_study_in_little_time_is_scored_on_the_split_and_refitted_on_all(tmp_path: Path) -> None:
    policy = replace(POLICY, time=replace(POLICY.time, min_fits=10**9))
    solvers, split = ("RidgeRanker", "GBDTRanker"), QuerySplit("", TRAIN, VALI, TEST)
    with pytest.raises(KeyboardInterrupt):
        run_by(policy, tmp_path / "x", split, Heard(until=1), solvers=solvers, trials=4, timeout=60.0, space=FEW)
    result = ranktune.resume("x", home=tmp_path, jobs=1)
    assert (tmp_path / "x" / SCORED).read_text() == "once"
    assert len(result.trials_frame()) == 4
    assert result.best_model.fingerprint == concatenate([TRAIN, VALI]).fingerprint


@pytest.mark.parametrize("vali", [VALI, None])
def test_the_first_trial_has_no_limit_unless_it_counts_where_it_is_cut(vali: Queries | None, tmp_path: Path) -> None:
    limits: list[float] = []

    def objective(task: Task) -> TaskOutcome:
        limits.append(task.limit)
        return attempt(task)

    policy = replace(POLICY, time=replace(POLICY.time, min_fits=10**9, min_fits_dealt=0))
    settings: dict[str, Any] = {"solvers": ("GBDTRanker",), "trials": 1, "timeout": 60.0, "space": FEW}
    run_by(policy, tmp_path / "x", QuerySplit("", TRAIN, vali, TEST), objective=objective, **settings)
    assert len(limits) == 1
    assert limits[0] <= 60.0 if vali is not None else limits[0] == float("inf")
