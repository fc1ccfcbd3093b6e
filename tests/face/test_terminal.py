"""What is said while a study runs: to standard error, news at once, nothing that could harm a terminal."""

from pathlib import Path

import pytest

from ranktune.dashboards.terminal.leaderboard import report as study_report
from ranktune.dashboards.terminal.tables import as_text
from ranktune.terminal import LineProgress, Live, watcher
from ranktune.tuner.search.progress import Silent, TrialReport
from ranktune.tuner.selection.results import Result
from tests.support.engine_samples import graded, tuned


def report(done: int, value: float | None, best: float, error: str | None = None) -> TrialReport:
    return TrialReport("Fold1", done - 1, done, 10, "RankSVM", value, error, best, "RankSVM")


def test_lines_tell_news_at_once_and_the_rest_seldom(capsys: pytest.CaptureFixture[str]) -> None:
    lines = LineProgress()
    lines.split("Fold1", 10, 0)
    lines.trial(report(1, 0.5, 0.5))
    lines.trial(report(2, 0.4, 0.5))  # no news, and within two seconds of the last line
    lines.trial(report(3, 0.6, 0.6))
    lines.trial(report(4, None, 0.6, "ValueError: no"))
    lines.trial(report(10, 0.1, 0.6))
    captured = capsys.readouterr()
    assert captured.out == ""
    said = [line.split("  ")[0] for line in captured.err.splitlines()]
    assert said == ["Fold1: 10 trials", *(f"Fold1: trial {k} of 10" for k in (1, 3, 4, 10))]
    assert "failed: ValueError: no" in captured.err
    assert "best 0.6000 (RankSVM)" in captured.err


def test_control_characters_do_not_reach_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    LineProgress().stage("reading \x1b[2Jevil\x07.txt")
    assert capsys.readouterr().err == "reading ?[2Jevil?.txt\n"


def test_without_a_terminal_there_are_lines() -> None:
    assert isinstance(watcher(), LineProgress)


def test_the_live_display_follows_and_lets_go(capsys: pytest.CaptureFixture[str]) -> None:
    live = Live()
    live.stage("reading [bold]x[/bold]")
    live.split("", 10, 4)
    live.trial(report(5, 0.5, 0.5))
    live.trial(report(6, None, 0.5, "OSError: gone"))
    (task,) = live._bar.tasks
    assert (task.completed, task.fields["best"]) == (6, "best 0.5000 (RankSVM)")
    assert task.fields["count"] == "6/10"
    for display in (live, LineProgress()):
        display.fit("trial 3 SymmetricGBDT, 240 rounds")
    assert task.fields["best"] == "best 0.5000 (RankSVM); trial 3 SymmetricGBDT, 240 rounds"
    live.close()
    shown = capsys.readouterr().err
    assert "reading [bold]x[/bold]" in shown
    assert "trial 6 (RankSVM) failed: OSError: gone" in shown
    assert "\ntrial 3 SymmetricGBDT, 240 rounds\n" in shown


def test_what_was_stopped_is_said_to_be_behind_and_is_counted(capsys: pytest.CaptureFixture[str]) -> None:
    stopped = TrialReport("", 4, 5, 10, "RankSVM", 0.41, None, 0.5, "RankSVM", 12.0, "fold 2 of 5")
    lines = LineProgress()
    lines.trial(stopped)
    assert (
        "trial 5 of 10  RankSVM  stopped after fold 2 of 5, significantly worse  best 0.5000" in capsys.readouterr().err
    )
    live = Live()
    live.split("", 10, 0)
    live.trial(stopped)
    live.trial(report(6, 0.5, 0.5))
    (task,) = live._bar.tasks
    assert task.fields["best"] == "best 0.5000 (RankSVM), 1 stopped early"
    live.close()


def test_under_a_time_limit_the_bar_is_one_of_time_and_no_number_of_trials_is_promised(
    capsys: pytest.CaptureFixture[str],
) -> None:
    timed = TrialReport("", 0, 1, None, "RankSVM", 0.5, None, 0.5, "RankSVM", seconds_left=30.0)
    lines = LineProgress()
    lines.split("", None, 0)
    lines.trial(timed)
    said = capsys.readouterr().err
    assert said.startswith("trials\ntrial 1  RankSVM") and "0:30 left" in said and " of " not in said
    live = Live()
    live.split("", None, 0)
    live.trial(timed)
    (task,) = live._bar.tasks
    assert task.fields["count"] == "1" and task.fields["left"] == "0:30 left"
    assert task.total == pytest.approx(30.0, abs=5.0) and task.completed < 5.0
    live.close()


def test_a_stage_after_the_trials_has_a_bar_and_no_time_left_of_the_trials() -> None:
    live = Live()
    live.stage("reading x")
    live.split("", 10, 0)
    live.trial(TrialReport("", 9, 10, 10, "RankSVM", 0.5, None, 0.5, "RankSVM", seconds_left=12.0))
    live.stage("refitting the chosen model")
    trials, stage = live._bar.tasks
    assert trials.fields["left"] == "" and trials.finished
    assert stage.fields["best"] == "refitting the chosen model" and stage.total is None
    live.stage("blending them")
    assert [task.finished for task in live._bar.tasks] == [True, True, False]
    live.close()
    assert all(task.finished for task in live._bar.tasks)


def test_the_answer_stays_above_what_follows_and_is_not_repeated(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    shown = list[Result]()

    class Noted(Silent):
        def answer(self, result: Result) -> None:
            shown.append(result)

    whole = tuned(tmp_path, test=graded(20, 1), progress=Noted())
    (first,) = shown
    capsys.readouterr()
    LineProgress().answer(first)
    *facts, _ = lines = capsys.readouterr().err.splitlines()
    assert [line.split()[0] for line in lines][:3] == ["Use", "Expect", "Whether"]
    live = Live()
    live.split("", 10, 0)
    live.answer(first)
    live.stage("explaining")
    live.close()
    text = " ".join(capsys.readouterr().err.split())
    assert -1 < text.index(" ".join(facts)) < text.index("explaining")
    assert [task.visible for task in live._bar.tasks] == [False, True]
    table, rest = (as_text(study_report(whole, answered=answered, details=True)) for answered in (False, True))
    assert all(" ".join(line.split()) in " ".join(table.split()) for line in facts)
    assert not any(line[:40] in rest for line in facts) and "Gain of tuning" in rest
