"""The command as a user runs it: real files, exit codes, what goes where, and what ends its process."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pytest
import typer

from tests.support.commands import SOLVERS, letor, ranktune
from tests.support.finished import DONE, Finished
from tests.support.finished import TRIALS as FINISHED


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    result = tmp_path_factory.mktemp("cli")
    letor(result / "train.txt", 40, 1)
    letor(result / "vali.txt", 15, 2)
    letor(result / "test.txt", 20, 3)
    return result


@pytest.fixture(scope="module")
def tuned(folder: Path) -> dict[str, object]:
    done = ranktune(
        "tune", "train.txt", "--vali", "vali.txt", "--test", "test.txt", "--also", "map", "--trials", 6, *SOLVERS,
        "--name", "mine", "--json", cwd=folder,
    )  # fmt: skip
    assert "trial 6 of 6" in done.stderr
    result: dict[str, object] = json.loads(done.stdout)
    return result


def test_json_is_one_object_with_the_results(tuned: dict[str, object], folder: Path) -> None:
    assert {"study", "metric", "best", "leaderboard", "trials", "seconds", "model"} <= set(tuned)
    assert tuned["trials"] == 6
    assert Path(str(tuned["model"])).is_file()
    assert (folder / "ranktune-runs" / "mine" / "study.json").is_file()
    assert list(tuned["best"]["test_metrics"]) == ["ndcg@10", "map"]  # type: ignore[index]


def test_show_repeats_it(tuned: dict[str, object], folder: Path) -> None:
    assert json.loads(ranktune("show", "mine", "--json", cwd=folder).stdout) == tuned
    text = ranktune("show", "mine", cwd=folder).stdout
    assert "Chosen by validation" in text
    assert "RankSVM" in text


def test_list_shows_it(tuned: dict[str, object], folder: Path) -> None:
    listed = json.loads(ranktune("show", "--json", cwd=folder).stdout)["studies"]
    assert [(line["study"], line["state"], line["done"]) for line in listed] == [("mine", "finished", 6)]
    assert "mine" in ranktune("show", cwd=folder).stdout


@pytest.mark.thorough
def test_predict_and_evaluate_agree_with_the_report(tuned: dict[str, object], folder: Path) -> None:
    scores = [float(line) for line in ranktune("predict", tuned["model"], "test.txt", cwd=folder).stdout.splitlines()]
    assert len(scores) == 200
    out = ranktune("evaluate", tuned["model"], "test.txt", "--also", "map", "--json", cwd=folder).stdout
    means = {name: metric["mean"] for name, metric in json.loads(out)["metrics"].items()}
    assert means == pytest.approx(tuned["best"]["test_metrics"])  # type: ignore[index]
    ranktune("predict", tuned["model"], "test.txt", "-o", "scores.txt", cwd=folder)
    assert [float(line) for line in (folder / "scores.txt").read_text().splitlines()] == scores


@pytest.mark.thorough
def test_data_tells_what_is_in_a_file(folder: Path) -> None:
    (part,) = json.loads(ranktune("data", "train.txt", "--json", cwd=folder).stdout)["parts"]
    assert (part["queries"], part["documents"], part["features"]) == (40, 400, 4)
    assert "queries" in ranktune("data", "train.txt", cwd=folder).stdout


def test_a_declared_study_runs(folder: Path) -> None:
    (folder / "declared.toml").write_text(
        'data = "train.txt"\ntest = "test.txt"\nsolvers = ["RidgeRanker"]\ntrials = 2\nsampler = "random"\n'
    )
    result = json.loads(ranktune("tune", "declared.toml", "--jobs", 1, "--json", cwd=folder).stdout)
    assert (result["study"], result["trials"]) == ("declared", 2)
    assert "RidgeRanker" in {row["solver"] for row in result["leaderboard"]} <= {"RidgeRanker", "LinearBlend"}


@pytest.mark.thorough
def test_a_letor_folder_is_tuned_fold_by_fold(tmp_path: Path) -> None:
    for number in range(1, 6):
        fold = tmp_path / "FOLDS" / f"Fold{number}"
        fold.mkdir(parents=True)
        for place, (part, queries) in enumerate((("train", 15), ("vali", 6), ("test", 6))):
            letor(fold / f"{part}.txt", queries, 10 * number + place)
    result = json.loads(ranktune("tune", "FOLDS", "--trials", 3, *SOLVERS, "--json", cwd=tmp_path).stdout)
    assert [fold["name"] for fold in result["folds"]] == [f"Fold{k}" for k in range(1, 6)]
    assert result["best"]["test"] == pytest.approx(np.mean([fold["best"]["test"] for fold in result["folds"]]))
    assert result["trials"] == 15
    assert all(Path(fold["model"]).is_file() for fold in result["folds"])


@pytest.mark.thorough
def test_queries_in_two_files_are_told_and_never_learnt_and_scored(folder: Path) -> None:
    said = ranktune("tune", "train.txt", "--vali", "train.txt", "--trials", 2, *SOLVERS, cwd=folder, check=2).stderr
    assert "training queries are also among the" in said and "leave vali out" in said
    both = (folder / "train.txt").read_text() + (folder / "test.txt").read_text()
    (folder / "both.txt").write_text(both)
    done = ranktune("tune", "both.txt", "--test", "test.txt", "--trials", 2, *SOLVERS, "--json", cwd=folder)
    assert "training queries are also among the test queries" in done.stderr


BAD = {
    "0 1:1\n": "qid",
    "1 qid:1 1:inf\n": "inf",
    "x qid:1 1:1\n": "bad.txt:1",
    "1 qid:1 1:1 1:2\n": "bad.txt:1",
    "": "holds no documents",
    "1 qid:1 1:1\n1 qid:2 1:1\n": "nothing to learn",
    "1 qid:1 1:1\n0 qid:1 1:2\n": "query",
}


@pytest.mark.thorough
@pytest.mark.parametrize(("text", "said"), BAD.items(), ids=range(len(BAD)))
def test_bad_data_gives_one_message_and_exit_code_2(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "bad.txt").write_text(text)
    done = ranktune("tune", "bad.txt", "--trials", 2, *SOLVERS, cwd=tmp_path, check=2)
    assert done.stdout == ""
    assert "error: " in done.stderr
    assert said in done.stderr


@pytest.mark.parametrize(
    ("command", "message", "shown"),
    [
        ("data", "pass one_based=False", "pass --zero-based"),
        ("tune", "pass missing='zero', or leave out until=.", "pass --missing zero, or leave out until (study file)."),
        (
            "resume",
            "Choose another name (name=), or extend=True.",
            "Choose another name (--name), or extend = true (study file).",
        ),
        ("solvers", "alpha=1.0: give home=, or seed=3", "alpha=1.0: give --home, or seed=3"),
        ("tune", "ranktune.register_solver adds your own.", "--solver module:Name adds your own."),
    ],
)
def test_arguments_in_messages_are_shown_as_options(
    command: str, message: str, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ranktune.command_line.app import app
    from ranktune.command_line.messages import as_options

    monkeypatch.setattr(sys, "argv", ["ranktune", command])
    assert as_options(message, typer.main.get_command(app)) == shown


@pytest.mark.thorough
def test_remedies_are_options(tmp_path: Path) -> None:
    (tmp_path / "bad.txt").write_text("1 qid:1 0:1\n")
    assert "--zero-based" in ranktune("data", "bad.txt", cwd=tmp_path, check=2).stderr
    (tmp_path / "bad.txt").write_text("1 qid:1 1:inf\n")
    assert "--missing zero" in ranktune("data", "bad.txt", cwd=tmp_path, check=2).stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("tune", "train.txt", "--metric", "ndgc@10"), "ndcg"),
        (("tune", "train.txt", "--solver", "RankSWM"), "Did you mean 'RankSVM'"),
        (("tune", "train.txt", "--sampler", "bayes"), "Known:"),
        (("tune", "tarin.txt", "--jobs", "2"), "tarin.txt"),  # said by the process that reads
        (("tune", "train.txt", "--home", "train.txt"), "cannot write to"),
        (("show", "nothing"), "no study 'nothing'"),
        (
            ("predict", "ranktune-runs/mine/model.json", "test.txt", "-o", "none/scores.txt"),
            "cannot write none/scores.txt",
        ),
        (("show", "../nothing"), "may not begin with a dot"),
        (("resume", "nothing"), "no study 'nothing'"),
        (("predict", "none.json", "train.txt"), "none.json"),
        (("tune", "none.toml"), "cannot read the study"),
    ],
)
@pytest.mark.usefixtures("tuned")
def test_bad_options_give_one_message_and_exit_code_2(folder: Path, arguments: tuple[str, ...], said: str) -> None:
    done = ranktune(*arguments, cwd=folder, check=2)
    assert done.stdout == ""
    assert said in done.stderr


def test_help_is_instant_and_teaches() -> None:
    begun = os.times().children_user + os.times().children_system
    text = subprocess.run(
        [sys.executable, "-m", "ranktune", "--help"], capture_output=True, text=True, check=True
    ).stdout
    assert os.times().children_user + os.times().children_system - begun < 1.0  # no numeric library was loaded
    assert "ranktune tune" in text
    assert "Your data" in text


TRIALS = 12
Trials: TypeAlias = dict[int, tuple[object, ...]]
"""Number of a trial -> its value and parameters."""


def finished_numbers(folder: Path) -> Trials:
    """Read the record with a separate connection, as another program would."""
    from ranktune.tuner.storage.record import Record, number_of

    if not (folder / "record.db").exists():
        return {}
    record = Record(folder, folder.name, "ndcg@10")
    try:
        return {number_of(t): (t.value, tuple(sorted(t.params.items()))) for t in record.trials()}
    finally:
        record.close()


def done_in(record: Path) -> int:
    """Return how many trials have ended, by a record that another process may be about to make."""
    if record.exists():
        with closing(sqlite3.connect(record)) as database, suppress(sqlite3.OperationalError):
            (done,) = database.execute("SELECT COUNT(*) FROM trials WHERE state = 'COMPLETE'").fetchone()
            return int(done)
    return 0


def killed_and_resumed(folder: Path, name: str, done: int, delay: float, jobs: int = 1) -> tuple[Trials, Trials]:
    """Kill a study delay seconds after so many trials and resume it; return the trials before and after that."""
    command = ["tune", "train.txt", "--test", "test.txt", "--trials", str(TRIALS), "--name", name, "--jobs", str(jobs)]
    command += ["--solver", "RankSVM", "--solver", "RidgeRanker", "--sampler", "random", "--json"]
    process = subprocess.Popen(
        [sys.executable, "-m", "ranktune", *command], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    runs = folder / "ranktune-runs" / name
    while process.poll() is None and not ((runs / "record.db").exists() and done_in(runs / "record.db") >= done):
        time.sleep(0.1)
    time.sleep(delay)
    process.send_signal(signal.SIGKILL)
    process.wait()
    before = finished_numbers(runs)
    result = json.loads(ranktune("resume", name, "--jobs", jobs, "--json", cwd=folder).stdout)
    assert result["trials"] == TRIALS
    return before, finished_numbers(runs)


def test_a_study_whose_last_trial_never_ended_resumes_without_loss(finished: Finished, tmp_path: Path) -> None:
    from ranktune.tuner.storage.record import Record

    home = finished.copied(tmp_path, "interrupted")
    record = Record(home / "interrupted", "interrupted", "ndcg@10")
    record.study.ask()  # as a kill leaves it
    record.close()
    before = finished_numbers(home / "interrupted")
    resumed = ranktune("resume", "interrupted", "--jobs", 1, "--home", home, "--json", cwd=tmp_path)
    assert json.loads(resumed.stdout)["trials"] == FINISHED and len(before) == DONE
    after = finished_numbers(home / "interrupted")
    assert before.items() <= after.items() and len(after) == FINISHED


@pytest.mark.thorough
@pytest.mark.parametrize("number", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in range(1, 30))])
def test_a_study_killed_at_any_moment_resumes_without_loss(folder: Path, number: int) -> None:
    done, delay = (number % TRIALS, random.Random(number).uniform(0.0, 0.3)) if number else (3, 0.0)
    before, after = killed_and_resumed(folder, f"killed-{number}", done, delay, jobs=1 + number % 2)
    assert len(before) >= done
    assert before.items() <= after.items() and sorted(after) == list(range(TRIALS))


@pytest.mark.thorough
def test_an_interrupt_says_how_to_go_on(folder: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "ranktune", "tune", "train.txt", "--trials", "100000", *SOLVERS, "--name", "stopped"],
        cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    while not (folder / "ranktune-runs" / "stopped" / "record.db").exists():
        time.sleep(0.05)
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "ranktune resume" in errors
    assert "Traceback" not in errors
    result = json.loads(ranktune("show", "stopped", "--json", cwd=folder).stdout)
    assert result["state"] == "interrupted"
    assert "of 100000 trials" in ranktune("show", "stopped", cwd=folder).stdout
