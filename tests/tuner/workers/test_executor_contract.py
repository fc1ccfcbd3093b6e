"""What every executor promises: processes of this machine, and backends of joblib."""

import os
import signal
import subprocess
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
import psutil
import pytest

from ranktune.solvers.core.errors import ParameterError, ResultRefused, StudyError, TooLong, WorkerLost, WorkersAway
from ranktune.solvers.data.queries import Queries
from ranktune.tuner.evaluation.evaluate import attempt
from ranktune.tuner.evaluation.task import Task
from ranktune.tuner.splits.archive import pack_problem
from ranktune.tuner.splits.plans import PLAN, query_folds
from ranktune.tuner.splits.store import read_development, store, write_problem
from ranktune.tuner.workers import joblib_executor
from ranktune.tuner.workers.executor import CLUSTERS, CallLimits, Executor, make_executor
from tests.support.clusters import DaskCluster
from tests.support.engine_samples import graded
from tests.support.process_samples import SOON, Lasting, alive, pid_in, soon

ELSEWHERE = tuple(
    pytest.param(f"joblib{backend}", marks=pytest.mark.thorough) for backend in (":dask", ":ray", ":threading")
)


@pytest.fixture(params=["processes", "joblib", *ELSEWHERE])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def address(kind: str, request: pytest.FixtureRequest) -> str | None:
    backend = kind.partition(":")[2]
    return str(request.getfixturevalue(f"{backend}_cluster").address) if backend in CLUSTERS else None


@contextmanager
def connected(kind: str, address: str | None) -> Iterator[Executor]:
    """An executor of two jobs at least, as soon as the cluster has them."""
    with make_executor(0 if address else 2, None, kind, address) as executor:
        assert soon(lambda: executor.jobs >= 2)
        yield executor


@pytest.fixture
def executor(kind: str, address: str | None, two_lanes: Lasting) -> Iterator[Executor]:
    with two_lanes if kind == "processes" else connected(kind, address) as executor:
        yield executor


def test_results_warnings_and_exceptions_come_back(executor: Executor) -> None:
    def own(number: int) -> tuple[int, int]:
        return number * number, os.getpid()

    results = [future.result(SOON) for future in [executor.submit(own, number) for number in range(12)]]
    assert [square for square, _ in results] == [number * number for number in range(12)]
    assert os.getpid() not in {pid for _, pid in results}
    with pytest.raises(ZeroDivisionError) as caught:
        executor.submit(divmod, 1, 0).result(SOON)
    assert "In the worker process" in caught.value.__notes__[0]
    with pytest.raises(ResultRefused, match="cannot be pickled: TypeError: cannot pickle 'generator'"):
        executor.submit(lambda: (number for number in range(3))).result(SOON)
    with pytest.raises(ResultRefused, match="more than 64 MiB"):
        executor.submit(bytes, 2**27).result(SOON)

    def warned() -> int:
        warnings.warn("odd", UserWarning, stacklevel=1)
        return 7

    with pytest.warns(UserWarning, match="odd"):
        assert executor.call(warned) == 7
    assert executor.call(os.getpid) != os.getpid()


def test_limits_are_kept_and_are_those_of_one_function(executor: Executor) -> None:
    with pytest.raises(TooLong, match=r"0\.5 seconds"):
        executor.submit(time.sleep, 1000.0, limits=CallLimits(seconds=0.5)).result(SOON)

    def takes(size: int) -> int:
        return len(np.empty(size, np.uint8))

    with pytest.raises(MemoryError, match="more than the 1024 MiB"):
        executor.submit(takes, 2**32, limits=CallLimits(bytes=2**30)).result(SOON)
    assert executor.submit(takes, 2**31).result(SOON) == 2**31


