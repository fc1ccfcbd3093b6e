"""Where trials are scored: on folds where fits are cheap, once where folds would leave few of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ranktune
from ranktune.solvers.core.errors import StudyError
from ranktune.solvers.data.queries import concatenate
from ranktune.solvers.data.split import Split
from ranktune.tuner.runner.search_stages import MIN_FITS, MIN_FITS_DEALT, SCORED, scored_once
from ranktune.tuner.search.progress import Silent, TrialReport
from ranktune.tuner.selection.time_reserve import fit_seconds
from ranktune.tuner.study.declaration import Study
from ranktune.tuner.study.problem import Problem, assemble, write_split
from tests.support.engine_samples import graded

TRAIN, VALI, TEST = graded(60, 0), graded(25, 1), graded(20, 2)


def problem_of(folder: Path, study: Study, *, vali: bool = True) -> Problem:
    folder.mkdir()
    write_split(assemble(Split("", TRAIN, VALI if vali else None), study), study, folder)
    (study_folder,) = folder.iterdir()
    return Problem.open(study_folder, "")


def study_of(**more: Any) -> Study:
    return Study(name="x", solvers=("RidgeRanker",), trials=3, test="none", **more)


def test_the_split_is_used_as_given_where_folds_leave_few_fits(tmp_path: Path) -> None:
    study = study_of()
    problem = problem_of(tmp_path / "p", study)
    enough = MIN_FITS * 5 * fit_seconds(problem)
    assert not scored_once(tmp_path, problem, study, 1.01 * enough, begun=False)
    (tmp_path / SCORED).unlink()
    assert scored_once(tmp_path, problem, study, 0.99 * enough, begun=False)
    once = problem.by_one_part()
    np.testing.assert_array_equal(once.validation, np.arange(60, 85))
    assert once.given_split and not once.fresh
    assert Problem.open(problem.folder, "").given_split  # as workers see it


def test_without_validation_queries_it_is_the_first_fold(tmp_path: Path) -> None:
    problem = problem_of(tmp_path / "p", study_of(), vali=False)
    enough = MIN_FITS_DEALT * 5 * fit_seconds(problem)
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


class _Interrupting(Silent):
    def trial(self, report: TrialReport) -> None:
        if report.done >= 1:
            raise KeyboardInterrupt


def test_a_study_in_little_time_is_scored_on_the_split_and_refitted_on_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ranktune.tuner.runner.search_stages.MIN_FITS", 1e9)
    options: dict[str, Any] = {"solvers": ("RidgeRanker", "GBDTRanker"), "timeout": 6.0, "jobs": 1, "home": tmp_path}
    with pytest.raises(KeyboardInterrupt):
        ranktune.tune(TRAIN, vali=VALI, test=TEST, name="x", progress=_Interrupting(), **options)
    result = ranktune.resume("x", home=tmp_path, jobs=1)
    assert (tmp_path / "x" / SCORED).read_text() == "once"
    assert len(result.trials_frame()) >= 2
    assert result.best_model.fingerprint == concatenate([TRAIN, VALI]).fingerprint
