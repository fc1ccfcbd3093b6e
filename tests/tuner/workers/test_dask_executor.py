"""A real scheduler with two worker processes on loopback: what runs there, what dies there, what is not there."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from ranktune.solvers.core.errors import ParameterError, StudyError, TooLong, WorkerLost
from ranktune.tuner.evaluation.objective import evaluate
from ranktune.tuner.evaluation.task import Task
from ranktune.tuner.splits.archive import pack_problem, store
from ranktune.tuner.splits.plans import PLAN, query_folds
from ranktune.tuner.splits.store import read_development, write_problem
from ranktune.tuner.study.events import read_events
from ranktune.tuner.workers.dask_executor import DaskWorkers
from ranktune.tuner.workers.executor import Executor, Limits, make_executor
from tests.support.engine_samples import judged
from tests.support.process_samples import SOON, alive, pid_in, soon

pytestmark = pytest.mark.thorough

pytest.importorskip("distributed")


class Cluster:
    """A scheduler and workers as processes of their own, known by their numbers."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.processes: list[subprocess.Popen[bytes]] = []
        self.environment = os.environ | {"RANKTUNE_CACHE": str(folder / "cache"), "PYTHONWARNINGS": "ignore"}
        file = folder / "scheduler.json"
        self.start("scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(file), "--no-dashboard")
        self.address = ""
        until = time.monotonic() + SOON
        while not self.address and time.monotonic() < until:
            time.sleep(0.05)
            with suppress(OSError, ValueError):  # not yet written, or not all of it
                self.address = json.loads(file.read_text())["address"]

    def start(self, kind: str, *options: str) -> int:
        """Start a process of Dask's and return its number."""
        command = [sys.executable, "-m", "distributed.cli.dask_" + kind, *options]
        with open(self.folder / f"{len(self.processes)}.log", "wb") as log:
            process = subprocess.Popen(command, env=self.environment, cwd=self.folder, stdout=log, stderr=log)
        self.processes.append(process)
        return process.pid

    def worker(self, *options: str) -> int:
        """Start a worker of one thread."""
        alone = ("--nthreads", "1", "--no-dashboard", "--host", "127.0.0.1", "--local-directory", str(self.folder))
        return self.start("worker", self.address, *alone, *options)

    def end(self) -> None:
        for process in reversed(self.processes):
            process.terminate()
        for process in self.processes:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path_factory.mktemp("dask"))
    try:
        assert cluster.address, "the scheduler does not start"
        for _ in range(2):
            cluster.worker("--no-nanny")
        yield cluster
    finally:
        cluster.end()


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


def test_trials_run_on_the_workers_within_their_limits(cluster: Cluster) -> None:
    with connected(cluster) as executor:
        assert executor.jobs == 2
        futures = [executor.submit(os.getpid) for _ in range(12)]
        pids = {future.result(SOON) for future in futures}
        assert len(pids) == 2
        assert os.getpid() not in pids
        with pytest.raises(ZeroDivisionError):
            executor.submit(divmod, 1, 0).result(SOON)
        with pytest.raises(WorkerLost, match="exited with code 3"):
            executor.submit(os._exit, 3).result(SOON)
        with pytest.raises(TooLong, match=r"0\.5 seconds"):
            executor.submit(time.sleep, 1000.0, limits=Limits(seconds=0.5)).result(SOON)
        assert executor.call(os.getpid) not in pids  # here, in a process of its own
        running = executor.submit(time.sleep, 1000.0)
        executor.stop(running)
        with pytest.raises(WorkerLost, match="stopped"):
            running.result(SOON)
        assert [executor.submit(abs, -n).result(SOON) for n in range(4)] == [0, 1, 2, 3]