def test_a_worker_that_dies_loses_its_function_only(executor: Executor, tmp_path: Path) -> None:
    def sleeps(name: str) -> None:
        (tmp_path / name).write_text(f"{os.getpid()}\n")
        time.sleep(1000.0)

    other, killed = executor.submit(sleeps, "other"), executor.submit(sleeps, "killed")
    os.kill(pid_in(tmp_path / "killed"), signal.SIGKILL)
    with pytest.raises(WorkerLost, match="killed by signal 9"):
        killed.result(SOON)
    with pytest.raises(WorkerLost, match="exited with code 3"):
        executor.submit(os._exit, 3).result(SOON)
    assert [executor.submit(abs, -number).result(SOON) for number in range(4)] == [0, 1, 2, 3]
    assert alive(pid_in(tmp_path / "other")) and not other.done()
    executor.stop(other)
    with pytest.raises(WorkerLost, match="stopped"):
        other.result(SOON)
    assert soon(lambda: not alive(pid_in(tmp_path / "other")))


def test_what_waits_can_be_stopped_and_leaving_early_ends_all(kind: str, address: str | None, tmp_path: Path) -> None:
    def sleeps(number: int) -> None:
        (tmp_path / str(number)).write_text(f"{os.getpid()}\n")
        time.sleep(1000.0)

    with pytest.raises(KeyboardInterrupt), connected(kind, address) as executor:
        futures = [executor.submit(sleeps, number) for number in range(executor.jobs + 1)]
        pids = [pid_in(tmp_path / str(number)) for number in range(executor.jobs)]
        executor.stop(futures[-1])
        with pytest.raises(WorkerLost, match="stopped"):
            futures[-1].result(SOON)
        assert all(alive(pid) for pid in pids)
        raise KeyboardInterrupt
    assert all(isinstance(future.exception(SOON), WorkerLost) for future in futures)
    assert soon(lambda: not any(alive(pid) for pid in pids))


def test_workers_end_with_a_driver_that_is_killed(kind: str, address: str | None, tmp_path: Path) -> None:
    code = f"""
import os, time
from ranktune.tuner.workers.executor import make_executor
def begins():
    print(os.getpid(), file=open({str(tmp_path / "begun")!r}, "w"), flush=True)
    time.sleep(1000)
if __name__ == "__main__":
    make_executor(2, None, {kind!r}, {address!r}).submit(begins).result()
"""
    (tmp_path / "run.py").write_text(code)
    with subprocess.Popen([sys.executable, str(tmp_path / "run.py")]) as driver:
        pid = pid_in(tmp_path / "begun")
        driver.kill()
    assert soon(lambda: not alive(pid))


