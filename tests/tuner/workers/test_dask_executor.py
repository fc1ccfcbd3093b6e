"""A real scheduler with two worker processes on loopback: what runs there, what dies there, what is not there."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from ranktune.solvers.core.errors import ParameterError, StudyError
from ranktune.tuner.workers.clusters.host import versions
from ranktune.tuner.workers.executor import Executor, Limits, make_executor
from tests.support.clusters import DaskCluster as Cluster
from tests.support.process_samples import SOON

pytestmark = pytest.mark.thorough

pytest.importorskip("distributed")


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
