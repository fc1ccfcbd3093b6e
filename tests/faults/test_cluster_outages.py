"""Clusters that go away while a study runs on them, and come back or do not: no trial fails, each is done once."""

import os
import signal
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ranktune import api
from ranktune.solvers.core.errors import StudyError
from ranktune.tuner.search.progress import Silent
from ranktune.tuner.study.events import read_events
from ranktune.tuner.workers import joblib_executor
from tests.support.clusters import DaskCluster
from tests.support.commands import letor
from tests.support.process_samples import SOON

TRIALS = 24


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[DaskCluster]:
    """A scheduler and two workers of its own, or a skip where Dask is not here."""
    pytest.importorskip("distributed")
    made = started(tmp_path / "cluster")
    yield made
    made.end()


def started(folder: Path) -> DaskCluster:
    folder.mkdir()
    cluster = DaskCluster(folder)
    workers(cluster)
    return cluster


def workers(cluster: DaskCluster) -> list[int]:
    return [cluster.worker("--no-nanny") for _ in range(2)]


class Acting(Silent):
    """Does something as soon as so many trials are in the record; keeps the number of each."""

    def __init__(self, act: Callable[[], object] = lambda: None, after: int = 4) -> None:
        self.done: list[int] = []
        self._act, self._after = act, after

    def trial(self, report: Any) -> None:
        self.done.append(report.number)
        if len(self.done) == self._after:
            threading.Thread(target=self._act).start()


def tuned(folder: Path, cluster: DaskCluster, progress: Silent) -> Any:
    """Run the study on the cluster, which may not have its workers yet; return its result with the warnings."""
    data = letor(folder / "train.txt", 30, 1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = api.tune(
            data, test="none", solvers=["tests.support.custom_solvers:Slow"], sampler="random", full=True,
            trials=TRIALS, name="n", home=folder / "home", executor="joblib:dask", address=cluster.address,
            progress=progress,
        )  # fmt: skip
    return result, [str(warning.message) for warning in caught]


def check(folder: Path, result: Any) -> None:
    """Check that all trials are there, none of them failed, and each was done once."""
    assert result.trials == TRIALS and list(result.failures) == []
    events = Counter(
        (event["event"], event["trial"]) for event in read_events(folder / "home" / "n") if "trial" in event
    )
    assert {key: count for key, count in events.items() if key[0] == "finished"} == {
        ("finished", number): 1 for number in range(TRIALS)
    }


@pytest.mark.parametrize("how", ["scheduler killed", "workers killed", "scheduler stopped"])
def test_a_cluster_that_comes_back_costs_nothing(
    how: str, cluster: DaskCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(joblib_executor, "ANSWER_SECONDS", 1.0)

    def act() -> None:
        if how == "scheduler stopped":
            os.kill(cluster.scheduler, signal.SIGSTOP)
            time.sleep(6.0)
            os.kill(cluster.scheduler, signal.SIGCONT)
            return
        for process in cluster.processes[1:] if how == "workers killed" else cluster.processes[:1]:
            process.kill()
        time.sleep(3.0)
        if how == "scheduler killed":
            cluster.restart()
        workers(cluster)

    result, said = tuned(tmp_path, cluster, Acting(act))
    check(tmp_path, result)
    assert any("Dask cluster at" in line and "is away" in line and "Waiting for it" in line for line in said), said
    assert any("answers again after" in line for line in said), said
    assert not any(trial.user_attrs.get("restarts") for trial in result.optuna_study.trials)


def test_a_cluster_that_does_not_come_back_ends_the_study_resumably(
    cluster: DaskCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It goes on with another cluster at another address."""
    monkeypatch.setattr(joblib_executor, "PATIENCE", 12.0)
    progress = Acting(cluster.processes[0].kill)
    begun = time.monotonic()
    with pytest.raises(StudyError, match=r"was away for 12 seconds.*`ranktune resume` goes on"):
        tuned(tmp_path, cluster, progress)
    assert time.monotonic() - begun < 4 * SOON
    assert 4 <= len(progress.done) < TRIALS
    other = started(tmp_path / "other")
    try:
        there: dict[str, Any] = {"executor": "joblib:dask", "address": other.address}
        result = api.resume("n", home=tmp_path / "home", progress=Silent(), **there)
    finally:
        other.end()
    check(tmp_path, result)