@pytest.mark.parametrize("kind", ["joblib", *ELSEWHERE[:2]])
def test_a_worker_of_joblib_that_dies(
    kind: str, executor: Executor, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Dask begins its function anew elsewhere, by itself; on the others it is lost, and not begun anew."""

    def begins() -> int:
        with open(tmp_path / "begun", "a") as file:
            file.write(f"{worker_of(os.getpid())}\n")
        if len((tmp_path / "begun").read_text().splitlines()) < 2:
            time.sleep(1000.0)
        return 7

    future = executor.submit(begins)
    if kind == "joblib:dask":
        request.getfixturevalue("dask_cluster").worker("--no-nanny")
    os.kill(pid_in(tmp_path / "begun"), signal.SIGKILL)
    if kind == "joblib:dask":
        assert future.result(SOON) == 7
    else:
        with pytest.raises(WorkerLost, match="left or died"):
            future.result(SOON)
    assert [executor.submit(abs, -number).result(SOON) for number in range(4)] == [0, 1, 2, 3]
    time.sleep(1.0)  # time to begin it again
    assert len((tmp_path / "begun").read_text().splitlines()) == 1 + (kind == "joblib:dask")


def worker_of(pid: int) -> int:
    """The worker of joblib that a process of ours belongs to: its parent, or that of what forked it."""
    parents = psutil.Process(pid).parents()
    return int(parents["fork_server" in str(parents[0].cmdline())].pid)


def mapped(folder: str) -> tuple[int, int]:
    """The process, and how often it has read the data now."""
    before = read_development.cache_info().misses
    read_development(folder)
    return os.getpid(), read_development.cache_info().misses - before


def test_the_data_are_mapped_once_a_worker(executor: Executor, tmp_path: Path) -> None:
    queries: Queries = graded(20, 0)
    folder = tmp_path / "home" / "all-0123"
    write_problem(queries, {PLAN: query_folds(queries, 3, 0)}, folder)
    results = [future.result(SOON) for future in [executor.submit(mapped, str(folder)) for _ in range(10)]]
    assert Counter(pid for pid, misses in results if misses) == dict.fromkeys({pid for pid, _ in results}, 1)


@pytest.mark.parametrize("kind", ELSEWHERE[:2])
def test_the_data_are_packed_once_and_kept_by_the_workers(
    kind: str,
    executor: Executor,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    """Workers that see the folder of the data get nothing."""
    queries, backend = graded(20, 0), kind.partition(":")[2]
    folder, hidden = tmp_path / "home" / f"all-{backend}", tmp_path / "hidden"
    write_problem(queries, {PLAN: query_folds(queries, 3, 0)}, folder)
    task = Task(str(folder), ("ndcg@10",), "RidgeRanker", {}, 0)
    here, packed = attempt(task), list[Path]()

    def noted(path: Path) -> bytes:
        packed.append(path)
        return pack_problem(hidden)

    monkeypatch.setattr(joblib_executor, "pack_problem", noted)
    seen = executor.submit(attempt, task).result(4 * SOON)
    assert packed == []
    folder.rename(hidden)
    monkeypatch.setattr(Path, "is_dir", lambda path: path == folder or os.path.isdir(path))
    outcomes = [seen, *(future.result(4 * SOON) for future in [executor.submit(attempt, task) for _ in range(6)])]
    for outcome in outcomes:
        assert outcome.error is None
        np.testing.assert_array_equal(outcome.per_query["ndcg@10"], here.per_query["ndcg@10"])
    assert packed == [folder]
    monkeypatch.setenv("RANKTUNE_CACHE", str(request.getfixturevalue(f"{backend}_cluster").folder / "cache"))
    assert len([path for path in store().iterdir() if path.name.startswith(folder.name)]) == 1
    read_development.cache_clear()


@pytest.mark.parametrize("backend", CLUSTERS)
def test_a_cluster_and_an_address_go_together(backend: str) -> None:
    with pytest.raises(ParameterError, match=f"executor='joblib:{backend}' and address=.* go together"):
        make_executor(2, None, f"joblib:{backend}")
    with pytest.raises(ParameterError, match="go together"):
        make_executor(2, None, address="tcp://127.0.0.1:9")
    with pytest.raises(ParameterError, match=f"Give executor='joblib:{backend}'"):
        make_executor(2, None, backend, "tcp://127.0.0.1:9")


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("backend", "address"),
    [
        *(("dask", address) for address in ("tcp://127.0.0.1:9", "nonsense", "tcp://no.such.host.invalid:8786")),
        *(
            ("ray", address)
            for address in ("127.0.0.1:9", "ray://127.0.0.1:9", "nonsense", "no.such.host.invalid:6379")
        ),
    ],
)
def test_an_address_where_no_cluster_is(backend: str, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed" if backend == "dask" else backend)
    if backend == "dask":
        monkeypatch.setattr("ranktune.tuner.workers.dask_backend.CONNECT_SECONDS", 0.5)
    with pytest.raises(StudyError, match=rf"no (Dask|Ray) cluster answers at '{address}'") as caught:
        make_executor(2, None, f"joblib:{backend}", address)
    assert "\n" not in str(caught.value)


@pytest.mark.thorough
def test_a_worker_of_another_version_runs_nothing(dask_cluster: DaskCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joblib_executor, "versions", lambda: "RankTune 99.0 on Python 3.99")
    with connected("joblib:dask", dask_cluster.address) as executor:
        with pytest.raises(WorkersAway, match=r"has RankTune 0\.\S+ on .*, here it is RankTune 99\.0 on"):
            executor.submit(abs, -1).result(SOON)


@pytest.mark.thorough
def test_what_a_worker_of_dask_cannot_load_fails(dask_cluster: DaskCluster) -> None:
    """joblib itself would wait for ever."""
    with connected("joblib:dask", dask_cluster.address) as executor:
        Unknown = type("Unknown", (CallLimits,), {"__module__": "no_such_module"})
        with patch.dict(sys.modules, {"no_such_module": SimpleNamespace(Unknown=Unknown)}):
            with pytest.raises(WorkersAway, match=r"a worker of dask, or its scheduler, has no RankTune"):
                executor.submit(abs, -1, limits=Unknown()).result(SOON)
