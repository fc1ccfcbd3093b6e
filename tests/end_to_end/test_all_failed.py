"""A study of which every trial fails: it stops with the cause and a distinct exit code, and can be opened."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from optuna.trial import TrialState

from ranktune.solvers.core.errors import AllFailed, StudyError
from ranktune.tuner.evaluation.task import Task, TaskOutcome
from ranktune.tuner.policy.policy import POLICY
from ranktune.tuner.runner.engine import StudyRun
from ranktune.tuner.search.loop import TrialLoop
from ranktune.tuner.search.progress import Silent
from ranktune.tuner.storage.record import Record
from ranktune.tuner.study.events import read_events
from ranktune.tuner.workers.executor import InProcess
from tests.support.commands import ended, letor, ranktune
from tests.support.reports import unpacked_page
from tests.tuner.search.test_loop import STUDY, task_of

REASON = "OSError: the licence server is gone"


def fails(task: Task) -> TaskOutcome:
    return TaskOutcome(error=REASON)


@pytest.mark.parametrize("sampler", ["thompson", "random", "tpe"])
def test_no_sampler_minds_that_nothing_has_a_value(tmp_path: Path, sampler: str) -> None:
    study = replace(STUDY, trials=100, sampler=sampler)
    for times in (1, 2):  # a resumed run gives it as many trials again
        record = Record(tmp_path, "s", study.metric)
        with (
            InProcess() as executor,
            pytest.raises(AllFailed, match=f"last {POLICY.search.failures} trials failed.*licence"),
        ):
            TrialLoop(study, "s", record, task_of, executor, Silent(), fails).run()
        assert [trial.state for trial in record.trials()] == [TrialState.FAIL] * POLICY.search.failures * times
        assert record.leases.rows() == []
        record.close()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    letor(tmp_path / "train.txt", 12, 1)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RANKTUNE_HOME", raising=False)
    monkeypatch.setattr("ranktune.session.StudyRun", partial(StudyRun, objective=fails))
    return tmp_path


@pytest.mark.parametrize("trials", [5, 60])
def test_the_command_ends_with_3_and_its_study_can_be_looked_at(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], trials: int
) -> None:
    """Of few trials all fail before the last 20 have."""
    given = ("--trials", str(trials), "--jobs", "1", "--solver", "RankSVM", "--solver", "RidgeRanker", "--name", "n")
    with monkeypatch.context() as patch:
        assert ended(patch, "tune", "train.txt", *given) == 3
    errors = capsys.readouterr().err
    assert "error: " in errors
    assert REASON in errors
    assert "Traceback" not in errors
    with monkeypatch.context() as patch:
        assert ended(patch, "resume", "n", "--jobs", "1") == 3
    assert list(read_events(folder / "ranktune-runs" / "n"))[-1]["event"] == "study_stopped"
    shown = ranktune("show", "n", cwd=folder).stdout
    assert "trials" in shown and "failed" in shown
    assert "best" not in shown
    ranktune("show", cwd=folder)
    report = ranktune("show", "n", "--page", "n.html", cwd=folder).stdout.strip()
    assert REASON in unpacked_page(Path(report).read_text())


def test_it_is_a_study_error() -> None:
    assert issubclass(AllFailed, StudyError)
