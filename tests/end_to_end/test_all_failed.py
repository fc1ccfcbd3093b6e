"""A study of which every trial fails: it stops with the cause and a distinct exit code, and can be opened."""

from functools import partial
from pathlib import Path

import pytest

from ranktune.solvers.core.errors import AllFailed, StudyError
from ranktune.tuner.evaluation.task import Task, TaskOutcome
from ranktune.tuner.runner.engine import StudyRun
from ranktune.tuner.study.events import read_events
from tests.support.commands import ended, letor, ranktune
from tests.support.reports import unpacked_page

REASON = "OSError: the licence server is gone"


def fails(task: Task) -> TaskOutcome:
    return TaskOutcome(error=REASON)


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
