"""Limits inside the worker, with the data of a study, and what may be asked for."""

import math
import pickle
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from ranktune.solvers.core.errors import ParameterError, ResultRefused, TooLong, WorkerLost
from ranktune.solvers.data.queries import Queries
from ranktune.tuner.splits.memory import uncounted
from ranktune.tuner.splits.plans import PLAN, query_folds
from ranktune.tuner.splits.store import read_development, write_problem
from ranktune.tuner.workers.executor import InProcess, Processes, make_executor
from ranktune.tuner.workers.limits import MAX_RESULT_BYTES, CallLimits, check_limits, pickled, run
from ranktune.tuner.workers.workforce import COORDINATOR, MIN_TRIAL, WORKER, Workforce


def with_the_data(folder: str, more: int) -> float:
    """Map the data, touch a page of it, and take so many bytes more."""
    features = read_development(folder).features
    taken = np.ones(more, dtype=np.uint8)
    return float(features[0, 0]) + float(taken[-1])


@pytest.mark.skipif(sys.platform != "linux", reason="memory can be limited on Linux only")
def test_the_data_do_not_count_and_what_is_taken_beside_them_does(tmp_path: Path) -> None:
    features = np.full((2000, 10_000), 2.0)  # 160 MB
    queries = Queries.from_arrays(features, np.arange(2000) % 3, qid=np.repeat(np.arange(200), 10))
    write_problem(queries, {PLAN: query_folds(queries, 2, 0)}, tmp_path / "all")
    del features, queries
    folder, limits = str(tmp_path / "all"), CallLimits(bytes=128 * 2**20)
    with Processes(1, limits) as executor:
        for _ in range(2):  # when they are mapped, and when they are already
            assert executor.submit(with_the_data, folder, 64 * 2**20).result(60.0) == 3.0
            with pytest.raises(MemoryError, match="more than the 128 MiB"):
                executor.submit(with_the_data, folder, 192 * 2**20).result(60.0)


def test_what_does_not_count_needs_no_limit() -> None:
    with uncounted():
        assert bytearray(10) == bytes(10)


def test_a_result_is_refused_before_it_takes_memory() -> None:
    array = np.zeros(MAX_RESULT_BYTES // 8 + 1)
    tracemalloc.start()
    try:
        with pytest.raises(ResultRefused, match="more than 64 MiB"):
            pickled([array], MAX_RESULT_BYTES)
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()
    assert len(pickle.loads(pickled([array], None))[0]) == len(array)
    assert len(pickled(b"x" * 1000, 1100)) <= 1100
    with pytest.raises(ResultRefused):
        pickled(b"x" * 1000, 1000)  # with what pickle adds it is more


def test_what_is_not_a_function_is_an_error_like_any_other() -> None:
    returned, payload = run(b"nonsense", CallLimits())
    assert not returned
    assert isinstance(pickle.loads(payload), Exception)


def test_errors_of_workers_travel() -> None:
    for error in (WorkerLost("killed by signal 9", "words"), TooLong(2.5), ResultRefused("too large")):
        unpickled = pickle.loads(pickle.dumps(error))
        assert (type(unpickled), str(unpickled), vars(unpickled)) == (type(error), str(error), vars(error))


@pytest.mark.parametrize("seconds", [0, -1.0, math.nan, math.inf])
def test_limits_that_nothing_could_keep_are_refused(seconds: float) -> None:
    with pytest.raises(ParameterError, match="trial_timeout="):
        check_limits(CallLimits(seconds=seconds))
    with pytest.raises(ParameterError, match="trial_memory="):
        make_executor(2, CallLimits(bytes=0))


def test_memory_is_limited_on_linux_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(ParameterError, match="on Linux only"):
        check_limits(CallLimits(bytes=1))
    check_limits(CallLimits(seconds=1.0))


def test_one_job_with_limits_runs_in_a_process_that_can_be_ended() -> None:
    assert isinstance(make_executor(1), InProcess)
    assert isinstance(make_executor(1, CallLimits()), InProcess)
    assert isinstance(make_executor(1, CallLimits(seconds=1.0)), Processes)


def limits_of(force: Workforce) -> tuple[int, int | None]:
    executor = force.assembled()
    assert isinstance(executor, Processes)
    return executor.jobs, executor.limits.bytes


def test_trials_share_what_the_processes_leave() -> None:
    total = COORDINATOR + 2 * (WORKER + MIN_TRIAL)
    assert limits_of(Workforce(2, memory=total)) == (2, MIN_TRIAL)
    jobs, trial = limits_of(Workforce(2, memory=total - 1))
    assert jobs == 1 and trial is not None
    assert total - 1 == COORDINATOR + WORKER + trial


def test_a_limit_of_each_trial_says_how_many_run() -> None:
    assert limits_of(Workforce(8, trial_memory="1GB", memory="4GB")) == (3, 10**9)
    assert limits_of(Workforce(2, trial_memory="1GB", memory="4GB")) == (2, 10**9)


def test_a_note_says_what_is_done() -> None:
    assert Workforce(2).note == "" and isinstance(Workforce(1).assembled(), InProcess)
    assert Workforce(8, trial_memory="1GB", memory="4GB").note == "memory=4GB: 3 trials at once, of 1.0 GB each"


def test_too_little_is_refused_with_what_is_needed() -> None:
    with pytest.raises(ParameterError, match="a study needs at least 577 MB"):
        Workforce(2, memory="400MB")
    with pytest.raises(ParameterError, match="memory='much'"):
        Workforce(2, memory="much")
    with pytest.raises(ParameterError, match="the trials run elsewhere"):
        Workforce(memory="4GB", executor="joblib:dask", address="tcp://h:1")
