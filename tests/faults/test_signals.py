"""Signals to a study in a separate process: it stops soon, says how to go on, and loses nothing."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from optuna.trial import TrialState

from ranktune.tuner.selection.results import load_result
from ranktune.tuner.storage.attributes import RESTARTS
from ranktune.tuner.storage.leases import WAITING
from ranktune.tuner.storage.record import Record, number_of
from ranktune.tuner.study.events import read_events
from tests.faults.test_survival import checked, finish, start, wait_for, workers_of
from tests.support import survivor
from tests.support.commands import letor, study_file
from tests.support.process_samples import alive, soon

SOON = 10.0
"""Seconds in which all is over: a safety net, of twice what is promised."""


def started(folder: Path, count: int) -> bool:
    events = list(read_events(folder))
    running = [event["trial"] for event in events if event["event"] == "started"]
    return len(running) >= count


def ended(process: subprocess.Popen[str], lanes: list[int], *signals: signal.Signals) -> tuple[str, float]:
    """Send signals, a moment apart, and return what was said and how long it took; no worker is left."""
    begun = time.monotonic()
    for place, number in enumerate(signals):
        if place:
            time.sleep(0.5)
        process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    elapsed = time.monotonic() - begun
    assert soon(lambda: not any(map(alive, lanes)))
    return errors, elapsed


def asked(folder: Path) -> dict[int, Any]:
    return {event["trial"]: event["params"] for event in read_events(folder) if event["event"] == "asked"}


@pytest.mark.parametrize(
    ("signals", "seconds", "finished"),
    [
        ([signal.SIGINT], 1.4, 2),
        ([signal.SIGTERM], 100.0, 0),
        ([signal.SIGINT, signal.SIGINT], 100.0, 0),
    ],
    ids=lambda value: "+".join(sent.name for sent in value) if isinstance(value, list) else str(value),
)
def test_what_runs_on_lanes_is_finished_or_put_back(
    tmp_path: Path, signals: list[signal.Signals], seconds: float, finished: int
) -> None:
    """Two trials of 0.7 to 2.1 seconds are finished; those of 50 to 150 are put back, with their parameters."""
    folder = tmp_path / "s"
    folder.mkdir()
    process = start(folder, 6, 2, seconds)
    wait_for(lambda: started(folder, 2), process)
    time.sleep(0.3)
    errors, elapsed = ended(process, workers_of(process), *signals)
    assert elapsed < (SOON if len(signals) == 1 else 5.0)
    assert process.returncode != 0
    assert "Interrupted" in errors
    record = Record(folder, survivor.NAME, "ndcg@10")
    done = {number_of(trial) for trial in record.trials()}
    rows = {lease.number: lease for lease in record.leases.rows()}
    record.close()
    begun = {event["trial"] for event in read_events(folder) if event["event"] == "started"}
    assert done | set(rows) == begun
    assert not done & set(rows)
    assert len(done) == finished
    assert {(lease.state, lease.attempt) for lease in rows.values()} <= {(WAITING, 1)}
    before = asked(folder)
    finish(folder, 6, 2, 0.01)
    for trial in checked(folder, 6):
        assert trial.state == TrialState.COMPLETE
        assert RESTARTS not in trial.user_attrs
        if number_of(trial) in before:
            assert trial.params == before[number_of(trial)]


def tune(folder: Path, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "ranktune", "tune", "n.toml", "--sampler", "random", "--solver", "LambdaRank"]
    study_file(folder / "n.toml", data="train.txt", full=True)  # what is stopped does not count as finished
    environment = {name: value for name, value in os.environ.items() if name != "RANKTUNE_HOME"}
    return subprocess.Popen(
        [*command, "--name", "n", *map(str, arguments)], cwd=folder, env=environment,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def tuned_until_two_trials_have_finished(folder: Path, trials: int, jobs: int) -> subprocess.Popen[str]:
    letor(folder / "train.txt", 150, 1, documents=20)
    process, study = tune(folder, "--trials", trials, "--jobs", jobs), folder / "ranktune-runs" / "n"

    def reached() -> bool:
        events = [event["event"] for event in read_events(study)] if study.is_dir() else []
        return events.count("finished") >= 2

    wait_for(reached, process)
    return process


@pytest.mark.parametrize("jobs", [1, 2])
def test_the_first_ctrl_c_ends_the_search(tmp_path: Path, jobs: int) -> None:
    process = tuned_until_two_trials_have_finished(tmp_path, 4000, jobs)
    errors, _ = ended(process, workers_of(process), signal.SIGINT)
    assert process.returncode == 0, errors
    (done,) = map(int, re.findall(r"Ctrl-C ended the search after (\d+) trials; choosing from these", errors))
    result = load_result(tmp_path / "ranktune-runs" / "n" / "result.json")
    assert result.trials == done < 4000 and result.is_complete
    assert f"Ctrl-C ended the search after {done} of 4000 trials" in result.ended_early
    assert Path(result.model).is_file()


@pytest.mark.skipif(sys.platform != "linux", reason="closes a terminal as Linux does")
def test_a_command_whose_terminal_is_closed_ends_with_its_code(tmp_path: Path) -> None:
    ours, its = os.openpty()
    os.close(ours)
    command = [sys.executable, "-m", "ranktune", "show", "none"]
    done = subprocess.run(command, stdout=its, stderr=its, cwd=tmp_path, check=False)
    os.close(its)
    assert done.returncode == 2
