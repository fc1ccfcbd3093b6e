"""Studies whose workers are killed at any moment: nothing that finished is lost, nothing is done twice.

Coordinators are killed by tests.fuzzing.campaign.
"""

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from optuna.trial import FrozenTrial, TrialState

from ranktune.tuner.storage.attributes import RESTARTS
from ranktune.tuner.storage.record import Record, number_of
from ranktune.tuner.study.events import read_events
from tests.support import survivor
from tests.support.commands import letor
from tests.support.process_samples import alive, children, soon

SURVIVOR = Path(survivor.__file__)


def start(
    folder: Path, trials: int, jobs: int, seconds: float, *storage: str, role: str = "own"
) -> subprocess.Popen[str]:
    command = [sys.executable, str(SURVIVOR), role, str(folder), str(trials), str(jobs), str(seconds), *storage]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(folder: Path, trials: int, jobs: int, seconds: float, *storage: str) -> float:
    """Run to the end and return the seconds until the first trial was asked for."""
    process = start(folder, trials, jobs, seconds, *storage)
    out, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    first, last = out.split()
    assert last == "finished"
    return float(first)


def wait_for(reached: Callable[[], object], process: subprocess.Popen[str]) -> None:
    """Wait for something while a process runs."""
    until = time.monotonic() + 120.0
    while not reached():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until
        time.sleep(0.02)


def acknowledged(folder: Path) -> list[int]:
    file = folder / "acks"
    return [int(line) for line in file.read_text().splitlines()] if file.exists() else []


def checked(folder: Path, trials: int, *storage: str) -> list[FrozenTrial]:
    """Return the trials of a finished study: exactly those that were asked for, each once, none still running."""
    record = Record(folder, survivor.NAME, "ndcg@10", *storage)
    try:
        result = record.trials()
        assert record.leases.rows() == []
        assert {t.state for t in record.study.get_trials(deepcopy=False)} <= {TrialState.COMPLETE, TrialState.FAIL}
    finally:
        record.close()
    assert [number_of(trial) for trial in result] == list(range(trials))
    space = survivor.study(trials).union_space()
    for trial in result:
        if trial.value is not None:
            assert trial.value == (survivor.value_of(*space.split(trial.params)) + 0.5) / 2
    return result


def workers_of(process: subprocess.Popen[str]) -> list[int]:
    """Return the processes that run trials of a coordinator, which another one forks."""
    return [pid for server in children(process.pid) for pid in children(server)]


def check_workers_killed(folder: Path, kills: int, trials: int) -> None:
    generator = random.Random(kills)
    folder.mkdir()
    process = start(folder, trials, 4, 0.2)
    done = 0
    while done < kills and process.poll() is None:
        time.sleep(generator.uniform(0.05, 0.4))
        workers = workers_of(process)
        if workers and acknowledged(folder):
            os.kill(generator.choice(workers), signal.SIGKILL)
            done += 1
    out, errors = process.communicate(timeout=600)
    assert process.returncode == 0, errors
    assert out.split()[-1] == "finished"
    assert done == kills, "the study ended too early to be a test"
    result = checked(folder, trials)
    reissued = Counter(event["trial"] for event in read_events(folder) if event["event"] == "reissued")
    assert reissued, "no trial was interrupted: no test"
    assert max(reissued.values()) == 1
    asked = {event["trial"]: event["params"] for event in read_events(folder) if event["event"] == "asked"}
    for trial in result:
        number = number_of(trial)
        assert trial.user_attrs.get(RESTARTS, 0) == reissued[number]
        assert trial.params == asked[number]
        assert trial.state == TrialState.COMPLETE or reissued[number]


def test_a_killed_worker_costs_its_trial_one_new_start(tmp_path: Path) -> None:
    check_workers_killed(tmp_path / "s", 4, 40)


def test_workers_that_join_and_are_killed_cost_nothing(tmp_path: Path) -> None:
    """Two join a study of one lane; one of them is killed, and what it had is begun once more by somebody else."""
    folder = tmp_path / "s"
    folder.mkdir()
    owner = start(folder, 60, 1, 0.2)
    wait_for(lambda: acknowledged(folder), owner)
    workers = [start(folder, 60, 1, 0.2, role="join") for _ in range(2)]
    wait_for(lambda: len(set(joined_events(folder))) == 2, owner)
    time.sleep(1.0)
    workers[0].kill()
    workers[0].communicate()
    _, errors = owner.communicate(timeout=120)
    assert owner.returncode == 0, errors
    (folder / "over").touch()
    ran = int(workers[1].communicate(timeout=30)[0])
    result = checked(folder, 60)
    assert ran > 0
    assert {t.state for t in result} == {TrialState.COMPLETE}
    assert sum(":" in t.user_attrs.get("worker", "") for t in result) >= ran


def joined_events(folder: Path) -> list[str]:
    return [event["worker"] for event in read_events(folder) if event["event"] == "worker_joined"]


pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def processes_of(token: str) -> list[int]:
    """Return the processes whose environment has the token: all descendants of a command, also orphans."""
    found = psutil.process_iter(["environ"])
    return [one.pid for one in found if token in (one.info["environ"] or {}).values() and alive(one.pid)]


def check_processes_end(seconds: float, folder: Path) -> None:
    """Kill a study of two workers so long after its first line; check that its processes end."""
    token = f"{folder.name}-{seconds:.6f}"
    with subprocess.Popen(
        [sys.executable, "-m", "ranktune", "tune", "train.txt", "--trials", "5000", "--jobs", "2", "--name", "n"],
        cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=os.environ | {"RANKTUNE_HOME": str(folder / f"{seconds:.6f}"), "TOKEN": token},
    ) as process:  # fmt: skip
        assert process.stderr is not None and process.stderr.readline()
        time.sleep(seconds)
        process.kill()
    assert soon(lambda: not processes_of(token)), f"{processes_of(token)} are left, killed after {seconds} s"


def test_processes_of_a_killed_coordinator_end(tmp_path: Path) -> None:
    letor(tmp_path / "train.txt", 100, 1, documents=20)
    generator = random.Random(0)
    for _ in range(4):
        check_processes_end(generator.uniform(0.0, 5.0), tmp_path)
