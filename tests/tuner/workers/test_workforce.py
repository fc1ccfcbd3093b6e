"""A limit of the whole study bounds its trials, and how many run at once."""

import pytest

from ranktune.solvers.core.errors import ParameterError
from ranktune.tuner.workers.executor import InProcess, Processes
from ranktune.tuner.workers.workforce import COORDINATOR, MIN_TRIAL, WORKER, Workforce


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
        Workforce(memory="4GB", executor="dask", address="tcp://h:1")
