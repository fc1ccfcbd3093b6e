"""The private names of loky that are used exist in the installed joblib, and do what they are used for."""

from __future__ import annotations

import inspect
import io
import os
import pickle

from joblib.externals.loky import process_executor
from joblib.externals.loky.backend import reduction

from ranktune.tuner.workers import loky_internals
from tests.support.process_samples import SOON


def test_the_names_exist() -> None:
    parameters = inspect.signature(process_executor.ProcessPoolExecutor).parameters
    assert {"max_workers", "env", "initializer", "initargs"} <= set(parameters)
    assert "kill_workers" in inspect.signature(process_executor.ProcessPoolExecutor.shutdown).parameters
    assert process_executor._MAX_MEMORY_LEAK_SIZE > 0
    assert callable(reduction.dump)


def test_a_pool_has_one_process_and_a_thread_that_ends() -> None:
    pool = loky_internals.start_pool({"RANKTUNE_TEST": "1"}, os.getpid, ())  # type: ignore[arg-type]
    assert loky_internals.process_of(pool) is None
    assert pool.submit(os.getenv, "RANKTUNE_TEST").result(SOON) == "1"
    process, thread = loky_internals.process_of(pool), loky_internals.manager_thread(pool)
    assert process is not None and thread is not None
    assert pool.submit(os.getpid).result(SOON) == process.pid
    pool.shutdown(wait=False, kill_workers=True)
    thread.join(SOON)
    assert not thread.is_alive()
    assert process.exitcode is not None


def test_functions_are_pickled_by_value() -> None:
    file = io.BytesIO()
    loky_internals.dump(lambda: 7, file)
    assert pickle.loads(file.getvalue())() == 7
