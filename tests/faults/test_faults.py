"""A disk that is full or broken, at each operation in turn: one line says so, nothing is lost or half done."""

import os
import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest

from ranktune.solvers.core.errors import RankTuneWarning, StudyError
from ranktune.tuner.evaluation.task import TaskOutcome
from ranktune.tuner.storage.leases import Offer
from ranktune.tuner.storage.record import Record, number_of
from tests.support.faults import Faults
from tests.tuner.storage.test_record import DISTRIBUTIONS, PARAMS

TRIALS = 2


def outcome_of(number: int, size: int = 20) -> TaskOutcome:
    values = np.random.default_rng(number).random(size)
    return TaskOutcome({"map": values}, begun=1e9 + number, ended=1e9 + number + 1.0, seconds=1.0)


def run(folder: Path, acknowledged: list[int], trials: int = TRIALS, size: int = 20, checked: bool = False) -> int:
    """Run the trials that are missing; acknowledged gets each that is in the record.

    Return how many there were before; with checked, check the record before and after.
    """
    record = Record(folder, "s", "map")
    try:
        before = check(record, acknowledged, size) if checked else 0
        token = record.leases.acquire("here", os.getpid(), "now", alive=lambda pid: False)
        record.settle()
        done = {number_of(trial) for trial in record.trials()}
        record.leases.give_back([lease.token for lease in record.leases.rows()])
        for number in sorted(set(range(trials)) - done):
            assert record.leases.give(Offer(number, PARAMS), "lane") is not None
            record.append(number, PARAMS, DISTRIBUTIONS, outcome_of(number, size))
            acknowledged.append(number)
        record.leases.release(token, concluded=True)
        if checked:
            assert check(record, acknowledged, size) == trials
            assert record.leases.rows() == []
    finally:
        record.close()
    return before


def check(record: Record, acknowledged: list[int], size: int) -> int:
    """Check that the record is whole and holds what was acknowledged; return how many trials it holds."""
    trials = record.trials()
    numbers = [number_of(trial) for trial in trials]
    assert len(set(numbers)) == len(numbers)
    assert set(acknowledged) <= set(numbers)
    assert [trial.number for trial in sorted(trials, key=lambda t: t._trial_id)] == list(range(len(trials)))
    for trial, number in zip(trials, numbers, strict=True):
        expected = outcome_of(number, size).per_query["map"]
        np.testing.assert_array_equal(record.per_query(trial)["map"], expected)
        assert (trial.params, trial.value) == (PARAMS, expected.mean())
    return len(trials)


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A record that is there already, with no trials."""
    folder = tmp_path_factory.mktemp("begun")
    run(folder, [], trials=0)
    return folder


def test_a_full_disk_at_every_fourth_operation_in_turn(begun: Path, tmp_path: Path) -> None:
    """Faults that pass, and other errors, come in the campaigns of tests.fuzzing.campaign."""
    at, is_over = 1, False
    while not is_over:
        folder = tmp_path / str(at)
        shutil.copytree(begun, folder)
        acknowledged: list[int] = []
        with Faults(at, folder) as faults:
            said = refused(folder, acknowledged)
        is_over = faults.what is None
        assert is_over == (said == "")
        if said:
            assert "\n" not in said and len(said) < 300 and "ranktune resume" in said
            assert any(cause in said for cause in ("is full", "No space left"))
            run(folder, acknowledged, checked=True)
        at += 4
    assert acknowledged == list(range(TRIALS)) and at > 20 * TRIALS


def refused(folder: Path, acknowledged: list[int]) -> str:
    """Run the trials, and return the error, "" if there is none."""
    try:
        run(folder, acknowledged)
    except StudyError as raised:
        return str(raised)
    return ""


def test_a_commit_whose_answer_is_lost_is_not_done_twice(begun: Path, tmp_path: Path) -> None:
    """A commit is done, and then said to have failed by something that passes."""
    for at in range(1, 100, 3):
        folder = tmp_path / str(at)
        shutil.copytree(begun, folder)
        acknowledged: list[int] = []
        lost = Faults(at, folder, kinds=("do_commit",), lasts=False, answer_lost=True, says="database is locked")
        with lost, warnings.catch_warnings():
            warnings.filterwarnings("ignore", "the record .* (does not answer|answers again)", RankTuneWarning)
            run(folder, acknowledged)
        run(folder, acknowledged, checked=True)
        if lost.what is None:
            break
    assert at > 2 * TRIALS
