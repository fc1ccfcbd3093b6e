"""Where trials are scored: on folds where fits are cheap, once where folds would leave few of them."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ranktune
from ranktune.solvers.core.errors import StudyError
from ranktune.solvers.data.blocks import QuerySplit
from ranktune.solvers.data.queries import Queries, concatenate
from ranktune.tuner.evaluation.evaluate import attempt
from ranktune.tuner.evaluation.task import Task, TaskOutcome
from ranktune.tuner.policy.policy import POLICY
from ranktune.tuner.runner.search_stages import SCORED, scored_once
from ranktune.tuner.study.declaration import Study
from ranktune.tuner.study.problem import SplitProblem, assemble, write_split
from tests.support.engine_samples import graded
from tests.support.finished import Heard
from tests.support.policies import run_by

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
