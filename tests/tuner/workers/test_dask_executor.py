"""A real scheduler with two worker processes on loopback: what runs there, what dies there, what is not there."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest

from ranktune.solvers.core.errors import ParameterError, StudyError, WorkersAway
from ranktune.tuner.study.events import read_events
from ranktune.tuner.workers.clusters import base
from ranktune.tuner.workers.clusters.host import versions
from ranktune.tuner.workers.executor import Executor, Limits, make_executor
from tests.support.clusters import DaskCluster as Cluster
from tests.support.commands import study_file, write_letor
from tests.support.engine_samples import graded
from tests.support.process_samples import SOON, soon

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(find_spec("distributed") is None, reason="distributed is not here"),
]


@pytest.fixture
def cluster(dask_cluster: Cluster) -> Cluster:
    return dask_cluster


def connected(cluster: Cluster, jobs: int = 2, limits: Limits | None = None) -> Executor:
    """An executor of the cluster, once it has so many jobs."""
    until = time.monotonic() + SOON
    while True:
        try:
            executor = make_executor(1, limits, "dask", cluster.address)
            if executor.jobs >= jobs:
                return executor
            executor.__exit__(None, None, None)
        except StudyError:
            assert time.monotonic() < until
        time.sleep(0.2)


def test_a_worker_of_another_version_gets_no_trial(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    with connected(cluster, 1):
        pass
    ours = replace(versions(), ranktune="99.0")
    monkeypatch.setattr("ranktune.tuner.workers.clusters.base.versions", lambda: ours)
    with pytest.raises(StudyError, match=r"has RankTune 0\.\S+, here it is 99\.0"):
        make_executor(1, None, "dask", cluster.address)


def test_a_study_goes_on_where_a_worker_dies(cluster: Cluster, tmp_path: Path) -> None:
    """From the command line, on a file; what is found is what processes of this machine find.

    In full: whom a trial is raced against depends on which others have ended.
    """
    features, trials = graded(60, 0), 24
    write_letor(tmp_path / "train.txt", features.features, features.grades, features.query_of_document)
    with connected(cluster, 2) as executor:
        before = executor.jobs
    victim = cluster.worker("--no-nanny")
    with connected(cluster, before + 1):
        pass
    command = [
        sys.executable, "-m", "ranktune", "tune", study_file(tmp_path / "s.toml", data="train.txt", full=True),
        "--solver", "RidgeRanker", "--solver", "BestFeature", "--sampler", "random", "--trials", str(trials), "--json",
    ]  # fmt: skip
    there = [*command, "--executor", "dask", "--address", cluster.address, "--name", "there"]
    pipes = {"cwd": tmp_path, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    log = tmp_path / "ranktune-runs" / "there" / "events.jsonl"
    with subprocess.Popen(there, **pipes) as study:  # type: ignore[call-overload]
        assert soon(lambda: log.exists() and '"finished"' in log.read_text()) or study.poll() is None
        os.kill(victim, signal.SIGKILL)
        out, errors = study.communicate(timeout=8 * SOON)
    assert study.returncode == 0, errors
    result = json.loads(out)
    here = json.loads(subprocess.run([*command, "--jobs", "1", "--name", "here"], check=True, **pipes).stdout)  # type: ignore[call-overload]
    assert result["trials"] == here["trials"] == trials
    assert result["failures"] == []
    for name in ("estimate", "test_metrics"):
        assert result[name] == here[name]
    assert [(row["solver"], row["params"], row["vali"]) for row in result["leaderboard"]] == [
        (row["solver"], row["params"], row["vali"]) for row in here["leaderboard"]
    ]
    finished = [event["trial"] for event in read_events(log.parent) if event["event"] == "finished"]
    assert sorted(finished) == list(range(trials))


def test_a_scheduler_that_dies_leaves_nobody_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is waited for, but not for ever."""
    monkeypatch.setattr(base, "PATIENCE", 2.0)
    cluster = Cluster(tmp_path)
    try:
        cluster.worker("--no-nanny")
        executor = connected(cluster, 1)
        future = executor.submit(time.sleep, 1000.0)
        cluster.processes[0].kill()
        with pytest.raises(WorkersAway, match="was away for 2 seconds"):
            future.result(4 * SOON)
        executor.__exit__(KeyboardInterrupt, None, None)
    finally:
        cluster.end()


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:9", "nonsense", "tcp://no.such.host.invalid:8786"])
def test_an_address_without_a_scheduler_is_told_in_one_line(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ranktune.tuner.workers.clusters.dask_executor.CONNECT_SECONDS", 0.5)
    begun = time.monotonic()
    with pytest.raises(StudyError, match="no Dask scheduler answers") as caught:
        make_executor(1, None, "dask", address)
    assert "\n" not in str(caught.value)
    assert time.monotonic() - begun < SOON


def test_an_unknown_executor_is_refused() -> None:
    with pytest.raises(ParameterError, match="Did you mean 'dask'"):
        make_executor(2, None, "daks")