def test_the_data_come_along_and_to_those_who_join_later(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    queries = judged(20, 0)
    folder = tmp_path / "home" / "all-0123"
    write_problem(queries, {PLAN: query_folds(queries, 3, 0)}, folder)
    task = Task(str(folder), ("ndcg@10",), "RidgeRanker", {}, 0)
    here = evaluate(task)
    assert here.error is None
    with connected(cluster) as executor:
        # the workers are to find no such folder: it is moved away while it is packed
        away = tmp_path / "away"

        def pack_and_move(path: Path) -> bytes:
            content = pack_problem(path)
            shutil.move(path, away)
            return content

        monkeypatch.setattr("ranktune.tuner.workers.dask_executor.pack_problem", pack_and_move)
        outcomes = [executor.submit(evaluate, task).result(4 * SOON) for _ in range(4)]
        cluster.worker("--no-nanny")
        until = time.monotonic() + SOON
        while executor.jobs < 3:
            assert time.monotonic() < until
            time.sleep(0.1)
        futures = [executor.submit(evaluate, task) for _ in range(3)]
        assert isinstance(executor, DaskWorkers)
        assert len({job.address for job in executor._unfinished()}) == 3
        outcomes += [future.result(4 * SOON) for future in futures]
    for outcome in outcomes:
        assert outcome.error is None
        np.testing.assert_array_equal(outcome.per_query["ndcg@10"], here.per_query["ndcg@10"])
    monkeypatch.setenv("RANKTUNE_CACHE", str(cluster.folder / "cache"))
    assert len(list(store().iterdir())) == 1
    read_development.cache_clear()


def test_a_worker_that_dies_loses_its_function_which_is_not_begun_again(cluster: Cluster, tmp_path: Path) -> None:
    def begins() -> None:
        with open(tmp_path / "begun", "a") as file:
            file.write(f"{os.getppid()}\n")
        time.sleep(1000.0)

    with connected(cluster) as executor:
        jobs = executor.jobs
        future = executor.submit(begins)
        os.kill(pid_in(tmp_path / "begun"), signal.SIGKILL)
        with pytest.raises(WorkerLost, match="left or died"):
            future.result(SOON)
        assert executor.jobs == jobs - 1
        assert [executor.submit(abs, -n).result(SOON) for n in range(4)] == [0, 1, 2, 3]
        time.sleep(1.0)  # time for Dask to begin it again
        assert len((tmp_path / "begun").read_text().splitlines()) == 1


def test_what_a_killed_coordinator_had_running_is_ended(cluster: Cluster, tmp_path: Path) -> None:
    code = f"""
import os, time
from ranktune.tuner.study.events import read_events
from ranktune.tuner.workers.executor import make_executor
def begins():
    print(os.getpid(), file=open({str(tmp_path / "begun")!r}, "w"), flush=True)
    time.sleep(1000)
if __name__ == "__main__":
    make_executor(1, None, "dask", {cluster.address!r}).submit(begins).result()
"""
    (tmp_path / "run.py").write_text(code)
    with subprocess.Popen([sys.executable, str(tmp_path / "run.py")]) as coordinator:
        pid = pid_in(tmp_path / "begun")
        coordinator.kill()
    assert soon(lambda: not alive(pid))


def test_a_worker_of_another_version_gets_no_trial(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    with connected(cluster, 1):
        pass
    monkeypatch.setattr("ranktune.tuner.workers.dask_executor.this_version", lambda: "99.0")
    with pytest.raises(StudyError, match=r"has RankTune 0\.\S+, here it is 99\.0"):
        make_executor(1, None, "dask", cluster.address)


def test_a_study_goes_on_where_a_worker_dies(cluster: Cluster, tmp_path: Path) -> None:
    """From the command line, on a file; what is found is what processes of this machine find.

    In full: whom a trial is raced against depends on which others have ended.
    """
    features, trials = judged(60, 0), 24
    lines = [
        f"{int(grade)} qid:{row // 12} " + " ".join(f"{k}:{value:.4f}" for k, value in enumerate(values, start=1))
        for row, (grade, values) in enumerate(zip(features.grades, features.features, strict=True))
    ]
    (tmp_path / "train.txt").write_text("\n".join(lines) + "\n")
    with connected(cluster, 2) as executor:
        before = executor.jobs
    victim = cluster.worker("--no-nanny")
    with connected(cluster, before + 1):
        pass
    command = [
        sys.executable, "-m", "ranktune", "tune", "train.txt", "--solver", "RidgeRanker", "--solver", "BestFeature",
        "--sampler", "random", "--full", "--trials", str(trials), "--json",
    ]  # fmt: skip
    there = [*command, "--executor", "dask", "--address", cluster.address, "--name", "there"]
    pipes = {"cwd": tmp_path, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    log = tmp_path / "ranktune-runs" / "there" / "events.jsonl"
    with subprocess.Popen(there, **pipes) as study:  # type: ignore[call-overload]
        assert soon(lambda: log.exists() and '"finished"' in log.read_text()) or study.poll() is None
        os.kill(victim, signal.SIGKILL)
        out, errors = study.communicate(timeout=8 * SOON)
    assert study.returncode == 0, errors
    found = json.loads(out)
    here = json.loads(subprocess.run([*command, "--jobs", "1", "--name", "here"], check=True, **pipes).stdout)  # type: ignore[call-overload]
    assert found["trials"] == here["trials"] == trials
    assert found["failures"] == []
    for name in ("estimate", "test_metrics"):
        assert found[name] == here[name]
    assert [(row["solver"], row["params"], row["vali"]) for row in found["leaderboard"]] == [
        (row["solver"], row["params"], row["vali"]) for row in here["leaderboard"]
    ]
    finished = [event["trial"] for event in read_events(log.parent) if event["event"] == "finished"]
    assert sorted(finished) == list(range(trials))


def test_a_scheduler_that_dies_leaves_nobody_waiting(tmp_path: Path) -> None:
    own = Cluster(tmp_path)
    try:
        own.worker("--no-nanny")
        executor = connected(own, 1)
        future = executor.submit(time.sleep, 1000.0)
        own.processes[0].kill()
        with pytest.raises(WorkerLost):
            future.result(4 * SOON)
        executor.__exit__(KeyboardInterrupt, None, None)
    finally:
        own.end()


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:9", "nonsense", "tcp://no.such.host.invalid:8786"])
def test_an_address_without_a_scheduler_is_told_in_one_line(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ranktune.tuner.workers.dask_executor.CONNECT_SECONDS", 0.5)
    begun = time.monotonic()
    with pytest.raises(StudyError, match="no Dask scheduler answers") as caught:
        make_executor(1, None, "dask", address)
    assert "\n" not in str(caught.value)
    assert time.monotonic() - begun < SOON


def test_what_does_not_go_together_is_refused() -> None:
    with pytest.raises(ParameterError, match="go together"):
        make_executor(2, None, "dask")
    with pytest.raises(ParameterError, match="go together"):
        make_executor(2, None, address="tcp://127.0.0.1:9")
    with pytest.raises(ParameterError, match="Did you mean 'dask'"):
        make_executor(2, None, "daks")
